"""One trial of the comparison: all detectors on one draw of one set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from sklearn.metrics import average_precision_score

from llr_cvx.arrays import BoolArray
from llr_cvx.experiments.comparison.detectors import DETECTORS, Detector, Verdict
from llr_cvx.experiments.comparison.sets import SETS, draw_set
from llr_cvx.experiments.trials import Draw, Trial, auc, generator, measured
from llr_cvx.store import Record


@dataclass(frozen=True)
class Comparison(Trial):
    """One trial to run: a set, the number of the draw and the seed of all draws."""

    cell: str
    trial: int
    seed: int
    experiment: str = "detectors"


def plan(trials: int, seed: int, sets: Sequence[str] = SETS) -> list[Comparison]:
    """Trial by trial, so that an early stop leaves all sets equally complete."""
    return [Comparison(name, trial, seed) for trial in range(trials) for name in sets]


def draw(task: Comparison) -> tuple[Draw, int]:
    """The samples of a trial, and the seed that all its detectors are given."""
    rng = generator(task.seed, task.experiment, task.cell, task.trial)
    return draw_set(task.cell, rng), int(rng.integers(2**31))


def run_trial(task: Comparison) -> Record:
    """The record of one trial."""
    samples, seed = draw(task)
    return measured(task, {name: partial(_judge, one, samples, seed) for name, one in DETECTORS.items()})


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
