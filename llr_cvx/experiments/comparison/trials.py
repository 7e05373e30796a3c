"""One trial of the comparison: all detectors on one draw of one set.

The largest class of a set plays the inliers, all other rows are outliers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from sklearn.metrics import average_precision_score

from llr_cvx.arrays import BoolArray
from llr_cvx.experiments.benchmarks import SETS, Benchmark, load_benchmark
from llr_cvx.experiments.comparison.detectors import DETECTORS, Detector, Verdict
from llr_cvx.experiments.trials import Draw, Measure, Trial, auc, generator

#: Known inliers of a draw: at most this many,
MAX_KNOWN = 200
#: and at most this share of the inlier class; the rest are for the test.
KNOWN_SHARE = 2 / 3
#: Inliers in the test batch, at most, and outliers for each of them: one row in ten is an outlier.
MAX_TEST_INLIERS = 90
OUTLIERS_PER_INLIER = 1 / 9


@dataclass(frozen=True)
class Comparison(Trial):
    """One draw of a set, which is the cell; `seed` is that of all draws."""

    seed: int

    def draw(self) -> tuple[Draw, int]:
        """The samples, and the seed that all detectors are given."""
        rng = generator(self.seed, self.experiment, self.cell, self.trial)
        return draw_set(self.cell, rng), int(rng.integers(2**31))

    def measures(self) -> Mapping[str, Measure]:
        """What each detector gives."""
        samples, seed = self.draw()
        return {name: partial(_judge, one, samples, seed) for name, one in DETECTORS.items()}


def plan(trials: int, seed: int, sets: Sequence[str] = SETS) -> list[Comparison]:
    """Trial by trial, so that an early stop leaves all sets equally complete."""
    return [Comparison("detectors", name, trial, seed) for trial in range(trials) for name in sets]


def inlier_class(data: Benchmark) -> str:
    """The largest class; of equal ones the first in the file."""
    return next(iter(data.counts))


def sizes(data: Benchmark) -> tuple[int, int, int]:
    """Known inliers, test inliers and outliers of a draw."""
    n = data.counts[inlier_class(data)]
    known = min(MAX_KNOWN, round(KNOWN_SHARE * n))
    test = min(MAX_TEST_INLIERS, n - known)
    return known, test, round(OUTLIERS_PER_INLIER * test)


def draw_set(name: str, rng: np.random.Generator) -> Draw:
    """Random rows of a set: (X_inlier, X_test, is_outlier), the outliers last."""
    data = load_benchmark(name)
    known, test, k = sizes(data)
    inlier = data.labels == inlier_class(data)
    inliers, outliers = (rng.permutation(np.flatnonzero(which)) for which in (inlier, ~inlier))
    rows = np.concatenate([inliers[known : known + test], outliers[:k]])
    return data.X[inliers[:known]], data.X[rows], np.arange(test + k) >= test


def _judge(detector: Detector, samples: Draw, seed: int) -> dict[str, float]:
    X_inlier, X_test, is_outlier = samples
    return judged(detector.fit(X_inlier, X_test, seed), is_outlier)


def judged(verdict: Verdict, is_outlier: BoolArray) -> dict[str, float]:
    """AUC, average precision, shares flagged, and where the detector has them features per outlier and proven gap.

    >>> verdict = Verdict(np.array([3.0, 0.0, 1.0]), np.array([False, True, True]))
    >>> judged(verdict, np.array([False, False, True]))
    {'auc': 0.5, 'ap': 0.5, 'false_alarms': 0.5, 'found': 1.0, 'false_discoveries': 0.5}
    """
    flagged = verdict.flagged
    false = int(np.count_nonzero(flagged & ~is_outlier))
    found = {
        "auc": auc(verdict.scores, is_outlier),
        "ap": float(average_precision_score(is_outlier, -verdict.scores)),
        "false_alarms": false / int(np.count_nonzero(~is_outlier)),
        "found": float(flagged[is_outlier].mean()),
        "false_discoveries": false / max(1, int(flagged.sum())),
    }
    if verdict.reasons is not None:
        found["reasons"] = float(verdict.reasons[is_outlier].mean())
    if verdict.gap is not None:
        found["gap"] = verdict.gap
    return found
