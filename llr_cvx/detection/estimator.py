"""Outlier detection with scikit-learn's interface."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, OutlierMixin
from sklearn.utils import ClassifierTags, Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from llr_cvx import validation as check
from llr_cvx.arrays import FloatArray, IntArray
from llr_cvx.detection.explanation import Explanation, explain_rows
from llr_cvx.detection.labels import MEANING_OF_Y, signs_of
from llr_cvx.detection.new_rows import FittedRows
from llr_cvx.graph import build_graph
from llr_cvx.problem import Problem
from llr_cvx.solution import ConvergenceWarning, Solution
from llr_cvx.solvers.exact import solve_exact
from llr_cvx.solvers.fast.solver import solve_fast
from llr_cvx.solvers.irls import solve_irls

#: Subtracted from the default threshold, so that rounding alone flags no row.
ROUNDING_MARGIN = 1e-9


class LLRDetector(OutlierMixin, BaseEstimator):  # type: ignore[misc]
    """Find outliers among unlabelled rows, given known inliers, and the features that make them outliers.

    Each row i has its own weight vector w_i; all of them are fitted jointly, as the optimum of Eq. (5). The score
    of a row is its log density ratio, log r(x_i) = log(n/n') + w_i.x_i: low means outlier.

    Parameters
    ----------
    lambda1 : float
        Coupling of similar rows: the larger, the more rows share a weight vector. At 0, the score of an unlabelled
        row decreases with its largest absolute entry and depends on nothing else; coupling is what makes an
        unlabelled row among inliers score like them.
    lambda2 : float
        Sparsity: the larger, the smaller the weights and the fewer the features that explain each row.
    n_neighbors : int
        K of the similarity graph, and the number of fitted rows used to score a new one. Lowered, with a
        warning, if there are fewer other rows.
    sigma : float or "median"
        Gaussian width of the similarity.
    threshold : float, optional
        The paper's tau > 0: rows with r < tau are outliers. Sets offset_ = log tau.
    contamination : float in (0, 0.5], optional
        Share of the unlabelled rows to flag, instead of `threshold`.
    fit_intercept : bool
        Append a constant feature 1, penalised like any other.
    solver : "fast", "irls" or "exact"
        `solve_fast`, `solve_irls`, or `solve_exact`, a conic solver for the same model.
    tol : float
        Relative duality gap to prove.
    max_iter : int
        Iteration limit of "fast" and "irls"; reaching it issues a `ConvergenceWarning`.
    verbose : bool
        Print one line per iteration of "fast" and "irls" to standard error.

    Attributes
    ----------
    coef_ : array of shape (n_samples, n_features)
        One weight vector per row, in the order given to `fit`; a zero weight means that the feature plays no part
        in that row's score.
    intercept_ : array of shape (n_samples,) or 0.0
    log_ratio_ : array of shape (n_samples,)
        log r of the fitted rows.
    offset_ : float
        decision_function = score_samples - offset_.
    solution_ : Solution
        The solver's result, with the certificate that bounds every score.
    sigma_, n_neighbors_ : float, int
        The width and K used.
    n_iter_ : int
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    **The threshold.** With neither `threshold` nor `contamination`, offset_ is Tukey's lower fence
    Q1 - 1.5 (Q3 - Q1) of the unlabelled rows' own scores: it flags rows that stand out from the rest of their
    batch, and none when all scores agree. tau = 1 would not work: the fit pushes every unlabelled row below the
    known inliers, wherever it lies, so the scores of the two groups are not comparable. On the paper's synthetic
    data (d = 10, 20 draws) tau = 1 flags all 110 unlabelled rows; the fence flags 4.3 rows per draw, 3.9 of them
    among the 10 outliers. The fence assumes that most unlabelled rows are good; if in doubt, give `threshold`.

    **Fitted and unseen rows.** Fitted scores are transductive: w_i depends on row i being unlabelled, and all rows
    are solved together. `score_samples` gives an unseen row the weight vector minimising
    sum_j r(x, x_j) ||w - w_j||_2 over its K nearest fitted rows (the Weber problem of the localized lasso, solved
    to a proven relative accuracy of 1e-10). Nothing was fitted to it, so its score is usually closer to zero than
    if it had been part of the batch, and it never depends on the other new rows. A row equal to a fitted one gets
    that row's own score (if equal to several, that of the first unlabelled one), so the score may jump there. Only
    features used by its neighbours can explain a new row: to find a new kind of outlier, fit it.

    **No scaling** is done; use a scaler in a Pipeline. Explanations are easiest to read if features are centred on
    the inliers, since the model has no intercept by default.

    Examples
    --------
    >>> from llr_cvx import make_synthetic
    >>> X_inlier, X_test, _ = make_synthetic(d=5, n_inlier=40, n_test_inlier=18, n_outlier=2)
    >>> X, y = np.vstack([X_inlier, X_test]), np.repeat([1, -1], [40, 20])
    >>> detector = LLRDetector(contamination=0.1).fit(X, y)
    >>> np.flatnonzero(detector.log_ratio_ < detector.offset_).tolist()  # planted: the last two
    [58, 59]
    """

    def __init__(
        self,
        lambda1: float = 0.1,
        lambda2: float = 1.0,
        n_neighbors: int = 5,
        sigma: float | Literal["median"] = "median",
        threshold: float | None = None,
        contamination: float | None = None,
        fit_intercept: bool = False,
        solver: Literal["fast", "irls", "exact"] = "fast",
        tol: float = 1e-8,
        max_iter: int = 300,
        verbose: bool = False,
    ) -> None:
        self.lambda1 = lambda1
        self.lambda2 = lambda2
        self.n_neighbors = n_neighbors
        self.sigma = sigma
        self.threshold = threshold
        self.contamination = contamination
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.verbose = verbose

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.classifier_tags = ClassifierTags(multi_class=False)  # y is binary
        return tags

    # ---- fitting -------------------------------------------------------------------------------------

    def fit(self, X: ArrayLike, y: ArrayLike | None = None) -> LLRDetector:
        """Fit the pooled rows X.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Known inliers and rows to be checked, in any order.
        y : array-like of shape (n_samples,)
            +1 for a known inlier, -1 for an unlabelled row (1 and 0, True and False, mean the same).
        """
        X, y = self._pooled(X, y)
        return self._fit_problem(self._problem(X, y, self.lambda1, self.lambda2))

    def fit_predict(self, X: ArrayLike, y: ArrayLike | None = None, **kwargs: Any) -> IntArray:
        """Fit, then label each fitted row +1 (inlier) or -1 (outlier) by its own score."""
        self.fit(X, y, **kwargs)
        return _signs(self.log_ratio_ - self.offset_)

    def _pooled(self, X: ArrayLike, y: ArrayLike | None) -> tuple[FloatArray, FloatArray]:
        if y is None:
            name = type(self).__name__
            raise ValueError(f"{name} requires y to be passed, but the target y is None: {MEANING_OF_Y}")
        pooled, target = validate_data(self, X, y, dtype=np.float64, ensure_min_samples=2)
        return pooled, signs_of(target)

    def _problem(self, X: FloatArray, y: FloatArray, lambda1: float, lambda2: float) -> Problem:
        K = check.whole_number(self.n_neighbors, "n_neighbors")
        if K >= len(X):
            warnings.warn(f"n_neighbors = {K} is lowered to {len(X) - 1}: there are {len(X)} rows", stacklevel=4)
            K = len(X) - 1
        graph = build_graph(X, K, self.sigma)
        return Problem(
            *(self._with_constant(X), y, graph.edges, graph.weights),
            lambda1=lambda1,
            lambda2=lambda2,
            sigma=graph.sigma,
            n_neighbors=graph.n_neighbors,
        )

    def _fit_problem(self, problem: Problem) -> LLRDetector:
        self.solution_ = solve_with(self.solver, problem, self.tol, self.max_iter, self.verbose)
        self.sigma_, self.n_neighbors_ = problem.sigma, problem.n_neighbors
        d, W = self.n_features_in_, self.solution_.W
        self.coef_ = W[:, :d]
        self.intercept_ = W[:, d] if self.fit_intercept else 0.0
        self.log_ratio_ = problem.base + self.explain().sum(axis=1)
        self.n_iter_ = self.solution_.n_iter
        self.offset_ = self._offset(self.log_ratio_[problem.y < 0])
        self._rows = FittedRows.of(self.solution_, d)
        return self

    def _offset(self, scores: FloatArray) -> float:
        """The score below which a row is an outlier, given the scores of the unlabelled rows."""
        if self.threshold is not None and self.contamination is not None:
            raise ValueError(
                f"threshold={self.threshold!r} and contamination={self.contamination!r} contradict each other: "
                "give one of them"
            )
        if self.threshold is not None:
            return float(np.log(check.real_number(self.threshold, "threshold", strict=True)))
        if self.contamination is not None:
            share = check.real_number(self.contamination, "contamination", strict=True)
            if share > 0.5:
                raise ValueError(f"contamination must be in (0, 0.5], got {self.contamination!r}")
            return float(np.quantile(scores, share))
        low, high = np.quantile(scores, [0.25, 0.75])
        return float(low - 1.5 * (high - low)) - ROUNDING_MARGIN

    # ---- scores -----------------------------------------------------------------------------------------

    def local_coef(self, X: ArrayLike) -> FloatArray:
        """The weight vector of each row of X, with the intercept, if fitted, as the last column."""
        X = self._seen(X)
        return self._rows.weights(X)

    def score_samples(self, X: ArrayLike) -> FloatArray:
        """log r of each row, independent of the other rows; low means outlier."""
        contributions = self.explain(X)
        return np.asarray(self.solution_.problem.base + contributions.sum(axis=1))

    def decision_function(self, X: ArrayLike) -> FloatArray:
        """score_samples(X) - offset_: negative for outliers."""
        return self.score_samples(X) - self.offset_

    def predict(self, X: ArrayLike) -> IntArray:
        """+1 for inliers, -1 for outliers."""
        return _signs(self.decision_function(X))

    # ---- reasons ------------------------------------------------------------------------------------------

    def explain(self, X: ArrayLike | None = None) -> FloatArray:
        """Contributions w_ik x_ik to the score: each row sums to log r - log(n/n').

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features), optional
            New rows; by default the fitted rows.

        Returns
        -------
        array of shape (n_rows, n_features), with one more column if there is an intercept
        """
        check_is_fitted(self)
        if X is None:
            return np.asarray(self.solution_.W * self.solution_.problem.X)
        rows = self._seen(X)
        return self._rows.weights(rows) * self._with_constant(rows)

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
        values : array-like of shape (n_samples, n_features), optional
            The fitted rows in the units to show, if `fit` was given scaled values.
        names : sequence of str, optional
            Feature names, if `fit` was given an array without them.
        group_rtol : float
            Rows joined by edges with ||w_i - w_j|| <= group_rtol max(||w_i||, ||w_j||) share their reasons.
        """
        check_is_fitted(self)
        problem = self.solution_.problem
        if rows is None:
            rows = np.flatnonzero((problem.y < 0) & (self.log_ratio_ < self.offset_))
        if names is None:
            names = getattr(self, "feature_names_in_", [f"x{k}" for k in range(self.n_features_in_)])
        named = [*map(str, names), "(intercept)"][: problem.shape[1]]
        shown = problem.X
        if values is not None:
            shown = check.weight_matrix(values, (len(problem.X), self.n_features_in_), "values")
            shown = self._with_constant(shown)
        which = np.asarray(rows, dtype=np.int64)
        return explain_rows(self.solution_, which, named, shown, self.offset_, group_rtol)

    def _with_constant(self, X: FloatArray) -> FloatArray:
        return np.column_stack([X, np.ones(len(X))]) if self.fit_intercept else X

    def _seen(self, X: ArrayLike) -> FloatArray:
        check_is_fitted(self)
        return np.asarray(validate_data(self, X, dtype=np.float64, reset=False))


def solve_with(solver: str, problem: Problem, tol: float, max_iter: int = 300, verbose: bool = False) -> Solution:
    """Run the named solver; warn if W is not proved optimal to `tol`."""
    if solver in ("fast", "irls"):
        solve = solve_fast if solver == "fast" else solve_irls
        return solve(problem, tol=tol, max_iter=max_iter, progress=bool(verbose))
    if solver != "exact":
        raise ValueError(f'solver must be "fast", "irls" or "exact", got {solver!r}')
    solution = solve_exact(problem, tol=tol)
    if solution.status not in ("optimal", "uncertified"):
        warnings.warn(f"{solution.solver}: {solution.message}", ConvergenceWarning, stacklevel=4)
    return solution


def _signs(decision: FloatArray) -> IntArray:
    return np.where(decision >= 0, 1, -1)
