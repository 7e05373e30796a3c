"""The linear system of a Newton step: a matrix of small pieces, solved by conjugate gradients."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from functools import cache

import numpy as np

from llr_cvx.arrays import FloatArray, IntArray, row_dot
from llr_cvx.problem import Problem
from llr_cvx.solvers import settings
from llr_cvx.solvers.linear.cg import Operator, conjugate_gradients
from llr_cvx.solvers.linear.preconditioner import factored, n_terms, rank_two_inverse, stiff_groups, with_coarse_level


class Level(IntEnum):
    """Preconditioners from cheap to strong; a run that needed one keeps it."""

    JACOBI = 0
    COARSE = 1
    GROUPED = 2
    FACTORED = 3


@dataclass(frozen=True, eq=False)
class Curvature:
    """The matrix of a Newton step, in one small piece per edge and one per sample.

    per edge    c_e [I - (u_e d_e^T + d_e u_e^T) / 2]
    per sample  s_i x_i x_i^T + sigma_i sigma_i^T + diag(Q_i)
    """

    c: FloatArray
    u: FloatArray
    d: FloatArray
    s: FloatArray
    sigma: FloatArray
    Q: FloatArray


def solve_system(
    problem: Problem, H: Curvature, rhs: FloatArray, rtol: float, level: Level = Level.JACOBI
) -> tuple[FloatArray, int, Level]:
    """H^-1 rhs by conjugate gradients, the iterations spent and the level of preconditioning it took.

    Each level goes on where the one before has not converged within its patience: block Jacobi, a coarse level
    for samples that move as one, and where that is affordable a factorisation per feature, first among groups of such
    samples and then among all.
    """
    apply = _operator(problem, H)
    x = np.sqrt(H.s)[:, None] * problem.X
    jacobi = rank_two_inverse(H.Q + problem.graph.degrees(H.c)[:, None], x, H.sigma)
    groups = cache(lambda: stiff_groups(problem, H.c))  # an easy system does not need them
    alone, pieces = np.arange(problem.shape[0]), (H.c, H.Q, x, H.sigma)
    make = {
        Level.JACOBI: lambda: jacobi,
        Level.COARSE: lambda: with_coarse_level(problem, jacobi, groups(), *pieces),
        Level.GROUPED: lambda: factored(problem, jacobi, groups(), *pieces) or jacobi,
        Level.FACTORED: lambda: factored(problem, jacobi, alone, *pieces) or jacobi,
    }
    solution, spent = None, 0
    stages = _patience(problem, groups)
    if level > Level.JACOBI:
        every = list(stages)
        stages = (stage for stage in every if stage[0] >= min(level, every[-1][0]))
    for stage, patience in stages:
        solution, n = conjugate_gradients(apply, make[stage](), rhs, rtol, patience, solution)
        spent += n
        if n < patience:
            break
    assert solution is not None
    if stage > Level.COARSE:
        worth = worth_of_factors(problem, groups() if stage is Level.GROUPED else alone)
        stage = stage if worth < settings.KEEP_FACTORED else Level.COARSE
    return solution, spent, stage


def worth_of_factors(problem: Problem, groups: IntArray) -> float:
    """The conjugate gradient iterations that cost as much as a solution with factors for these groups."""
    sizes = np.bincount(groups)
    work = len(sizes) ** 3 + 5.0 * n_terms(sizes, problem.shape[1]) ** 2
    return float(40.0 + work / (settings.FACTOR_COST * (len(groups) + len(problem.edges))))


def _patience(problem: Problem, groups: Callable[[], IntArray]) -> Iterator[tuple[Level, int]]:
    """Iterations after which each level gives way to the next; the last is followed to the end."""
    N, d = problem.shape
    yield Level.JACOBI, settings.EASY_CG
    last = Level.COARSE
    for level, of in ((Level.GROUPED, groups()), (Level.FACTORED, np.arange(N))):
        sizes, worth = np.bincount(of), worth_of_factors(problem, of)
        few = level is Level.FACTORED or 1 < len(sizes) <= settings.FEW_GROUPS * N
        if few and worth <= settings.MAX_CG and d * len(sizes) ** 2 + n_terms(sizes, d) ** 2 <= settings.MAX_FACTORS:
            yield last, int(worth)
            last = level
    yield last, settings.MAX_CG


def _operator(problem: Problem, H: Curvature) -> Operator:
    """P -> H P."""
    B, BT, X = problem.incidence, problem.incidence_T, problem.X
    c, half_c = np.repeat(H.c[:, None], H.d.shape[1], axis=1), 0.5 * H.c  # a product of equal shapes is faster
    part = np.empty_like(H.d)  # large arrays are cheaper to reuse than to allocate

    def apply(P: FloatArray) -> FloatArray:
        flow = B @ P
        along_d, along_u = half_c * row_dot(H.d, flow), half_c * row_dot(H.u, flow)
        flow *= c
        flow -= np.multiply(H.u, along_d[:, None], out=part)
        flow -= np.multiply(H.d, along_u[:, None], out=part)
        out = np.asarray(BT @ flow)
        out += H.Q * P
        out += X * (H.s * row_dot(X, P))[:, None]
        out += H.sigma * row_dot(H.sigma, P)[:, None]
        return out

    return apply
