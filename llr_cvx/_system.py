"""The linear system of a Newton step: a matrix of small pieces, conjugate gradients, and their preconditioner."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from llr_cvx._cg import Operator, conjugate_gradients
from llr_cvx._validation import FloatArray, IntArray
from llr_cvx.graph import component_labels
from llr_cvx.problem import Problem
from llr_cvx.smoothing import row_dot

SMALLEST = 8  # members of a cluster that is worth a block of its own in the preconditioner


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
    problem: Problem, H: Curvature, rhs: FloatArray, clusters: IntArray, rtol: float, max_cg: int
) -> tuple[FloatArray, int]:
    """H^-1 rhs by conjugate gradients, and the iterations spent."""
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
    smoother = rank_two_inverse(H.Q + problem.degrees(H.c)[:, None], x, H.sigma)
    precondition = with_coarse_correction(problem, smoother, H, x, clusters)
    return conjugate_gradients(apply, precondition, rhs, rtol, max_cg)


def components(problem: Problem, joined: NDArray[np.bool_]) -> IntArray:
    """Labels of the connected components over the edges that are marked and couple."""
    return component_labels(problem.shape[0], problem.edges[joined & (problem.radii > 0)])


def rank_two_inverse(diagonal: FloatArray, p: FloatArray, q: FloatArray) -> Operator:
    """R -> (diag(diagonal_i) + p_i p_i^T + q_i q_i^T)^-1 r_i for each row i (Woodbury): block Jacobi in O(N d)."""
    # The floor keeps the cancellation in Woodbury's formula harmless where the diagonal vanishes (no coupling).
    tiny = 1e-8 * (row_dot(p, p) + row_dot(q, q))[:, None] + 1e-300
    inverse = 1.0 / (diagonal + tiny)
    mp, mq = inverse * p, inverse * q
    pp, pq, qq = 1.0 + row_dot(p, mp), row_dot(p, mq), 1.0 + row_dot(q, mq)
    det = pp * qq - pq**2
    det = np.where(det > 0, det, np.inf)
    k11, k12, k22 = qq / det, -pq / det, pp / det

    def solve(R: FloatArray) -> FloatArray:
        rp, rq = row_dot(mp, R), row_dot(mq, R)
        out = inverse * R
        out -= mp * (k11 * rp + k12 * rq)[:, None]
        out -= mq * (k12 * rp + k22 * rq)[:, None]
        return out

    return solve


def with_coarse_correction(
    problem: Problem, smoother: Operator, H: Curvature, x: FloatArray, clusters: IntArray
) -> Operator:
    """Add a second level: on each cluster of nearly fused samples, the mean of the rows solved for exactly.

    Within a fused cluster the edges are stiff, and block Jacobi moves the cluster as a whole only slowly. One dense
    d x d block a cluster removes that.
    """
    sizes = np.bincount(clusters)
    big = np.flatnonzero(sizes >= SMALLEST)
    if not big.size:
        return smoother
    d = problem.shape[1]
    members = np.flatnonzero(sizes[clusters] >= SMALLEST)
    order = members[np.argsort(clusters[members], kind="stable")]
    starts = np.concatenate([[0], np.cumsum(sizes[big])[:-1]])
    i, j = problem.edges.T
    outside = np.where(clusters[i] != clusters[j], H.c, 0.0)
    diagonal = H.Q + problem.degrees(outside)[:, None]
    blocks = np.empty((big.size, d, d))
    for k, (start, size) in enumerate(zip(starts, sizes[big], strict=True)):
        member = order[start : start + size]
        A = np.concatenate([x[member], H.sigma[member]])
        blocks[k] = A.T @ A
        blocks[k].flat[:: d + 1] += diagonal[member].sum(axis=0)
    scale = np.einsum("kii->k", blocks) / d + 1e-300
    inverse = np.linalg.inv(blocks + (1e-10 * scale)[:, None, None] * np.eye(d))
    position = np.full(len(sizes), 0)
    position[big] = np.arange(big.size)
    owner = position[clusters[order]]

    def solve(R: FloatArray) -> FloatArray:
        out = smoother(R)
        coarse = np.add.reduceat(R[order], starts, axis=0)
        out[order] += np.einsum("kij,kj->ki", inverse, coarse)[owner]
        return out

    return solve
