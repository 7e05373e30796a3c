"""The synthetic data of Sec. 4.1."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from llr_cvx import validation as check
from llr_cvx.arrays import FloatArray


def make_synthetic(
    d: int = 10,
    random_state: int | np.random.Generator = 0,
    n_inlier: int = 200,
    n_test_inlier: int = 100,
    n_outlier: int = 10,
) -> tuple[FloatArray, FloatArray, NDArray[np.bool_]]:
    """Draw the synthetic data of the paper.

    Inliers follow N(0, I_d) and outliers N(mu, I_d) with mu = (3, -2, 0, ..., 0).

    Parameters
    ----------
    d : int
        Number of features; for d = 1 the shift is mu = (3,).
    random_state : int or numpy Generator
        Seed.
    n_inlier, n_test_inlier, n_outlier : int
        Sample sizes; the paper has 200 known inliers and a test set of 100 inliers and 10 outliers.

    Returns
    -------
    X_inlier : array of shape (n_inlier, d)
    X_test : array of shape (n_test_inlier + n_outlier, d)
        Inliers first, outliers last, so that pooled rows 301-310 are the outliers of Fig. 1(b).
    is_outlier : boolean array over the rows of X_test

    Examples
    --------
    >>> X_inlier, X_test, is_outlier = make_synthetic(d=10, random_state=0)
    >>> X_inlier.shape, X_test.shape, int(is_outlier.sum())
    ((200, 10), (110, 10), 10)
    """
    d = check.whole_number(d, "d")
    n_inlier = check.whole_number(n_inlier, "n_inlier")
    n_test_inlier = check.whole_number(n_test_inlier, "n_test_inlier", minimum=0)
    n_outlier = check.whole_number(n_outlier, "n_outlier", minimum=0)
    if n_test_inlier + n_outlier == 0:
        raise ValueError(
            "n_test_inlier and n_outlier are both 0: the test set would be empty; make one of them positive"
        )
    rng = np.random.default_rng(random_state)
    mu = np.zeros(d)
    mu[:2] = (3.0, -2.0)[:d]
    X_inlier = rng.standard_normal((n_inlier, d))
    X_test = rng.standard_normal((n_test_inlier + n_outlier, d))
    is_outlier = np.arange(n_test_inlier + n_outlier) >= n_test_inlier
    X_test[is_outlier] += mu
    return X_inlier, X_test, is_outlier


def synthetic_of_size(
    N: int, d: int = 10, random_state: int | np.random.Generator = 0
) -> tuple[FloatArray, FloatArray, NDArray[np.bool_]]:
    """`make_synthetic` with N rows in total: known inliers, test inliers and outliers in the ratio 200 : 100 : 10.

    >>> X_inlier, X_test, is_outlier = synthetic_of_size(93)
    >>> len(X_inlier), len(X_test), int(is_outlier.sum())
    (60, 33, 3)
    """
    n_outlier, n_test_inlier = max(1, round(N * 10 / 310)), round(N * 100 / 310)
    return make_synthetic(d, random_state, N - n_test_inlier - n_outlier, n_test_inlier, n_outlier)
