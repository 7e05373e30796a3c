"""Choose lambda without known outliers: how well does the fitted ratio classify held-out rows?

The density ratio is fitted as a classifier of "known inlier" against "unlabelled", so its likelihood on held-out
rows (`llr_cvx.detection.likelihood`), scored by the rule for unseen rows, needs no other labels. Too little coupling
memorises each row's own label, which says nothing about a new row; too much leaves one linear model for all. The loss
of W = 0 is the entropy of the class shares, the `baseline`; if no lambda is clearly below it, the samples cannot be
told apart better than by chance.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from numpy.typing import ArrayLike
from sklearn.model_selection import StratifiedKFold

from llr_cvx import validation as check
from llr_cvx.arrays import FloatArray, IntArray
from llr_cvx.detection.estimator import LLRDetector
from llr_cvx.detection.likelihood import held_out_loss, logistic_loss
from llr_cvx.problem import Problem
from llr_cvx.solvers.path import regularization_path

#: Default grids. lambda1: from nearly independent rows to rows in a few groups; lambda2: the paper's, and less.
LAMBDA1S = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
LAMBDA2S = (0.01, 0.1, 1.0)
#: Relative gap to which the grid is solved; the variation between folds is far larger.
GRID_TOL = 1e-4


@dataclass(frozen=True, eq=False)
class LambdaCurve:
    """Held-out loss over a grid of lambdas.

    Attributes
    ----------
    lambda1s, lambda2s : arrays of shape (n1,) and (n2,)
    fold_loss : array of shape (n1, n2, folds)
        Mean logistic loss of each fold's held-out rows.
    baseline : float
        The loss of W = 0.
    """

    lambda1s: FloatArray
    lambda2s: FloatArray
    fold_loss: FloatArray
    baseline: float

    @property
    def loss(self) -> FloatArray:
        """Mean over the folds, shape (n1, n2)."""
        return np.asarray(self.fold_loss.mean(axis=2))

    @property
    def standard_error(self) -> FloatArray:
        """Standard error of `loss` over the folds."""
        folds = self.fold_loss.shape[2]
        return np.asarray(self.fold_loss.std(axis=2, ddof=1) / np.sqrt(folds))

    @property
    def best(self) -> tuple[float, float]:
        """(lambda1, lambda2) with the lowest loss."""
        i, j = self._lowest()
        return float(self.lambda1s[i]), float(self.lambda2s[j])

    @property
    def one_standard_error(self) -> tuple[float, float]:
        """The largest lambda1 whose loss is within one standard error of the lowest, at the same lambda2."""
        i, j = self._lowest()
        close = self.loss[:, j] <= self.loss[i, j] + self.standard_error[i, j]
        return float(self.lambda1s[close].max()), float(self.lambda2s[j])

    @property
    def informative(self) -> bool:
        """Whether the lowest loss is more than one standard error below that of W = 0."""
        i, j = self._lowest()
        return bool(self.loss[i, j] + self.standard_error[i, j] < self.baseline)

    def reason(self, lambda1: float, lambda2: float) -> str:
        """What was chosen, from which grid and why, in words."""
        folds = self.fold_loss.shape[2]
        i, j = (int(np.argmax(grid == v)) for grid, v in ((self.lambda1s, lambda1), (self.lambda2s, lambda2)))
        rule = "the lowest loss on held-out rows"
        if (lambda1, lambda2) != self.best:
            rule = "the strongest coupling whose loss on held-out rows is within one standard error of the lowest"
        grids = [(self.lambda1s, "lambda1"), (self.lambda2s, "lambda2")]
        tried = [f"{len(g)} values of {name} from {g.min():.3g} to {g.max():.3g}" for g, name in grids if len(g) > 1]
        text = (
            f"chosen lambda1 = {lambda1:.3g}, lambda2 = {lambda2:.3g} out of {' and '.join(tried) or 'one value'}: "
            f"{rule} over {folds} folds, {self.loss[i, j]:.4f} +- {self.standard_error[i, j]:.4f} "
            f"(W = 0 gives {self.baseline:.4f})"
        )
        if len(self.lambda1s) > 1 and lambda1 in (self.lambda1s.min(), self.lambda1s.max()):
            text += "; this is at the end of the grid, so values beyond it may be better"
        return text

    def as_dict(self) -> dict[str, Any]:
        """The curve as plain values for JSON."""
        return {
            "lambda1s": self.lambda1s.tolist(),
            "lambda2s": self.lambda2s.tolist(),
            "loss": self.loss.tolist(),
            "standard_error": self.standard_error.tolist(),
            "nothing_learned": self.baseline,
            "folds": self.fold_loss.shape[2],
        }

    def _lowest(self) -> tuple[int, int]:
        i, j = np.unravel_index(np.argmin(self.loss), self.loss.shape)
        return int(i), int(j)

    def __str__(self) -> str:
        rows = [
            f"  {l1:10.4g} {l2:10.4g} {self.loss[i, j]:10.5f} +- {self.standard_error[i, j]:.5f}"
            for j, l2 in enumerate(self.lambda2s)
            for i, l1 in enumerate(self.lambda1s)
        ]
        head = f"     lambda1    lambda2       loss    (W = 0: {self.baseline:.5f})"
        return "\n".join([head, *rows])


class LLRDetectorCV(LLRDetector):
    """`LLRDetector` with lambda1 and lambda2 chosen by cross-validated likelihood.

    Parameters
    ----------
    lambda1s, lambda2s : sequences of float
        The grid, by default 0.01 to 10 and 0.01 to 1; each fold and lambda2 follows a warm-started path over lambda1.
    cv : int
        Number of folds, stratified by y.
    one_standard_error : bool
        Take the largest lambda1 within one standard error of the lowest loss, instead of the one with the lowest
        loss: simpler reasons, shared by more rows, at a loss that is not measurably worse.
    random_state : int, RandomState or None
        Seed of the folds, and of the inliers held out for p-values.
    n_neighbors, sigma, threshold, fdr, false_alarm, contamination, scaler, graph_columns, fit_intercept, solver, \
