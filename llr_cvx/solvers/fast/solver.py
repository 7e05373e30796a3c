"""The production solver: IRLS, splitting, and Newton's method on the active face, each where it is fastest.

    start                          phases
    W = 0, or a W alone            IRLS until it is slow; splitting, or the finish where most edges are fused; IRLS
    solutions for other lambdas    splitting; IRLS

The first method to prove the gap ends the run; IRLS, which converges from anywhere, is the last resort. IRLS is slow
once its systems take many conjugate gradient iterations, and for many samples. The finish minimises J on the active
face that a method has identified: where that face is right, it goes to rounding error at once, and support and
clusters are exact. It is tried for a tol of FINISH_TOL or less, and where a method ends without a proof.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from llr_cvx.arrays import FloatArray
from llr_cvx.problem import Problem
from llr_cvx.solution import Solution
from llr_cvx.solvers import settings
from llr_cvx.solvers.face import Face
from llr_cvx.solvers.fast.finish import Finish
from llr_cvx.solvers.fast.splitting import Rounds, Splitting, applies
from llr_cvx.solvers.irls import Irls, round_off
from llr_cvx.solvers.run import Run, Step, begin
from llr_cvx.solvers.starts import Start, cold_start, fused_share, start_near


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
    minimise(run)
    return run.solution("FAST", "rounding, or scales that differ by many orders of magnitude")


def minimise(run: Run) -> None:
    """The strategy above, until the run is over."""
    problem, best, start = run.problem, run.best, run.start
    point: Start | None = None
    if start.neighbour:
        best.bound(problem.alpha(start.W), problem.radii[:, None] * start.duals.u)
        fused = fused_share(problem, start.duals.u)
        point = split(run, start) if applies(problem) and fused <= settings.MAX_FUSED_WARM else start
    if point is None:
        irls = Irls(problem, cold_start(problem) if start.neighbour else start, best)
        run.record(irls.name, irls.iterate)
        reweight(run, irls, until_slow=True)
        if run.over:
            return
        if fused_share(problem, irls.duals.u) > settings.MAX_FUSED_COLD:
            finish(run, irls.face, irls.U)
        elif applies(problem):
            point = split(run, irls.point)
    if point is not None and not run.over:
        irls = Irls(problem, point, best)
        run.record(irls.name, irls.iterate)
    if not run.over:
        reweight(run, irls)


def reweight(run: Run, irls: Irls, until_slow: bool = False) -> None:
    """IRLS with the finish where exact support and clusters are wanted, or where IRLS is done."""
    exact = run.tol <= settings.FINISH_TOL
    gap = settings.FIRST_FINISH if exact else run.tol
    while not (run.over or irls.done or (until_slow and slow(irls, run))):
        run.follow(irls, lambda: run.best.relative_gap <= gap or (until_slow and slow(irls, run)))  # noqa: B023
        if (exact and run.best.relative_gap <= gap) or irls.done:
            finish(run, irls.face, irls.U)
            gap = settings.NEXT_FINISH * run.best.relative_gap
    if run.proved:
        round_off(run, irls)


def slow(irls: Irls, run: Run) -> bool:
    """Whether the systems of IRLS are hard, or other methods can go on from its gap and are faster."""
    many = run.problem.shape[0] > settings.DENSE
    small_gap = run.best.relative_gap <= (settings.MANY_HANDOVER if many else settings.HANDOVER)
    return irls.n_cg > settings.HARD_CG or (small_gap and (many or irls.n_cg > settings.SLOW_CG))


def split(run: Run, start: Start) -> Start | None:
    """Splitting with the finish, and where IRLS should go on from; None where splitting got nowhere.

    For many samples double precision goes on where single precision ends.
    """
    problem, best, before = run.problem, run.best, run.best.relative_gap
    many = problem.shape[0] > settings.DENSE
    W, U = start.W, problem.radii[:, None] * start.duals.u
    for dtype in (np.float32, np.float64) if many else (np.float32,):
        gap = max(run.tol, settings.SINGLE_PRECISION_GAP) if dtype is np.float32 else run.tol
        splitting = Splitting(Rounds(problem, W, U, dtype), best, gap)
        run.follow(splitting)
        if splitting.failed or best.relative_gap > settings.SPLITTING_GAIN * before:
            return None
        W, U = splitting.face.W, splitting.U
        wanted = run.tol <= settings.FINISH_TOL or not run.proved
        if wanted and best.relative_gap <= settings.HANDOVER:
            finish(run, splitting.face, U)
        if run.over:
            break
    return start_near(problem, W, U / np.maximum(problem.radii, 1e-300)[:, None])


def finish(run: Run, face: Face, U: FloatArray) -> None:
    """Newton's method on a face; a large one is not tried before its W is almost exact."""
    large = face.free.sum() > settings.MAX_FREE * len(face.w) and run.best.relative_gap > settings.FINISH_TOL
    limited = run.over and not run.proved
    if run.problem.lambda2 > 0 and not (large or limited):  # without lambda2 a face may have flat directions
        method = Finish(face, U, run.best)
        run.record(method.name, method.step())
