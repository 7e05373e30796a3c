"""The solvers of the detector, by name."""

from __future__ import annotations

import warnings
from typing import Any

from llr_cvx.problem import Problem
from llr_cvx.solution import ConvergenceWarning, Solution
from llr_cvx.solvers.fast.solver import solve_fast
from llr_cvx.solvers.irls import solve_irls


def solve_with(solver: str, problem: Problem, tol: float, max_iter: int = 300, verbose: Any = False) -> Solution:
    """Run the named solver; warn if W is not proved optimal to `tol`."""
    if solver in ("fast", "irls"):
        solve = solve_fast if solver == "fast" else solve_irls
        told = {"callback": verbose} if callable(verbose) else {"progress": bool(verbose)}
        return solve(problem, tol=tol, max_iter=max_iter, **told)
    if solver != "exact":
        raise ValueError(f'solver must be "fast", "irls" or "exact", got {solver!r}')
    from llr_cvx.solvers.exact import solve_exact  # CVXPY takes a second to import, and only this solver needs it

    solution = solve_exact(problem, tol=tol)
    if solution.status not in ("optimal", "uncertified"):
        warnings.warn(f"{solution.solver}: {solution.message}", ConvergenceWarning, stacklevel=4)
    return solution
