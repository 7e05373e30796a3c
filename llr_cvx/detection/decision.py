"""Which rows are called outliers: by p-values, by a given threshold or share, or by a fence of the scores."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from llr_cvx import validation as check
from llr_cvx.arrays import FloatArray, IntArray

#: Subtracted from the fence, so that rounding alone flags no row.
ROUNDING_MARGIN = 1e-9


@dataclass(frozen=True)
class Rule:
    """The one parameter that decides, checked; `name` is "fence" if none was given.

    >>> decision_rule(threshold=0.5), decision_rule(fdr=None)
    (Rule(name='threshold', value=0.5), Rule(name='fence', value=nan))
    """

    name: str
    value: float

    @property
    def calibrated(self) -> bool:
        """Whether p-values decide, for which known inliers are held out."""
        return self.name in ("fdr", "false_alarm")

    def offset(self, scores: FloatArray) -> float:
        """The score below which a row is an outlier, given the scores of the unlabelled rows; not if calibrated."""
        if self.name == "threshold":
            return math.log(self.value)
        if self.name == "contamination":
            return float(np.quantile(scores, self.value))
        return fence(scores)


def decision_rule(**given: Any) -> Rule:
    """The rule for the detector's parameters of these names, of which at most one may be other than None."""
    named = {name: value for name, value in given.items() if value is not None}
    if len(named) > 1:
        shown = " and ".join(f"{name}={value!r}" for name, value in named.items())
        raise ValueError(f"{shown} contradict each other: give one of them")
    for name, value in named.items():
        number = check.real_number(value, name, strict=True)
        if name == "contamination" and number > 0.5:
            raise ValueError(f"contamination must be in (0, 0.5], got {value!r}")
        if name in ("fdr", "false_alarm") and number >= 1.0:
            raise ValueError(f"{name} must be above 0 and below 1, such as 0.1, got {value!r}")
        return Rule(name, number)
    return Rule("fence", math.nan)


def fence(scores: FloatArray) -> float:
    """Tukey's lower fence Q1 - 1.5 (Q3 - Q1)."""
    low, high = np.quantile(scores, [0.25, 0.75])
    return float(low - 1.5 * (high - low)) - ROUNDING_MARGIN


def far_out(strength: FloatArray) -> IntArray:
    """Positions of values above Q3 + 3 (Q3 - Q1), the largest first.

    >>> far_out(np.array([1.0, 2.0, 3.0, 90.0, 2.0, 50.0, 1.0, 2.0, 3.0])).tolist()
    [3, 5]
    """
    if not strength.size:
        return np.empty(0, dtype=np.int64)
    low, high = np.quantile(strength, [0.25, 0.75])
    order = np.argsort(-strength, kind="stable")
    return np.asarray(order[strength[order] > high + 3.0 * (high - low) + ROUNDING_MARGIN])
