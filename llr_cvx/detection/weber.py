"""The Weber problem: a weight vector for a row that was not fitted.

The weight vector of a new row x minimises

    f(w) = sum_j a_j ||w - w_j||_2,      a_j proportional to exp(-||x - x_j||^2 / (2 sigma^2)),

over the fitted weight vectors w_j of its K nearest rows: the localized lasso's rule for unseen samples. f is
convex, its minimiser lies in the convex hull of the w_j, and quite often it *is* one of them. So the best w_j is
tested first, by the exact condition || sum_{l != j} a_l (w_j - w_l)/||w_j - w_l|| || <= a_j; the other rows are
solved by Newton's method, safeguarded by Weiszfeld's step, which always descends.

For any w in the hull, f(w) - min f <= ||grad f(w)|| max_j ||w - w_j||: this proves the accuracy of every answer.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from llr_cvx.arrays import FloatArray, IntArray

#: Step lengths tried along the Newton direction.
NEWTON_STEPS = (1.0, 0.5, 0.2, 0.05)
#: Rows are solved in blocks whose work arrays have at most this many entries.
MAX_BLOCK_ENTRIES = 2_000_000
EPS = float(np.finfo(float).eps)


class WeberPoints(NamedTuple):
    """One minimiser per row, with its proven accuracy.

    Attributes
    ----------
    points : array of shape (M, d)
    mixture : array of shape (M, K)
        Convex weights with points[m] = sum_j mixture[m, j] anchors[m, j]; a feature that is zero in every
        anchor is therefore exactly zero in the point.
    relative_gap : array of shape (M,)
        Proven bound on (f(point) - min f) / f(point).
    """

    points: FloatArray
    mixture: FloatArray
    relative_gap: FloatArray


def weber_points(anchors: FloatArray, weights: FloatArray, tol: float = 1e-10, max_iter: int = 100) -> WeberPoints:
    """Minimise sum_j weights[m, j] ||w - anchors[m, j]|| for each row m independently.

    Parameters
    ----------
    anchors : array of shape (M, K, d)
    weights : array of shape (M, K)
        >= 0, with at least one positive entry per row; only their proportions matter.
    tol : float
        Relative gap to prove for each row.
    max_iter : int
        Largest number of Newton steps; the gap reached is returned in any case.

    Examples
    --------
    An equilateral triangle gives its centre; a heavy corner attracts the point to itself.

    >>> corners = np.array([[[0.0, 0.0], [1.0, 0.0], [0.5, 0.75**0.5]]] * 2)
    >>> found = weber_points(corners, np.array([[1.0, 1.0, 1.0], [5.0, 1.0, 1.0]]))
    >>> found.points.round(6).tolist()
    [[0.5, 0.288675], [0.0, 0.0]]
    """
    M, K, d = anchors.shape
    size = max(1, MAX_BLOCK_ENTRIES // (K * (K + d)))
    parts = [_solve_block(anchors[s : s + size], weights[s : s + size], tol, max_iter) for s in range(0, M, size)]
    if not parts:
        return WeberPoints(np.empty((0, d)), np.empty((0, K)), np.empty(0))
    return WeberPoints(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def gaussian_weights(x: FloatArray, neighbours: FloatArray, sigma: float) -> FloatArray:
    """Gaussian similarities of the rows x to their K neighbours, scaled so that the largest in a row is 1.

    The exponents are formed as differences before anything is exponentiated,

        ||x - x_j||^2 - ||x - x_m||^2 = (x_m - x_j).((x - x_j) + (x - x_m)),

    so a row far from every sample still has weights, although exp(-||x - x_j||^2/(2 sigma^2)) underflows for every
    j, and no digits are lost to the squares of large distances.

    >>> gaussian_weights(np.array([[1e6]]), np.array([[[0.0], [-1e-6]]]), sigma=1.0).round(6).tolist()
    [[1.0, 0.367879]]
    """
    base = neighbours[:, :1]
    # Divide by the largest entry first and multiply by it last, so that no finite x overflows.
    scale = np.maximum(np.abs(x).max(axis=1), np.abs(neighbours).max(axis=(1, 2)))[:, None, None]
    scale = np.where(scale > 0, scale, 1.0)
    to_x = (x[:, None, :] / scale - neighbours / scale) + (x[:, None, :] / scale - base / scale)
    excess = np.einsum("mkd,mkd->mk", (base - neighbours) / sigma, to_x)
    with np.errstate(over="ignore"):
        excess = (excess - excess.min(axis=1, keepdims=True)) * (scale[:, :, 0] / sigma)
    return np.asarray(np.exp(-0.5 * excess))


def _solve_block(anchors: FloatArray, weights: FloatArray, tol: float, max_iter: int) -> WeberPoints:
    a = _merged(anchors, weights)
    order = _best_first(anchors, a)
    p, a = np.take_along_axis(anchors, order[:, :, None], axis=1), np.take_along_axis(a, order, axis=1)
    q = _coordinates(p)
    gap, start = _leave_anchor(q, a)
    mixture = np.zeros_like(a)
    mixture[:, 0] = 1.0
    rows = np.flatnonzero(gap > tol)
    if rows.size:
        c, gap[rows] = _newton(q[rows], a[rows], start[rows], tol, max_iter)
        pull = _pull(a[rows], _distances(c, q[rows]))
        mixture[rows] = pull / pull.sum(axis=1, keepdims=True)
    points = np.einsum("mk,mkd->md", mixture, p)
    return WeberPoints(points, np.take_along_axis(mixture, order, axis=1), gap)


def _merged(anchors: FloatArray, weights: FloatArray) -> FloatArray:
    """Weights after merging equal anchors into the first of them (the others get 0), scaled to a maximum of 1."""
    a = weights / weights.max(axis=1, keepdims=True)
    for j in range(anchors.shape[1]):
        same = (anchors[:, j:] == anchors[:, j : j + 1]).all(axis=2) & (a[:, j : j + 1] > 0)
        total = np.where(same, a[:, j:], 0.0).sum(axis=1)
        a[:, j:] = np.where(same, 0.0, a[:, j:])
        a[:, j] = np.where(same[:, 0], total, a[:, j])
    return np.asarray(a / a.max(axis=1, keepdims=True))


def _best_first(anchors: FloatArray, a: FloatArray) -> IntArray:
    """For each row, the order of its anchors with the one of lowest f swapped to the front."""
    M, K, _ = anchors.shape
    values = [np.einsum("mk,mk->m", a, _distances(anchors[:, j], anchors)) for j in range(K)]
    best = np.argmin(np.where(a > 0, np.stack(values, axis=1), np.inf), axis=1)
    order = np.tile(np.arange(K), (M, 1))
    order[:, 0] = best
    order[np.arange(M), best] = 0
    return order


def _coordinates(p: FloatArray) -> FloatArray:
    """The anchors in an orthonormal basis of their affine hull, the first at 0: at most K - 1 coordinates.

    The best anchor is the origin because the minimiser is often very close to it: coordinates relative to it then
    keep all their digits, which those relative to another anchor would lose.
    """
    _, K, d = p.shape
    centred = p - p[:, :1]
    if d <= K - 1 or K == 1:
        return centred
    R = np.linalg.qr(np.swapaxes(centred[:, 1:], 1, 2), mode="r")
    return np.concatenate([np.zeros((len(p), 1, K - 1)), np.swapaxes(R, 1, 2)], axis=1)


def _leave_anchor(q: FloatArray, a: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The proven gap at the first anchor, and a strictly better point if that is not the minimiser."""
    rho = _distances(q[:, 0], q)
    pull = _pull(a, rho)
    force = np.einsum("mk,mks->ms", pull, q)
    strength = np.linalg.norm(force, axis=1)
    excess = np.maximum(strength - a[:, 0], 0.0)
    gap = _relative(excess, a, rho)
    # Vardi and Zhang's step away from an anchor lowers f whenever the anchor is not the minimiser.
    length = np.divide(excess, strength * pull.sum(axis=1), out=np.zeros(len(q)), where=excess > 0)
    return gap, length[:, None] * force


