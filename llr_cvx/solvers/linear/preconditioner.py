"""Preconditioners for the Newton systems, from cheap to strong.

* Block Jacobi inverts, for each sample, its own d x d block of the matrix: a diagonal plus two rank-one terms.
* The coarse level. Where edges are stiff (short or fused: c_e large) a group of samples moves as one, which block
  Jacobi does slowly. Samples are grouped along stiff edges, and the mean of each group is solved for by one dense
  d x d block per group.
* Factors. Where edges are stiff on many scales there is no single grouping. For few samples the graph Laplacian of c
  plus a diagonal is inverted for each feature, and the rank-one terms of the samples are added by Woodbury's formula:
  exact but for the direction d_e that each edge leaves free.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotri, dpotrs

from llr_cvx.arrays import FloatArray, row_dot
from llr_cvx.graph import component_labels
from llr_cvx.problem import Problem
from llr_cvx.solvers import settings
from llr_cvx.solvers.linear.cg import Operator


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


def with_coarse_level(
    problem: Problem, smoother: Operator, c: FloatArray, Q: FloatArray, p: FloatArray, q: FloatArray
) -> Operator:
    """The smoother plus a correction for each group of samples; the smoother itself where no group is large enough.

    The block of a group is the sum of its samples' own terms and of the edges that leave it. Groups of fewer than
    d / 5 samples are left out: their blocks would cost more than the samples themselves.
    """
    N, d = problem.shape
    groups = component_labels(N, problem.edges[c > settings.STIFF_EDGE * c.max(initial=0.0)])
    size_of = np.bincount(groups)
    key = np.where(size_of >= max(2, d // 5), size_of, 0)[groups]
    order = np.lexsort((groups, key))  # by size, then by group
    members = order[np.searchsorted(key[order], 1) :]
    if not members.size:
        return smoother
    starts = np.flatnonzero(np.diff(groups[members], prepend=-1))
    sizes = key[members[starts]]
    blocks = np.empty((len(starts), d, d))
    for size in np.unique(sizes):  # groups of one size are multiplied together
        first, last = np.searchsorted(sizes, [size, size + 1])
        rows = members[starts[first] : starts[first] + size * (last - first)].reshape(-1, size)
        A = np.concatenate([p[rows], q[rows]], axis=1)
        np.matmul(A.transpose(0, 2, 1), A, out=blocks[first:last])
    i, j = problem.edges.T
    leaving = problem.graph.degrees(np.where(groups[i] != groups[j], c, 0.0))
    diagonal = np.add.reduceat(Q[members] + leaving[members, None], starts, axis=0)
    diagonal += 1e-10 * (np.einsum("kii->k", blocks) / d + diagonal.mean(axis=1))[:, None] + 1e-300
    blocks[:, np.arange(d), np.arange(d)] += diagonal
    inverse, owner = np.linalg.inv(blocks), np.repeat(np.arange(len(starts)), sizes)

    def solve(R: FloatArray) -> FloatArray:
        out = smoother(R)
        sums = np.add.reduceat(R[members], starts, axis=0)
        out[members] += np.matmul(inverse, sums[:, :, None])[owner, :, 0]
        return out

    return solve


def factored(problem: Problem, c: FloatArray, Q: FloatArray, p: FloatArray, q: FloatArray) -> Operator | None:
    """(Laplacian(c) x I + diag(Q) + blocks p_i p_i^T + q_i q_i^T)^-1, dense; None where rounding makes it indefinite.

    A weight whose own curvature Q_ik is far larger than its coupling is inverted alone.
    """
    N, d = problem.shape
    rows = np.arange(N)
    L = np.zeros((N, N))
    L[tuple(problem.edges.T)] = -c
    L += L.T
    degree = -L.sum(axis=1)
    L[rows, rows] = degree
    own = Q + (1e-14 * (degree + row_dot(p, p) + row_dot(q, q)) + 1e-300)[:, None]
    free = own < settings.HELD_CURVATURE * degree[:, None]
    alone = np.where(free, 0.0, 1.0 / (own + degree[:, None]))
    capacitance = np.eye(2 * N)
    capacitance[rows, rows] += row_dot(p * p, alone)
    capacitance[N + rows, rows] += row_dot(q * p, alone)
    capacitance[N + rows, N + rows] += row_dot(q * q, alone)
    parts = []
    for k in range(d):
        F = np.flatnonzero(free[:, k])
        if not F.size:
            continue
        A = L[np.ix_(F, F)]
        A[rows[: F.size], rows[: F.size]] += own[F, k]
        lower, info = dpotrf(A, lower=1, overwrite_a=1)
        if info:
            return None
        inverse = np.tril(dpotri(lower, lower=1, overwrite_c=1)[0])
        inverse += np.tril(inverse, -1).T
        parts.append((k, F, inverse))
        for a, b, left, right in ((0, 0, p, p), (N, 0, q, p), (N, N, q, q)):
            capacitance[np.ix_(a + F, b + F)] += left[F, k, None] * inverse * right[F, k]
    small, info = dpotrf(capacitance, lower=1, overwrite_a=1)
    if info:
        return None

    def without_blocks(R: FloatArray) -> FloatArray:
        out = alone * R
        for k, F, inverse in parts:
            out[F, k] = inverse @ R[F, k]
        return out

    def solve(R: FloatArray) -> FloatArray:
        out = without_blocks(R)
        t, _ = dpotrs(small, np.concatenate([row_dot(p, out), row_dot(q, out)]), lower=1)
        out -= without_blocks(p * t[:N, None] + q * t[N:, None])
        return out

    return solve
