"""The production solver: IRLS and splitting, each where it is faster.

    start                          phases
    W = 0, or a W alone            IRLS until it is slow; splitting; IRLS
    solutions for other lambdas    splitting, unless lambda2 is small; IRLS

The first method to prove the gap ends the run; IRLS, which converges from anywhere, is the last resort. It is slow for
many samples, for gaps that single precision reaches, and where a system takes many conjugate gradient iterations.
Splitting is left out where most edges are fused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from llr_cvx.arrays import row_dot
from llr_cvx.problem import Problem
from llr_cvx.solution import Solution
from llr_cvx.solvers import settings
from llr_cvx.solvers.fast.splitting import Rounds, Splitting, applies
from llr_cvx.solvers.irls import Irls, round_off, rounding_proves
from llr_cvx.solvers.run import Run, Step, begin, one_blas_thread
from llr_cvx.solvers.starts import Duals, Start, cold_start, start_near


def solve_fast(
    problem: Problem,
    tol: float = 1e-6,
    *,
    W0: ArrayLike | Solution | Sequence[Solution] | None = None,
    max_iter: int = 300,
    time_limit: float | None = None,
    callback: Callable[[Step], object] | None = None,
    progress: bool = False,
) -> Solution:
    """Solve Eq. (5) until the certificate proves a relative gap of at most `tol`, as fast as possible.

    Arguments and result are those of `solve_irls`; a tol of 1e-12 is within reach. `Trace.phase` names the method that
    made each iterate; outside IRLS, J may rise from one to the next.

    Examples
    --------
    >>> from llr_cvx.datasets import make_synthetic
    >>> X_inlier, X_test, _ = make_synthetic(d=5, random_state=0)
    >>> s = solve_fast(Problem.from_samples(X_inlier, X_test), tol=1e-12)
    >>> s.status, s.certificate.relative_gap <= 1e-12
    ('optimal', True)
    """
    run = begin(problem, tol, W0, max_iter, time_limit, callback, progress)
    with one_blas_thread():
        minimise(run)
    return run.solution("FAST", "rounding, or scales that differ by many orders of magnitude")


def minimise(run: Run) -> None:
    """The strategy above, until the run is over."""
    problem, start = run.problem, run.start
    point: Start | None = None
    if start.neighbour:
        run.best.bound(problem.alpha(start.W), problem.radii[:, None] * start.duals.u)
        point = split(run, start) if splits(problem, start.duals) and not dense_weights(problem) else start
        start = cold_start(problem)
    if point is None:
        irls = reweight(run, start, lambda irls: slow(irls, run))
        if not (run.over or rounding_proves(run, irls)) and splits(problem, irls.duals):
            point = split(run, irls.point, hard=irls.n_cg > settings.HARD_CG)
        if point is None:
            run.follow(irls, lambda: rounding_proves(run, irls))
    if point is not None and not run.over:
        irls = reweight(run, point)
    if run.phase == "irls" and (run.proved or irls.done or rounding_proves(run, irls)):
        round_off(run, irls)


def reweight(run: Run, start: Start, enough: Callable[[Irls], bool] = lambda _: False) -> Irls:
    """IRLS until the run is over, or this is enough of it."""
    irls = Irls(run.problem, start, run.best)
    run.record(irls.name, irls.iterate)
    run.follow(irls, lambda: enough(irls) or rounding_proves(run, irls))
    return irls


def slow(irls: Irls, run: Run) -> bool:
    """Whether its systems are hard, or splitting can go on from its gap: for many samples, or in single precision."""
    suited = run.problem.shape[0] > settings.DENSE or run.tol >= settings.SINGLE_PRECISION_GAP
    return irls.n_cg > settings.HARD_CG or (suited and run.best.relative_gap <= settings.HANDOVER)


def splits(problem: Problem, duals: Duals) -> bool:
    """Whether splitting applies, and not too many edges are fused: those that couple, with u_e inside the unit ball."""
    fused = (row_dot(duals.u, duals.u) < settings.INSIDE) & (problem.radii > 0)
    return applies(problem) and fused.sum() <= settings.MAX_FUSED * len(fused)


def dense_weights(problem: Problem) -> bool:
    """Whether lambda2 is so small that splitting is slow even from a solution nearby, and samples are few for IRLS."""
    largest = np.abs(problem.X).max(axis=1)
    small = problem.lambda2 < settings.SMALL_LAMBDA2 * np.median(largest) ** 2
    return bool(small and problem.shape[0] <= settings.DENSE)


def split(run: Run, start: Start, hard: bool = False) -> Start | None:
    """Splitting, in double precision where single precision ends, and where IRLS should go on from.

    It has more patience with many samples, and where IRLS has hard systems. None where it got nowhere.
    """
    rounds_left = settings.MAX_ROUNDS_LEFT[hard or run.problem.shape[0] > settings.DENSE]
    problem, best, before = run.problem, run.best, run.best.relative_gap
    W, U = start.W, problem.radii[:, None] * start.duals.u
    for dtype, gap in ((np.float32, max(run.tol, settings.SINGLE_PRECISION_GAP)), (np.float64, run.tol)):
        splitting = Splitting(Rounds(problem, W, U, dtype), best, gap, rounds_left)
        run.follow(splitting)
        if run.over:
            return start
        if splitting.failed or best.relative_gap > settings.SPLITTING_GAIN * before:
            return None
        W, U = splitting.W, splitting.rounds.offer()[2]
    return start_near(problem, W, U / np.maximum(problem.radii, 1e-300)[:, None])