new_rows, tol, max_iter, verbose
        As in `LLRDetector`; `solver` is for the final fit, the grid is always solved by `solve_fast`.

    Attributes
    ----------
    lambda1_, lambda2_ : float
        The values chosen; the detector is refitted with them on all rows.
    curve_ : LambdaCurve
        The loss over the grid; `llr_cvx.report.plots.plot_lambda_curve` draws it.

    Notes
    -----
    **What the loss can see.** It asks whether unlabelled rows as a whole can be told from inliers. A few outliers
    among many unlabelled rows hardly change it; the curve is then flat, `curve_.informative` is False, and the lambdas
    chosen mean little. This does not say that there are no outliers: take a named setting
    (`llr_cvx.detection.settings`) and look at the p-values instead.

    **p-values stay valid**: the choice is made once with the calibration rows among the unlabelled ones, without
    knowing which they are, and once without them for the fit that new rows join.

    Examples
    --------
    >>> from llr_cvx import make_synthetic
    >>> X_inlier, X_test, _ = make_synthetic(d=3, n_inlier=40, n_test_inlier=10, n_outlier=10)
    >>> X, y = np.vstack([X_inlier, X_test]), np.repeat([1, -1], [40, 20])
    >>> detector = LLRDetectorCV(lambda1s=[0.01, 0.1, 1.0], lambda2s=[1.0], cv=3).fit(X, y)
    >>> detector.lambda1_ in (0.01, 0.1, 1.0), detector.curve_.informative
    (True, True)
    """

    lambda1_: float
    lambda2_: float
    curve_: LambdaCurve

    def __init__(
        self,
        lambda1s: Sequence[float] = LAMBDA1S,
        lambda2s: Sequence[float] = LAMBDA2S,
        cv: int = 5,
        one_standard_error: bool = False,
        random_state: Any = 0,
        n_neighbors: int = 5,
        sigma: Any = "median",
        threshold: float | None = None,
        fdr: float | None = None,
        false_alarm: float | None = None,
        contamination: float | None = None,
        scaler: Any = None,
        graph_columns: Sequence[int | str] | None = None,
        fit_intercept: bool = False,
        solver: Any = "fast",
        new_rows: Any = "join",
        tol: float = 1e-8,
        max_iter: int = 300,
        verbose: bool | Callable[[Any], object] = False,
    ) -> None:
        super().__init__(
            n_neighbors=n_neighbors,
            sigma=sigma,
            threshold=threshold,
            fdr=fdr,
            false_alarm=false_alarm,
            random_state=random_state,
            contamination=contamination,
            scaler=scaler,
            graph_columns=graph_columns,
            fit_intercept=fit_intercept,
            solver=solver,
            new_rows=new_rows,
            tol=tol,
            max_iter=max_iter,
            verbose=verbose,
        )
        del self.lambda1, self.lambda2  # chosen from the grids instead: lambda1_, lambda2_
        self.lambda1s = lambda1s
        self.lambda2s = lambda2s
        self.cv = cv
        self.one_standard_error = one_standard_error

    def fit(self, X: ArrayLike, y: ArrayLike | None = None, progress: Callable[[str], None] | None = None) -> Self:
        """Choose the lambdas, then fit all rows; `progress`, if given, is called with status messages."""
        curves: list[LambdaCurve] = []

        def choose(X: FloatArray, y: FloatArray) -> tuple[float, float]:
            curve = lambda_curve(self, X, y, self.lambda1s, self.lambda2s, self.cv, self.random_state, progress)
            curves.append(curve)
            return curve.one_standard_error if self.one_standard_error else curve.best

        self._fit(*self._pooled(X, y), choose=choose)
        self.curve_ = curves[0]
        self.lambda1_, self.lambda2_ = self.solution_.problem.lambda1, self.solution_.problem.lambda2
        return self


def lambda_curve(
    detector: LLRDetector,
    X: FloatArray,
    y: FloatArray,
    lambda1s: Sequence[float],
    lambda2s: Sequence[float],
    cv: int = 5,
    random_state: Any = 0,
    progress: Callable[[str], None] | None = None,
) -> LambdaCurve:
    """Held-out loss over the grid, each fold on its own warm-started path; y holds +1 and -1.

    The paths run one after another, or wherever `joblib.parallel_config` sends them.
    """
    grid1, grid2 = _grid(lambda1s, "lambda1s"), _grid(lambda2s, "lambda2s")
    folds = check.whole_number(cv, "cv", minimum=2)
    smaller = int(min(np.count_nonzero(y > 0), np.count_nonzero(y < 0)))
    if folds > smaller:
        raise ValueError(
            f"cv = {folds} needs at least {folds} rows of each class, but the smaller group has {smaller}: lower cv"
        )
    columns = detector._graph_columns(X.shape[1])

    def paths() -> Iterator[Any]:
        splits = StratifiedKFold(folds, shuffle=True, random_state=random_state).split(X, y)
        for f, (train, held_out) in enumerate(splits):
            problem = detector._problem(X[train], y[train], float(grid1[0]), float(grid2[0]))
            rows = detector._with_constant(X[held_out]), y[held_out], columns
            for lambda2 in grid2.tolist():
                if progress:
                    progress(f"fold {f + 1} of {folds}, lambda2 = {lambda2:g}")
                yield delayed(_path_losses)(problem, grid1, lambda2, max(GRID_TOL, detector.tol), *rows)

    # A list, unless the paths run one by one: Dask's backend would build the problems in its event loop.
    tasks = paths() if effective_n_jobs() == 1 else list(paths())
    loss = np.reshape(Parallel(pre_dispatch="all")(tasks), (folds, len(grid2), len(grid1))).T
    return LambdaCurve(grid1, grid2, loss, baseline=logistic_loss(np.zeros(len(y)), y))


def _path_losses(
    problem: Problem, lambda1s: FloatArray, lambda2: float, tol: float, X: FloatArray, y: FloatArray, columns: IntArray
) -> list[float]:
    """The held-out losses along one path: the unit of work that joblib distributes."""
    path = regularization_path(problem, lambda1s, lambda2, tol=tol)
    return [held_out_loss(solution, X, y, columns) for solution in path]


def _grid(values: Sequence[float], name: str) -> FloatArray:
    grid = check.real_array(values, name, ndim=1)
    if not grid.size or np.any(grid < 0):
        raise ValueError(f"{name} must be a non-empty sequence of numbers >= 0, got {list(values)!r}")
    return grid
