"""Scores and p-values of rows, fitted or new, given a fitted detector."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted, validate_data

from llr_cvx import validation as check
from llr_cvx.arrays import BoolArray, FloatArray, IntArray
from llr_cvx.detection import calibration
from llr_cvx.detection.labels import signs_of
from llr_cvx.detection.likelihood import held_out_loss
from llr_cvx.detection.new_rows import Joined, fitted
from llr_cvx.detection.partitions import by_partition
from llr_cvx.solution import Solution


class Scoring:
    """The part of `LLRDetector` that scores rows; its attributes are described there."""

    coef_: FloatArray
    intercept_: FloatArray | float
    log_ratio_: FloatArray
    offset_: float
    fitted_offset_: float
    solution_: Solution
    joined_solution_: Solution
    calibration_rows_: IntArray
    suspicious_inliers_: IntArray
    scaler_: Any
    sigma_: float | None
    n_neighbors_: int | None
    n_iter_: int
    n_features_in_: int
    fit_intercept: bool
    scaler: Any
    graph_columns: Any
    _checked: BoolArray
    _rows: Any
    _owner: IntArray
    _pvalues: FloatArray
    _calibration_scores: FloatArray

    @property
    def pvalues_(self) -> FloatArray:
        """p-values of the fitted rows; NaN for known inliers."""
        self._require_calibration()
        return self._pvalues

    @by_partition
    def pvalues(self, X: ArrayLike) -> FloatArray:
        """p-value of each new row on its own: at most a with probability at most a if the row is an inlier.

        For a batch of new rows, `llr_cvx.detection.calibration.benjamini_hochberg(pvalues, fdr)` says which to flag.
        """
        check_is_fitted(self)
        self._require_calibration()
        return calibration.conformal_pvalues(self.score_samples(X), self._calibration_scores)

    def _require_calibration(self) -> None:
        check_is_fitted(self)
        if not len(self.calibration_rows_):
            raise AttributeError(
                "p-values need inliers that were held out in fit: set fdr (such as fdr=0.1) or false_alarm, and fit "
                "again"
            )

    def join(self, X: ArrayLike | None = None) -> Joined:
        """Weight vectors, dual vectors and proven relative gap of each row; by default of the fitted rows.

        With an intercept, the last column of `W` and `V` belongs to it; see `llr_cvx.detection.new_rows.Joined`.
        """
        return self._joined(X)[1]

    def local_coef(self, X: ArrayLike) -> FloatArray:
        """The weight vector of each row of X, with the intercept, if fitted, as the last column."""
        return self.join(X).W

    @by_partition
    def score_samples(self, X: ArrayLike) -> FloatArray:
        """log r of each row, independent of the other rows; low means outlier."""
        return self._score(self._seen(X))

    def _score(self, X: FloatArray) -> FloatArray:
        """log r of validated and scaled new rows."""
        X = self._with_constant(X)
        contributions = self._rows.join(X).W * X
        return np.asarray(self.joined_solution_.problem.base + contributions.sum(axis=1))

    @by_partition
    def decision_function(self, X: ArrayLike) -> FloatArray:
        """score_samples(X) - offset_: negative for outliers."""
        return self.score_samples(X) - self.offset_

    @by_partition
    def predict(self, X: ArrayLike) -> IntArray:
        """+1 for inliers, -1 for outliers."""
        return signs(self.decision_function(X))

    def score(self, X: ArrayLike, y: ArrayLike) -> float:
        """Log-likelihood per row of the labels y of rows that were not fitted; higher is better.

        Minus the loss of `llr_cvx.detection.likelihood`, as in `LLRDetectorCV`: known inliers should score higher than
        unlabelled rows. It needs no known outliers, and makes `GridSearchCV` work; both labels must occur in X, so
        give it ``cv=StratifiedKFold(5, shuffle=True)`` or the like.
        """
        rows = self._with_constant(self._seen(X))
        return -held_out_loss(self.joined_solution_, rows, signs_of(y), self._graph_columns(len(self._owner)))

    # ---- rows as the model sees them --------------------------------------------------------------------

    def _joined(self, X: ArrayLike | None) -> tuple[FloatArray, Joined]:
        """The rows as the model sees them, and their weight and dual vectors."""
        check_is_fitted(self)
        if X is None:
            return self.solution_.problem.X, fitted(self.solution_)
        rows = self._with_constant(self._seen(X))
        return rows, self._rows.join(rows)

    def _contributions(self, X: ArrayLike | None) -> FloatArray:
        rows, found = self._joined(X)
        return found.W * rows

    @property
    def _takes_tables(self) -> bool:
        return self.scaler is not None and bool(get_tags(self.scaler).input_tags.categorical)

    def _with_constant(self, X: FloatArray) -> FloatArray:
        return np.column_stack([X, np.ones(len(X))]) if self.fit_intercept else X

    def _seen(self, X: ArrayLike) -> FloatArray:
        check_is_fitted(self)
        if self._rows is None:
            raise ValueError('fitted with new_rows=None: only fitted rows have scores; set it to "join" and fit again')
        if self._takes_tables:
            return self._scaled(X)  # type: ignore[arg-type]
        return self._scaled(validate_data(self, X, dtype=np.float64, reset=False))

    def _scaled(self, X: FloatArray) -> FloatArray:
        if self.scaler_ is None:
            return X
        scaled = np.asarray(self.scaler_.transform(X), dtype=np.float64)
        if scaled.shape != (len(X), len(self._owner)):
            raise ValueError(
                f"scaler made {scaled.shape[1]} columns out of {X.shape[1]}: it must keep the features, since they are "
                "named as reasons; put other transformers before the detector in a Pipeline"
            )
        return scaled

    def _graph_columns(self, n_features: int) -> IntArray:
        names = getattr(self, "feature_names_in_", None)
        owner = getattr(self, "_owner", np.arange(n_features))
        chosen = check.columns(self.graph_columns, getattr(self, "n_features_in_", n_features), names, "graph_columns")
        found = np.flatnonzero(np.isin(owner, chosen))
        if not found.size:
            raise ValueError("graph_columns are left out, since constant or text that names the rows: give others")
        return found


def signs(decision: FloatArray) -> IntArray:
    """+1 where a decision is not negative, else -1."""
    return np.where(decision >= 0, 1, -1)
