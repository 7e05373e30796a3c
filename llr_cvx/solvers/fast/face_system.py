"""The Newton system on a face, solved by conjugate gradients.

Its matrix has one dense block a cluster, and c [I - d_hat d_hat^T] for each link, with c = lambda1 omega / ||d||.
Block Jacobi is enough while no link is short. A short link (c large) makes its two clusters move as one, which
block Jacobi does slowly: clusters joined by short links are then paired, the pairs paired again, and the block of
each such group is inverted whole.
"""

from __future__ import annotations

import numpy as np

from llr_cvx.arrays import FloatArray, IntArray, row_dot
from llr_cvx.solvers.fast.face import Face
from llr_cvx.solvers.linear.cg import Operator, conjugate_gradients
from llr_cvx.solvers.linear.preconditioner import rank_two_inverse

PATIENCE = 12  # iterations after which short links are looked for
SHORT = 4.0  # c of a short link, as a multiple of the mean curvature that one of its ends has of its own,
SHARE = 0.1  # and as a share of the sum of c at that end
LARGEST = 40  # unknowns of a group, but two clusters always
WORK = 3e8  # links times the cube of the unknowns of a pair: more is not spent on groups, the shortest links count


class FaceSystem:
    """H = (blocks of clusters) + (links), at the face's own w.

    Parameters
    ----------
    face : Face
    sigma : array of shape (C, d)
        Signs of the free coordinates, 0 for the others.
    s : array of shape (N,)
        Curvature of each logistic term.
    """

    def __init__(self, face: Face, sigma: FloatArray, s: FloatArray) -> None:
        self.face, self.sigma, self.s = face, sigma, s
        self.B, self.BT, weight = face.links
        D = self.B @ face.w
        norms = np.sqrt(row_dot(D, D))
        inverse = np.divide(1.0, norms, out=np.zeros_like(norms), where=norms > 0)
        self.d_hat, self.c = D * inverse[:, None], weight * inverse
        self.bend = 2.0 * face.problem.lambda2 * face.sizes
        self.degree = np.asarray(abs(self.BT) @ self.c)

    def solve(self, rhs: FloatArray, rtol: float, budget: int, stiff: bool) -> tuple[FloatArray, int]:
        """H^-1 rhs, and the iterations spent; groups are made after PATIENCE of them, or at once if stiff."""
        start, spent = None, 0
        if not stiff:
            alone = np.arange(len(self.face.w))
            limit = min(PATIENCE, budget)
            start, spent = conjugate_gradients(self.apply, self.inverse_of_blocks(alone), rhs, rtol, limit)
            if spent < limit or limit == budget:
                return start, spent
        grouped = self.inverse_of_blocks(self.groups())
        solution, n = conjugate_gradients(self.apply, grouped, rhs, rtol, budget - spent, start)
        return solution, spent + n

    def apply(self, P: FloatArray) -> FloatArray:
        """H P, with 0 for coordinates that are not free."""
        face, X = self.face, self.face.problem.X
        dP = self.B @ P
        dP -= self.d_hat * row_dot(self.d_hat, dP)[:, None]
        out = self.BT @ (dP * self.c[:, None])
        out += face.membership @ (X * (self.s * row_dot(X, P[face.clusters]))[:, None])
        out += self.sigma * (self.bend * row_dot(self.sigma, P))[:, None]
        return np.where(face.free, out, 0.0)

    def groups(self) -> IntArray:
        """A label for each cluster: clusters joined by short links share one."""
        face, X = self.face, self.face.problem.X
        links, c, d = self.B.indices.reshape(-1, 2).astype(np.int64), self.c, X.shape[1]
        total = face.membership @ (self.s * row_dot(X, X)) + self.bend * row_dot(self.sigma, self.sigma)
        own = np.maximum(SHORT * total / d, SHARE * self.degree)
        short = c > own[links].min(axis=1)
        links, c = links[short], c[short]
        shortest = np.argsort(-c, kind="stable")[: int(WORK / (2.0 * d) ** 3)]
        links, c = links[shortest], c[shortest]
        labels = np.arange(len(face.w))
        size = 2
        while len(c) and (size == 2 or size * d <= LARGEST):
            labels = paired(labels[links], c, int(labels.max()) + 1)[labels]
            apart = labels[links[:, 0]] != labels[links[:, 1]]
            links, c, size = links[apart], c[apart], 2 * size
        return labels

    def inverse_of_blocks(self, groups: IntArray) -> Operator:
        """Inverts H restricted to each group of clusters; a sample alone by Woodbury's formula."""
        face, d = self.face, self.face.w.shape[1]
        X, free = face.problem.X, face.free
        first = np.zeros(len(face.w), dtype=np.int64)
        first[face.clusters] = np.arange(len(X))
        x = np.where(free, np.sqrt(self.s[first])[:, None] * X[first], 0.0)
        single = rank_two_inverse(self.degree[:, None] + np.zeros(d), x, np.sqrt(self.bend)[:, None] * self.sigma)
        size = np.bincount(groups)[groups]
        dense = np.flatnonzero((size > 1) | (face.sizes > 1))
        dense = dense[np.lexsort((groups[dense], size[dense]))]  # by size, then by group
        parts = []
        for m in np.unique(size[dense]):
            members = dense[size[dense] == m].reshape(-1, m)
            parts.append((members, np.linalg.inv(self._blocks(members, groups))))

        def solve(R: FloatArray) -> FloatArray:
            out = single(R)
            for members, inverse in parts:
                R_group = R[members].reshape(len(members), -1, 1)
                out[members] = np.matmul(inverse, R_group).reshape(*members.shape, d)
            return np.where(free, out, 0.0)

        return solve

    def _blocks(self, members: IntArray, groups: IntArray) -> FloatArray:
        """H on each row of members, as dense matrices; coordinates that are not free are cut off."""
        (n, m), d = members.shape, self.face.w.shape[1]
        k = np.arange(d)
        diagonal = self._own_blocks(members.ravel()).reshape(n, m, d, d)
        mean = np.einsum("nmkk->nm", diagonal) / d + self.degree[members]
        diagonal[:, :, k, k] += (self.degree[members] + 1e-12 * mean + 1e-300)[:, :, None]
        A = np.zeros((n, m, d, m, d))
        if m > 1:
            row, slot = (np.full(len(groups), -1) for _ in range(2))
            row[members], slot[members] = np.arange(n)[:, None], np.arange(m)
            i, j = self.B.indices.reshape(-1, 2).T
            inner = np.flatnonzero((groups[i] == groups[j]) & (row[i] >= 0))
            at, a, b = row[i[inner]], slot[i[inner]], slot[j[inner]]
            along = self.c[inner][:, None, None] * self.d_hat[inner][:, :, None] * self.d_hat[inner][:, None, :]
            np.subtract.at(diagonal, (at, a), along)
            np.subtract.at(diagonal, (at, b), along)
            along[:, k, k] -= self.c[inner][:, None]
            A[at, a, :, b, :] = A[at, b, :, a, :] = along
        for a in range(m):
            A[:, a, :, a, :] = diagonal[:, a]
        blocks, free = A.reshape(n, m * d, m * d), self.face.free[members].reshape(n, m * d)
        blocks *= free[:, :, None] & free[:, None, :]
        blocks[:, np.arange(m * d), np.arange(m * d)] += ~free
        return blocks

    def _own_blocks(self, clusters: IntArray) -> FloatArray:
        """sum_i s_i x_i x_i^T + bend sigma sigma^T for each cluster; those of one size are multiplied together."""
        face, X = self.face, self.face.problem.X
        order, ends = np.argsort(face.clusters, kind="stable"), np.cumsum(face.sizes).astype(np.int64)
        sizes = face.sizes[clusters].astype(np.int64)
        blocks = np.empty((len(clusters), X.shape[1], X.shape[1]))
        for size in np.unique(sizes):
            chosen = sizes == size
            rows = order[(ends[clusters[chosen]] - size)[:, None] + np.arange(size)]
            A = np.sqrt(self.s[rows])[:, :, None] * X[rows]
            blocks[chosen] = np.matmul(A.transpose(0, 2, 1), A)
        sigma = self.sigma[clusters]
        blocks += self.bend[clusters][:, None, None] * sigma[:, :, None] * sigma[:, None, :]
        return blocks


def paired(links: IntArray, c: FloatArray, n: int) -> IntArray:
    """A label for each of n nodes: two nodes share one if each is the other's neighbour with the largest c.

    Nodes that were not chosen choose once more among themselves.

    >>> paired(np.array([[0, 1], [1, 2], [2, 3]]), np.array([1.0, 5.0, 2.0]), 4).tolist()
    [0, 1, 1, 2]
    """
    labels = np.arange(n)
    for _ in range(2):
        ends = np.concatenate([links, links[:, ::-1]])
        order = np.lexsort((-np.tile(c, 2), ends[:, 0]))
        nodes, first = np.unique(ends[order, 0], return_index=True)
        choice = np.full(n, -1)
        choice[nodes] = ends[order[first], 1]
        mutual = nodes[choice[choice[nodes]] == nodes]
        labels[mutual] = np.minimum(mutual, choice[mutual])
        left = ~np.isin(links, mutual).any(axis=1)
        links, c = links[left], c[left]
    return np.asarray(np.unique(labels, return_inverse=True)[1])
