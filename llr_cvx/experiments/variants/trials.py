"""One trial: all methods on one draw of synthetic outliers whose planted features are known, in the manner of Sec. 4.1.

Where features are selected, it is judged how many of them were planted, and how many of the planted ones were found.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np

from llr_cvx.arrays import BoolArray, FloatArray
from llr_cvx.detection.settings import DETECTION
from llr_cvx.experiments.methods import METHODS
from llr_cvx.experiments.protocol import Protocol
from llr_cvx.experiments.trials import Measure, Trial, auc, generator

#: The numbers of features.
DIMENSIONS = (10, 50)

#: LLR with the penalties that suit detection.
LLR_DETECTION = "llr detection"

MEASURES = ("auc", "precision", "recall", "first_two")

N_INLIER, N_TEST_INLIER = 200, 100

#: The paper's shift of an outlier, in the two features planted for it.
SHIFT = np.array([3.0, -2.0])


class Variant(NamedTuple):
    """One way to make outliers.

    Attributes
    ----------
    text : str
        What it is, for the report.
    n_outlier : int
    own : bool
        Whether every outlier has two features of its own, with signs of its own, instead of the first two.
    correlation : float
        Correlation of neighbouring features; rho^|k - l| for features k and l.
    """

    text: str
    n_outlier: int = 10
    own: bool = False
    correlation: float = 0.0


VARIANTS = {
    "paper": Variant("the paper's: 10 outliers of 110 test rows, all shifted in the first two features"),
    "own features": Variant(
        "each outlier is shifted in two features of its own: no common model explains them", own=True
    ),
    "correlated": Variant("neighbouring features have correlation 0.8", correlation=0.8),
    "few": Variant("3 outliers of 103 test rows", n_outlier=3),
    "many": Variant("50 outliers of 150 test rows", n_outlier=50),
}


class Sample(NamedTuple):
    """Known inliers, test rows with the outliers last, which rows those are, and the features planted in each row."""

    X_inlier: FloatArray
    X_test: FloatArray
    is_outlier: BoolArray
    planted: BoolArray


def make(variant: Variant, d: int, rng: np.random.Generator) -> Sample:
    """Draw a variant with d features.

    >>> sample = make(VARIANTS["own features"], 10, np.random.default_rng(0))
    >>> sample.X_test.shape, sample.planted.sum(axis=1)[-3:].tolist()
    ((110, 10), [2, 2, 2])
    """
    n_test = N_TEST_INLIER + variant.n_outlier
    lag = np.abs(np.subtract.outer(np.arange(d), np.arange(d)))
    root = np.linalg.cholesky(variant.correlation**lag) if variant.correlation else np.eye(d)
    X_inlier, X_test = (rng.standard_normal((n, d)) @ root.T for n in (N_INLIER, n_test))
    is_outlier = np.arange(n_test) >= N_TEST_INLIER
    planted = np.zeros((n_test, d), dtype=bool)
    for i in np.flatnonzero(is_outlier):
        features = rng.permutation(d)[:2] if variant.own else np.array([0, 1])
        X_test[i, features] += SHIFT * (rng.choice([-1.0, 1.0]) if variant.own else 1.0)
        planted[i, features] = True
    return Sample(X_inlier, X_test, is_outlier, planted)


# ---- trials ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Planted(Trial):
    """One draw of a variant, as the cell says; `seed` is that of all draws."""

    seed: int
    protocol: Protocol

    def rng(self, *words: str) -> np.random.Generator:
        """The random stream of the draw, or of a method on it."""
        return generator(self.seed, self.experiment, *cells()[self.cell], self.trial, *words)

    def measures(self) -> Mapping[str, Measure]:
        """What each method gives."""
        variant, d = cells()[self.cell]
        sample = make(VARIANTS[variant], d, self.rng())
        return {label: partial(_judge, label, self, sample) for label in labels()}


def plan(trials: int, seed: int, protocol: Protocol) -> list[Planted]:
    """Trial by trial, all variants in all dimensions."""
    return [Planted("variants", cell, trial, seed, protocol) for trial in range(trials) for cell in cells()]


def cells() -> dict[str, tuple[str, int]]:
    """Variants and dimensions, by the name of their cell."""
    return {f"{v}, d = {d}": (v, d) for v in VARIANTS for d in DIMENSIONS}


def labels() -> tuple[str, ...]:
    """All methods, LLR with both settings of its penalties."""
    return (*METHODS, LLR_DETECTION)


def _judge(label: str, task: Planted, sample: Sample) -> dict[str, float]:
    key = "llr" if label == LLR_DETECTION else label
    protocol = task.protocol
    if label == LLR_DETECTION:
        protocol = replace(protocol, lambda1=DETECTION["lambda1"], lambda2=DETECTION["lambda2"])
    rng = task.rng(key)
    outcome = METHODS[key].run(sample.X_inlier, sample.X_test, rng, protocol)
    found = {"auc": auc(outcome.scores, sample.is_outlier)}
    if outcome.importance is not None:
        found |= selection(outcome.importance[sample.is_outlier], sample.planted[sample.is_outlier])
    return found


def selection(importance: FloatArray, planted: BoolArray) -> dict[str, float]:
    """How well planted features are found by their importance, one row per outlier; means over the outliers.

    *precision* and *recall* are the shares of selected features that are planted, and of planted features that are
    selected; *first_two* is the share of the planted features among as many of the most important ones, where
    unselected features never count.

    >>> selection(np.array([[2.0, 0.0, 1.0, 0.5]]), np.array([[True, True, False, False]]))
    {'precision': 0.333..., 'recall': 0.5, 'first_two': 0.5}
    """
    selected = importance > 0
    hits = (selected & planted).sum(axis=1)
    wanted = planted.sum(axis=1)
    place = np.argsort(np.argsort(-importance, axis=1, kind="stable"), axis=1)
    first = (selected & planted & (place < wanted[:, None])).sum(axis=1)
    return {
        "precision": float(np.mean(hits / np.maximum(selected.sum(axis=1), 1))),
        "recall": float(np.mean(hits / wanted)),
        "first_two": float(np.mean(first / wanted)),
    }
