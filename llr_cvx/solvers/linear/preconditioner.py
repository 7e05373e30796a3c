"""Preconditioners for the Newton systems, from cheap to strong.

* Block Jacobi inverts, for each sample, its own d x d block of the matrix: a diagonal plus two rank-one terms.
* The coarse level. Where edges are stiff (short or fused: c_e large) a group of samples moves as one, which block
  Jacobi does slowly. Samples are grouped along stiff edges, and the mean of each group is solved for by one dense
  d x d block per group.
* Factors. The coarse level leaves out how groups pull on each other. Where there are few of them, the graph Laplacian
  of c plus a diagonal is inverted for each feature, and the rank-one terms of the samples are added by Woodbury's
  formula; block Jacobi is left with how samples move within their group. For few samples each of them is a group:
  that is exact but for the direction d_e that each edge leaves free.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotri, dpotrs
from scipy.sparse import csr_array

from llr_cvx.arrays import FloatArray, IntArray, row_dot
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


def stiff_groups(problem: Problem, c: FloatArray) -> IntArray:
    """A label per sample: samples joined by stiff edges move as one."""
    return component_labels(problem.shape[0], problem.edges[c > settings.STIFF_EDGE * c.max(initial=0.0)])


def with_coarse_level(
    problem: Problem, smoother: Operator, groups: IntArray, c: FloatArray, Q: FloatArray, p: FloatArray, q: FloatArray
) -> Operator:
    """The smoother plus a correction for each group of samples; the smoother itself where no group is large enough.

    The block of a group is the sum of its samples' own terms and of the edges that leave it. Groups of fewer than
    d / 5 samples are left out: their blocks would cost more than the samples themselves.
    """
    d = problem.shape[1]
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


def factored(
    problem: Problem, smoother: Operator, groups: IntArray, c: FloatArray, Q: FloatArray, p: FloatArray, q: FloatArray
) -> Operator | None:
    """(Laplacian(c) x I + diag(Q) + blocks p_i p_i^T + q_i q_i^T)^-1 among groups of samples that move as one, dense.

    The smoother is added for how samples move within a group. Where every sample is a group of its own, the inverse
    is complete without it. None where rounding makes the matrix indefinite.
    """
    (N, d), C = problem.shape, int(groups.max()) + 1
    rows, members = np.arange(C), csr_array((np.ones(N), (groups, np.arange(N))), shape=(C, N))
    L = np.zeros((C, C))
    np.subtract.at(L, tuple(groups[problem.edges.T]), c)
    L += L.T
    L[rows, rows] = 0.0
    degree = -L.sum(axis=1)
    L[rows, rows] = degree
    own = members @ Q + (1e-14 * (degree + members @ (row_dot(p, p) + row_dot(q, q))) + 1e-305)[:, None]
    Y, at = few_terms(groups, p, q)
    capacitance, inverses = np.eye(len(Y)), np.empty((d, C, C))
    for k, inverse in enumerate(inverses):
        A = L.copy()
        A[rows, rows] += own[:, k]
        lower, info = dpotrf(A, lower=1, overwrite_a=1)
        if info:
            return None
        inverse[:] = np.tril(dpotri(lower, lower=1, overwrite_c=1)[0])
        inverse += np.tril(inverse, -1).T
        y = csr_array((Y[:, k], at, np.arange(len(Y) + 1)), shape=(len(Y), C))
        capacitance += y @ (y @ inverse).T
    small, info = dpotrf(capacitance, lower=1, overwrite_a=1)
    if info:
        return None

    def without_terms(G: FloatArray) -> FloatArray:
        return np.asarray(np.matmul(inverses, G.T[:, :, None])[:, :, 0].T)

    gather = csr_array((np.ones(len(Y)), (at, np.arange(len(Y)))), shape=(C, len(Y)))

    def solve(R: FloatArray) -> FloatArray:
        out = without_terms(members @ R)
        t, _ = dpotrs(small, row_dot(Y, out[at]), lower=1)
        out -= without_terms(gather @ (Y * t[:, None]))
        return out[groups] + smoother(R) if C < N else out[groups]

    return solve


def few_terms(groups: IntArray, p: FloatArray, q: FloatArray) -> tuple[FloatArray, IntArray]:
    """Rows y_t, and the group of each, with the same sum of y_t y_t^T per group as p_i p_i^T + q_i q_i^T.

    A group of many samples needs no more than d of them.
    """
    rows, at = np.concatenate([p, q]), np.concatenate([groups, groups])
    order = np.argsort(at, kind="stable")
    pieces = np.split(rows[order], np.flatnonzero(np.diff(at[order])) + 1)
    Y = [np.linalg.qr(piece, mode="r") if len(piece) > p.shape[1] else piece for piece in pieces]
    return np.concatenate(Y), np.repeat(np.arange(len(Y)), [len(y) for y in Y])
