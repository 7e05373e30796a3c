"""What y means to the detectors."""

from __future__ import annotations

from typing import Any

import numpy as np

from llr_cvx.arrays import FloatArray

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
    return np.where(values == 1.0, 1.0, -1.0)
