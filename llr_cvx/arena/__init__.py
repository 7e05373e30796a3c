"""The arena: any solver, in any language, over problems with a proven optimum; every answer judged, none believed.

`entries` says what a solver looks like, `warden` and `sandbox` run it under limits, `answers` reads what it left,
`judge` turns that into a row, `tournament` does so for many problems, and `tables`, `page` and `compare` show the rows.
"""
