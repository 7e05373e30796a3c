"""Why rows have their scores: the features behind them, proven bounds, and the rows that share the reasons."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from llr_cvx import validation as check
from llr_cvx.arrays import FloatArray, IntArray
from llr_cvx.detection.encoding import by_owner
from llr_cvx.detection.features import Features, FeatureValue, describe
from llr_cvx.detection.partitions import by_partition, is_pandas
from llr_cvx.detection.ranking import rank_features, selected_features, selection_distance
from llr_cvx.detection.scoring import Scoring
from llr_cvx.graph import component_labels
from llr_cvx.solution import Solution

#: At most this many rows that share the same reasons are listed.
MAX_SHARED_ROWS = 20
#: At most this many unselected features are listed as "also unusual".
MAX_ALSO_UNUSUAL = 3


@dataclass(frozen=True)
class Explanation:
    """Why a fitted row has its score.

    Attributes
    ----------
    rank, row : int
        Rank (1 for the lowest score) and index of the row as given to `fit`.
    log_ratio, ratio : float
        log r and r.
    interval : (float, float)
        Proven interval of log r at the exact optimum: it bounds numerical error, not sampling error.
    certain : bool
        Whether the whole interval lies on the same side of the threshold as the score.
    reasons : tuple of FeatureValue
        Selected features, strongest push towards "outlier" first.
    next_feature : FeatureValue or None
        The unselected feature closest to selection; None if every feature is selected or the row has no weights.
    group, group_size, shares_with : int, int, tuple of int
        A label of the rows with nearly the same weight vector, see `groups`; how many of the explained rows have it;
        and the others of these, worst first, at most `MAX_SHARED_ROWS`.
    also_unusual : tuple of FeatureValue
        Unselected features outside their typical range, closest to selection first, at most `MAX_ALSO_UNUSUAL`.
    """

    rank: int
    row: int
    log_ratio: float
    ratio: float
    interval: tuple[float, float]
    certain: bool
    reasons: tuple[FeatureValue, ...]
    next_feature: FeatureValue | None
    group: int
    group_size: int
    shares_with: tuple[int, ...]
    also_unusual: tuple[FeatureValue, ...] = ()

    def details(self) -> list[str]:
        """A line for each reason, and for each feature that is also unusual."""
        lines = [f"    {reason}" for reason in self.reasons] or ["    no feature selected"]
        return lines + [f"    also unusual: {feature}" for feature in self.also_unusual]

    def __str__(self) -> str:
        low, high = np.exp(self.interval)
        head = f"#{self.rank} row {self.row}: r = {self.ratio:.4g}, proven {low:.4g} to {high:.4g}"
        return "\n".join([head, *self.details()])


def explain_rows(features: Features, rows: IntArray, offset: float) -> list[Explanation]:
    """Explain the given rows, lowest score first; scores below `offset` are outliers.

    >>> from llr_cvx import Problem, solve_exact
    >>> p = Problem([[1.0, 0.0], [-4.0, 0.0]], [1, -1], [], [], lambda1=0.0, lambda2=1.0)
    >>> features = Features(solve_exact(p), describe(p.X, ["a", "b"], p.y > 0), np.arange(2))
    >>> print(explain_rows(features, np.array([1]), offset=0.0)[0])
    #1 row 1: r = 0.2273, proven 0.2273 to 0.2273
        a = -4, below the inliers' 5 % to 95 % range (1 to 1), contributes -1.48
    """
    solution, log_ratio = features.solution, features.solution.log_ratio
    rows = rows[np.argsort(log_ratio[rows], kind="stable")]
    low, high = (solution.problem.base + end for end in solution.certificate.score_bounds)
    label = groups(solution)

    def explained(rank: int, i: int) -> Explanation:
        unselected, alike = features.unselected(i), rows[(label[rows] == label[i]) & (rows != i)].tolist()
        return Explanation(
            rank=rank,
            row=i,
            log_ratio=float(log_ratio[i]),
            ratio=float(np.exp(log_ratio[i])),
            interval=(float(low[i]), float(high[i])),
            certain=bool(high[i] < offset if log_ratio[i] < offset else low[i] >= offset),
            reasons=features.reasons(i),
            next_feature=next(iter(unselected), None),
            also_unusual=tuple(f for f in unselected if f.position != "within")[:MAX_ALSO_UNUSUAL],
            group=int(label[i]),
            group_size=1 + len(alike),
            shares_with=tuple(alike[:MAX_SHARED_ROWS]),
        )

    return [explained(rank, i) for rank, i in enumerate(rows.tolist(), start=1)]


def groups(solution: Solution, rtol: float = 1e-3) -> IntArray:
    """A label for each row: equal for rows joined by edges with ||w_i - w_j|| <= rtol max(||w_i||, ||w_j||).

    rtol = 0 gives `Solution.clusters`: exactly equal weight vectors.
    """
    edges = solution.problem.edges[solution.problem.weights > 0]
    i, j = edges.T
    norm = np.linalg.norm(solution.W, axis=1)
    alike = np.linalg.norm(solution.W[i] - solution.W[j], axis=1) <= rtol * np.maximum(norm[i], norm[j])
    return component_labels(len(solution.W), edges[alike])


class Explaining(Scoring):
    """The part of `LLRDetector` that explains scores."""

    @by_partition
    def explain(self, X: ArrayLike | None = None) -> FloatArray:
        """Contributions w_ik x_ik to the scores of new rows, by default of the fitted ones.

        Each row sums to log r - log(n/n'). An intercept has one more column; a DataFrame gives a DataFrame.
        """
        contributions: FloatArray = by_owner(self._contributions(X), *self._owners)
        if is_pandas(X):
            return type(X)(contributions, index=X.index, columns=self._column_names())  # type: ignore[call-arg, call-overload, misc, return-value, union-attr]
        return contributions

    @by_partition
    def feature_ranking(self, X: ArrayLike | None = None) -> IntArray:
        """All feature indices of each new row, by default of each fitted one, the most responsible first.

        Selected features come first, by the size of their contribution; then the others, by how close the row's dual
        point was to selecting them (`llr_cvx.detection.ranking`).
        """
        rows, found = self._joined(X)
        d, (owner, n) = self.n_features_in_, self._owners
        selected = by_owner(selected_features(self.solution_.problem.X, found.W, rows), owner, n, np.logical_or)
        distance = by_owner(selection_distance(found.V), owner, n, np.fmin)
        return rank_features(by_owner(found.W * rows, owner, n)[:, :d], selected[:, :d], distance[:, :d])

    def explain_table(self, rows: ArrayLike | None = None, values: ArrayLike | None = None) -> list[Explanation]:
        """The outliers, worst first, with their reasons; see `llr_cvx.detection.explanation.Explanation`.

        Parameters
        ----------
        rows : array-like of int, optional
            Fitted rows to explain; by default the unlabelled rows below the threshold.
        values : array-like or DataFrame of shape (n_samples, n_features), optional
            The fitted rows in the units to show; by default as the model sees them. A DataFrame has the columns that
            `fit` was given, or names them if those had no names.
        """
        check_is_fitted(self)
        if rows is None:
            rows = np.flatnonzero(self._checked & (self.log_ratio_ < self.fitted_offset_))
        return explain_rows(self._features(values), np.asarray(rows, dtype=np.int64), self.fitted_offset_)

    def _features(self, values: Any = None) -> Features:
        """The features of the fitted rows beside those of the known inliers; see `explain_table`."""
        X, owner, names = self.solution_.problem.X, self._owners[0], getattr(self, "feature_names_in_", None)
        if values is None and self._takes_tables:  # as encoded
            names, owner = self.scaler_.get_feature_names_out(), np.arange(X.shape[1])
        if values is None:
            values = X
        elif not is_pandas(values):
            values = check.weight_matrix(values, (len(X), self.n_features_in_), "values")
        else:
            names = values.columns if names is None else names
            if len(values) != len(X) or len(names) != self.n_features_in_ or not set(names) <= set(values):
                raise ValueError(f"values must have the {len(X)} rows and the columns that fit was given")
            values = values[list(names)]
        return Features(self.solution_, describe(values, self._column_names(names), ~self._checked), owner)

    def _column_names(self, names: Any = None) -> list[str]:
        if names is None:
            names = getattr(self, "feature_names_in_", [f"x{k}" for k in range(self.n_features_in_)])
        return [*map(str, names), *(["(intercept)"] if self.fit_intercept else [])]

    @property
    def _owners(self) -> tuple[IntArray, int]:
        """The column of X that each column of the problem comes from, counting the intercept; and their number."""
        owner, d = self._owner, self.n_features_in_
        return (np.append(owner, d), d + 1) if self.fit_intercept else (owner, d)
