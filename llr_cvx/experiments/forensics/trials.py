"""One trial: all readings of a draw on the same samples, judged on test rows and, as a leak, on all pooled rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from joblib import parallel_config
from threadpoolctl import threadpool_limits

from llr_cvx.experiments.benchmarks import BENCHMARKS
from llr_cvx.experiments.forensics.readings import Reading
from llr_cvx.experiments.trials import Draw, Task, attempt, auc, draw
from llr_cvx.store import Record

#: What a reading is judged by: test rows, as it should be, or the leak: all pooled rows, where the known inliers count
#: as rows that were rightly found normal.
TEST, POOLED = "test rows", "leak: pooled rows"
MEASURES = (TEST, POOLED)


@dataclass(frozen=True)
class Examination:
    """One trial to run: the readings of a draw, the set, the number of the draw and the seed of all draws."""

    source: str
    trial: int
    seed: int
    readings: tuple[Reading, ...]
    experiment: str = "forensics"

    @property
    def cell(self) -> str:
        """Set and draw."""
        return f"{self.source}/{self.readings[0].draw}"

    @property
    def key(self) -> tuple[str, int]:
        """The key under which the trial is stored."""
        return self.cell, self.trial


def plan(
    trials: Sequence[int], seed: int, readings: Sequence[Reading], sets: Sequence[str] = BENCHMARKS
) -> list[Examination]:
    """Trial by trial; readings that share a draw share its samples."""
    draws: dict[str, list[Reading]] = {}
    for reading in readings:
        draws.setdefault(reading.draw, []).append(reading)
    return [Examination(s, t, seed, tuple(group)) for t in trials for s in sets for group in draws.values()]


def run_trial(task: Examination) -> Record:
    """The record of one trial; a reading that fails is recorded with its error. The draws are those of Table 2."""
    with threadpool_limits(1), parallel_config("sequential"):
        samples = draw(Task("table2", task.source, task.source, task.trial, task.seed, task.readings[0].protocol, ()))
        results = {reading.label: attempt(partial(_judge, reading, samples)) for reading in task.readings}
    return {"cell": task.cell, "trial": task.trial, "results": results}


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
