"""Which features are behind the scores of rows, fitted or new, given a fitted detector."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from llr_cvx import validation as check
from llr_cvx.arrays import FloatArray, IntArray
from llr_cvx.detection.encoding import by_owner
from llr_cvx.detection.explanation import Explanation, Features, explain_rows
from llr_cvx.detection.features import describe
from llr_cvx.detection.partitions import by_partition, is_pandas
from llr_cvx.detection.ranking import rank_features, selected_features, selection_distance
from llr_cvx.detection.scoring import Scoring


class Explaining(Scoring):
    """The part of `LLRDetector` that explains scores."""

    @by_partition
    def explain(self, X: ArrayLike | None = None) -> FloatArray:
        """Contributions w_ik x_ik to the score: each row sums to log r - log(n/n').

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features), optional
            New rows; by default the fitted rows.

        Returns
        -------
        array, or DataFrame if X is one, of shape (n_rows, n_features), with one more column if there is an intercept
        """
        contributions: FloatArray = by_owner(self._contributions(X), *self._owners)
        if is_pandas(X):
            return type(X)(contributions, index=X.index, columns=self._column_names())  # type: ignore[call-arg, call-overload, misc, return-value, union-attr]
        return contributions

    @by_partition
    def feature_ranking(self, X: ArrayLike | None = None) -> IntArray:
        """All feature indices of each row, the most responsible first.

        Selected features come first, by the size of their contribution; then the others, by how close the row's dual
        point was to selecting them (`llr_cvx.detection.ranking`).

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features), optional
            New rows; by default the fitted rows.

        Returns
        -------
        array of int, shape (n_rows, n_features)
        """
        rows, found = self._joined(X)
        d, (owner, n) = self.n_features_in_, self._owners
        selected = by_owner(selected_features(self.solution_.problem.X, found.W, rows), owner, n, np.logical_or)
        distance = by_owner(selection_distance(found.V), owner, n, np.fmin)
        return rank_features(by_owner(found.W * rows, owner, n)[:, :d], selected[:, :d], distance[:, :d])

    def explain_table(
        self,
        rows: ArrayLike | None = None,
        values: ArrayLike | None = None,
        names: Sequence[str] | None = None,
        group_rtol: float = 1e-3,
    ) -> list[Explanation]:
        """The outliers, worst first, with their reasons; see `llr_cvx.detection.explanation.Explanation`.

        Parameters
        ----------
        rows : array-like of int, optional
            Fitted rows to explain; by default the unlabelled rows below the threshold.
        values : array-like or DataFrame of shape (n_samples, n_features), optional
            The fitted rows in the units to show; by default as the model sees them.
        names : sequence of str, optional
            Feature names, if `fit` was given an array without them.
        group_rtol : float
            Rows joined by edges with ||w_i - w_j|| <= group_rtol max(||w_i||, ||w_j||) share their reasons.
        """
        check_is_fitted(self)
        if rows is None:
            rows = np.flatnonzero(self._checked & (self.log_ratio_ < self.fitted_offset_))
        features = self._features(values, names)
        return explain_rows(features, np.asarray(rows, dtype=np.int64), self.fitted_offset_, group_rtol)

    def _features(self, values: ArrayLike | None = None, names: Sequence[str] | None = None) -> Features:
        """The features of the fitted rows beside those of the known inliers; see `explain_table`."""
        X, d, owner = self.solution_.problem.X, self.n_features_in_, self._owners[0]
        if values is None and self._takes_tables:  # as encoded
            owner, names = np.arange(X.shape[1]), names or self.scaler_.get_feature_names_out()
        shown = X if values is None else values
        if values is not None and not is_pandas(values):
            shown = check.weight_matrix(values, (len(X), d), "values")
        return Features(self.solution_, describe(shown, self._column_names(names), ~self._checked), owner)

    def _column_names(self, names: Sequence[str] | None = None) -> list[str]:
        if names is None:
            names = getattr(self, "feature_names_in_", [f"x{k}" for k in range(self.n_features_in_)])
        return [*map(str, names), *(["(intercept)"] if self.fit_intercept else [])]

    @property
    def _owners(self) -> tuple[IntArray, int]:
        """The column of X that each column of the problem comes from, counting the intercept; and their number."""
        owner, d = self._owner, self.n_features_in_
        return (np.append(owner, d), d + 1) if self.fit_intercept else (owner, d)
