"""Turn a table of numbers, booleans, dates and categories into numbers, as the known inliers say how."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, Literal

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.compose import ColumnTransformer
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.preprocessing import OneHotEncoder
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from llr_cvx.arrays import FloatArray, IntArray
from llr_cvx.detection.labels import known_inliers
from llr_cvx.extras import needed
from llr_cvx.text import is_number

#: What a category that no fitted row has, a missing one, and those that share a level, are called.
UNSEEN, ABSENT, RARE = "(not seen)", "(missing)", "(rare)"
#: The most levels of a category that the fitted rows have; the rarest of more share one.
MAX_LEVELS = 30
#: Text names the rows if it has more than this many levels, and more than half of the rows have one of their own.
MAX_FEW_NAMES = 10

Kind = Literal["number", "boolean", "date", "category", "empty"]


def kind_of(column: Any) -> Kind:
    """What the values of a pandas Series are; text is a date if all of it is written like 2024-12-31.

    >>> import pandas as pd
    >>> columns = ["1.5", 10**25, None], [True, False], ["2024-12-31"], ["1_0", "5"], [None]
    >>> [kind_of(pd.Series(values)) for values in columns]
    ['number', 'boolean', 'date', 'category', 'empty']
    """
    found = column.dropna()
    if found.empty:
        return "empty"
    if all(isinstance(cell, (bool, np.bool_)) for cell in found):
        return "boolean"
    kinds: tuple[Kind, ...] = ("number", "date")
    return next((kind for kind in kinds if values_of(found, kind).notna().all()), "category")


def values_of(column: Any, kind: Kind) -> Any:
    """Levels of a category, else numbers, with dates in days since 1970; NaN where missing or of another kind."""
    import pandas as pd

    if kind == "category":
        return levels_of(column)
    if kind == "date":
        alike = column.astype(object).where(column.astype(str).str.match(r"\d{4}-\d\d-\d\d"))
        days = pd.to_datetime(alike, format="ISO8601", errors="coerce", utc=True)
        return (days - pd.Timestamp(0, tz="UTC")) / pd.Timedelta(days=1)
    if kind == "boolean":
        return levels_of(column).map({"True": 1.0, "1": 1.0, "False": 0.0, "0": 0.0}).astype(float)
    if not pd.api.types.is_numeric_dtype(column):
        column = column.astype(object).map(lambda cell: float(cell) if is_number(cell) else np.nan)
    return pd.Series(column.to_numpy(float, na_value=np.nan), column.index)


def levels_of(column: Any) -> Any:
    """The values of a Series as text, NaN where they are missing.

    The text of a value does not depend on how its column is stored, which may differ from table to table.

    >>> import pandas as pd
    >>> [levels_of(pd.Series(values)).tolist() for values in (["TRUE", "01", "x"], [True, False], [1.0, None])]
    [['True', '1', 'x'], ['True', 'False'], ['1', nan]]
    """
    text = column.astype(object).map(lambda value: str(value).replace("\0", "\ufffd"), na_action="ignore")
    return text.map({known: _level(known) for known in text.dropna().unique()})  # pandas ends a text at a NUL


def _level(text: str) -> str:
    text = text.strip()
    if text.casefold() in ("true", "false"):
        return text.capitalize()
    if not is_number(text) or not np.isfinite(float(text)):
        return text
    shown = repr(float(text) + 0.0).removesuffix(".0")
    return shown if Decimal(shown) == Decimal(text) else text  # codes of many digits stay apart


class TableEncoder(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Encode the columns of a DataFrame as numbers, fitted on the known inliers (the rows with y = 1).

    Numbers stay as they are, booleans become 0 and 1, dates days, and a category one column per level and one for
    levels that no fitted row has. Columns that are constant among the fitted rows, and text that differs from row to
    row (most have a value to themselves), are left out. A column that is 0 in all n fitted rows is multiplied by
    sqrt(n): what they never show counts as much as what one of n + 1 rows shows does once it is standardised.

    With p-values, give it to `LLRDetector` as `scaler`, as the command `detect` does: it then sees none of the
    inliers that are held out.

    Parameters
    ----------
    missing : "refuse", "median" or "indicator"
        Refuse missing values; replace them by the median, or a category by its most frequent level; or do so and add
        a column that says where, a missing category being a level of its own.
    scaler : transformer, optional
        Applied to the encoded columns.

    Attributes
    ----------
    kinds_ : dict from the name of a column to "number", "boolean", "date", "category" or "empty"
    left_out_ : dict from the name of a column to "constant" or "row names"
    owner_ : array of int
        For each encoded column, the position of the column that it comes from.

    Examples
    --------
    >>> import pandas as pd
    >>> good = pd.DataFrame({"size": [1.0, 3.0, 2.0, 4.0], "colour": ["red", "blue", "red", "red"]})
    >>> encoder = TableEncoder().fit(good)
    >>> encoder.get_feature_names_out().tolist()
    ['size', 'colour = blue', 'colour = red', 'colour = (not seen)']
    >>> encoder.transform(pd.DataFrame({"size": [9.0], "colour": ["green"]})).tolist()
    [[9.0, 0.0, 0.0, 2.0]]
    """

    def __init__(self, missing: Literal["refuse", "median", "indicator"] = "refuse", scaler: Any = None) -> None:
        self.missing = missing
        self.scaler = scaler

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = tags.input_tags.string = True
        tags.input_tags.allow_nan = self.missing != "refuse"
        return tags

    def fit(self, X: Any, y: Any = None) -> TableEncoder:
        """Learn levels, medians and what to leave out from the rows with y = 1; from all rows if there is no y."""
        if self.missing not in ("refuse", "median", "indicator"):
            raise ValueError(f'missing must be "refuse", "median" or "indicator", got {self.missing!r}')
        frame = known_inliers(_frame(X), y)
        self.feature_names_in_, self.n_features_in_ = np.asarray(frame.columns, dtype=object), frame.shape[1]
        self.kinds_ = {name: kind_of(frame[name]) for name in frame}
        self.left_out_ = {name: why for name in frame if (why := self._useless(frame[name], self.kinds_[name]))}
        self._used = {name: kind for name, kind in self.kinds_.items() if name not in self.left_out_}
        if not self._used:
            raise ValueError("no column is left: each is constant among the known inliers, or names the rows")
        text = [name for name, kind in self._used.items() if kind == "category"]
        numeric = [name for name in self._used if name not in text]
        absent = self.missing == "indicator"
        self._levels = {name: self._encoded_as(levels_of(frame[name])) for name in text}
        categories = [[*sorted({*levels.values()} - {UNSEEN, np.nan}), UNSEEN] for levels in self._levels.values()]
        parts = [
            ("numbers", SimpleImputer(strategy="median"), numeric),
            ("missing", MissingIndicator(features="all"), numeric if absent else []),
            ("levels", OneHotEncoder(categories=categories, sparse_output=False), text),
        ]
        self._encoder = ColumnTransformer(parts)
        encoded = np.asarray(self._encoder.fit_transform(self._canonical(frame)), dtype=float)
        self._boost = np.where((encoded == 0).all(axis=0), np.sqrt(len(encoded)), 1.0)
        names = [(name, name) for name in numeric] + [(name, f"{name} is missing") for name in parts[1][2]]
        names += [(name, f"{name} = {level}") for name, found in zip(text, categories, strict=True) for level in found]
        self.owner_: IntArray = frame.columns.get_indexer([name for name, _ in names])
        self._names = np.array([name for _, name in names], dtype=object)
        self.scaler_ = None if self.scaler is None else clone(self.scaler).fit(encoded)
        return self

    def transform(self, X: Any) -> FloatArray:
        """The encoded rows; a level that no fitted row has is "(not seen)"."""
        check_is_fitted(self)
        encoded = self._encoder.transform(self._canonical(_frame(X, self.feature_names_in_)))
        encoded = np.asarray(encoded, dtype=float, order="C") * self._boost
        return encoded if self.scaler_ is None else np.asarray(self.scaler_.transform(encoded))

    def get_feature_names_out(self, input_features: Any = None) -> Any:
        """Names of the encoded columns."""
        check_is_fitted(self)
        return self._names

    def _useless(self, column: Any, kind: Kind) -> str:
        """Why to leave a column out, or nothing."""
        counts = values_of(column, kind).value_counts(dropna=self.missing != "indicator")
        if kind == "category" and len(counts) > MAX_FEW_NAMES and (counts == 1).sum() > len(column) / 2:
            return "row names"
        return "constant" if kind == "empty" or len(counts) <= 1 else ""

    def _encoded_as(self, column: Any) -> dict[str | None, Any]:
        """What each level of a column counts as, most frequent first, and what a missing one (None) does."""
        order = [level for _, level in sorted((-n, level) for level, n in column.value_counts().items())]
        rare = order[MAX_LEVELS - 1 :] if len(order) > MAX_LEVELS else []
        missing = {"indicator": ABSENT, "median": order[0]}.get(self.missing, np.nan)
        return {**dict(zip(order, order, strict=True)), **dict.fromkeys(rare, RARE), None: missing}

    def _canonical(self, frame: Any) -> Any:
        """Numbers as float and levels as text, NaN where they are missing."""
        import pandas as pd

        columns = {}
        for name, kind in self._used.items():
            values = values_of(frame[name], kind)
            if kind == "category":
                known = self._levels[name]
                found = values.astype(object).where(values.notna(), None)
                values = pd.Series([known.get(level, UNSEEN) for level in found], frame.index, dtype=object)
            wrong = values.isna() & (frame[name].notna() | (self.missing == "refuse"))
            if wrong.any():
                raise ValueError(
                    f"column {name!r} has no {kind} in row {wrong.idxmax()} but {frame[name][wrong].iloc[0]}: correct "
                    'or fill such cells, leave the column out, or, if they are empty, give missing="median" or '
                    '"indicator"'
                )
            columns[name] = values
        return pd.DataFrame(columns, index=frame.index)


def _frame(X: Any, names: Any = None) -> Any:
    """A DataFrame with these columns, or all; an array gets names."""
    pd = needed("pandas", "tables", "tables")
    if not isinstance(X, pd.DataFrame):
        X = pd.DataFrame(np.asarray(X), columns=names)
        X = X if names is not None else X.add_prefix("x")
    if names is not None:
        if lacking := [name for name in names if name not in X]:
            raise ValueError(f"the table has no column {', '.join(map(repr, lacking))}")
        X = X[list(names)]
    return X


def by_owner(values: Any, owner: IntArray, d: int, how: Any = np.add) -> Any:
    """Combine the encoded columns (the last axis) that come from the same one of d columns: np.add, minimum, ...

    >>> by_owner(np.array([[1.0, 2.0, 4.0]]), np.array([0, 2, 2]), 3).tolist()
    [[1.0, 0.0, 6.0]]
    """
    start = {np.add: 0, np.logical_or: False, np.fmin: np.nan}[how]
    found = np.full((*values.shape[:-1], d), start, dtype=values.dtype)
    for k, column in enumerate(owner):
        found[..., column] = how(found[..., column], values[..., k])
    return found
