"""One trial: all readings of a draw on the same samples, judged on test rows and, as a leak, on all pooled rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from llr_cvx.experiments.benchmarks import BENCHMARKS
from llr_cvx.experiments.forensics.readings import Reading
from llr_cvx.experiments.trials import Draw, Task, Trial, auc, draw, measured
from llr_cvx.store import Record

#: What a reading is judged by: test rows, as it should be, or the leak: all pooled rows, where the known inliers count
#: as rows that were rightly found normal.
TEST, POOLED = "test rows", "leak: pooled rows"
MEASURES = (TEST, POOLED)


@dataclass(frozen=True)
class Examination(Trial):
    """One trial to run: the readings of a draw, the set, the number of the draw and the seed of all draws."""

    cell: str
    source: str
    trial: int
    seed: int
    readings: tuple[Reading, ...]
    experiment: str = "forensics"


def plan(
    trials: Sequence[int], seed: int, readings: Sequence[Reading], sets: Sequence[str] = BENCHMARKS
) -> list[Examination]:
    """Trial by trial; readings that share a draw share its samples."""
    draws: dict[str, list[Reading]] = {}
    for reading in readings:
        draws.setdefault(reading.draw, []).append(reading)
    return [
        Examination(f"{s}/{drawn}", s, t, seed, tuple(group))
        for t in trials
        for s in sets
        for drawn, group in draws.items()
    ]


def run_trial(task: Examination) -> Record:
    """The record of one trial. The draws are those of Table 2."""
    samples = draw(Task("table2", task.source, task.source, task.trial, task.seed, task.readings[0].protocol, ()))
    return measured(task, {reading.label: partial(_judge, reading, samples) for reading in task.readings})


def _judge(reading: Reading, samples: Draw) -> dict[str, float]:
    X_inlier, X_test, is_outlier = samples
    scores = reading.score(X_inlier, X_test, reading.protocol)
    known, test = np.split(scores, [len(X_inlier)])
    if not np.isfinite(test).all():
        raise FloatingPointError("non-finite scores")
    found = {TEST: auc(test, is_outlier)}
    if np.isfinite(known).all():
        found[POOLED] = auc(scores, np.concatenate([np.zeros(len(known), bool), is_outlier]))
    return found
