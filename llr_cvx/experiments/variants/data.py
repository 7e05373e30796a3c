"""Synthetic outliers whose planted features are known, in the manner of Sec. 4.1."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from llr_cvx.arrays import BoolArray, FloatArray

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
