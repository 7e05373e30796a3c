"""Preconditioners for the Newton systems: block Jacobi, and a coarse level for stiff edges.

Block Jacobi inverts, for each sample, its own d x d block of the matrix, which is a diagonal plus two rank-one
terms. Where edges are stiff (short or fused: c_e large) a group of samples moves as one, and block Jacobi moves it
slowly. The coarse level joins the samples along stiff edges and solves for the mean of each group, with the groups
taken apart: one dense d x d block a group.
"""

from __future__ import annotations

import numpy as np

from llr_cvx.arrays import FloatArray, row_dot
from llr_cvx.graph import component_labels
from llr_cvx.problem import Problem
from llr_cvx.solvers.linear.cg import Operator

STIFF = 0.03  # of the largest c_e: edges above it join samples to a group


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
    groups = component_labels(N, problem.edges[c > STIFF * c.max(initial=0.0)])
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
