"""Outlier detection with scikit-learn's interface."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, OutlierMixin, clone
from sklearn.utils import ClassifierTags, Tags, _safe_indexing, check_random_state
from sklearn.utils.validation import check_consistent_length, column_or_1d, validate_data

from llr_cvx import validation as check
from llr_cvx.arrays import FloatArray, IntArray
from llr_cvx.detection import calibration
from llr_cvx.detection.decision import Rule, decision_rule, far_out
from llr_cvx.detection.explanation import Explaining
from llr_cvx.detection.labels import MEANING_OF_Y, signs_of
from llr_cvx.detection.new_rows import FittedRows
from llr_cvx.detection.row_order import canonical_order, restored
from llr_cvx.detection.scoring import signs
from llr_cvx.detection.solving import solve_with
from llr_cvx.graph import IsolatedWarning, build_graph, warn_isolated
from llr_cvx.problem import Problem
from llr_cvx.solution import Solution

#: Chooses (lambda1, lambda2) for rows and their labels.
Choice = Callable[[FloatArray, FloatArray], tuple[float, float]]


class LLRDetector(Explaining, OutlierMixin, BaseEstimator):  # type: ignore[misc]
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
    fdr : float in (0, 1), optional
        Flag by calibrated p-values such that the expected share of false alarms among the flagged rows is at most
        this (Benjamini-Hochberg). Part of the known inliers is held out for it: see the notes.
    false_alarm : float in (0, 1), optional
        Flag each row with p at most this: the chance of flagging an inlier. Held out as for `fdr`.
    random_state : int, RandomState or None
        Which inliers are held out; no effect without `fdr` and `false_alarm`.
    scaler : transformer, optional
        Fitted in `fit` on the known inliers of the model, and applied to all rows, also to new ones. Unlike a scaler
        in a Pipeline, which sees the held-out inliers too, it keeps the p-values exact. With a `TableEncoder`, X is a
        DataFrame of numbers, booleans, dates and categories; contributions are then summed to its columns.
    graph_columns : sequence of int or str, optional
        Columns of X, by position or name, that say which rows are similar; by default all of them.
    fit_intercept : bool
        Append a constant feature 1, penalised like any other.
    solver : "fast", "irls" or "exact"
        `solve_fast`, `solve_irls`, or `solve_exact`, a conic solver for the same model.
    new_rows : "join", "weber" or None
        How rows that were not fitted are scored: "join" as unlabelled rows of the model, see Notes; "weber", for
        comparison, by the point with the smallest weighted distance to the weight vectors of its neighbours. None: not
        at all, which saves the second fit of `fdr` and `false_alarm`.
    tol : float
        Relative duality gap to prove.
    max_iter : int
        Iteration limit of "fast" and "irls"; reaching it issues a `ConvergenceWarning`.
    verbose : bool or callable
        Print one line per iteration of "fast" and "irls" to standard error, or call this with each `Step`.

    Attributes
    ----------
    coef_ : array of shape (n_samples, n_features)
        One weight vector per row, in the order given to `fit`; a zero weight means that the feature plays no part
        in that row's score. With a `TableEncoder` there is one column per encoded column.
    intercept_ : array of shape (n_samples,) or 0.0
    log_ratio_ : array of shape (n_samples,)
        log r of the fitted rows.
    offset_, fitted_offset_ : float
        decision_function = score_samples - offset_. Fitted rows are outliers below `fitted_offset_`, which is the
        same unless calibrated.
    pvalues_ : array of shape (n_samples,)
        p-values of the unlabelled rows, NaN for known inliers; only with `fdr` or `false_alarm`.
    calibration_rows_ : array of int
        The known inliers that were held out; empty without `fdr` and `false_alarm`.
    solution_ : Solution
        The solver's result, with the certificate that bounds every score.
    joined_solution_ : Solution
        The fit that new rows join: `solution_`, unless calibrated with `new_rows` given.
    scaler_ : transformer or None
    suspicious_inliers_ : array of int
        Known inliers that do not look like the others, the most suspicious first: worth a second look, since
        outliers among the known inliers hide others.
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

    **p-values.** With `fdr` or `false_alarm`, `calibration_rows_` (two thirds of the known inliers; half, if there are
    up to 60) join the fit as unlabelled rows, and `coef_`, `log_ratio_` and all else about fitted rows belong to that
    fit. p_j = (1 + #{calibration rows with log r <= log r_j}) / (m + 1) is at most a with probability at most a for
    every inlier j and every a, whatever the parameters, if the known inliers and the inliers to be checked are drawn
    alike (exchangeable); and the expected share of inliers among the flagged rows is at most `fdr`. A new row joins a
    second fit, `joined_solution_`, without the calibration rows, which are scored as new rows for it: `pvalues(X)` is
    valid for each new row on its own. `predict` flags new rows with p at most `false_alarm` or `fdr`. docs/detect.md
    says more.

    **Fitted and unseen rows.** Fitted scores are transductive: all rows are solved together. An unseen row joins the
    fitted model as what it is, an unlabelled row: its weight vector minimises
    log(1 + e^{w.x}) + lambda1 sum_j r(x, x_j) ||w - w_j||_2 + lambda2 ||w||_1^2 over its K nearest fitted rows, whose
    w_j stay as they are (in a fit, an edge would also count r(x_j, x) where the row is among the K nearest of x_j;
    that would change the neighbours' own lists, so it is left out). The answer is proved to a relative gap of 1e-9
    (`join(X).relative_gap`) and does not depend on the other new rows, to the last bit. A row equal to a fitted one
    gets that row's own score (if equal to several, that of the first unlabelled one), so the score may jump there.
    lambda2 = 0 is refused: far from the data such a row would have no optimum.

    **Dask.** `score_samples`, `pvalues`, `decision_function`, `predict`, `explain` and `feature_ranking` also take Dask
    arrays and DataFrames, and answer lazily, partition by partition (`llr_cvx.detection.partitions`).

    **No scaling** is done unless `scaler` is given. With p-values, give it there: one in a Pipeline sees the held-out
    inliers. Explanations are easiest to read if features are centred on the inliers, since the model has no intercept
    by default.

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
        fdr: float | None = None,
        false_alarm: float | None = None,
        random_state: Any = None,
        contamination: float | None = None,
        scaler: Any = None,
        graph_columns: Sequence[int | str] | None = None,
        fit_intercept: bool = False,
        solver: Literal["fast", "irls", "exact"] = "fast",
        new_rows: Literal["join", "weber"] | None = "join",
        tol: float = 1e-8,
        max_iter: int = 300,
        verbose: bool | Callable[[Any], object] = False,
    ) -> None:
        self.lambda1 = lambda1
        self.lambda2 = lambda2
        self.n_neighbors = n_neighbors
        self.sigma = sigma
        self.threshold = threshold
        self.fdr = fdr
        self.false_alarm = false_alarm
        self.random_state = random_state
        self.contamination = contamination
        self.scaler = scaler
        self.graph_columns = graph_columns
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.new_rows = new_rows
        self.tol = tol
        self.max_iter = max_iter
        self.verbose = verbose

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.classifier_tags = ClassifierTags(multi_class=False)  # y is binary
        return tags

    def fit(self, X: ArrayLike, y: ArrayLike | None = None) -> Self:
        """Fit the pooled rows X.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Known inliers and rows to be checked, in any order.
        y : array-like of shape (n_samples,)
            +1 for a known inlier, -1 for an unlabelled row (1 and 0, True and False, mean the same).
        """
        return self._fit(*self._pooled(X, y), choose=lambda X, y: (self.lambda1, self.lambda2))

    def fit_predict(self, X: ArrayLike, y: ArrayLike | None = None, **kwargs: Any) -> IntArray:
        """Fit, then label each fitted row +1 (inlier) or -1 (outlier) by its own score."""
        self.fit(X, y, **kwargs)
        return signs(self.log_ratio_ - self.fitted_offset_)

    def _pooled(self, X: ArrayLike, y: ArrayLike | None) -> tuple[FloatArray, FloatArray]:
        if y is None:
            name = type(self).__name__
            raise ValueError(f"{name} requires y to be passed, but the target y is None: {MEANING_OF_Y}")
        if self._takes_tables:
            validate_data(self, X, skip_check_array=True)
            check_consistent_length(X, y)
            return X, signs_of(column_or_1d(y))  # type: ignore[return-value]
        pooled, target = validate_data(self, X, y, dtype=np.float64, ensure_min_samples=2)
        return pooled, signs_of(target)

    def _fit(self, X: FloatArray, y: FloatArray, choose: Choice) -> Self:
        rule = decision_rule(
            threshold=self.threshold, contamination=self.contamination, fdr=self.fdr, false_alarm=self.false_alarm
        )
        rng = check_random_state(self.random_state)
        held = np.empty(0, dtype=np.int64)
        if rule.calibrated:
            held = calibration.hold_out(np.flatnonzero(y > 0), rule.value, rule.name, rng)
        labels = y.copy()
        labels[held] = -1.0
        self.calibration_rows_, self._checked = held, y < 0
        self.scaler_ = None if self.scaler is None else clone(self.scaler).fit(_safe_indexing(X, labels > 0))
        self._owner = getattr(self.scaler_, "owner_", np.arange(self.n_features_in_))
        X = self._scaled(X)
        if not held.size:
            self.solution_ = self.joined_solution_ = self._solve(X, y, choose)
        else:
            self.solution_ = self.joined_solution_ = self._solve_in_canonical_order(X, labels, choose, rng)
        if held.size and self.new_rows is not None:
            others = np.delete(np.arange(len(X)), held)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", IsolatedWarning)  # said by the first fit, with the rows' own numbers
                self.joined_solution_ = self._solve(X[others], y[others], choose)
        self._adopt(self.solution_, X[held], rule)
        return self

    def _solve(self, X: FloatArray, y: FloatArray, choose: Choice) -> Solution:
        return solve_with(self.solver, self._problem(X, y, *choose(X, y)), self.tol, self.max_iter, self.verbose)

    def _solve_in_canonical_order(
        self, X: FloatArray, y: FloatArray, choose: Choice, rng: np.random.RandomState
    ) -> Solution:
        """Without a trace of which unlabelled rows are held-out inliers, in graph, choice of lambda and rounding."""
        order = canonical_order(X, y, rng)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", IsolatedWarning)  # it would number the rows in that order
            solution = restored(self._solve(X[order], y[order], choose), order)
        warn_isolated(solution.problem.graph, solution.problem.sigma or np.nan)
        return solution

    def _problem(self, X: FloatArray, y: FloatArray, lambda1: float, lambda2: float) -> Problem:
        K = check.whole_number(self.n_neighbors, "n_neighbors")
        if K >= len(X):
            warnings.warn(f"n_neighbors = {K} is lowered to {len(X) - 1}: there are {len(X)} rows", stacklevel=5)
            K = len(X) - 1
        graph = build_graph(X[:, self._graph_columns(X.shape[1])], K, self.sigma)
        return Problem(
            *(self._with_constant(X), y, graph.edges, graph.weights),
            lambda1=lambda1,
            lambda2=lambda2,
            sigma=graph.sigma,
            n_neighbors=graph.n_neighbors,
        )

    def _adopt(self, solution: Solution, X_held: FloatArray, rule: Rule) -> None:
        """Set the fitted attributes, given the fit and the scaled calibration rows."""
        problem = solution.problem
        self.sigma_, self.n_neighbors_ = problem.sigma, problem.n_neighbors
        d, W = len(self._owner), solution.W
        self.coef_ = W[:, :d]
        self.intercept_ = W[:, d] if self.fit_intercept else 0.0
        self.log_ratio_ = problem.base + self._contributions(None).sum(axis=1)
        self.n_iter_ = solution.n_iter
        self.suspicious_inliers_ = self._suspicious(problem.y)
        self._rows = None
        if self.new_rows is not None:
            self._rows = FittedRows(self.joined_solution_, self._graph_columns(d), self.new_rows)
        if not rule.calibrated:
            self.offset_ = self.fitted_offset_ = rule.offset(self.log_ratio_[problem.y < 0])
            return
        held, level = self.log_ratio_[self.calibration_rows_], rule.value
        pvalues = calibration.conformal_pvalues(self.log_ratio_, held)
        self._pvalues = np.where(self._checked, pvalues, np.nan)
        reached = calibration.bh_level(pvalues[self._checked], level) if rule.name == "fdr" else level
        self.fitted_offset_ = calibration.score_offset(held, reached)
        self._calibration_scores = np.empty(0) if self.new_rows is None else self._score(X_held)
        self.offset_ = calibration.score_offset(self._calibration_scores, level)

    def _suspicious(self, labels: FloatArray) -> IntArray:
        """Known inliers on which their own label has an unusually strong effect, since few others are near.

        That effect, y_i w_i.x_i, is compared within the model rows (+1) and within the calibration rows (-1).
        """
        effect = labels * self._contributions(None).sum(axis=1)
        groups = [np.flatnonzero(~self._checked & (labels == sign)) for sign in (1.0, -1.0)]
        found = np.concatenate([rows[far_out(effect[rows])] for rows in groups])
        return np.asarray(found[np.argsort(-effect[found], kind="stable")])
