"""The arena: any solver, in any language, over problems with a proven optimum; every answer judged, none believed.

`entries` says what a solver looks like, `cases` which problems it gets, `warden` and `sandbox` run it under limits,
`answers` reads what it left, `judge` turns that into a row, `tournament` collects the rows, and `tables`, `page` and
`compare` show them.
"""
