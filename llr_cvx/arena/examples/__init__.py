"""Two textbook solvers as entries of the arena, to read and to start from."""
