"""Feature maps learned from the known inliers alone; every feature keeps its name and its place."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from llr_cvx.arrays import FloatArray
from llr_cvx.detection.labels import known_inliers

#: A spread below this share of the values themselves is rounding: the column counts as constant.
CONSTANT_SPREAD = 1e-14
#: Shrinkages that `ConditionalScaler` tries, on this many folds of the inliers. The least bounds what a broken exact
#: correlation counts; a correlation of 0.999 among 133 inliers is kept beside 20 unrelated features, not beside 40.
SHRINKAGES, FOLDS = np.append(np.logspace(-6, 0, 25), 1.0 - np.logspace(-1, -3, 5)), 5


class _InlierTransformer(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """What both scalers share: they are fitted on the rows with y = +1, and keep the columns."""

    def fit(self, X: ArrayLike, y: ArrayLike | None = None) -> Any:
        """Learn the map from the rows with y = 1, whatever the others are labelled; from all rows if there is no y."""
        rows = validate_data(self, X, dtype=np.float64, order="C")  # or the last bits of sums depend on the layout
        self._learn(known_inliers(rows, y))
        return self

    def transform(self, X: ArrayLike) -> FloatArray:
        """The map applied to any rows."""
        check_is_fitted(self)
        return self._apply(validate_data(self, X, dtype=np.float64, order="C", reset=False))

    def _learn(self, inliers: FloatArray) -> None:
        raise NotImplementedError

    def _apply(self, X: FloatArray) -> FloatArray:
        raise NotImplementedError


class InlierScaler(_InlierTransformer):
    """Centre and scale each feature by the known inliers.

    Parameters
    ----------
    method : "standard", "robust" or "minmax"
        By mean and standard deviation, by median and interquartile range, or to [0, 1]. A constant feature is
        centred only.

    Attributes
    ----------
    centre_, scale_ : arrays of shape (n_features,)

    Examples
    --------
    >>> X, y = np.array([[1.0], [3.0], [9.0]]), [1, 1, -1]
    >>> InlierScaler().fit(X, y).transform(X).ravel().tolist()
    [-1.0, 1.0, 7.0]
    """

    def __init__(self, method: Literal["standard", "robust", "minmax"] = "standard") -> None:
        self.method = method

    def _learn(self, inliers: FloatArray) -> None:
        if self.method == "standard":
            centre, spread = inliers.mean(axis=0), inliers.std(axis=0)
        elif self.method == "robust":
            low, centre, high = np.quantile(inliers, [0.25, 0.5, 0.75], axis=0)
            spread = high - low
        elif self.method == "minmax":
            centre, spread = inliers.min(axis=0), np.ptp(inliers, axis=0)
        else:
            raise ValueError(f'method must be "standard", "robust" or "minmax", got {self.method!r}')
        constant = spread <= CONSTANT_SPREAD * np.abs(inliers).max(axis=0)
        self.centre_, self.scale_ = centre, np.where(constant, 1.0, spread)

    def _apply(self, X: FloatArray) -> FloatArray:
        return np.asarray((X - self.centre_) / self.scale_)


class ConditionalScaler(_InlierTransformer):
    """Replace each feature by what the others do not predict of it, in units of its spread among the inliers.

    With the standardised features z and the precision matrix P of the inliers, the residual of feature k given all
    others is (P z)_k / P_kk, and (P z)_k / sqrt(P_kk) has variance 1. A row that breaks a correlation stands out in the
    features involved although none of its values is unusual. The covariance is shrunk towards the identity as much as
    makes held-out inliers most likely (normal likelihood, 5 folds): a strong correlation counts among many unrelated
    features too, as long as there are several inliers per feature.

    Attributes
    ----------
    scaler_ : InlierScaler
        Standardises first.
    precision_ : array of shape (n_features, n_features)
        The matrix P.
    shrinkage_ : float
        0 for the empirical covariance of the inliers, 1 for no correlation at all.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> a = rng.normal(size=200)
    >>> X = np.column_stack([a, a + 0.1 * rng.normal(size=200), rng.normal(size=200)])
    >>> row = np.array([[1.0, -1.0, 0.0]])  # usual values, unusual together
    >>> (abs(ConditionalScaler().fit(X).transform(row)) > 5).tolist()
    [[True, True, False]]
    """

    def _learn(self, inliers: FloatArray) -> None:
        if len(inliers) < 2:
            raise ValueError(f"a covariance needs at least 2 known inliers, got {len(inliers)} sample")
        self.scaler_ = InlierScaler().fit(inliers)
        z = self.scaler_.transform(inliers)
        live = np.flatnonzero(np.ptp(z, axis=0) > CONSTANT_SPREAD)
        # A constant feature depends on no other, and stays as it is.
        self.precision_, self.shrinkage_ = np.eye(z.shape[1]), 0.0
        if live.size:
            self.shrinkage_ = best_shrinkage(z[:, live])
            covariance = (1.0 - self.shrinkage_) * (z[:, live].T @ z[:, live]) / len(z)
            self.precision_[np.ix_(live, live)] = np.linalg.pinv(
                covariance + self.shrinkage_ * np.eye(live.size), hermitian=True
            )

    def _apply(self, X: FloatArray) -> FloatArray:
        z, P = self.scaler_.transform(X), self.precision_ / np.sqrt(np.diag(self.precision_))
        residuals: FloatArray = np.zeros_like(z)
        for j in range(len(P)):  # not z @ P, whose last bits depend on the place of a row in its batch
            residuals += z[:, j, None] * P[j]
        return residuals


def best_shrinkage(z: FloatArray) -> float:
    """The s with which (1 - s) S + s I makes held-out rows of standardised features z most likely; 1 for few rows.

    In the eigenvectors of S, the covariance of the other folds, each row costs sum_k log e_k + (Q'z)_k^2 / e_k.
    """
    if len(z) < 2 * FOLDS:
        return 1.0
    fold = np.argsort(np.lexsort(z.T)) % FOLDS  # by values, so that the order of the rows does not matter
    cost = np.zeros(len(SHRINKAGES))
    for f in range(FOLDS):
        rest, held = z[fold != f], z[fold == f]
        own, Q = np.linalg.eigh(rest.T @ rest / len(rest))
        e = (1.0 - SHRINKAGES)[:, None] * np.maximum(own, 0.0) + SHRINKAGES[:, None]
        cost += (np.log(e) + ((held @ Q) ** 2).mean(axis=0) / e).sum(axis=1)
    return float(SHRINKAGES[cost.argmin()])


#: Scalings of the commands, by name; None leaves the features as they are.
SCALINGS: dict[str, InlierScaler | ConditionalScaler | None] = {
    "none": None,
    "standard": InlierScaler("standard"),
    "robust": InlierScaler("robust"),
    "minmax": InlierScaler("minmax"),
    "conditional": ConditionalScaler(),
}
