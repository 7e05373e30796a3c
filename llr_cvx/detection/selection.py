"""Choose lambda without known outliers: how well does the fitted ratio classify held-out rows?

The density ratio is fitted as a classifier of "known inlier" against "unlabelled", so its likelihood on held-out
rows needs no other labels,

    loss = min over b of the mean over held-out rows of log(1 + exp(-y_i (log r(x_i) + b))),

with log r from the rule for unseen rows. The constant b is free because only score differences decide which rows
are outliers, and the model has no intercept with which to learn the sizes of the two samples; without b the loss
would reward memorising those sizes. Too little coupling memorises each row's own label, which says nothing about a
new row; too much leaves one linear model for all. The loss of W = 0 is the entropy of the class shares, the
`baseline`; if no lambda is clearly below it, the samples cannot be told apart better than by chance.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from scipy.special import expit
from sklearn.model_selection import StratifiedKFold

from llr_cvx import validation as check
from llr_cvx.arrays import FloatArray
from llr_cvx.detection.estimator import LLRDetector
from llr_cvx.detection.new_rows import FittedRows
from llr_cvx.solution import Solution
from llr_cvx.solvers.path import regularization_path

#: Default grid of lambda1: from independent rows to rows in a few groups.
LAMBDA1S = tuple(float(value) for value in np.geomspace(0.01, 3.0, 8))
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
        The grid; each fold and lambda2 follows a warm-started path over lambda1.
    cv : int
        Number of folds, stratified by y.
    one_standard_error : bool
        Take the largest lambda1 within one standard error of the lowest loss, instead of the one with the lowest
        loss: simpler reasons, shared by more rows, at a loss that is not measurably worse.
    random_state : int
        Seed of the folds.
    n_neighbors, sigma, threshold, contamination, fit_intercept, solver, tol, max_iter, verbose
        As in `LLRDetector`; `solver` is for the final fit, the grid is always solved by `solve_fast`.

    Attributes
    ----------
    lambda1_, lambda2_ : float
        The values chosen; the detector is refitted with them on all rows.
    curve_ : LambdaCurve
        The loss over the grid; `llr_cvx.report.plots.plot_lambda_curve` draws it.
    """

    def __init__(
        self,
        lambda1s: Sequence[float] = LAMBDA1S,
        lambda2s: Sequence[float] = (1.0,),
        cv: int = 5,
        one_standard_error: bool = False,
        random_state: int = 0,
        n_neighbors: int = 5,
        sigma: Any = "median",
        threshold: float | None = None,
        contamination: float | None = None,
        fit_intercept: bool = False,
        solver: Any = "fast",
        tol: float = 1e-8,
        max_iter: int = 300,
        verbose: bool = False,
    ) -> None:
        super().__init__(
            n_neighbors=n_neighbors,
            sigma=sigma,
            threshold=threshold,
            contamination=contamination,
            fit_intercept=fit_intercept,
            solver=solver,
            tol=tol,
            max_iter=max_iter,
            verbose=verbose,
        )
        del self.lambda1, self.lambda2  # chosen from the grids instead: lambda1_, lambda2_
        self.lambda1s = lambda1s
        self.lambda2s = lambda2s
        self.cv = cv
        self.one_standard_error = one_standard_error
        self.random_state = random_state

    def fit(
        self, X: ArrayLike, y: ArrayLike | None = None, progress: Callable[[str], None] | None = None
    ) -> LLRDetectorCV:
        """Choose the lambdas, then fit all rows; `progress`, if given, is called with status messages."""
        X, y = self._pooled(X, y)
        single = LLRDetector(
            n_neighbors=self.n_neighbors, sigma=self.sigma, fit_intercept=self.fit_intercept, tol=self.tol
        )
        self.curve_ = lambda_curve(
            single, X, y, self.lambda1s, self.lambda2s, self.cv, self.random_state, progress=progress
        )
        chosen = self.curve_.one_standard_error if self.one_standard_error else self.curve_.best
        self.lambda1_, self.lambda2_ = chosen
        self._fit_problem(self._problem(X, y, *chosen))
        return self


def lambda_curve(
    detector: LLRDetector,
    X: FloatArray,
    y: FloatArray,
    lambda1s: Sequence[float],
    lambda2s: Sequence[float],
    cv: int = 5,
    random_state: int = 0,
    progress: Callable[[str], None] | None = None,
) -> LambdaCurve:
    """Held-out loss over the grid, each fold on its own warm-started path; y holds +1 and -1."""
    grid1, grid2 = _grid(lambda1s, "lambda1s"), _grid(lambda2s, "lambda2s")
    folds = check.whole_number(cv, "cv", minimum=2)
    smaller = int(min(np.count_nonzero(y > 0), np.count_nonzero(y < 0)))
    if folds > smaller:
        raise ValueError(
            f"cv = {folds} needs at least {folds} rows of each class, but the smaller group has {smaller}: lower cv"
        )
    splits = StratifiedKFold(folds, shuffle=True, random_state=random_state).split(X, y)
    loss = np.empty((len(grid1), len(grid2), folds))
    for f, (train, held_out) in enumerate(splits):
        problem = detector._problem(X[train], y[train], float(grid1[0]), float(grid2[0]))
        for j, lambda2 in enumerate(grid2):
            if progress:
                progress(f"fold {f + 1} of {folds}, lambda2 = {lambda2:g}")
            path = regularization_path(problem, grid1, float(lambda2), tol=max(GRID_TOL, detector.tol))
            loss[:, j, f] = [held_out_loss(solution, X[held_out], y[held_out]) for solution in path]
    return LambdaCurve(grid1, grid2, loss, baseline=_loss(np.zeros(len(y)), y))


def held_out_loss(solution: Solution, X: FloatArray, y: FloatArray) -> float:
    """The loss defined above, on rows that were not fitted."""
    d = X.shape[1]
    W = FittedRows.of(solution, d).weights(X)
    return _loss(np.einsum("ij,ij->i", W[:, :d], X) + W[:, d:].sum(axis=1), y)


def _loss(z: FloatArray, y: FloatArray) -> float:
    """min_b mean log(1 + exp(-y (z + b))): at the optimal b, the mean probability of +1 equals its share.

    >>> round(_loss(np.zeros(4), np.array([1.0, 1.0, 1.0, -1.0])), 6)  # the entropy of (3/4, 1/4)
    0.562335
    """
    share = float(np.mean(y > 0))
    middle = float(np.log(share / (1.0 - share)))
    low, high = middle - z.max() - 1e-9, middle - z.min() + 1e-9
    b = brentq(lambda b: float(np.mean(expit(z + b))) - share, low, high, xtol=1e-12)
    return float(np.logaddexp(0.0, -y * (z + b)).mean())


def _grid(values: Sequence[float], name: str) -> FloatArray:
    grid = check.real_array(values, name, ndim=1)
    if not grid.size or np.any(grid < 0):
        raise ValueError(f"{name} must be a non-empty sequence of numbers >= 0, got {list(values)!r}")
    return grid
