"""A certificate for a W of unknown origin.

Any feasible dual point gives a valid bound; a tight one has to be found. The directions d_e / ||d_e|| of W itself
are useless on edges that fuse, so the fast solver is started from W and its best dual point is taken. Nothing
has to be believed for that: D is evaluated from (alpha, U) alone.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from llr_cvx import validation as check
from llr_cvx.arrays import FloatArray
from llr_cvx.problem import Problem
from llr_cvx.proofs.certificate import Certificate, certificate
from llr_cvx.solvers.fast.solver import minimise
from llr_cvx.solvers.run import Best, Run, capped
from llr_cvx.solvers.starts import cold_start, warm_start

#: Relative gap that the search for a dual point aims at, and the iterations it may take.
SEARCH_TOL, SEARCH_ITERATIONS = 1e-12, 150


def certify(
    problem: Problem,
    W: ArrayLike,
    alpha: ArrayLike | None = None,
    U: ArrayLike | None = None,
    *,
    time_limit: float | None = None,
) -> Certificate:
    """What can be proved about W, whoever made it.

    Parameters
    ----------
    problem : Problem
    W : array-like of shape (N, d)
        Any finite matrix.
    alpha, U : array-like of shape (N,) and (E, d), optional
        A dual point to use as it is (made feasible first). Without U one is searched for.
    time_limit : float, optional
        Seconds after which the search takes the best dual point found; an iteration that runs is finished.

    Returns
    -------
    Certificate

    Examples
    --------
    >>> p = Problem([[1.0], [2.0]], [1, -1], [[0, 1]], [1.0], lambda1=0.1, lambda2=1.0)
    >>> c = certify(p, [[0.0], [0.0]])
    >>> c.dual <= c.primal
    True
    """
    W = check.weight_matrix(W, problem.shape)
    if U is not None:
        return certificate(problem, W, problem.alpha(W) if alpha is None else alpha, U)
    best = search(problem, W, time_limit)
    return certificate(problem, W, best.alpha, best.U)


def search(problem: Problem, W: FloatArray, time_limit: float | None = None) -> Best:
    """The best dual point (and a W at least as good) that the fast solver finds, starting from W if that helps."""
    if not problem.attained:  # J has no minimiser, and J* >= 0 is all there is to prove
        best = Best(problem, W)
        best.primal(W, problem.objective(W))
        return best
    limit = np.inf if time_limit is None else check.real_number(time_limit, "time_limit", strict=True)
    model = capped(problem)
    helps = problem.objective(W) < problem.objective(np.zeros(problem.shape))
    start = warm_start(model, W) if helps else cold_start(model)
    run = Run(problem, model, SEARCH_TOL, start, SEARCH_ITERATIONS, limit)
    minimise(run)
    run.best.W = run.lowest.W
    return run.best