def _newton(q: FloatArray, a: FloatArray, c: FloatArray, tol: float, max_iter: int) -> tuple[FloatArray, FloatArray]:
    """Newton steps, or Weiszfeld's where those give a lower f, from points better than every anchor."""
    value, gap = _measure(q, a, c)
    live = np.flatnonzero(gap > tol)
    for _ in range(max_iter):
        if not live.size:
            break
        new = _step(q[live], a[live], c[live])
        new_value, new_gap = _measure(q[live], a[live], new)
        better = (new_value < value[live]) | (new_gap < gap[live])
        live = live[better]  # the others have reached the limit of rounding
        c[live], value[live], gap[live] = new[better], new_value[better], new_gap[better]
        live = live[gap[live] > tol]
    return c, gap


def _step(q: FloatArray, a: FloatArray, c: FloatArray) -> FloatArray:
    """One step for every row: the best of Weiszfeld's step and a few lengths along the Newton direction."""
    diff = c[:, None] - q
    rho = _distances(c, q)
    pull = _pull(a, rho)
    total = pull.sum(axis=1)
    gradient = np.einsum("mk,mks->ms", pull, diff)
    unit = np.divide(diff, rho[:, :, None], out=np.zeros_like(diff), where=rho[:, :, None] > 0)
    H = -np.einsum("mk,mks,mkt->mst", pull, unit, unit)
    # Collinear anchors make H singular along their line; the shift is far below every other curvature.
    H += (total * (1.0 + 1e-13))[:, None, None] * np.eye(q.shape[2])
    direction = np.linalg.solve(H, gradient[:, :, None])[:, :, 0]
    candidates = [c - gradient / total[:, None], *(c - t * direction for t in NEWTON_STEPS)]
    values, gaps = np.stack([_measure(q, a, candidate) for candidate in candidates], axis=1)
    # Values that agree to rounding are told apart by their gaps.
    choice = np.argmin(np.where(values <= values.min(axis=0) * (1.0 + 4.0 * EPS), gaps, np.inf), axis=0)
    return np.asarray(np.stack(candidates)[choice, np.arange(len(c))])


def _measure(q: FloatArray, a: FloatArray, c: FloatArray) -> tuple[FloatArray, FloatArray]:
    """f and the proven relative gap at c."""
    rho = _distances(c, q)
    gradient = np.einsum("mk,mks->ms", _pull(a, rho), c[:, None] - q)
    return np.einsum("mk,mk->m", a, rho), _relative(np.linalg.norm(gradient, axis=1), a, rho)


def _relative(slope: FloatArray, a: FloatArray, rho: FloatArray) -> FloatArray:
    """slope * max_j rho_j / f: the bound on the gap, relative to f."""
    value = np.einsum("mk,mk->m", a, rho)
    reach = np.where(a > 0, rho, 0.0).max(axis=1)
    return np.asarray(np.divide(slope * reach, value, out=np.zeros_like(value), where=value > 0))


def _distances(c: FloatArray, q: FloatArray) -> FloatArray:
    return np.asarray(np.linalg.norm(c[:, None] - q, axis=2))


def _pull(a: FloatArray, rho: FloatArray) -> FloatArray:
    """a_j / rho_j; 0 for anchors of weight 0 and for an anchor at the point itself."""
    return np.asarray(np.divide(a, rho, out=np.zeros_like(a), where=(a > 0) & (rho > 0)))
