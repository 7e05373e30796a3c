"""Read CSV or Parquet tables into numbers with column names and row ids.

Columns are matched by name, never by position; in a file without a header, where that is allowed, they are named
1, 2, ... Anything that is not a number is refused with its file, line and column, and advice on what to do.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from llr_cvx.arrays import FloatArray
from llr_cvx.detection import cells

#: Names of columns that identify rows; "index" only on its own, since a refractive_index is a measurement.
ROW_NAME_PATTERN = re.compile(r"(.*[\W_])?id|index|unnamed.*", re.IGNORECASE)
#: With at least this many rows, consecutive whole numbers are unlikely to be a coincidence.
MIN_COUNT_ROWS = 5
#: What to do about a sample column that is not numeric.
NON_NUMERIC_ADVICE = ", or leave the column out (--id NAME to name rows by it, --drop NAME to ignore it)"


@dataclass(frozen=True, eq=False)
class Frame:
    """A table of numbers with column names and row ids.

    Attributes
    ----------
    source : str
        The file that was read.
    columns : tuple of str
    values : array of shape (rows, columns)
    ids : tuple of str
        From the id column, or row numbers in the file, counted from 1 without the header.
    numbered : bool
        Whether the ids are row numbers.
    """

    source: str
    columns: tuple[str, ...]
    values: FloatArray
    ids: tuple[str, ...]
    numbered: bool = False

    def select(self, columns: Sequence[str]) -> Frame:
        """The same rows with the given columns, in that order."""
        place = {name: k for k, name in enumerate(self.columns)}
        return replace(self, columns=tuple(columns), values=self.values[:, [place[name] for name in columns]])


def read_frame(
    path: str | Path, id_column: str | None = None, drop: Iterable[str] = (), headerless: bool = False
) -> Frame:
    """Read a table of finite numbers.

    Parameters
    ----------
    path : path
        Parquet if it ends in .parquet or .pq (needs pandas and pyarrow), else delimited text in UTF-8 with commas,
        semicolons, tabs or bars.
    id_column : str, optional
        A column of unique row names; it may hold text.
    drop : names
        Columns to ignore; they may hold anything.
    headerless : bool
        Treat a first line that holds only numbers as a row, and name the columns 1, 2, ... Otherwise such a file
        is refused: its header may be missing, or its column names may be numbers.

    Raises
    ------
    FileNotFoundError, ValueError
        Naming the first cell that is not a finite number, the line with too many or too few cells, the repeated
        or missing column, or the repeated id.
    """
    header, rows, lines = cells.read(path, headerless)
    drop = tuple(drop)
    for name in (*drop, *([id_column] if id_column is not None else [])):
        _check_named(path, header, name)
    kept = [k for k, name in enumerate(header) if name not in drop and name != id_column]
    if not kept:
        raise ValueError(f"{path} has no columns left to use: its columns are {_listing(header)}")
    if not rows:
        raise ValueError(f"{path} has a header but no rows")
    columns = [_numbers(path, header[k], [row[k] for row in rows], lines) for k in kept]
    if id_column is None:
        ids = tuple(str(k) for k in range(1, len(rows) + 1))
    else:
        ids = _ids(path, id_column, [row[header.index(id_column)] for row in rows], lines)
    return Frame(str(path), tuple(header[k] for k in kept), np.column_stack(columns), ids, id_column is None)


def read_matrix(path: str | Path) -> FloatArray:
    """Read a numeric text file, with or without a header."""
    header, rows, lines = cells.read(path, headerless=True)
    if not rows:
        raise ValueError(f"{path} has a header but no rows")
    return np.column_stack([_numbers(path, name, [r[k] for r in rows], lines, "") for k, name in enumerate(header)])


def read_pair(
    inliers: str | Path,
    test: str | Path,
    id_column: str | None = None,
    drop: Iterable[str] = (),
    headerless: bool = False,
) -> tuple[Frame, Frame]:
    """Read two tables with the same columns; the second is reordered to match the first.

    The id column must be in the test file, a dropped column in either; the file of inliers may lack both.
    """
    drop = tuple(drop)
    known, checked = (cells.read(path, headerless, header_only=True)[0] for path in (inliers, test))
    unnamed = [header == cells.column_numbers(header) for header in (known, checked)]
    if headerless and unnamed[0] != unnamed[1]:
        without, having = (inliers, test) if unnamed[0] else (test, inliers)
        raise ValueError(f"{having} has a header line and {without} has none: give both the same header, or none")
    # Checked first: otherwise the text in the id column causes an error that hides the misspelt name.
    if id_column is not None:
        _check_named(test, checked, id_column)
    for name in drop:
        if name not in known and name not in checked:
            raise ValueError(f"no column {name!r} to drop: it is neither in {inliers} nor in {test}")
    first = read_frame(inliers, id_column if id_column in known else None, [n for n in drop if n in known], headerless)
    second = read_frame(test, id_column, [n for n in drop if n in checked], headerless)
    problems = [
        f"{there} has {_listing(extra)}, which {here} has not"
        for there, here, extra in (
            (inliers, test, [n for n in first.columns if n not in second.columns]),
            (test, inliers, [n for n in second.columns if n not in first.columns]),
        )
        if extra
    ]
    if problems:
        raise ValueError(f"the two files need the same columns: {'; '.join(problems)}. Leave them out (--drop NAME)")
    return first, second.select(first.columns)


def row_name_columns(frame: Frame) -> list[str]:
    """Columns that look like row names rather than measurements.

    Either the name says so (id, index, unnamed), or the values are consecutive whole numbers without repetition.

    >>> frame = Frame("a.csv", ("ID", "n", "x"), np.array([[7, k, k * k] for k in range(9)]), ("",) * 9)
    >>> row_name_columns(frame)
    ['ID', 'n']
    """
    return [
        name
        for name, column in zip(frame.columns, frame.values.T, strict=True)
        if ROW_NAME_PATTERN.fullmatch(name) or _is_count(column)
    ]


def _is_count(column: FloatArray) -> bool:
    ordered = np.sort(column)
    return len(column) >= MIN_COUNT_ROWS and bool(np.all(ordered == np.rint(ordered)) and np.all(np.diff(ordered) == 1))


def _check_named(path: str | Path, header: Sequence[str], name: str) -> None:
    if name not in header:
        raise ValueError(f"{path} has no column {name!r}; its columns are {_listing(header)}")


def _numbers(
    path: str | Path, name: str, column: list[Any], lines: list[int], advice: str = NON_NUMERIC_ADVICE
) -> NDArray[np.float64]:
    """A column as finite numbers; the error names the first cell that is not one, and what to do."""
    values = np.array([float(cell) if cells.is_number(cell) else np.nan for cell in column])
    bad = np.flatnonzero(~np.isfinite(values))
    if not bad.size:
        return values
    k = int(bad[0])
    cell = cells.text(column[k])
    what = "is empty" if not cell else f"holds {cell[:40]!r}, not a finite number"
    more = f" ({bad.size} such cells in this column)" if bad.size > 1 else ""
    place = f"{path}, {cells.place(path, lines[k])}"
    raise ValueError(f"{place}, column {name!r} {what}{more}: fill or remove such rows{advice}")


def _ids(path: str | Path, name: str, column: list[Any], lines: list[int]) -> tuple[str, ...]:
    """Row names, none of them empty or repeated."""
    seen: dict[str, int] = {}
    for cell, line in zip(column, lines, strict=True):
        text = cells.text(cell)
        where = f"{path}, {cells.place(path, line)}, column {name!r}"
        cure = f"give every row a unique id, or ignore the column (--drop {name}) to number the rows"
        if not text:
            raise ValueError(f"{where} is empty: {cure}")
        if text in seen:
            raise ValueError(f"{where}: the id {text!r} is that of {cells.place(path, seen[text])} already: {cure}")
        seen[text] = line
    return tuple(seen)


def _listing(names: Sequence[str], limit: int = 8) -> str:
    return ", ".join(repr(name) for name in names[:limit]) + (", ..." if len(names) > limit else "")
