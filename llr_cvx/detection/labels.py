"""What y means to the detectors."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from llr_cvx.arrays import FloatArray

#: With labels 0 and 1 and at most this share of ones, y may follow the opposite convention.
FEW_ONES = 0.2
MEANING_OF_Y = (
    "y says which rows are known to be good: +1 for a known inlier, -1 for an unlabelled row to be checked "
    "(or 1 and 0); both must occur"
)


def signs_of(y: Any) -> FloatArray:
    """Labels as +1 and -1, given +1 and -1 or 1 and 0; anything else is refused."""
    try:
        values = np.asarray(y, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(f"Unknown label type: {np.asarray(y).dtype}; {MEANING_OF_Y}") from None
    found = np.unique(values)
    if len(found) == 1 and found[0] in (-1.0, 0.0, 1.0):
        raise ValueError(f"y holds 1 class only ({found[0]:g} in all {len(values)} rows); {MEANING_OF_Y}")
    if found.tolist() not in ([-1.0, 1.0], [0.0, 1.0]):
        shown = ", ".join(f"{value:g}" for value in found[:5]) + (", ..." if len(found) > 5 else "")
        raise ValueError(f"y holds the labels {shown}; {MEANING_OF_Y}")
    share = float(np.mean(values == 1.0))
    if found[0] == 0.0 and share <= FEW_ONES:
        warnings.warn(
            f"y holds 0 and 1, and only {100 * share:.3g} % of its {len(values)} labels are 1: here 1 marks a known "
            "inlier and 0 an unlabelled row. If y follows PyOD, where 1 marks an outlier, pass "
            "y = np.where(y == 1, -1, 1); labels -1 and 1 are not questioned",
            stacklevel=4,
        )
    return np.where(values == 1.0, 1.0, -1.0)


def known_inliers(rows: Any, y: Any) -> Any:
    """The rows of an array or DataFrame with y = 1, whatever the others are labelled; all of them if there is no y."""
    if y is None:
        return rows
    labels = np.asarray(y)
    if labels.shape != (len(rows),):
        raise ValueError(f"y has shape {labels.shape} but X has {len(rows)} rows: one label per row")
    if not (labels == 1).any():
        raise ValueError(f"y marks no row as a known inlier (+1) among {len(labels)} sample(s)")
    return rows[labels == 1]
