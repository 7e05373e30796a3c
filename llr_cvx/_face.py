"""The machine-precision finish: Newton's method on the face of W where J is smooth.

Once it is known which samples are fused and which coordinates vanish, J restricted to such W is smooth: with one
row per cluster c of n_c samples, signs sigma, and only the free coordinates as unknowns,

    F(w) = sum_i log(1 + exp(-y_i w_c(i).x_i)) + lambda1 sum_{c<c'} omega_cc' ||w_c - w_c'||
         + lambda2 sum_c n_c (sigma_c.w_c)^2,

and a few Newton steps reach rounding error. A coordinate that crosses zero leaves the free set, a zero coordinate
whose multiplier is too large joins it, and an edge that turns over is fused. Whether the guess was right is not
decided here: the certificate of the result says so.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array
from scipy.special import expit

from llr_cvx._cg import Operator, conjugate_gradients
from llr_cvx._preconditioner import rank_two_inverse
from llr_cvx._system import components
from llr_cvx._validation import FloatArray, IntArray
from llr_cvx.graph import component_labels
from llr_cvx.problem import Problem
from llr_cvx.smoothing import row_dot

BoolArray = NDArray[np.bool_]

LOOSE, HOPELESS = 1e-2, 100  # a system that takes so many iterations to this accuracy belongs to the wrong face


@dataclass(frozen=True, eq=False)
class Face:
    """Which samples share a row, and for each cluster its row w and its free coordinates."""

    problem: Problem
    clusters: IntArray
    w: FloatArray
    free: BoolArray

    @property
    def W(self) -> FloatArray:
        """One row a sample: fused rows exactly equal, coordinates off the face exactly 0.0."""
        return np.asarray(self.w[self.clusters])

    @cached_property
    def sizes(self) -> FloatArray:
        """n_c."""
        return np.bincount(self.clusters, minlength=len(self.w)).astype(float)

    @cached_property
    def membership(self) -> csr_array:
        """Sparse (C, N): sums rows of samples over their cluster."""
        N = self.problem.shape[0]
        return coo_array((np.ones(N), (self.clusters, np.arange(N))), shape=(len(self.w), N)).tocsr()

    @cached_property
    def _links(self) -> tuple[csr_array, csr_array, FloatArray]:
        """Incidence of the contracted graph, its transpose, and lambda1 omega summed over parallel edges."""
        ends = np.sort(self.clusters[self.problem.edges], axis=1)
        radii = self.problem.radii
        keep = (ends[:, 0] != ends[:, 1]) & (radii > 0)
        C = len(self.w)
        keys, link = np.unique(ends[keep, 0] * C + ends[keep, 1], return_inverse=True)
        weight = np.bincount(link, radii[keep], minlength=len(keys)).astype(float)
        pairs = np.column_stack([keys // C, keys % C])
        data, indptr = np.tile([1.0, -1.0], len(keys)), np.arange(0, 2 * len(keys) + 1, 2)
        B = csr_array((data, pairs.ravel(), indptr), shape=(len(keys), C))
        return B, B.T.tocsr(), weight


def face_of(problem: Problem, W: FloatArray, fused: BoolArray) -> Face:
    """Clusters over the edges that are marked, at their means; a coordinate is 0 where most members have 0."""
    clusters = components(problem, fused)
    C, N = int(clusters.max()) + 1, len(clusters)
    mean = coo_array((1.0 / np.bincount(clusters)[clusters], (clusters, np.arange(N))), shape=(C, N)).tocsr()
    free = np.asarray(mean @ (W != 0.0).astype(float) > 0.5)
    if problem.lambda2 == 0:
        free[:] = True  # no penalty, no kink: every coordinate is free and may change its sign
    return Face(problem, clusters, np.where(free, mean @ W, 0.0), free)


def descend(face: Face, budget: int, accuracy: float) -> tuple[Face, bool]:
    """Newton's method from the face's own point to a relative gradient of `accuracy`; the face is corrected too.

    `budget` limits the conjugate gradient iterations in all: on the right face the systems are easy. Returns the
    face, and whether the end was reached: the accuracy, or rounding error.
    """
    best, stalls, done = face.problem.objective(face.W), 0, False
    rtol = LOOSE
    while budget > 0 and stalls < 3:
        v, curvature = _slopes(face)
        face = _freed(face, v)
        level = 2.0 * face.problem.lambda2 * np.abs(face.w).sum(axis=1)
        sigma = np.where(face.w != 0.0, np.sign(face.w), -np.sign(v)) * face.free
        gradient = np.where(face.free, v + (face.sizes * level)[:, None] * sigma, 0.0)
        done = bool(np.abs(gradient).max(initial=0.0) <= accuracy * np.abs(v).max(initial=1e-300))
        if done:
            break
        limit = min(budget, HOPELESS) if rtol == LOOSE else budget
        step, n_cg = _newton_direction(face, gradient, sigma, curvature, rtol, limit)
        budget = budget - n_cg - 1 if n_cg < limit else 0
        before = face
        face, value = _line_search(face, step, sigma, best)
        same = len(face.w) == len(before.w) and bool((face.free == before.free).all())
        rtol = 1e-4 if same else LOOSE  # full accuracy pays only once the face has settled
        stalls = stalls + 1 if value >= best * (1.0 - 1e-15) else 0
        best = min(best, value)
    return _swept(face), done or stalls == 3


def _swept(face: Face) -> Face:
    """Weights that move no score by more than rounding are set to zero."""
    dust = np.abs(face.w) * np.abs(face.problem.X).max(axis=0) < 1e-14
    return replace(face, w=np.where(dust, 0.0, face.w), free=face.free & ~dust)


def _slopes(face: Face) -> tuple[FloatArray, FloatArray]:
    """Sum over each cluster of v_i (inner edges cancel), and the curvature s_i of each logistic term."""
    p = face.problem
    B, BT, weight = face._links
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
    return replace(face, free=face.free | over) if over.any() else face


def _newton_direction(
    face: Face, gradient: FloatArray, sigma: FloatArray, s: FloatArray, rtol: float, budget: int
) -> tuple[FloatArray, int]:
    p, free = face.problem, face.free
    B, BT, weight = face._links
    D = B @ face.w
    norms = np.sqrt(row_dot(D, D))
    inverse = np.divide(1.0, norms, out=np.zeros_like(norms), where=norms > 0)
    d_hat, c = D * inverse[:, None], weight * inverse
    bend = 2.0 * p.lambda2 * face.sizes

    def apply(P: FloatArray) -> FloatArray:
        dP = B @ P
        dP -= d_hat * row_dot(d_hat, dP)[:, None]
        out = BT @ (dP * c[:, None])
        out += face.membership @ (p.X * (s * row_dot(p.X, P[face.clusters]))[:, None])
        out += sigma * (bend * row_dot(sigma, P))[:, None]
        return np.where(free, out, 0.0)

    degree = np.asarray(abs(BT) @ c)
    precondition = _block_inverse(face, degree, sigma, s, bend)
    return conjugate_gradients(apply, precondition, -gradient, rtol, budget)


def _block_inverse(face: Face, degree: FloatArray, sigma: FloatArray, s: FloatArray, bend: FloatArray) -> Operator:
    """Block Jacobi: rank two plus diagonal for single samples, one dense block for each larger cluster."""
    p, free = face.problem, face.free
    d = p.shape[1]
    first = np.zeros(len(face.w), dtype=np.int64)
    first[face.clusters] = np.arange(p.shape[0])
    rows = np.where(free, np.sqrt(s[first])[:, None] * p.X[first], 0.0)
    single = rank_two_inverse(degree[:, None] + np.zeros(d), rows, np.sqrt(bend)[:, None] * sigma)
    big = np.flatnonzero(face.sizes > 1)
    if not big.size:
        return single
    order = np.argsort(face.clusters, kind="stable")
    ends = np.cumsum(face.sizes).astype(int)
    inverses = np.empty((len(big), d, d))
    for k, c in enumerate(big):
        member = order[ends[c] - int(face.sizes[c]) : ends[c]]
        A = np.sqrt(s[member])[:, None] * p.X[member]
        block = A.T @ A + bend[c] * np.outer(sigma[c], sigma[c])
        block.flat[:: d + 1] += degree[c] + 1e-12 * (np.trace(block) / d + degree[c]) + 1e-300
        mask = free[c]
        block[~mask] = 0.0
        block[:, ~mask] = 0.0
        block[~mask, ~mask] = 1.0
        inverses[k] = np.linalg.inv(block)

    def solve(R: FloatArray) -> FloatArray:
        out = single(R)
        out[big] = np.einsum("kij,kj->ki", inverses, R[big])
        return np.where(free, out, 0.0)

    return solve


def _line_search(face: Face, step: FloatArray, sigma: FloatArray, best: float) -> tuple[Face, float]:
    """The longest of 1, 1/2, ... that does not raise J, with the better of two ways to treat zero crossings."""
    for t in (1.0, 0.5, 0.25, 0.125, 1 / 32, 1 / 256):
        trials = [_moved(face, t * step, sigma, stop_rows) for stop_rows in (False, True)]
        values = [face.problem.objective(trial.W) for trial in trials]
        k = int(np.argmin(values))
        if values[k] <= best * (1.0 + 1e-13):
            return trials[k], values[k]
    return face, best


def _moved(face: Face, step: FloatArray, sigma: FloatArray, stop_rows: bool) -> Face:
    """Take the step; coordinates that would cross zero are set to zero.

    With `stop_rows` a whole row stops where the first of its coordinates gets there.
    """
    leaves = face.free & ((face.w + step) * sigma < 0.0) & (face.problem.lambda2 > 0)
    if stop_rows and leaves.any():
        ratio = np.divide(-face.w, step, out=np.ones_like(step), where=leaves)
        reach = ratio.min(axis=1, initial=1.0)[:, None]
        leaves &= ratio <= reach
        step = reach * step
    free = face.free & ~leaves
    w = np.where(free, face.w + step, 0.0)
    B, _, _ = face._links
    turned = row_dot(B @ w, B @ face.w) <= 0.0
    return _fuse(face, w, free, turned) if turned.any() else replace(face, w=w, free=free)


def _fuse(face: Face, w: FloatArray, free: BoolArray, turned: BoolArray) -> Face:
    """Merge the clusters joined by edges that turned over, at the mean of their rows."""
    B, _, _ = face._links
    pairs = B.indices.reshape(-1, 2)[turned]
    C = len(w)
    labels = component_labels(C, pairs)
    n = int(labels.max()) + 1
    total = coo_array((face.sizes, (labels, np.arange(C))), shape=(n, C)).tocsr()
    merged = (total @ w) / np.bincount(labels, face.sizes)[:, None]
    either = np.asarray(total @ free.astype(float)) > 0
    return Face(face.problem, labels[face.clusters], np.where(either, merged, 0.0), either)
