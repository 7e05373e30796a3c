"""The common interface of every method: scores of the test rows, higher is more normal."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Flag, auto
from typing import NamedTuple

import numpy as np
from scipy.linalg.lapack import dposv
from scipy.spatial.distance import cdist

from llr_cvx import validation as check
from llr_cvx.arrays import FloatArray, IntArray
from llr_cvx.experiments.protocol import Protocol


class Outcome(NamedTuple):
    """Scores of the test rows, facts about the fit to record, and what the score of each row rests on.

    `importance`, of the shape of the test rows, is given by methods that select features: 0 for a feature that is not
    selected, and larger for one that matters more.
    """

    scores: FloatArray
    info: dict[str, float | str]
    importance: FloatArray | None = None


Fit = Callable[[FloatArray, FloatArray, Protocol, np.random.Generator], Outcome]


class Property(Flag):
    """What Table 1 says of a method, and whether its fit is a convex problem."""

    NONLINEAR = auto()
    SELECTS_FEATURES = auto()
    RATIO_BASED = auto()  # hence inlier-based: it needs known inliers beside the test rows
    CONVEX = auto()


@dataclass(frozen=True)
class Method:
    """One row of the registry.

    Attributes
    ----------
    key, label : str
        Name in code and name in tables.
    properties : Property
    parameters : str
        How its parameters are chosen, and on whose authority.
    fit : callable
    """

    key: str
    label: str
    properties: Property
    parameters: str
    fit: Fit = field(repr=False)

    def score(
        self,
        X_inlier: FloatArray,
        X_test: FloatArray,
        random_state: int | np.random.Generator = 0,
        protocol: Protocol | None = None,
    ) -> FloatArray:
        """One score per row of X_test; higher is more normal."""
        return self.run(X_inlier, X_test, random_state, protocol).scores

    def run(
        self,
        X_inlier: FloatArray,
        X_test: FloatArray,
        random_state: int | np.random.Generator = 0,
        protocol: Protocol | None = None,
    ) -> Outcome:
        """The scores together with facts about the fit (for LLR, its proven gap)."""
        inlier, test = check.samples(X_inlier, "X_inlier"), check.samples(X_test, "X_test")
        if inlier.shape[1] != test.shape[1]:
            raise ValueError(
                f"X_inlier has {inlier.shape[1]} columns but X_test has {test.shape[1]}: same features, same order"
            )
        return self.fit(inlier, test, protocol or Protocol(), np.random.default_rng(random_state))


def pool(X_inlier: FloatArray, X_test: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Pooled rows, inliers first, and y: +1 for inliers, -1 for test rows."""
    return np.vstack([X_inlier, X_test]), np.repeat([1.0, -1.0], [len(X_inlier), len(X_test)])


def folds(n: int, k: int, rng: np.random.Generator) -> IntArray:
    """A random fold number 0..k-1 for each of n rows, in folds of nearly equal size."""
    return np.asarray(rng.permutation(np.arange(n) % k))


def gaussian(X: FloatArray, centers: FloatArray, width: float) -> FloatArray:
    """K(x, c) = exp(-||x - c||^2 / (2 width^2)) for every row x and centre c."""
    return np.exp(squared_distances(X, centers) * (-0.5 / width**2))


def squared_distances(X: FloatArray, centers: FloatArray) -> FloatArray:
    """||x - c||^2, exactly 0 for equal rows."""
    return np.asarray(cdist(X, centers, "sqeuclidean"))


def solve_positive(M: FloatArray, b: FloatArray) -> FloatArray:
    """M^-1 b for a positive definite M, of which the upper half is read.

    LAPACK itself: the checks of SciPy and NumPy take longer than these small systems.

    >>> solve_positive(np.array([[2.0, 0.0], [0.0, 4.0]]), np.array([1.0, 1.0])).round(12).tolist()
    [0.5, 0.25]
    """
    _, x, info = dposv(M, b)
    if info:
        raise np.linalg.LinAlgError(f"the matrix is not positive definite (LAPACK: {info})")
    return np.asarray(x)
