"""The linear system of a Newton step: a matrix of small pieces, solved by conjugate gradients."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from llr_cvx.arrays import FloatArray, row_dot
from llr_cvx.problem import Problem
from llr_cvx.solvers import settings
from llr_cvx.solvers.linear.cg import Operator, conjugate_gradients
from llr_cvx.solvers.linear.preconditioner import factored, rank_two_inverse, with_coarse_level


class Level(IntEnum):
    """Preconditioners from cheap to strong; a run that needed one keeps it."""

    JACOBI = 0
    COARSE = 1
    FACTORED = 2


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
    for samples that move as one, and for few samples a factorisation per feature.
    """
    apply = _operator(problem, H)
    x = np.sqrt(H.s)[:, None] * problem.X
    jacobi = rank_two_inverse(H.Q + problem.graph.degrees(H.c)[:, None], x, H.sigma)
    make = {
        Level.JACOBI: lambda: jacobi,
        Level.COARSE: lambda: with_coarse_level(problem, jacobi, H.c, H.Q, x, H.sigma),
        Level.FACTORED: lambda: factored(problem, H.c, H.Q, x, H.sigma) or jacobi,
    }
    solution, spent = None, 0
    for stage, patience in _patience(problem):
        if stage >= level:
            solution, n = conjugate_gradients(apply, make[stage](), rhs, rtol, patience, solution)
            spent += n
            if n < patience:
                break
    assert solution is not None
    keep = worth_of_factors(problem) < settings.KEEP_FACTORED
    return solution, spent, stage if keep else min(stage, Level.COARSE)


def worth_of_factors(problem: Problem) -> float:
    """The conjugate gradient iterations that cost as much as a solution with factors."""
    N = problem.shape[0]
    return float(40 + N**3 / (settings.FACTOR_COST * (N + len(problem.edges))))


def _patience(problem: Problem) -> list[tuple[Level, int]]:
    """Iterations after which each level gives way to the next; the last is followed to the end."""
    (N, d), worth = problem.shape, worth_of_factors(problem)
    if d * N * N > settings.MAX_FACTORS or worth > settings.MAX_CG:
        return [(Level.JACOBI, settings.EASY_CG), (Level.COARSE, settings.MAX_CG)]
    return [(Level.JACOBI, settings.EASY_CG), (Level.COARSE, int(worth)), (Level.FACTORED, settings.MAX_CG)]


def _operator(problem: Problem, H: Curvature) -> Operator:
    """P -> H P."""
    B, BT, X = problem.incidence, problem.incidence_T, problem.X
    c, half_c = H.c[:, None], 0.5 * H.c
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
