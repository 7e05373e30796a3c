"""The linear system of a Newton step: a matrix of small pieces, solved by conjugate gradients."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from llr_cvx.arrays import FloatArray, IntArray, row_dot
from llr_cvx.problem import Problem
from llr_cvx.solvers import settings
from llr_cvx.solvers.linear.cg import Operator, conjugate_gradients
from llr_cvx.solvers.linear.preconditioner import factored, rank_two_inverse, stiff_groups, with_coarse_level


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
    """H^-1 rhs by conjugate gradients, the iterations spent, and the level to begin the next system with.

    Each preconditioner goes on where the one before has not converged within its patience.
    """
    apply, solution, spent = _operator(problem, H), None, 0
    for stage, patience, precondition in stages(problem, H, level):
        solution, n = conjugate_gradients(apply, precondition, rhs, rtol, patience, solution)
        spent, level = spent + n, stage
        if n < patience:
            break
    else:
        level = Level.JACOBI  # no level has come to an end: another matrix may be easier
    assert solution is not None
    return solution, spent, level


def stages(problem: Problem, H: Curvature, level: Level) -> Iterator[tuple[Level, int, Operator]]:
    """Preconditioners from a level on, each made when it is needed, and the iterations before the next takes over.

    Block Jacobi, a coarse level for samples that move as one, and where that is affordable a factorisation per
    feature, among all samples or else among such groups.
    """
    x = np.sqrt(H.s)[:, None] * problem.X
    jacobi, pieces = rank_two_inverse(H.Q + problem.graph.degrees(H.c)[:, None], x, H.sigma), (H.c, H.Q, x, H.sigma)
    if level is Level.JACOBI:
        yield Level.JACOBI, settings.EASY_CG, jacobi
    groups, among = stiff_groups(problem, H.c), np.arange(problem.shape[0])
    if worth_of_factors(problem, among) > settings.MAX_CG:
        among = groups
    worth = worth_of_factors(problem, among)
    if level < Level.FACTORED or worth > settings.MAX_CG:
        patience = int(min(worth, settings.MAX_CG))
        yield Level.COARSE, patience, with_coarse_level(problem, jacobi, groups, *pieces)
    if worth <= settings.MAX_CG:
        yield Level.FACTORED, settings.MAX_CG, factored(problem, jacobi, among, *pieces) or jacobi


def worth_of_factors(problem: Problem, groups: IntArray) -> float:
    """Conjugate gradient iterations that cost as much as factors for these groups; infinite without room for them."""
    sizes, (N, d) = np.bincount(groups), problem.shape
    n, terms = len(sizes), int(np.minimum(2 * sizes, d).sum())  # of rank one, see `few_terms`
    if d * n**2 + terms**2 > settings.MAX_FACTORS:
        return np.inf
    return 40.0 + (n**3 + 5.0 * terms**2) / (settings.FACTOR_COST * (N + len(problem.edges)))


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
