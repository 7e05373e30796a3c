"""One trial of the comparison: all detectors on one draw of one set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from joblib import parallel_config
from sklearn.metrics import average_precision_score
from threadpoolctl import threadpool_limits

from llr_cvx.arrays import BoolArray
from llr_cvx.experiments.comparison.detectors import DETECTORS, Detector, Verdict
from llr_cvx.experiments.comparison.sets import SETS, draw_set
from llr_cvx.experiments.trials import Draw, attempt, auc, generator
from llr_cvx.store import Record


@dataclass(frozen=True)
class Comparison:
    """One trial to run: a set, the number of the draw and the seed of all draws."""

    cell: str
    trial: int
    seed: int
    experiment: str = "detectors"

    @property
    def key(self) -> tuple[str, int]:
        """The key under which the trial is stored."""
        return self.cell, self.trial


def plan(trials: int, seed: int, sets: Sequence[str] = SETS) -> list[Comparison]:
    """Trial by trial, so that an early stop leaves all sets equally complete."""
    return [Comparison(name, trial, seed) for trial in range(trials) for name in sets]


def draw(task: Comparison) -> tuple[Draw, int]:
    """The samples of a trial, and the seed that all its detectors are given."""
    rng = generator(task.seed, task.experiment, task.cell, task.trial)
    return draw_set(task.cell, rng), int(rng.integers(2**31))


def run_trial(task: Comparison) -> Record:
    """The record of one trial; if a detector fails, its error is recorded."""
    with threadpool_limits(1), parallel_config("sequential"):
        samples, seed = draw(task)
        results = {name: attempt(partial(_judge, one, samples, seed)) for name, one in DETECTORS.items()}
    return {"cell": task.cell, "trial": task.trial, "results": results}


def _judge(detector: Detector, samples: Draw, seed: int) -> dict[str, float]:
    X_inlier, X_test, is_outlier = samples
    return measures(detector.fit(X_inlier, X_test, seed), is_outlier)


def measures(verdict: Verdict, is_outlier: BoolArray) -> dict[str, float]:
    """AUC, average precision, shares flagged, and where the detector has them features per outlier and proven gap.

    >>> verdict = Verdict(np.array([3.0, 0.0, 1.0]), np.array([False, True, True]))
    >>> measures(verdict, np.array([False, False, True]))
    {'auc': 0.5, 'ap': 0.5, 'false_alarms': 0.5, 'found': 1.0, 'false_discoveries': 0.5}
    """
    if not np.isfinite(verdict.scores).all():
        raise FloatingPointError("non-finite scores")
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
