"""Which method follows which: IRLS, pursuit or splitting, then the multipliers, then Newton's method on a face."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import closing
from typing import NamedTuple

import numpy as np

from llr_cvx.arrays import FloatArray
from llr_cvx.problem import Problem
from llr_cvx.solvers.best import Best
from llr_cvx.solvers.fast.multipliers import Multipliers, multiply
from llr_cvx.solvers.fast.polish import polish
from llr_cvx.solvers.fast.pursuit import pursue
from llr_cvx.solvers.fast.reweighting import Duals, line_search, newton_step
from llr_cvx.solvers.fast.splitting import DENSE, Rounds, applies, split
from llr_cvx.solvers.fast.starts import (
    HANDOVER,
    SETTLED,
    SHRINK,
    Start,
    centred,
    cold_start,
    duals_of,
    fused_share,
    multipliers,
)
from llr_cvx.solvers.smoothing import Smoothed, smoothed

FEW = 0.5  # share of fused edges up to which splitting pays from nothing
ROUNDS_END = 5e-7  # relative gap down to which splitting goes: it is done in single precision
FINISH = 1e-9  # a tol from here on asks for the machine-precision finish,
FIRST_TRY, NEXT_TRY = 3e-7, 0.03  # tried at this relative gap, and where it fails at this share of the gap then


class Iterate(NamedTuple):
    """W with J(W), J_epsilon(W) and epsilon; the method of multipliers has epsilon = 0."""

    W: FloatArray
    objective: float
    smoothed_objective: float
    epsilon: float


def iterations(
    problem: Problem, start: Start, best: Best, tol: float, deadline: float = np.inf
) -> Generator[Iterate, None, None]:
    """From the start until tol; what is found is kept in `best`.

    Where a solution for other lambdas was no help, everything begins anew from W = 0.
    """
    for known, objective in start.known or ((start.W, problem.objective(start.W)),):
        best.primal(known, objective)
    best.bound(problem.alpha(start.W), problem.radii[:, None] * start.duals.u)
    if start.near and best.relative_gap > tol:
        yield from by_pursuit(problem, start, best, tol, deadline)
    elif start.splits:
        yield Iterate(best.W, best.objective, best.objective, 0.0)
        if best.relative_gap > tol:
            yield from by_splitting(problem, start.W, start.duals.u, best, tol, deadline)
    else:
        yield from by_reweighting(problem, start, best, tol, deadline)
    if best.relative_gap > tol and start.known:
        again = Best(problem, np.zeros(problem.shape))
        for _ in iterations(problem, cold_start(problem), again, tol, deadline):
            best.primal(again.W, again.objective)
            best.bound(again.alpha, again.U)
            yield Iterate(best.W, best.objective, best.objective, 0.0)


def by_pursuit(
    problem: Problem, start: Start, best: Best, tol: float, deadline: float
) -> Generator[Iterate, None, None]:
    """Newton's method with the zeros of W kept, and splitting where that does not pay."""
    W, u = start.W, start.duals.u
    for W, u in pursue(problem, start, best, tol):  # noqa: B007
        yield Iterate(best.W, best.objective, best.objective, 0.0)
    if best.relative_gap > tol and applies(problem):
        yield from by_splitting(problem, W, u, best, tol, deadline)
    elif best.relative_gap > tol:
        t = float(np.clip(np.sqrt(10.0 * best.relative_gap), 1e-2, 1.0))
        m = multipliers(problem, duals_of(problem, W, u), np.abs(W).sum(axis=1), t)
        yield from finish(problem, W, m, best, tol, deadline)


def by_reweighting(
    problem: Problem, start: Start, best: Best, tol: float, deadline: float
) -> Generator[Iterate, None, None]:
    """IRLS down to the gap where the multipliers take over, or splitting for many samples."""
    W, duals, sizes = start.W, start.duals, np.abs(start.W).sum(axis=1)
    if best.relative_gap <= max(tol, HANDOVER):
        yield Iterate(W, best.objective, best.objective, 0.0)
    else:
        for at, u_and_z in reweight(problem, start, best, tol):
            yield Iterate(at.W, at.objective, at.value, at.epsilon)
            W, duals, sizes = at.W, u_and_z, at.S
    many = best.relative_gap > tol and len(W) > DENSE
    if many and applies(problem) and fused_share(problem, duals.u) <= FEW:
        yield from by_splitting(problem, W, duals.u, best, tol, deadline)
    if best.relative_gap > tol:
        t = float(np.clip(np.sqrt(10.0 * best.relative_gap), 1e-2, 1.0))
        yield from finish(problem, W, multipliers(problem, duals, sizes, t), best, tol, deadline)


def by_splitting(
    problem: Problem, W: FloatArray, u: FloatArray, best: Best, tol: float, deadline: float
) -> Generator[Iterate, None, None]:
    """Splitting, and where that is not enough the multipliers, with lengths that fit its small gap."""
    rounds = Rounds(problem, W, problem.radii[:, None] * u)
    with closing(split(rounds, best, max(tol, ROUNDS_END))) as steps:
        for _ in steps:
            yield Iterate(best.W, best.objective, best.objective, 0.0)
    if tol < best.relative_gap <= HANDOVER and np.isfinite(rounds.z_row).all():
        W, u = rounds.rounded()
        t = float(np.clip(np.sqrt(best.relative_gap), 2e-3, 1.0))
        m = multipliers(problem, duals_of(problem, W, u), np.abs(W).sum(axis=1), t)
        yield from finish(problem, W, m, best, tol, deadline)


def finish(
    problem: Problem, W: FloatArray, m: Multipliers, best: Best, tol: float, deadline: float
) -> Generator[Iterate, None, None]:
    """The method of multipliers until tol or until it stalls, with Newton's method on the face for a small tol."""
    finish_at = FIRST_TRY if tol <= FINISH else 0.0
    for point in multiply(problem, W, m, best, tol, deadline):
        if best.relative_gap <= finish_at:
            polish(problem, point, best)
            finish_at = NEXT_TRY * best.relative_gap
        yield Iterate(best.W, best.objective, best.objective, 0.0)
    if best.relative_gap > tol:  # stalled: rounding, or scales that differ by many orders of magnitude
        polish(problem, point, best)
        yield Iterate(best.W, best.objective, best.objective, 0.0)


def reweight(problem: Problem, start: Start, best: Best, tol: float) -> Iterator[tuple[Smoothed, Duals]]:
    """IRLS steps with epsilon shrinking, until tol or the gap where the multipliers take over."""
    W, duals, epsilon = start.W, start.duals, start.epsilon
    floor = 1e-5 * epsilon
    at = smoothed(problem, centred(W, duals.z, epsilon), epsilon)
    cg_rtol, loose, held = 3e-2, 3e-2, 0
    while True:
        best.primal(at.W, at.objective)
        best.bound(at.alpha, problem.radii[:, None] * duals.u)
        yield at, duals
        if best.relative_gap <= max(tol, HANDOVER):
            return
        settled = best.objective - best.dual <= SETTLED * (at.value - at.objective)
        if settled or held > 3:
            loose = loose if settled else 0.3 * loose  # systems that are hard are solved more accurately
            epsilon, cg_rtol, held = epsilon * SHRINK, loose, 0
            if epsilon < floor:
                return
            at = smoothed(problem, at.W, epsilon)
        else:
            cg_rtol, held = max(0.3 * cg_rtol, 1e-9), held + 1
        dW, duals = newton_step(problem, at, duals, cg_rtol)
        at = line_search(problem, at, dW)
