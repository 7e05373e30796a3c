"""The problems that notebooks and judges share."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from sklearn.datasets import load_wine

import llr_cvx as llr


@cache
def paper() -> llr.Problem:
    """The paper's synthetic data, first draw: 200 known inliers, 110 test rows, 10 features."""
    X_inlier, X_test, _ = llr.make_synthetic(d=10, random_state=0)
    return llr.Problem.from_samples(X_inlier, X_test, lambda1=0.1, lambda2=1.0)


@cache
def small() -> llr.Problem:
    """The same with 60 known inliers and 33 test rows."""
    sizes = {"n_inlier": 60, "n_test_inlier": 30, "n_outlier": 3}
    X_inlier, X_test, _ = llr.make_synthetic(d=10, random_state=0, **sizes)
    return llr.Problem.from_samples(X_inlier, X_test, lambda1=0.1, lambda2=1.0)


def pair() -> llr.Problem:
    """Two samples, one feature, one edge: W is a point in the plane."""
    sizes = {"edges": [[0, 1]], "weights": [1.0], "lambda1": 0.4, "lambda2": 0.2}
    return llr.Problem([[1.0], [0.5]], [1, -1], **sizes)


wine = load_wine()


def split_wines() -> tuple[Any, Any, Any]:
    """Rows of the wine data: genuine wines that are known, genuine wines to check, foreign wines to check."""
    rng = np.random.default_rng(0)
    genuine = rng.permutation(np.flatnonzero(wine.target == 0))
    foreign = [rng.permutation(np.flatnonzero(wine.target == k))[:4] for k in (1, 2)]
    known, rest = np.split(genuine, [len(genuine) // 2])
    return known, rest, np.concatenate(foreign)


def wine_table(rows: Any) -> pd.DataFrame:
    """Rows of the wine data as a table that `detect` takes, with a name for each."""
    names = [f"wine {i} (cultivar {wine.target[i] + 1})" for i in rows]
    return pd.DataFrame(wine.data[rows], names, wine.feature_names)
