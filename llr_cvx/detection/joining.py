"""A new row joins the fitted model: one convex problem per row, each with its own certificate.

An unlabelled row x is coupled to its K nearest fitted rows, whose weight vectors w_j stay as they are:

    J(w) = log(1 + e^{w.x}) + sum_j c_j ||w - w_j||_2 + lambda2 ||w||_1^2,      c_j = lambda1 r(x, x_j).

This is Eq. (5) for the one row, everything else held fixed. For alpha in [0, 1] and ||u_j|| <= c_j its dual is

    D(alpha, u) = H(alpha) - sum_j u_j.w_j - ||v||_inf^2 / (4 lambda2) <= J(w) for every w,   v = alpha x + sum_j u_j,

so every dual point proves how far w can be from optimal. At the optimum ||v||_inf = 2 lambda2 ||w||_1, and a feature
has a weight only where |v_k| attains ||v||_inf.

A row far from all fitted rows has c_j = 0: only its largest entry then matters, in closed form (`llr_cvx.oracles`).
The other rows are solved together by an interior-point method (`llr_cvx.detection.interior_point`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import expit

from llr_cvx.arrays import BoolArray, FloatArray, IntArray, row_norms
from llr_cvx.detection import interior_point as ip
from llr_cvx.detection.interior_point import RowProblems, dot, norms
from llr_cvx.oracles import decoupled_weight
from llr_cvx.proofs.certificate import EPS, entropy

#: Relative gap proved for every row, and the smaller one at which the interior-point method stops, since exact
#: zeros and exact equality with an anchor, found afterwards, may cost a little.
JOIN_TOL, STOP_TOL = 1e-9, 1e-10
#: 60 steps suffice on every data set tried, with a median of 15 to 25.
MAX_STEPS = 100
#: A row whose gap has not shrunk for this many steps has reached the limit of rounding.
MAX_STALLED_STEPS = 25
#: u is moved this far inside its balls, so that rounding cannot put it outside.
BALL_MARGIN = 1e-13
#: Anchors whose coupling cannot exceed this share of J are left out of the computation, not out of the certificate.
NEGLIGIBLE = 1e-12
#: Rows are solved in blocks whose arrays have about this many entries, so that they stay in the cache.
BLOCK_ENTRIES = 50_000


class JoinedRows(NamedTuple):
    """Weight vectors of new rows, with the dual points that prove them.

    Attributes
    ----------
    W : array of shape (M, d)
    alpha, U : arrays of shape (M,) and (M, K, d)
        The dual point, so that anyone can recheck the gap.
    V : array of shape (M, d)
        v = alpha x + sum_j u_j: a feature has a weight only where |v_k| attains its row's maximum.
    relative_gap : array of shape (M,)
        (J - D) / J, a proven bound on (J(w) - min J) / J(w).
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
    rows = RowProblems(x, anchors, radii, np.full(M, lambda2))
    parts = [_solve_block(rows.take(slice(s, s + size)), lambda2) for s in range(0, M, size)]
    if not parts:
        return JoinedRows(np.empty((0, d)), np.empty(0), np.empty((0, K, d)), np.empty((0, d)), np.empty(0))
    return JoinedRows(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def _solve_block(rows: RowProblems, lambda2: float) -> JoinedRows:
    W, least = _decoupled(rows.x, lambda2)
    alpha = expit(dot(W, rows.x))
    U = np.zeros_like(rows.anchors)
    size = norms(rows.anchors)
    reach = size + np.maximum(norms(W), size.max(axis=1))[:, None]
    counts = rows.radii * reach > NEGLIGIBLE * least[:, None]
    coupled = np.flatnonzero(counts.any(axis=1))
    if coupled.size:
        W[coupled], alpha[coupled], U[coupled] = _coupled(rows.take(coupled), counts[coupled], W[coupled])
    return _tidied(rows, W, alpha, U)


def _decoupled(x: FloatArray, lambda2: float) -> tuple[FloatArray, FloatArray]:
    """The minimiser without coupling, and its J: a lower bound on J with coupling."""
    every, k = np.arange(len(x)), np.abs(x).argmax(axis=1)
    largest = x[every, k]
    weight = decoupled_weight(np.abs(largest), lambda2)
    W = np.zeros_like(x)
    W[every, k] = -np.sign(largest) * weight
    return W, np.logaddexp(0.0, -weight * np.abs(largest)) + lambda2 * weight**2


def _coupled(rows: RowProblems, counts: BoolArray, alone: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """W, alpha and U of rows with at least one anchor that counts."""
    # In units where the weights are about 1, by a power of two, so that nothing is rounded.
    size = np.maximum(np.abs(rows.anchors).max(axis=(1, 2)), np.abs(alone).max(axis=1))
    unit = np.exp2(-np.round(np.log2(np.where(size > 0.0, size, 1.0))))
    copies = _without_negligible(rows, counts)
    scaled = RowProblems(
        rows.x / unit[:, None],
        copies.anchors * unit[:, None, None],
        copies.radii / unit[:, None],
        rows.lambda2 / unit**2,
    )
    found = _interior(scaled, alone * unit[:, None], ip.CENTRING)
    short = np.flatnonzero(found.gap > JOIN_TOL)  # one row in some ten thousand hostile ones
    if short.size:
        again = _interior(scaled.take(short), alone[short] * unit[short, None], ip.CAUTIOUS_CENTRING)
        found.improve(short, again.w, again.J, again.alpha, again.u, again.D)
    w, alpha, u = found.w, found.alpha, found.u
    u = u * (unit * (1.0 - BALL_MARGIN))[:, None, None]
    # What the copies of the strongest anchor carry belongs to that anchor.
    strongest = np.argmax(rows.radii, axis=1)
    carried = np.where(counts[:, :, None], 0.0, u).sum(axis=1)
    u = np.where(counts[:, :, None], u, 0.0)
    u[np.arange(len(u)), strongest] += carried
    return w / unit[:, None], alpha, u


def _without_negligible(rows: RowProblems, counts: BoolArray) -> RowProblems:
    """Negligible anchors become copies of the strongest one, which share its weight: every row keeps K anchors."""
    every, strongest = np.arange(len(rows.x)), np.argmax(rows.radii, axis=1)
    same = ~counts
    same[every, strongest] = True
    anchors = np.where(same[:, :, None], rows.anchors[every, strongest][:, None], rows.anchors)
    share = rows.radii[every, strongest] / same.sum(axis=1)
    return rows._replace(anchors=anchors, radii=np.where(same, share[:, None], rows.radii))


class Found(NamedTuple):
    """The best w and the best dual point of each row; they need not come from the same step.

    Not the pair with the smallest relative gap: where D < 0, that would be a w with a large J.
    """

    w: FloatArray
    J: FloatArray
    alpha: FloatArray
    u: FloatArray
    D: FloatArray

    @property
    def gap(self) -> FloatArray:
        """(J - D) / J; infinite where nothing is proved."""
        return _share(self.J, self.D)

    def improve(
        self, rows: IntArray, w: FloatArray, J: FloatArray, alpha: FloatArray, u: FloatArray, D: FloatArray
    ) -> None:
        """Take a lower J, and a larger D, of some rows."""
        lower, larger = self.J[rows] > J, self.D[rows] < D
        for whole, part in ((self.w, w), (self.J, J)):
            whole[rows[lower]] = part[lower]
        for whole, part in ((self.alpha, alpha), (self.u, u), (self.D, D)):
            whole[rows[larger]] = part[larger]


def _interior(rows: RowProblems, alone: FloatArray, centring: tuple[float, float]) -> Found:
    """The best of every row's steps; a row leaves the loop when its gap is proved, or no longer shrinks."""
    M = len(alone)
    candidates = np.stack([np.zeros_like(alone), alone, *np.swapaxes(rows.anchors, 0, 1)])
    values = np.array([rows.objective(w) for w in candidates])
    best = candidates[values.argmin(axis=0), np.arange(M)]
    now = ip.start(rows, best)
    found = Found(best.copy(), values.min(axis=0), np.zeros(M), np.zeros_like(now.u), np.full(M, -np.inf))
    gap, since, live = np.full(M, np.inf), np.zeros(M, dtype=np.int64), np.arange(M)
    with np.errstate(all="ignore"):  # a row at the limit of rounding may break down: its best points are kept
        for _ in range(MAX_STEPS):
            J, natural = rows.objective(now.w), expit(dot(now.w, rows.x))
            for alpha in (natural, _levelled(rows, natural, now.u)):
                found.improve(live, now.w, J, alpha, now.u, _dual(rows, alpha, now.u)[0])
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


def _dual(rows: RowProblems, alpha: FloatArray, u: FloatArray) -> tuple[FloatArray, FloatArray]:
    """D at a dual point, with every rounding error counted against it, and v; -inf where u leaves its balls."""
    M, K, d = u.shape
    own, size = alpha[:, None] * rows.x, np.abs(u)
    v = own + u.sum(axis=1)
    with np.errstate(over="ignore", invalid="ignore"):  # a hopeless candidate for a far row has D = -inf
        largest = (np.abs(v) + (K + 2) * EPS * (np.abs(own) + size.sum(axis=1))).max(axis=1)
        penalty, gain = (largest / (2.0 * np.sqrt(rows.lambda2))) ** 2, entropy(alpha)
        pull, most = (dot(a, b).sum(axis=1) for a, b in ((u, rows.anchors), (size, np.abs(rows.anchors))))
        D = gain - pull - penalty - EPS * (8.0 * (gain + penalty) + (d + K + 8) * most)
        inside = row_norms(u.reshape(-1, d)).reshape(M, K) <= rows.radii * (1.0 + 0.5 * BALL_MARGIN)
    return np.where(inside.all(axis=1), D, -np.inf), v


def _levelled(rows: RowProblems, alpha: FloatArray, u: FloatArray) -> FloatArray:
    """The nearest alpha at which the row's largest entry does not make |v_k| larger than the other features' |v|.

    Rounding of w.x, however small, matters where x_k is huge.
    """
    every, k, pull = np.arange(len(alpha)), np.abs(rows.x).argmax(axis=1), u.sum(axis=1)
    size = np.abs(alpha[:, None] * rows.x + pull)
    size[every, k] = 0.0
    largest, own, level = rows.x[every, k], pull[every, k], size.max(axis=1)
    wanted = np.clip(alpha * largest + own, -level, level) - own
    return np.asarray(np.clip(np.divide(wanted, largest, out=alpha.copy(), where=largest != 0.0), 0.0, 1.0))


def _share(J: FloatArray, D: FloatArray) -> FloatArray:
    """(J - D) / J; infinite where that is no number, 0 where J = 0 by underflow."""
    with np.errstate(invalid="ignore", over="ignore"):
        share = np.divide(J - D, J, out=np.where(J == 0.0, 0.0, np.inf), where=J > 0.0)
    return np.where(np.isnan(share), np.inf, share)


def _tidied(rows: RowProblems, W: FloatArray, alpha: FloatArray, U: FloatArray) -> JoinedRows:
    """Exact zeros, or the nearest anchor itself, wherever that is no worse or is proved as well."""
    D, V = _dual(rows, alpha, U)
    J = rows.objective(W)
    size, slack = np.abs(W), np.abs(V)
    share = np.divide(size, size.sum(axis=1, keepdims=True), out=np.zeros_like(W), where=size > 0.0)
    distance = 1.0 - np.divide(slack, slack.max(axis=1, keepdims=True), out=np.ones_like(V), where=slack > 0.0)
    nearest = np.argmin(norms(W[:, None] - rows.anchors), axis=1)
    for candidate in (np.where(share < distance, 0.0, W), rows.anchors[np.arange(len(W)), nearest]):
        value = rows.objective(candidate)
        good = (value <= J) | (_share(value, D) <= JOIN_TOL)
        W, J = np.where(good[:, None], candidate, W), np.where(good, value, J)
    return JoinedRows(W, alpha, U, V, _share(J, D))
