"""The value of one feature of one row beside those of the known inliers, in the units of the table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from llr_cvx.arrays import BoolArray, FloatArray
from llr_cvx.detection.encoding import kind_of, levels_of, numbers_of
from llr_cvx.detection.partitions import is_pandas

#: Quantiles of the inliers that bound the typical range of a feature; a level seen in less than the first is unusual.
TYPICAL_QUANTILES = (0.05, 0.95)


@dataclass(frozen=True)
class FeatureValue:
    """The value of one feature of one row, beside what is typical.

    Attributes
    ----------
    feature, column : str, int
    value : float or str
        The row's value, in the units shown; a date as text, "missing" if there is none.
    typical : (float, float) or (str, str) or None
        5 % and 95 % quantiles of the known inliers; None for categories and booleans.
    shares : (float, float, float)
        Shares of the known inliers with a smaller value, the same and a larger one; a category is equal or not.
    """

    feature: str
    column: int
    value: float | str
    typical: tuple[Any, Any] | None
    shares: tuple[float, float, float] = (0.0, 0.0, 0.0)

    @property
    def shown(self) -> str:
        """The value as text."""
        return f"{self.value:.4g}" if isinstance(self.value, float) else self.value

    @property
    def position(self) -> str:
        """Whether the value is "below", "above" or "within" the typical range, or "seldom" seen."""
        if self.typical is None or self.value == "missing":
            return "seldom" if self.shares[1] < TYPICAL_QUANTILES[0] else "within"
        low, high = self.typical
        return "below" if self.value < low else "above" if self.value > high else "within"

    @property
    def place(self) -> str:
        """`position` in words, with the range and its quantiles."""
        if self.typical is None or self.value == "missing":
            return f"seen in {percent(self.shares[1])} of the inliers"
        ends = " to ".join(f"{end:.4g}" if isinstance(end, float) else end for end in self.typical)
        share = " to ".join(f"{100 * quantile:g} %" for quantile in TYPICAL_QUANTILES)
        return f"{self.position} the inliers' {share} range ({ends})"

    @property
    def rank(self) -> str:
        """The place among the inliers as a share of them: "above 99.9 % of the inliers"."""
        below, _, above = self.shares
        if self.typical is None or self.value == "missing":
            return self.place
        side, share = ("above", below) if below >= above else ("below", above)
        return f"{side} {percent(share)} of the inliers"


def percent(share: float) -> str:
    """A share in percent; neither 0 nor 100 unless it is.

    >>> [percent(share) for share in (0.0, 0.0004, 0.25, 0.9996, 1.0)]
    ['0 %', '0.04 %', '25 %', '99.9 %', '100 %']
    """
    value = 100 * share
    if 0 < value < 1 or 99 < value < 100:
        return f"{value:.1g} %" if value < 1 else f"{np.floor(10 * value) / 10:.1f} %"
    return f"{value:.0f} %"


@dataclass(frozen=True, eq=False)
class Column:
    """A feature of all rows: its values to show, as numbers where they have an order, and their place among inliers."""

    name: str
    place: int
    values: Any
    order: FloatArray | None
    shares: FloatArray
    typical: tuple[Any, Any] | None

    def about(self, i: int) -> dict[str, Any]:
        """The fields of `FeatureValue` for row i."""
        value = self.values[i] if isinstance(self.values[i], str) else float(self.values[i])
        about = {"feature": self.name, "column": self.place, "value": value, "typical": self.typical}
        return about | {"shares": tuple(self.shares[:, i].tolist())}


def describe(values: Any, names: Sequence[str], known: BoolArray) -> list[Column]:
    """The columns of an array or a DataFrame, `known` marking the inliers; more names than columns are constants."""
    columns = []
    for k, name in enumerate(names):
        if k >= values.shape[1]:  # an intercept
            columns.append(_number(name, k, np.ones(len(known)), known))
        elif not is_pandas(values):
            columns.append(_number(name, k, np.asarray(values[:, k], dtype=float), known))
        elif (kind := kind_of(values.iloc[:, k])) in ("number", "date"):
            columns.append(_number(name, k, numbers_of(values.iloc[:, k], kind), known, kind == "date"))
        else:
            levels = levels_of(values.iloc[:, k]).fillna("missing").to_numpy(dtype=object)
            level, place = np.unique(levels.astype(str), return_inverse=True)
            share = np.bincount(place[known], minlength=len(level)) / max(known.sum(), 1)
            columns.append(Column(name, k, levels, None, share[place] * [[0.0], [1.0], [0.0]], None))
    return columns


def _number(name: str, k: int, order: FloatArray, known: BoolArray, date: bool = False) -> Column:
    gone = np.isnan(order)
    inliers = np.sort(order[known & ~gone])
    below, upto = (np.searchsorted(inliers, order, side) / max(len(inliers), 1) for side in ("left", "right"))
    same = np.where(gone, np.mean(gone[known]), upto - below)
    typical: Any = np.quantile(inliers, TYPICAL_QUANTILES) if len(inliers) else np.zeros(2)
    values: Any = order
    if date:
        values, typical = _dates(order), _dates(np.rint(typical) if np.all(inliers % 1 == 0) else typical)
    if gone.any():
        values = np.where(gone, "missing", np.asarray(values, dtype=object))
    return Column(name, k, values, order, np.array([below, same, 1.0 - upto]), tuple(typical.tolist()))


def _dates(days: FloatArray) -> Any:
    """Days since 1970 as text: the day, with the time if it is not midnight."""
    moments = (np.nan_to_num(days) * 86_400).round().astype("datetime64[s]").astype(str)
    return np.array([moment.removesuffix("T00:00:00").replace("T", " ") for moment in moments], dtype=object)
