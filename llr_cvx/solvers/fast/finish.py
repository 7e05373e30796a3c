"""The machine-precision finish: Newton's method on a face.

A few Newton steps on F (see `face`) reach rounding error. A coordinate that crosses zero leaves the free set,
a zero coordinate whose multiplier is too large joins it, and a link that turns over is fused. Whether the face was
right is not decided here: the certificate of the result says so.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.sparse import coo_array
from scipy.special import expit

from llr_cvx.arrays import BoolArray, FloatArray, IntArray, row_dot
from llr_cvx.graph import component_labels
from llr_cvx.proofs.certificate import ROUNDING
from llr_cvx.solvers import settings
from llr_cvx.solvers.face import Face
from llr_cvx.solvers.fast.completion import complete_dual
from llr_cvx.solvers.linear.cg import Operator, conjugate_gradients
from llr_cvx.solvers.linear.preconditioner import rank_two_inverse
from llr_cvx.solvers.run import Best, Iterate


class Finish:
    """The minimiser of J on a face, and the dual point that belongs to it: one step."""

    name = "finish"

    def __init__(self, face: Face, U: FloatArray, best: Best) -> None:
        self.face, self.U, self.best, self.done = face, U, best, False

    def step(self) -> Iterate:
        """Minimise on the face; keep the result if it is better, or if it is exact and no worse than rounding."""
        self.done, problem, best = True, self.face.problem, self.best
        face, exact = descend(self.face, settings.FINISH_CG, accuracy=1e-13)
        W, objective = face.W, problem.objective(face.W)
        if exact:
            best.bound(*complete_dual(face, self.U, target=objective * (1.0 - 1e-14)))
        if objective <= best.objective * (1.0 + (ROUNDING if exact else 0.0)):
            best.adopt(W, objective)
        return Iterate(W, objective)


def descend(face: Face, budget: int, accuracy: float) -> tuple[Face, bool]:
    """Newton's method from the face's own point to a relative gradient of `accuracy`; the face is corrected too.

    `budget` limits the conjugate gradient iterations in all: on the right face the systems are easy. Returns the
    face, and whether the end was reached: the accuracy, or rounding error.
    """
    best, stalls, done = face.problem.objective(face.W), 0, False
    rtol = settings.FACE_LOOSE
    while budget > 0 and stalls < 3:
        v, curvature = _slopes(face)
        face = _freed(face, v)
        level = 2.0 * face.problem.lambda2 * np.abs(face.w).sum(axis=1)
        sigma = np.where(face.w != 0.0, np.sign(face.w), -np.sign(v)) * face.free
        gradient = np.where(face.free, v + (face.sizes * level)[:, None] * sigma, 0.0)
        done = bool(np.abs(gradient).max(initial=0.0) <= accuracy * np.abs(v).max(initial=1e-300))
        if done:
            break
        limit = min(budget, settings.HOPELESS_CG) if rtol == settings.FACE_LOOSE else budget
        system = FaceSystem(face, sigma, curvature)
        step, n_cg = conjugate_gradients(system.apply, system.inverse_of_blocks(), -gradient, rtol, limit)
        budget = budget - n_cg - 1 if n_cg < limit else 0
        before = face
        face, value = _line_search(face, step, sigma, best)
        same = len(face.w) == len(before.w) and bool((face.free == before.free).all())
        rtol = settings.FACE_TIGHT if same else settings.FACE_LOOSE  # full accuracy pays only once the face has settled
        stalls = stalls + 1 if value >= best * (1.0 - 1e-15) else 0
        best = min(best, value)
    return _swept(face), done or stalls == 3


def _swept(face: Face) -> Face:
    """Weights that move no score by more than rounding are set to zero."""
    dust = np.abs(face.w) * np.abs(face.problem.X).max(axis=0) < 1e-14
    return face.at(np.where(dust, 0.0, face.w), face.free & ~dust)


def _slopes(face: Face) -> tuple[FloatArray, FloatArray]:
    """Sum over each cluster of v_i (inner edges cancel), and the curvature s_i of each logistic term."""
    p = face.problem
    B, BT, weight = face.links
    alpha = expit(-p.y * row_dot(p.X, face.W))
    D = B @ face.w
    norms = np.sqrt(row_dot(D, D))
    v = BT @ (D * np.divide(weight, norms, out=np.zeros_like(norms), where=norms > 0)[:, None])
    v -= face.membership @ ((alpha * p.y)[:, None] * p.X)
    return np.asarray(v), np.asarray(alpha * (1.0 - alpha))


def _freed(face: Face, v: FloatArray) -> Face:
    """Free the coordinates whose |v| exceeds that of the support: at an optimum none does."""
    bound = face.sizes * 2.0 * face.problem.lambda2 * np.abs(face.w).sum(axis=1)
    largest = np.abs(v).max(axis=1)
    over = ~face.free & (np.abs(v) > bound[:, None] * (1.0 + 1e-9) + 1e-14 * np.abs(v).max(initial=0.0))
    # At w_c = 0 every slope is over the bound; the largest is the one that the penalty selects.
    over &= (bound[:, None] > 0) | (np.abs(v) >= largest[:, None])
    return face.at(face.w, face.free | over) if over.any() else face


def _line_search(face: Face, step: FloatArray, sigma: FloatArray, best: float) -> tuple[Face, float]:
    """The longest of 1, 1/2, ... that does not raise J, with two ways to treat zero crossings."""
    for t in (1.0, 0.5, 0.25, 0.125, 1 / 32, 1 / 256):
        for trial in _moved(face, t * step, sigma):
            value = face.problem.objective(trial.W)
            if value <= best * (1.0 + 1e-13):
                return trial, value
    return face, best


def _moved(face: Face, step: FloatArray, sigma: FloatArray) -> Iterator[Face]:
    """The face after the step, where coordinates that would cross zero are set to zero.

    If there are any, also with each whole row stopped where the first of its coordinates gets there.
    """
    leaves = face.free & ((face.w + step) * sigma < 0.0) & (face.problem.lambda2 > 0)
    yield _arrived(face, step, leaves)
    if leaves.any():
        ratio = np.divide(-face.w, step, out=np.ones_like(step), where=leaves)
        reach = ratio.min(axis=1, initial=1.0)[:, None]
        yield _arrived(face, reach * step, leaves & (ratio <= reach))


def _arrived(face: Face, step: FloatArray, leaves: BoolArray) -> Face:
    free = face.free & ~leaves
    w = np.where(free, face.w + step, 0.0)
    B, _, _ = face.links
    turned = row_dot(B @ w, B @ face.w) <= 0.0
    return _fuse(face, w, free, turned) if turned.any() else face.at(w, free)


def _fuse(face: Face, w: FloatArray, free: BoolArray, turned: BoolArray) -> Face:
    """Merge the clusters joined by edges that turned over, at the mean of their rows."""
    B, _, _ = face.links
    pairs = B.indices.reshape(-1, 2)[turned]
    C = len(w)
    labels = component_labels(C, pairs)
    n = int(labels.max()) + 1
    total = coo_array((face.sizes, (labels, np.arange(C))), shape=(n, C)).tocsr()
    merged = (total @ w) / np.bincount(labels, face.sizes)[:, None]
    either = np.asarray(total @ free.astype(float)) > 0
    return Face(face.problem, labels[face.clusters], np.where(either, merged, 0.0), either)


class FaceSystem:
    """H = (blocks of clusters) + (links) at the face's own w, for signs sigma (C, d) and logistic curvatures s (N,).

    A link is c [I - d_hat d_hat^T] with c = lambda1 omega / ||d||.
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

    def apply(self, P: FloatArray) -> FloatArray:
        """H P, with 0 for coordinates that are not free."""
        face, X = self.face, self.face.problem.X
        dP = self.B @ P
        dP -= self.d_hat * row_dot(self.d_hat, dP)[:, None]
        out = self.BT @ (dP * self.c[:, None])
        out += face.membership @ (X * (self.s * row_dot(X, P[face.clusters]))[:, None])
        out += self.sigma * (self.bend * row_dot(self.sigma, P))[:, None]
        return np.where(face.free, out, 0.0)

    def inverse_of_blocks(self) -> Operator:
        """Inverts the block of each cluster; that of a sample alone by Woodbury's formula."""
        face, d = self.face, self.face.w.shape[1]
        X, free = face.problem.X, face.free
        first = np.zeros(len(face.w), dtype=np.int64)
        first[face.clusters] = np.arange(len(X))
        x = np.where(free, np.sqrt(self.s[first])[:, None] * X[first], 0.0)
        single = rank_two_inverse(self.degree[:, None] + np.zeros(d), x, np.sqrt(self.bend)[:, None] * self.sigma)
        dense = np.flatnonzero(face.sizes > 1)
        inverse = np.linalg.inv(self._blocks(dense))

        def solve(R: FloatArray) -> FloatArray:
            out = single(R)
            out[dense] = np.matmul(inverse, R[dense, :, None])[:, :, 0]
            return np.where(free, out, 0.0)

        return solve

    def _blocks(self, clusters: IntArray) -> FloatArray:
        """The dense block of each cluster, links included as multiples of I; coordinates that are not free cut off."""
        blocks, free, k = self._own_blocks(clusters), self.face.free[clusters], np.arange(self.face.w.shape[1])
        mean = np.einsum("nkk->n", blocks) / len(k) + self.degree[clusters]
        blocks[:, k, k] += (self.degree[clusters] + 1e-12 * mean + 1e-300)[:, None]
        blocks *= free[:, :, None] & free[:, None, :]
        blocks[:, k, k] += ~free
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
