"""One trial: from a seed to samples, scores, an AUC and a record."""

from __future__ import annotations

import time
import warnings
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from joblib import parallel_config
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score
from threadpoolctl import threadpool_limits

from llr_cvx.arrays import FloatArray
from llr_cvx.datasets import make_synthetic
from llr_cvx.experiments.benchmarks import BENCHMARKS, load_benchmark
from llr_cvx.experiments.methods import EXACT, METHODS
from llr_cvx.experiments.protocol import Protocol
from llr_cvx.store import Record

#: The source of the synthetic data, before the number of features.
SYNTHETIC = "synthetic d="

Draw = tuple[FloatArray, FloatArray, NDArray[np.bool_]]


Measure = Callable[[], dict[str, Any]]


@dataclass(frozen=True)
class Trial:
    """One trial to run.

    Attributes
    ----------
    experiment : str
    cell : str
        The table cell it belongs to; with `trial`, the key under which it is stored.
    trial : int
    """

    experiment: str
    cell: str
    trial: int

    @property
    def key(self) -> tuple[str, int]:
        """The key under which the trial is stored."""
        return self.cell, self.trial

    def measures(self) -> Mapping[str, Measure]:
        """What is measured, by its label in the record, on samples that are drawn here."""
        raise NotImplementedError


@dataclass(frozen=True)
class Run:
    """A method under a protocol, with its label in the record."""

    label: str
    method: str
    protocol: Protocol


@dataclass(frozen=True)
class Task(Trial):
    """A trial of the methods of the paper.

    Attributes
    ----------
    seed : int
    source : str
        A benchmark set, or "synthetic d=10"; with experiment, trial and seed, it fixes the draw.
    protocol : Protocol
        Class roles and scaling of the draw.
    runs : tuple of Run
    """

    seed: int
    source: str
    protocol: Protocol
    runs: tuple[Run, ...]

    def measures(self) -> Mapping[str, Measure]:
        """What each run gives."""
        samples = draw(self)
        return {run.label: partial(_judge, run, self, samples) for run in self.runs}


def generator(seed: int, *words: str | int) -> np.random.Generator:
    """An independent random stream for each sequence of words, whatever the order of the calls.

    >>> generator(0, "table2", "Heart", 3).integers(100) == generator(0, "table2", "Heart", 3).integers(100)
    np.True_
    """
    key = [word if isinstance(word, int) else zlib.crc32(word.encode()) for word in words]
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=tuple(key)))


def draw(task: Task) -> Draw:
    """The samples of a trial: (X_inlier, X_test, is_outlier), scaled according to the protocol."""
    rng = generator(task.seed, task.experiment, task.source, task.trial)
    if task.source in BENCHMARKS:
        return draw_benchmark(task.source, task.protocol, rng)
    X_inlier, X_test, is_outlier = make_synthetic(int(task.source.removeprefix(SYNTHETIC)), rng)
    return (*task.protocol.scale(X_inlier, X_test), is_outlier)


def draw_benchmark(name: str, protocol: Protocol, rng: np.random.Generator) -> Draw:
    """Sec. 4.2: half of the inliers as model samples, the other half and some outliers as test samples; scaled."""
    data = load_benchmark(name)
    outlier = data.labels == data.outlier_class(protocol.inliers, protocol.vehicle_outlier)
    inliers = rng.permutation(np.flatnonzero(~outlier))
    half = len(inliers) // 2
    wanted = protocol.outliers(int(outlier.sum()), len(inliers) - half)
    outliers = rng.permutation(np.flatnonzero(outlier))[:wanted]
    test = np.concatenate([inliers[half:], outliers])
    X_inlier, X_test = protocol.scale(data.X[inliers[:half]], data.X[test], data.X)
    return X_inlier, X_test, np.arange(len(test)) >= len(test) - len(outliers)


def auc(scores: FloatArray, is_outlier: NDArray[np.bool_]) -> float:
    """Probability that a test inlier scores above an outlier, ties counting one half.

    >>> auc(np.array([3.0, 2.0, 1.0]), np.array([False, False, True]))
    1.0
    """
    if not np.isfinite(scores).all():
        raise FloatingPointError("non-finite scores")
    return float(roc_auc_score(~is_outlier, scores))


def _judge(run: Run, task: Task, samples: Draw) -> dict[str, Any]:
    X_inlier, X_test, is_outlier = samples
    rng = generator(task.seed, task.experiment, task.source, task.trial, run.method)
    method = EXACT if run.method == EXACT.key else METHODS[run.method]
    outcome = method.run(X_inlier, X_test, rng, run.protocol)
    return {"auc": auc(outcome.scores, is_outlier), **outcome.info}


def run_trial(task: Trial) -> Record:
    """The record of one trial: what each of its measures gives.

    With one BLAS thread and no workers of its own, it does not depend on how many trials run in parallel, or where.
    """
    measures = task.measures()
    with threadpool_limits(1), parallel_config("sequential"):
        results = {label: attempt(measure) for label, measure in measures.items()}
    return {"cell": task.cell, "trial": task.trial, "results": results}


def attempt(measure: Measure) -> dict[str, Any]:
    """What `measure` returns, or its error as "failed", with its processor time and its warnings as "notes"."""
    start = time.thread_time()  # processor time: independent of other load
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", ResourceWarning)  # of whatever is collected meanwhile, not of the trial
        try:
            result = measure()
        except Exception as error:  # recorded and listed in the report: a failed trial is a result
            result = {"failed": f"{type(error).__name__}: {error}"}
    result["seconds"] = round(time.thread_time() - start, 4)
    notes = sorted({f"{w.category.__name__}: {' '.join(str(w.message).split())[:120]}" for w in caught})
    return result | ({"notes": notes} if notes else {})
