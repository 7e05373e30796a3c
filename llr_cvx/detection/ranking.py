"""Order all features of a row, the most responsible first.

The weights are sparse, so contributions alone leave most features tied at zero. The dual vector v of a row tells the
others apart: a feature has a weight only where |v_k| attains ||v||_inf, and 1 - |v_k| / ||v||_inf says how far from
selection it was.
"""

from __future__ import annotations

import numpy as np

from llr_cvx.arrays import BoolArray, FloatArray, IntArray

#: A weight below this fraction of the largest in its row counts as zero: conic solvers return no exact zeros.
MIN_RELATIVE_WEIGHT = 1e-4
#: So does a weight that changes no row's score by more than this.
MIN_SCORE_EFFECT = 1e-7
#: But no weight is negligible whose contribution is at least this fraction of the largest in its row: an entry of 1e12
#: needs only a tiny one.
MIN_RELATIVE_CONTRIBUTION = 1e-2


def selected_features(X: FloatArray, W: FloatArray, rows: FloatArray | None = None) -> BoolArray:
    """Where W is not zero; negligible weights, which conic solvers return instead of zeros, count as zero.

    X holds the fitted rows, whose largest entries say what a weight can do to a score; `rows` those that W belongs to.

    >>> W = np.array([[0.5, 1e-9, 0.0]])
    >>> selected_features(np.ones((1, 3)), W).tolist()
    [[True, False, False]]
    >>> selected_features(np.ones((1, 3)), W, rows=np.array([[1.0, 1e10, 1.0]])).tolist()
    [[True, True, False]]
    """
    size = np.abs(W)
    effect = size * np.abs(X).max(axis=0)
    selected = (size > MIN_RELATIVE_WEIGHT * size.max(axis=1, keepdims=True)) & (effect > MIN_SCORE_EFFECT)
    if rows is not None:
        part = np.abs(W * rows)
        least = np.maximum(MIN_RELATIVE_CONTRIBUTION * part.max(axis=1, keepdims=True), MIN_SCORE_EFFECT)
        selected |= part > least
    return np.asarray(selected)


def selection_distance(V: FloatArray) -> FloatArray:
    """1 - |v_ik| / ||v_i||_inf: 0 on the verge of selection, 1 for no effect; NaN in rows whose v_i is zero.

    >>> selection_distance(np.array([[2.0, -1.0, 0.0], [0.0, 0.0, 0.0]])).tolist()
    [[0.0, 0.5, 1.0], [nan, nan, nan]]
    """
    size = np.abs(V)
    largest = size.max(axis=1, keepdims=True)
    return np.asarray(1.0 - np.divide(size, largest, out=np.full_like(size, np.nan), where=largest > 0))


def rank_features(contributions: FloatArray, selected: BoolArray, distance: FloatArray) -> IntArray:
    """Feature indices of each row: selected ones by |contribution|, then the others by their selection distance.

    Ties keep the order of the columns.

    >>> contributions = np.array([[0.0, -0.2, 0.0, 0.5]])
    >>> rank_features(contributions, contributions != 0, np.array([[0.7, 0.0, 0.1, 0.0]])).tolist()
    [[3, 1, 2, 0]]
    """
    first = np.where(selected, np.abs(contributions), -1.0)
    second = np.where(selected | np.isnan(distance), np.inf, distance)
    return np.asarray(np.lexsort((second, -first), axis=1), dtype=np.int64)
