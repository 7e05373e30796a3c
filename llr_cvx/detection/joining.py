"""A new row joins the fitted model: one convex problem per row, each with its own certificate.

An unlabelled row x is coupled to its K nearest fitted rows, whose weight vectors w_j stay as they are:

    J(w) = log(1 + e^{w.x}) + sum_j c_j ||w - w_j||_2 + lambda2 ||w||_1^2,      c_j = lambda1 r(x, x_j).

This is Eq. (5) for the one row, everything else held fixed. For alpha in [0, 1] and ||u_j|| <= c_j its dual is

    D(alpha, u) = H(alpha) - sum_j u_j.w_j - ||v||_inf^2 / (4 lambda2) <= J(w) for every w,   v = alpha x + sum_j u_j,

so every dual point proves how far w can be from optimal. At the optimum ||v||_inf = 2 lambda2 ||w||_1, and a feature
has a weight only where |v_k| attains ||v||_inf.

Two kinds of rows have a closed form, which its dual point proves: without coupling, as far from all fitted rows, only
the largest entry matters (`llr_cvx.oracles`); with strong coupling w is one of the anchors w_j. Other rows are solved
together by an interior-point method (`llr_cvx.detection.interior_point`). What is proved is computed so that it holds
for entries of any size (`llr_cvx.detection.row_problems`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import expit

from llr_cvx.arrays import FloatArray, IntArray
from llr_cvx.detection import interior_point as ip
from llr_cvx.detection.row_problems import (
    TINY,
    Dual,
    RowProblems,
    at,
    dot,
    feasible,
    proven,
    proven_by_u,
    proven_by_v,
    safe_norms,
    share,
    sigmoid,
)
from llr_cvx.oracles import decoupled_weight

#: Relative gap proved for every row, and the smaller one at which the interior-point method stops, since exact zeros,
#: found afterwards, may cost a little.
JOIN_TOL, STOP_TOL = 1e-9, 1e-10
#: 60 steps suffice on every data set tried, with a median of 15 to 25.
MAX_STEPS = 100
#: A row whose gap has not shrunk for this many steps has reached the limit of rounding.
MAX_STALLED_STEPS = 25
#: An anchor is left out if c_j ||w - a_j|| varies by less than this share of the lowest J known at the start, wherever
#: w may be: it becomes a copy of the strongest anchor with this share of its radius, and u_j follows from w.
LEFT_OUT = 1e-20
#: Rows are solved in blocks whose arrays have about this many entries, so that they stay in the cache.
BLOCK_ENTRIES = 50_000


class JoinedRows(NamedTuple):
    """Weight vectors of new rows, with the dual points that prove them.

    Attributes
    ----------
    W : array of shape (M, d)
    alpha, U, V : arrays of shape (M,), (M, K, d) and (M, d)
        The dual point, so that anyone can recheck the gap. v = alpha x + sum_j u_j holds up to rounding, and exactly
        for a v, or for a u_j of the anchor with the largest c_j, that is a little different. A feature has a weight
        only where |v_k| attains its row's maximum.
    relative_gap : array of shape (M,)
        (J - D) / J, a proven bound on (J(w) - min J) / J(w); if J is below 1e-300, relative to that.
    """

    W: FloatArray
    alpha: FloatArray
    U: FloatArray
    V: FloatArray
    relative_gap: FloatArray


def join_rows(x: FloatArray, anchors: FloatArray, radii: FloatArray, lambda2: float) -> JoinedRows:
    """Minimise J for each row independently; a row's answer does not depend on the other rows, to the last bit.

    Parameters
    ----------
    x : array of shape (M, d)
    anchors : array of shape (M, K, d)
        The fitted weight vectors w_j.
    radii : array of shape (M, K)
        c_j >= 0.
    lambda2 : float
        > 0.

    Examples
    --------
    Strong coupling takes the anchor's weights over, no coupling leaves the largest entry alone.

    >>> found = join_rows(np.array([[1.0, 2.0]] * 2), np.ones((2, 1, 2)), np.array([[9.0], [0.0]]), lambda2=0.5)
    >>> found.W.round(6).tolist()
    [[1.0, 1.0], [0.0, -0.521298]]
    """
    M, K, d = anchors.shape
    size = max(1, BLOCK_ENTRIES // (K * d))
    rows = RowProblems(x, anchors, radii, np.full(M, lambda2), np.ones(M))
    with np.errstate(all="ignore"):  # what breaks down proves nothing
        parts = [_solve_block(rows.take(slice(s, s + size))) for s in range(0, M, size)]
    if not parts:
        return JoinedRows(np.empty((0, d)), np.empty(0), np.empty((0, K, d)), np.empty((0, d)), np.empty(0))
    return JoinedRows(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def _solve_block(rows: RowProblems) -> JoinedRows:
    every, alone = np.arange(len(rows.x)), _decoupled(rows.x, rows.lambda2)
    candidates = np.stack([alone, *np.swapaxes(rows.anchors, 0, 1)])
    values = np.array([rows.objective(w) for w in candidates])
    W, J = candidates[values.argmin(axis=0), every], values.min(axis=0)
    alpha = sigmoid(dot(alone, rows.x))
    dual, own = Dual(alpha, np.zeros_like(rows.anchors), alpha[:, None] * rows.x), at(rows, W, J)
    dual.improve(rows, every, own)
    coupled = np.flatnonzero(share(J, proven(rows, dual)) > JOIN_TOL)
    if coupled.size:
        some, own, level = rows.take(coupled), own.take(coupled), 2.0 * rows.lambda2 * np.abs(W).sum(axis=1)
        W[coupled], found = _coupled(some, W[coupled], J[coupled])
        dual.improve(rows, coupled, found)
        # Where the pulls of anchors cancel, what is left of v may be rounding.
        dual.improve(rows, coupled, feasible(some, own.alpha, own.u, level[coupled]))
    return _tidied(rows, W, dual)


def _decoupled(x: FloatArray, lambda2: FloatArray) -> FloatArray:
    """The minimiser without coupling."""
    every, k = np.arange(len(x)), np.abs(x).argmax(axis=1)
    W = np.zeros_like(x)
    W[every, k] = -np.sign(x[every, k]) * decoupled_weight(np.abs(x[every, k]), lambda2[0])
    return W


def _coupled(rows: RowProblems, best: FloatArray, J: FloatArray) -> tuple[FloatArray, Dual]:
    """W and the dual points of rows without a closed form."""
    every, strongest = np.arange(len(J)), rows.radii.argmax(axis=1)
    anchor, most = rows.anchors[every, strongest], rows.radii[every, strongest]
    kept = rows.radii * (J / most + safe_norms(anchor))[:, None] > LEFT_OUT * J[:, None]
    radii = np.where(kept, rows.radii, LEFT_OUT * most[:, None])
    rest = rows._replace(anchors=np.where(kept[:, :, None], rows.anchors, anchor[:, None]), radii=radii)
    # In units in which J and the largest radius are about 1, so that no square underflows; by powers of two, so that
    # nothing is rounded.
    beta, radius = (np.exp2(-np.round(np.log2(np.maximum(size, TINY)))) for size in (rest.objective(best), most))
    unit = beta / radius
    scaled = RowProblems(
        rest.x / unit[:, None],
        rest.anchors * unit[:, None, None],
        rest.radii * radius[:, None],
        rest.lambda2 * radius / unit,
        beta,
    )
    best = best * unit[:, None]
    found = _interior(scaled, best, ip.CENTRING)
    short = np.flatnonzero(found.gap > JOIN_TOL)  # one of 20,280 hostile rows
    if short.size:
        found.improve(short, *_interior(scaled.take(short), best[short], ip.CAUTIOUS_CENTRING))
    w, dual = found.w / unit[:, None], found.dual
    u = np.where(kept[:, :, None], dual.u / radius[:, None, None], at(rows, w, J).u)
    return w, Dual(dual.alpha, u, dual.v / radius[:, None])


class Found(NamedTuple):
    """The best w and the best dual point of each row; they need not come from the same step.

    Not the pair with the smallest relative gap: where D < 0, that would be a w with a large J.
    """

    w: FloatArray
    J: FloatArray
    dual: Dual
    D: FloatArray

    @property
    def gap(self) -> FloatArray:
        """(J - D) / J; infinite where nothing is proved."""
        return share(self.J, self.D)

    def improve(self, rows: IntArray, w: FloatArray, J: FloatArray, dual: Dual, D: FloatArray) -> None:
        """Take a lower J, and a larger D, of some rows."""
        lower, larger = self.J[rows] > J, self.D[rows] < D
        self.w[rows[lower]], self.J[rows[lower]] = w[lower], J[lower]
        self.dual.put(rows[larger], dual.take(larger))
        self.D[rows[larger]] = D[larger]


def _interior(rows: RowProblems, w: FloatArray, centring: tuple[float, float]) -> Found:
    """The best of every row's steps from w; a row leaves the loop when its gap is proved, or no longer shrinks."""
    M = len(w)
    nothing = Dual(np.zeros(M), np.zeros_like(rows.anchors), np.zeros_like(w))
    found = Found(w.copy(), rows.objective(w), nothing, np.full(M, -np.inf))
    gap, since, live = np.full(M, np.inf), np.zeros(M, dtype=np.int64), np.arange(M)
    now = ip.start(rows, w)
    for _ in range(MAX_STEPS):
        w = rows.lowered(now.w)
        J, alpha = rows.objective(w), expit(now.z)
        dual = feasible(rows, alpha, now.u)
        found.improve(live, w, J, dual, proven_by_u(rows, dual))
        # At the optimum |v| <= 2 lambda2 ||w||_1. Where that is small beside the terms of v, rounding exceeds it.
        level = 2.0 * rows.lambda2 * np.abs(w).sum(axis=1)
        low = np.flatnonzero(level < rows.radii.max(axis=1))
        if low.size:
            some = rows.take(low)
            dual = feasible(some, alpha[low], now.u[low], level[low])
            found.improve(live[low], w[low], J[low], dual, proven_by_v(some, dual))
        reached = found.gap[live]
        since[live] = np.where(reached < gap[live], 0, since[live] + 1)
        gap[live] = reached
        going = (reached > STOP_TOL) & (since[live] < MAX_STALLED_STEPS)
        if not going.all():
            live, rows, now = live[going], rows.take(going), now.take(going)
        if not live.size:
            break
        now = ip.step(rows, now, centring)
    return found


def _tidied(rows: RowProblems, W: FloatArray, dual: Dual) -> JoinedRows:
    """Exact zeros wherever they are no worse or are proved as well."""
    D, J = proven(rows, dual), rows.objective(W)
    size, slack = np.abs(W), np.abs(dual.v)
    portion = np.divide(size, size.sum(axis=1, keepdims=True), out=np.zeros_like(W), where=size > 0.0)
    distance = 1.0 - np.divide(slack, slack.max(axis=1, keepdims=True), out=np.ones_like(slack), where=slack > 0.0)
    candidate = np.where(portion < distance, 0.0, W)
    value = rows.objective(candidate)
    good = (value <= J) | (share(value, D) <= JOIN_TOL)
    return JoinedRows(np.where(good[:, None], candidate, W), *dual, share(np.where(good, value, J), D))
