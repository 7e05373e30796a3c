"""Eq. (5) in CVXPY: the ground truth, to be read beside the formula."""

from __future__ import annotations

from typing import Any

import cvxpy as cp

from llr_cvx.problem import Problem
from llr_cvx.solution import Solution
from llr_cvx.solvers import conic


def formulate(problem: Problem) -> tuple[cp.Problem, cp.Variable]:
    """Eq. (5) as a CVXPY problem and its variable W; lambda1 and lambda2 are parameters of it.

    >>> p = Problem([[1.0], [2.0]], [1, -1], [[0, 1]], [1.0], lambda1=0.1, lambda2=1.0)
    >>> model, W = formulate(p)
    >>> [parameter.name() for parameter in model.parameters()]
    ['lambda1', 'lambda2']
    """
    X, y, B, omega = problem.X, problem.y, problem.incidence, problem.weights
    lambda1 = cp.Parameter(nonneg=True, name="lambda1", value=problem.lambda1)
    lambda2 = cp.Parameter(nonneg=True, name="lambda2", value=problem.lambda2)
    W = cp.Variable(problem.shape, name="W")
    z = cp.Variable(len(y), name="z")
    D = cp.Variable((max(len(omega), 1), W.shape[1]), name="D")  # CVXPY before 1.9 refuses an empty variable

    logistic = cp.sum(cp.logistic(-cp.multiply(y, z)))
    network = omega @ cp.norm(D, 2, axis=1) if omega.size else 0
    exclusive = cp.sum_squares(cp.norm(W, 1, axis=1))

    J = logistic + lambda1 * network + lambda2 * exclusive
    scores = z == cp.sum(cp.multiply(X, W), axis=1)  # z_i = w_i.x_i, with multiplier alpha_i y_i
    differences = [D == B @ W] if omega.size else []  # d_e = w_i - w_j, with multiplier -U_e
    return cp.Problem(cp.Minimize(J), [scores, *differences]), W


def solve_exact(problem: Problem, solver: str = "CLARABEL", tol: float = 1e-6, **options: Any) -> Solution:
    """Solve Eq. (5) with a conic solver and certify the answer.

    Parameters
    ----------
    problem : Problem
    solver : str
        "CLARABEL", "SCS" or any installed solver for exponential and second-order cones.
    tol : float
        Relative gap up to which the certificate may say "optimal"; what the solver says is only reported.
    **options
        Handed to the solver, for example ``max_iter=50``.

    Returns
    -------
    Solution
        With the status "optimal" only if the certificate proves it. A solver that gives no W raises
        `SolverError`.

    Examples
    --------
    >>> p = Problem([[1.0], [2.0]], [1, -1], [[0, 1]], [1.0], lambda1=0.1, lambda2=1.0)
    >>> solve_exact(p).status
    'optimal'
    """
    return conic.solve(problem, formulate, solver, tol, options)
