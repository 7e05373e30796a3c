"""How fast the solvers are: measurements, tables and a figure."""
