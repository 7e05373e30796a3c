"""The linear system of one Newton step on J_epsilon, and its preconditioner.

Plain IRLS ("lagged diffusivity") freezes the weights 1/a_e and 1/b_ik. Near a solution where edges fuse and
coordinates vanish its convergence becomes slow. Chan, Golub and Mulet (1999) keep U_e = lambda1 omega_e u_e and the
signs z_ik as unknowns of their own and linearise u_e a_e = d_e and z_ik b_ik = w_ik instead. Eliminating du and dz
leaves, for dW,

    per edge    lambda1 omega_e / a_e [I - (u_e d_e^T + d_e u_e^T) / (2 a_e)]
    per sample  s_i x_i x_i^T + 2 lambda2 w_hat_i w_hat_i^T + 2 lambda2 diag(S_i (1 - z_ik w_hat_ik) / b_ik),

with s_i = alpha_i (1 - alpha_i). Both are positive semidefinite while ||u_e|| <= 1 and |z_ik| <= 1; u = z = 0 gives
the curvature of IRLS.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from typing import Protocol

import numpy as np
from scipy.sparse import csr_array

from llr_cvx._cg import Operator, conjugate_gradients
from llr_cvx._validation import FloatArray, IntArray
from llr_cvx.smoothing import Smoothed, row_dot

BLOCK = 32_768  # numbers of an edge array that are worked on at a time
THREADED = 400_000  # numbers in an edge array from which two threads are worth their price


class Samples(Protocol):
    """What the system needs to know: a `Problem`, or some samples of one."""

    @property
    def X(self) -> FloatArray: ...
    @property
    def edges(self) -> IntArray: ...
    @property
    def radii(self) -> FloatArray: ...
    @property
    def lambda2(self) -> float: ...
    @property
    def incidence(self) -> csr_array: ...
    @property
    def incidence_T(self) -> csr_array: ...
    @property
    def shape(self) -> tuple[int, int]: ...
    def degrees(self, values: FloatArray) -> FloatArray: ...


@dataclass(frozen=True, eq=False)
class Duals:
    """The separate unknowns of the primal-dual Newton step: u_e in the unit ball, z_ik in [-1, 1]."""

    u: FloatArray
    z: FloatArray


def newton_step(
    problem: Samples, at: Smoothed, duals: Duals, clusters: IntArray, rtol: float, max_cg: int
) -> tuple[FloatArray, Duals, int]:
    """Direction dW, the dual unknowns after the full step (in their balls), and the CG iterations spent."""
    c = problem.radii / at.a
    s = at.alpha * (1.0 - at.alpha)
    Q = (2.0 * problem.lambda2 * at.S)[:, None] * (1.0 - duals.z * at.w_hat) / at.b
    B, BT, X, u, d_hat, w_hat = problem.incidence, problem.incidence_T, problem.X, duals.u, at.d_hat, at.w_hat
    two_lambda2 = 2.0 * problem.lambda2

    half_c, column_c = 0.5 * c, c[:, None]
    rows = max(1, BLOCK // X.shape[1])
    edge_parts = [(part, B[part]) for part in parts(len(c), X.shape[1])]
    sample_parts = [(part, BT[part]) for part in parts(len(X), X.shape[1])]

    def apply(P: FloatArray) -> FloatArray:
        flow, out = np.empty_like(u), np.empty_like(P)

        def through_edges(part: slice, B_part: csr_array) -> None:
            flow[part] = B_part @ P
            for start in range(part.start, part.stop, rows):  # blocks that stay in the processor's cache
                k = slice(start, min(start + rows, part.stop))
                along_d, along_u = half_c[k] * row_dot(d_hat[k], flow[k]), half_c[k] * row_dot(u[k], flow[k])
                flow[k] *= column_c[k]
                flow[k] -= u[k] * along_d[:, None]
                flow[k] -= d_hat[k] * along_u[:, None]

        def into_samples(part: slice, BT_part: csr_array) -> None:
            out[part] = BT_part @ flow
            out[part] += Q[part] * P[part]
            out[part] += X[part] * (s[part] * row_dot(X[part], P[part]))[:, None]
            out[part] += w_hat[part] * (two_lambda2 * row_dot(w_hat[part], P[part]))[:, None]

        in_parallel(through_edges, edge_parts)
        in_parallel(into_samples, sample_parts)
        return out

    degree = problem.degrees(c)
    smoother = rank_two_inverse(Q + degree[:, None], np.sqrt(s)[:, None] * X, np.sqrt(two_lambda2) * w_hat)
    precondition = with_coarse_correction(problem, smoother, Q, s, w_hat, c, clusters)
    dW, n_cg = conjugate_gradients(apply, precondition, -at.gradient, rtol, max_cg)

    dD = B @ dW
    u_new = d_hat + (dD - u * row_dot(d_hat, dD)[:, None]) / at.a[:, None]
    u_new /= np.maximum(1.0, np.sqrt(row_dot(u_new, u_new)))[:, None]
    z_new = np.clip(w_hat + dW * (1.0 - duals.z * w_hat) / at.b, -1.0, 1.0)
    return dW, Duals(u_new, z_new), n_cg


def parts(n: int, d: int) -> list[slice]:
    """All n rows, or two halves of them where n d is large."""
    return [slice(0, n)] if n * d < THREADED else [slice(0, n // 2), slice(n // 2, n)]


def in_parallel(work: Callable[[slice, csr_array], None], pieces: list[tuple[slice, csr_array]]) -> None:
    """Run `work` on every piece; more than one piece means one thread each."""
    if len(pieces) == 1:
        work(*pieces[0])
    else:
        list(_pool().map(lambda piece: work(*piece), pieces))


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(2, thread_name_prefix="llr_cvx")


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
    problem: Samples,
    smoother: Operator,
    Q: FloatArray,
    s: FloatArray,
    w_hat: FloatArray,
    c: FloatArray,
    clusters: IntArray,
) -> Operator:
    """Add a second level: on each cluster of nearly fused samples, the mean of the rows solved for exactly.

    Within a fused cluster the edges are stiff, and block Jacobi moves the cluster as a whole only slowly. One dense
    d x d block a cluster removes that.
    """
    sizes = np.bincount(clusters)
    big = np.flatnonzero(sizes > 1)
    if not big.size:
        return smoother
    d = problem.shape[1]
    members = np.flatnonzero(sizes[clusters] > 1)
    order = members[np.argsort(clusters[members], kind="stable")]
    starts = np.concatenate([[0], np.cumsum(sizes[big])[:-1]])
    i, j = problem.edges.T
    label = np.append(clusters, -1)  # the end -1 of an edge that leaves a region belongs to no cluster
    outside = np.where(label[i] != label[j], c, 0.0)
    diagonal = Q + problem.degrees(outside)[:, None]
    rows = np.sqrt(s)[:, None] * problem.X
    signs = np.sqrt(2.0 * problem.lambda2) * w_hat
    blocks = np.empty((big.size, d, d))
    for k, (start, size) in enumerate(zip(starts, sizes[big], strict=True)):
        member = order[start : start + size]
        A = np.concatenate([rows[member], signs[member]])
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
