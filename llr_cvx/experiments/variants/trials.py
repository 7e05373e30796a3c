"""One trial: all methods on one draw of a variant, with AUC and, where features are selected, how well."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np

from llr_cvx.arrays import BoolArray, FloatArray
from llr_cvx.detection.settings import DETECTION
from llr_cvx.experiments.methods import METHODS
from llr_cvx.experiments.protocol import Protocol
from llr_cvx.experiments.trials import Trial, auc, generator, measured
from llr_cvx.experiments.variants.data import VARIANTS, Sample, make
from llr_cvx.store import Record

#: The numbers of features.
DIMENSIONS = (10, 50)

#: LLR with the penalties that suit detection.
LLR_DETECTION = "llr detection"

MEASURES = ("auc", "precision", "recall", "first_two")


@dataclass(frozen=True)
class Draw(Trial):
    """One trial to run."""

    cell: str
    variant: str
    d: int
    trial: int
    seed: int
    protocol: Protocol
    experiment: str = "variants"


def plan(trials: int, seed: int, protocol: Protocol) -> list[Draw]:
    """Trial by trial, all variants in all dimensions."""
    return [Draw(cell, v, d, t, seed, protocol) for t in range(trials) for cell, (v, d) in cells().items()]


def cells() -> dict[str, tuple[str, int]]:
    """Variants and dimensions, by the name of their cell."""
    return {f"{v}, d = {d}": (v, d) for v in VARIANTS for d in DIMENSIONS}


def labels() -> tuple[str, ...]:
    """All methods, LLR with both settings of its penalties."""
    return (*METHODS, LLR_DETECTION)


def run_trial(task: Draw) -> Record:
    """The record of one trial."""
    rng = generator(task.seed, task.experiment, task.variant, task.d, task.trial)
    sample = make(VARIANTS[task.variant], task.d, rng)
    return measured(task, {label: partial(_judge, label, task, sample) for label in labels()})


def _judge(label: str, task: Draw, sample: Sample) -> dict[str, float]:
    key = "llr" if label == LLR_DETECTION else label
    protocol = task.protocol
    if label == LLR_DETECTION:
        protocol = replace(protocol, lambda1=DETECTION["lambda1"], lambda2=DETECTION["lambda2"])
    rng = generator(task.seed, task.experiment, task.variant, task.d, task.trial, key)
    outcome = METHODS[key].run(sample.X_inlier, sample.X_test, rng, protocol)
    found = {"auc": auc(outcome.scores, sample.is_outlier)}
    if outcome.importance is not None:
        found |= selection(outcome.importance[sample.is_outlier], sample.planted[sample.is_outlier])._asdict()
    return found


class Selection(NamedTuple):
    """How well the planted features of outliers are found; means over the outliers.

    Attributes
    ----------
    precision, recall : float
        Shares of selected features that are planted, and of planted features that are selected.
    first_two : float
        Share of the planted features among as many of the most important ones; unselected features never count.
    """

    precision: float
    recall: float
    first_two: float


def selection(importance: FloatArray, planted: BoolArray) -> Selection:
    """Judge the importance of features, one row per outlier, by what was planted.

    >>> selection(np.array([[2.0, 0.0, 1.0, 0.5]]), np.array([[True, True, False, False]]))
    Selection(precision=0.333..., recall=0.5, first_two=0.5)
    """
    selected = importance > 0
    hits = (selected & planted).sum(axis=1)
    wanted = planted.sum(axis=1)
    place = np.argsort(np.argsort(-importance, axis=1, kind="stable"), axis=1)
    first = (selected & planted & (place < wanted[:, None])).sum(axis=1)
    return Selection(
        float(np.mean(hits / np.maximum(selected.sum(axis=1), 1))),
        float(np.mean(hits / wanted)),
        float(np.mean(first / wanted)),
    )
