"""The linear system of a Newton step: a matrix of small pieces, solved by conjugate gradients."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from llr_cvx.arrays import FloatArray, IntArray, row_dot
from llr_cvx.graph import component_labels
from llr_cvx.problem import Problem
from llr_cvx.solvers.linear.cg import conjugate_gradients
from llr_cvx.solvers.linear.preconditioner import rank_two_inverse, with_coarse_level

PATIENCE = 16  # iterations after which a system counts as stiff
MAX_CG = 1000


@dataclass(frozen=True, eq=False)
class Curvature:
    """The matrix of a Newton step, one small piece an edge and one a sample.

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
    problem: Problem, H: Curvature, rhs: FloatArray, rtol: float, stiff: bool = False
) -> tuple[FloatArray, int]:
    """H^-1 rhs by conjugate gradients, and the iterations spent.

    Block Jacobi is enough for most systems. Where it has not converged after PATIENCE iterations, or from the start
    if the system is known to be stiff, a coarse level is added.
    """
    B, BT, X = problem.incidence, problem.incidence_T, problem.X
    c, half_c = H.c[:, None], 0.5 * H.c
    part = np.empty_like(H.d)  # large arrays are cheaper to reuse than to allocate

    def apply(P: FloatArray) -> FloatArray:
        flow = B @ P
        if H.u is H.d:
            flow -= np.multiply(H.d, row_dot(H.d, flow)[:, None], out=part)
            flow *= c
        else:
            along_d, along_u = half_c * row_dot(H.d, flow), half_c * row_dot(H.u, flow)
            flow *= c
            flow -= np.multiply(H.u, along_d[:, None], out=part)
            flow -= np.multiply(H.d, along_u[:, None], out=part)
        out = np.asarray(BT @ flow)
        out += H.Q * P
        out += X * (H.s * row_dot(X, P))[:, None]
        out += H.sigma * row_dot(H.sigma, P)[:, None]
        return out

    x = np.sqrt(H.s)[:, None] * X
    smoother = rank_two_inverse(H.Q + problem.graph.degrees(H.c)[:, None], x, H.sigma)
    spent, start = 0, None
    if not stiff:
        start, spent = conjugate_gradients(apply, smoother, rhs, rtol, PATIENCE)
        if spent < PATIENCE:
            return start, spent
    two_levels = with_coarse_level(problem, smoother, H.c, H.Q, x, H.sigma)
    solution, n = conjugate_gradients(apply, two_levels, rhs, rtol, MAX_CG - spent, start)
    return solution, spent + n


def components(problem: Problem, joined: NDArray[np.bool_]) -> IntArray:
    """Labels of the connected components over the edges that are marked and couple."""
    return component_labels(problem.shape[0], problem.edges[joined & (problem.radii > 0)])
