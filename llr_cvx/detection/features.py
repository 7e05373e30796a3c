"""The features of rows: their values beside those of the known inliers, and their parts in the scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from llr_cvx.arrays import BoolArray, FloatArray, IntArray
from llr_cvx.detection.encoding import by_owner, kind_of, levels_of, values_of
from llr_cvx.detection.partitions import is_pandas
from llr_cvx.detection.ranking import selected_features, selection_distance
from llr_cvx.solution import Solution

#: Quantiles of the inliers that bound the typical range of a feature; a level seen in less than the first is unusual.
TYPICAL_QUANTILES = (0.05, 0.95)
TYPICAL_RANGE = " to ".join(f"{100 * quantile:g} %" for quantile in TYPICAL_QUANTILES)


@dataclass(frozen=True)
class FeatureValue:
    """One feature of one row, beside what is typical; a reason for its score if it is selected, that is, has a weight.

    Attributes
    ----------
    feature, column : str, int
    value : float or str
        In the units shown; a date as text, "missing" if there is none.
    typical : (float, float) or (str, str) or None
        5 % and 95 % quantiles of the known inliers; None for categories and booleans, and where the value is missing.
    shares : (float, float, float)
        Shares of the known inliers with a smaller value, the same and a larger one; a category is equal or not.
    contribution : float
        w_ik x_ik, summed over the columns that encode the feature: negative pushes the row towards "outlier".
    distance : float or None
        None if selected; else 1 - |v_ik| / ||v_i||_inf, for weights are only where the dual vector v_i attains its
        largest entry: 0 on the verge of selection, 1 for a feature with no effect.
    """

    feature: str
    column: int
    value: float | str
    typical: tuple[Any, Any] | None
    shares: tuple[float, float, float] = (0.0, 0.0, 0.0)
    contribution: float = 0.0
    distance: float | None = None

    @property
    def shown(self) -> str:
        """The value as text."""
        return _shown(self.value)

    @property
    def position(self) -> str:
        """Whether the value is "below", "above" or "within" the typical range, or "seldom" seen."""
        if self.typical is None:
            return "seldom" if self.shares[1] < TYPICAL_QUANTILES[0] else "within"
        low, high = self.typical
        return "below" if self.value < low else "above" if self.value > high else "within"

    @property
    def place(self) -> str:
        """`position` in words, with the range and its quantiles."""
        if self.typical is None:
            return f"seen in {percent(self.shares[1])} of the inliers"
        return f"{self.position} the inliers' {TYPICAL_RANGE} range ({' to '.join(map(_shown, self.typical))})"

    @property
    def rank(self) -> str:
        """The place among the inliers as a share of them: "above 99.9 % of the inliers"."""
        below, _, above = self.shares
        if self.typical is None:
            return self.place
        return f"above {percent(below)} of the inliers" if below >= above else f"below {percent(above)} of the inliers"

    def __str__(self) -> str:
        part = f"contributes {self.contribution:+.3g}"
        if self.distance is not None:
            part = f"{100 * self.distance:.3g} % short of selection"
        return f"{self.feature} = {self.shown}, {self.place}, {part}"


def _shown(value: Any) -> str:
    """Four digits, and all before the point."""
    if isinstance(value, float):
        return f"{value:.0f}" if 1e4 <= abs(value) < 1e9 else f"{value:.4g}"
    return str(value)


def percent(share: float) -> str:
    """A share in percent; neither 0 nor 100 unless it is.

    >>> [percent(share) for share in (0.0, 0.0004, 0.25, 0.9996, 1.0)]
    ['0 %', '0.04 %', '25 %', '99.9 %', '100 %']
    """
    value = 100 * share
    if 0 < value < 1:
        return f"{value:.1g} %"
    return f"{np.floor(10 * value) / 10:.1f} %" if 99 < value < 100 else f"{value:.0f} %"


@dataclass(frozen=True, eq=False)
class Column:
    """A feature of all rows: its values to show, as numbers or by falling frequency, and their place among inliers."""

    name: str
    values: Any
    order: FloatArray
    shares: FloatArray
    typical: tuple[Any, Any] | None

    def of(self, i: int, **part: Any) -> FeatureValue:
        """The feature of row i, with its column and its part in the score."""
        value = self.values.item(i)
        typical = None if value == "missing" else self.typical
        return FeatureValue(self.name, value=value, typical=typical, shares=tuple(self.shares[:, i].tolist()), **part)


def describe(values: Any, names: Sequence[str], known: BoolArray) -> list[Column]:
    """The columns of an array or a DataFrame, `known` marking the inliers; more names than columns are constants."""
    columns = []
    for k, name in enumerate(names):
        if k >= values.shape[1]:  # an intercept
            columns.append(_number(name, np.ones(len(known)), known))
        elif not is_pandas(values):
            columns.append(_number(name, values[:, k], known))
        elif (kind := kind_of(values.iloc[:, k][known])) in ("number", "date"):
            columns.append(_number(name, values_of(values.iloc[:, k], kind), known, kind == "date"))
        else:
            levels = levels_of(values.iloc[:, k]).fillna("missing")
            levels = levels.replace({"1": "True", "0": "False"}) if kind == "boolean" else levels
            share = levels[known].value_counts(normalize=True)
            place = share.index.get_indexer(levels) % (len(share) + 1)  # -1, where no inlier has it, becomes the last
            shares = np.append(share, 0.0)[place] * [[0.0], [1.0], [0.0]]
            columns.append(Column(name, levels.to_numpy(object), place, shares, None))
    return columns


def _number(name: str, numbers: Any, known: BoolArray, date: bool = False) -> Column:
    order = np.asarray(numbers, dtype=float)
    gone = np.isnan(order)
    inliers = np.sort(order[known & ~gone])
    below, upto = (np.searchsorted(inliers, order, side) / len(inliers) for side in ("left", "right"))
    same = np.where(gone, np.mean(gone[known]), upto - below)
    values: Any = order
    typical: Any = np.quantile(inliers, TYPICAL_QUANTILES)
    if date:
        values, typical = _dates(order), _dates(np.rint(typical) if np.all(inliers % 1 == 0) else typical)
    if gone.any():
        values = np.where(gone, "missing", values.astype(object))
    return Column(name, values, order, np.array([below, same, 1.0 - upto]), tuple(typical.tolist()))


def _dates(days: FloatArray) -> Any:
    """Days since 1970 as text: the day, with the time if it is not midnight."""
    moments = (np.nan_to_num(days) * 86_400).round().astype("datetime64[s]").astype(str)
    return np.array([moment.removesuffix("T00:00:00").replace("T", " ") for moment in moments], dtype=object)


class Features:
    """The features of the fitted rows: `columns` to show, to which the columns of the problem's X belong by `owner`."""

    def __init__(self, solution: Solution, columns: list[Column], owner: IntArray) -> None:
        X, d = solution.problem.X, len(columns)
        self.solution, self.columns = solution, columns
        self.contribution = by_owner(solution.W * X, owner, d)
        self.selected = by_owner(selected_features(X, solution.W, X), owner, d, np.logical_or)
        V = solution.problem.dual_vectors(solution.certificate.alpha, solution.certificate.U)
        self.distance = by_owner(selection_distance(V), owner, d, np.fmin)

    def reasons(self, i: int) -> tuple[FeatureValue, ...]:
        """Selected features of row i, strongest push towards "outlier" first."""
        push = self.contribution[i]
        order = [k for k in np.argsort(push, kind="stable").tolist() if self.selected[i, k]]
        return tuple(self.columns[k].of(i, column=k, contribution=float(push[k])) for k in order)

    def unselected(self, i: int) -> tuple[FeatureValue, ...]:
        """The other features of row i, closest to selection first, but for those that the model leaves out."""
        away, others = self.distance[i], ~self.selected[i] & np.isfinite(self.distance[i])
        order = [k for k in np.argsort(away, kind="stable").tolist() if others[k]]
        return tuple(self.columns[k].of(i, column=k, distance=float(away[k])) for k in order)
