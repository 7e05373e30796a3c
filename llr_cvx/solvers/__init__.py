"""The solvers: exact (CVXPY), Algorithm 1 as printed, IRLS, the fast production solver, and paths."""
