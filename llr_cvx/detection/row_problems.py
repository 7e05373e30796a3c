"""The problem of a new row, and what a dual point proves about it in floating-point arithmetic.

With the loss weighted by beta (1, but for scaling) the problem of a row and its dual are

    J(w) = beta log(1 + e^{w.x}) + sum_j c_j ||w - a_j||_2 + lambda2 ||w||_1^2,
    D(alpha, u) = beta H(alpha) - sum_j u_j.a_j - ||v||_inf^2 / (4 lambda2),   v = beta alpha x + sum_j u_j,

for alpha in [0, 1] and ||u_j|| <= c_j. Computed, J is never too small and D never too large, whatever is rounded.

Where entries of x are huge, v may be tiny beside its terms, so that nothing is left of it after rounding. Then v is
chosen, and the equation for v defines the u_j of the strongest anchor, for which rounding hardly matters.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from llr_cvx.arrays import FloatArray, IntArray, row_norms
from llr_cvx.proofs.certificate import EPS, UNDERFLOW, entropy

#: A dual point is scaled down by this share, and more for many features, so that rounding leaves no u_j outside.
BALL_MARGIN = 1e-12
#: Gaps are relative to J, but to this if J is smaller: nothing can be told of numbers that underflow.
TINY = 1e-300
#: A u_j is 0 where the radius is less: too few digits are left to keep it inside its ball.
LEAST_RADIUS = 1e-309
#: What a larger v than 2 lambda2 ||w||_1 may cost, as a share of J.
SPARE = 1e-11


def dot(a: FloatArray, b: FloatArray) -> FloatArray:
    """Inner products along the last axis."""
    return np.asarray((a * b).sum(axis=-1))


def norms(a: FloatArray) -> FloatArray:
    """Euclidean norms along the last axis."""
    return np.asarray(np.sqrt((a * a).sum(axis=-1)))


def sigmoid(z: FloatArray) -> FloatArray:
    """1 / (1 + e^{-z}), also where that underflows gradually."""
    return np.asarray(np.exp(-np.logaddexp(0.0, -z)))


def safe_norms(a: FloatArray) -> FloatArray:
    """The same where squares may underflow or overflow."""
    return row_norms(a.reshape(-1, a.shape[-1])).reshape(a.shape[:-1])


class RowProblems(NamedTuple):
    """M problems: x (M, d), anchors a_j (M, K, d), radii c_j >= 0 (M, K), lambda2 > 0 and beta > 0 (M,)."""

    x: FloatArray
    anchors: FloatArray
    radii: FloatArray
    lambda2: FloatArray
    beta: FloatArray

    def take(self, rows: Any) -> RowProblems:
        """The problems of some of the rows."""
        return RowProblems(*(array[rows] for array in self))

    def largest(self) -> tuple[IntArray, FloatArray]:
        """The feature with the largest |x_k| of each row, and its entry."""
        k = np.abs(self.x).argmax(axis=1)
        return k, self.x[np.arange(len(k)), k]

    def objective(self, w: FloatArray) -> FloatArray:
        """J of each row at w, as large as rounding allows: huge terms of w.x may cancel."""
        K, d = self.anchors.shape[1:]
        terms = w * self.x
        z = terms.sum(axis=1) + (d + 1) * EPS * np.abs(terms).sum(axis=1)
        coupling = dot(self.radii, safe_norms(w[:, None] - self.anchors))
        J = self.beta * np.logaddexp(0.0, z) + coupling + self.lambda2 * np.abs(w).sum(axis=1) ** 2
        lost = (1.0 + self.lambda2 + self.radii.sum(axis=1)) * (d + K + 8) * UNDERFLOW
        return np.asarray(J * (1.0 + (d + K + 8) * EPS) + lost)

    def lowered(self, w: FloatArray) -> FloatArray:
        """w, moved along the largest entry until w.x as `objective` takes it is no larger than w.x before rounding."""
        k, largest = self.largest()
        error = 2.0 * (w.shape[1] + 2) * EPS * np.abs(w * self.x).sum(axis=1)
        w = w.copy()
        w[np.arange(len(k)), k] -= np.divide(error, largest, out=np.zeros_like(error), where=largest != 0.0)
        return w


class Dual(NamedTuple):
    """Dual points: alpha (M,), u (M, K, d) and v (M, d), equal to beta alpha x + sum_j u_j up to rounding."""

    alpha: FloatArray
    u: FloatArray
    v: FloatArray

    def take(self, rows: Any) -> Dual:
        """The points of some of the rows."""
        return Dual(*(array[rows] for array in self))

    def put(self, rows: Any, other: Dual) -> None:
        """Replace the points of some of the rows."""
        for whole, part in zip(self, other, strict=True):
            whole[rows] = part

    def improve(self, problems: RowProblems, rows: IntArray, other: Dual) -> None:
        """Replace the points of those of some rows of which the others prove more."""
        some = problems.take(rows)
        better = np.flatnonzero(proven(some, other) > proven(some, self.take(rows)))
        self.put(rows[better], other.take(better))


def feasible(rows: RowProblems, alpha: FloatArray, u: FloatArray, level: FloatArray | None = None) -> Dual:
    """A dual point near (alpha, u); with a level, |v| is cut down to it by a change of the strongest anchor's u_j.

    All of it is scaled down until every u_j is inside its ball, rounding included. D is concave and 0 at 0, so that a
    positive D loses no larger share.
    """
    v = (rows.beta * alpha)[:, None] * rows.x + u.sum(axis=1)
    if level is not None:
        cut = np.clip(v, -level[:, None], level[:, None])
        u = u.copy()
        u[np.arange(len(u)), rows.radii.argmax(axis=1)] += cut - v
        v = cut
    return _inside(rows, Dual(alpha, u, v))


def at(rows: RowProblems, w: FloatArray, J: FloatArray) -> Dual:
    """The dual point that proves w if w is optimal: u_j = c_j (w - a_j) / ||w - a_j|| for the anchors away from w.

    Those equal to w carry what takes v to -level sign(w) where w_k is not 0 and to at most the level elsewhere, without
    changing its proportions there, so that features can be ranked by them; the level is 2 lambda2 ||w||_1.
    """
    delta = w[:, None] - rows.anchors
    away, alpha = safe_norms(delta)[:, :, None], sigmoid(dot(w, rows.x))
    u = rows.radii[:, :, None] * np.divide(delta, away, out=np.zeros_like(delta), where=away > 0.0)
    v = (rows.beta * alpha)[:, None] * rows.x + u.sum(axis=1)
    here = np.where(away[:, :, 0] > 0.0, 0.0, rows.radii)
    total = here.sum(axis=1, keepdims=True)
    lowest = np.sqrt(rows.lambda2 * SPARE * J)  # where w = 0 a v too small to cost anything still has proportions
    level = 2.0 * np.maximum(rows.lambda2 * np.abs(w).sum(axis=1), lowest)[:, None]
    largest = np.where(w == 0.0, np.abs(v), 0.0).max(axis=1, keepdims=True)
    fitting = np.divide(level, largest, out=np.ones_like(level), where=largest > level)
    wanted = np.where(total > 0.0, np.where(w == 0.0, fitting * v, -np.sign(w) * level), v)
    part = np.divide(here, total, out=np.zeros_like(here), where=total > 0.0)
    return _inside(rows, Dual(alpha, u + part[:, :, None] * (wanted - v)[:, None], wanted))


def _inside(rows: RowProblems, dual: Dual) -> Dual:
    u = np.where(rows.radii[:, :, None] < LEAST_RADIUS, 0.0, dual.u)
    length = safe_norms(u)
    shrink = np.divide(rows.radii, length, out=np.ones_like(length), where=length > rows.radii).min(axis=1)
    shrink *= 1.0 - BALL_MARGIN - 2.0 * u.shape[2] * EPS
    return Dual(shrink * dual.alpha, shrink[:, None, None] * u, shrink[:, None] * dual.v)


def proven(rows: RowProblems, dual: Dual) -> FloatArray:
    """The larger of the two bounds that follow."""
    return np.fmax(proven_by_u(rows, dual), proven_by_v(rows, dual))


def proven_by_u(rows: RowProblems, dual: Dual) -> FloatArray:
    """D less its rounding errors if u is taken as it is, and v follows from it; -inf where u leaves its balls."""
    outer = np.abs(dual.v) + _rounding_of_v(rows, dual)
    return _bound(rows, dual.alpha, dual.u, rows.anchors, outer, safe_norms(dual.u))


def proven_by_v(rows: RowProblems, dual: Dual) -> FloatArray:
    """The same if v is taken as it is, and u_j of the strongest anchor follows from it.

    With sum_i u_i.a_i = sum_i u_i.(a_i - a_j) + v.a_j - beta alpha x.a_j that u_j matters for its ball only.
    """
    every, j = np.arange(len(dual.v)), rows.radii.argmax(axis=1)
    lengths = safe_norms(dual.u)
    lengths[every, j] += safe_norms(_rounding_of_v(rows, dual))
    own, centre = (rows.beta * dual.alpha)[:, None] * rows.x, rows.anchors[every, j][:, None]
    terms = np.concatenate([dual.u, dual.v[:, None], -own[:, None]], axis=1)
    points = np.concatenate([rows.anchors - centre, centre, centre], axis=1)
    return _bound(rows, dual.alpha, terms, points, np.abs(dual.v), lengths)


def _rounding_of_v(rows: RowProblems, dual: Dual) -> FloatArray:
    """Bound on |v - beta alpha x - sum_j u_j|."""
    (alpha, u, v), K = dual, dual.u.shape[1]
    own = (rows.beta * alpha)[:, None] * rows.x
    size = np.abs(own) + np.abs(u).sum(axis=1) + np.abs(v)
    return np.asarray(np.abs(own + u.sum(axis=1) - v) + (K + 3) * (EPS * size + UNDERFLOW))


def _bound(
    rows: RowProblems, alpha: FloatArray, terms: FloatArray, points: FloatArray, v: FloatArray, lengths: FloatArray
) -> FloatArray:
    """beta H(alpha) - sum_j terms_j.points_j - max(v)^2 / (4 lambda2) less rounding; -inf where lengths > radii."""
    n, d = points.shape[1:]
    products = terms * points
    pull, most = (each.sum(axis=2).sum(axis=1) for each in (products, np.abs(products)))
    penalty, gain = (v.max(axis=1) / (2.0 * np.sqrt(rows.lambda2))) ** 2, rows.beta * entropy(alpha)
    error = EPS * (8.0 * (gain + penalty) + (d + n + 8) * most) + (n * d + 8) * UNDERFLOW
    inside = ((lengths == 0.0) | (lengths * (1.0 + (d + 8) * EPS) + UNDERFLOW <= rows.radii)).all(axis=1)
    return np.where(inside, gain - pull - penalty - error, -np.inf)


def share(J: FloatArray, D: FloatArray) -> FloatArray:
    """(J - D) / J, or / TINY if J is smaller than that; infinite where it is no number."""
    gap = (J - D) / np.maximum(J, TINY)
    return np.where(np.isnan(gap), np.inf, gap)
