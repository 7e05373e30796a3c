"""Tables with headers: CSV or Parquet in, numbers with names and row ids out.

Columns are matched by name, never by place. What is not a number is refused with its file, line and column, and
with what to do about it.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from llr_cvx._validation import FloatArray

#: Separators looked for in the header line, the most frequent wins.
DELIMITERS = ",;\t|"
#: Names of columns that number the rows; "index" only alone, since a refractive_index is a measurement.
ROW_NAMES = re.compile(r"(.*[\W_])?id|index|unnamed.*", re.IGNORECASE)
#: From this many rows on, values without gap or repetition are hardly a coincidence.
COUNTED = 5


@dataclass(frozen=True, eq=False)
class Frame:
    """Numbers with their column names and row ids.

    Attributes
    ----------
    source : str
        File the rows came from.
    columns : tuple of str
    values : array of shape (rows, columns)
    ids : tuple of str
        From the id column, else the number of the row in the file, from 1.
    """

    source: str
    columns: tuple[str, ...]
    values: FloatArray
    ids: tuple[str, ...]

    def select(self, columns: Sequence[str]) -> Frame:
        """The same rows with these columns, in this order."""
        place = {name: k for k, name in enumerate(self.columns)}
        return Frame(self.source, tuple(columns), self.values[:, [place[name] for name in columns]], self.ids)


def read_frame(path: str | Path, id_column: str | None = None, drop: Iterable[str] = ()) -> Frame:
    """Read a table of finite numbers with a header.

    Parameters
    ----------
    path : path
        Parquet if it ends in .parquet or .pq (needs pandas and pyarrow), else delimited text in UTF-8 with commas,
        semicolons, tabs or bars.
    id_column : str, optional
        A column that names the rows; it may hold text.
    drop : names
        Columns to leave out; they may hold anything.

    Raises
    ------
    FileNotFoundError, ValueError
        With the place of the first cell that is no finite number, the line that has too many or too few cells, or
        the name of a column that is there twice or not at all.
    """
    if not Path(path).is_file():
        raise FileNotFoundError(f"{path}: no such file")
    header, rows, lines = _read_parquet(path) if _is_parquet(path) else _read_text(path)
    _check_header(path, header)
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
        ids = tuple(_text(row[header.index(id_column)]) for row in rows)
    return Frame(str(path), tuple(header[k] for k in kept), np.column_stack(columns), ids)


def read_pair(
    inliers: str | Path, test: str | Path, id_column: str | None = None, drop: Iterable[str] = ()
) -> tuple[Frame, Frame]:
    """Two tables with the same columns; the second is put into the order of the first.

    The id column and dropped columns need not be in the file of inliers, only in the one that is checked.
    """
    drop = tuple(drop)
    known, checked = _header(inliers), _header(test)
    # Asked first: without its id column a file fails on the texts in it, which hides the misspelt name.
    if id_column is not None:
        _check_named(test, checked, id_column)
    for name in drop:
        if name not in known and name not in checked:
            raise ValueError(f"no column {name!r} to leave out, neither in {inliers} nor in {test}")
    first = read_frame(inliers, id_column if id_column in known else None, [n for n in drop if n in known])
    second = read_frame(test, id_column, [n for n in drop if n in checked])
    problems = [
        f"{there} has {_listing(extra)}, which {here} has not"
        for there, here, extra in (
            (inliers, test, [n for n in first.columns if n not in second.columns]),
            (test, inliers, [n for n in second.columns if n not in first.columns]),
        )
        if extra
    ]
    if problems:
        raise ValueError(
            f"the two files need the same columns: {'; '.join(problems)}. Leave them out (--drop NAME)"
        )
    return first, second.select(first.columns)


def row_name_columns(frame: Frame) -> list[str]:
    """Columns that look like names of the rows rather than measurements.

    Either the name says so (id, index, unnamed), or the values are consecutive whole numbers, each of them once.

    >>> frame = Frame("a.csv", ("ID", "n", "x"), np.array([[7, k, k * k] for k in range(9)]), ("",) * 9)
    >>> row_name_columns(frame)
    ['ID', 'n']
    """
    return [
        name
        for name, column in zip(frame.columns, frame.values.T, strict=True)
        if ROW_NAMES.fullmatch(name) or _is_count(column)
    ]


def _is_count(column: FloatArray) -> bool:
    ordered = np.sort(column)
    return len(column) >= COUNTED and bool(np.all(ordered == np.rint(ordered)) and np.all(np.diff(ordered) == 1))


def _check_named(path: str | Path, header: Sequence[str], name: str) -> None:
    if name not in header:
        raise ValueError(f"{path} has no column {name!r}; its columns are {_listing(header)}")


def _header(path: str | Path) -> list[str]:
    if not Path(path).is_file():
        raise FileNotFoundError(f"{path}: no such file")
    return _read_parquet(path)[0] if _is_parquet(path) else _read_text(path, header_only=True)[0]


def _is_parquet(path: str | Path) -> bool:
    return Path(path).suffix.lower() in (".parquet", ".pq")


def _read_text(path: str | Path, header_only: bool = False) -> tuple[list[str], list[list[str]], list[int]]:
    """Header, rows and their line numbers; every row as long as the header."""
    try:
        with open(path, encoding="utf-8-sig", newline="") as stream:
            first = stream.readline()
            delimiter = max(DELIMITERS, key=first.count)
            stream.seek(0)
            reader = csv.reader(stream, delimiter=delimiter, strict=True)
            header = [name.strip() for name in next(reader, [])]
            rows: list[list[str]] = []
            lines: list[int] = []
            for row in () if header_only else reader:
                if not row or (len(row) == 1 and not row[0].strip() and len(header) > 1):
                    continue
                if len(row) != len(header):
                    raise ValueError(
                        f"{path}, line {reader.line_num}: {len(row)} cells where the header names {len(header)}"
                    )
                rows.append(row)
                lines.append(reader.line_num)
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not text in UTF-8 ({error.reason} at byte {error.start})") from None
    except csv.Error as error:
        raise ValueError(f"{path} is not a readable CSV file: {error}") from None
    if not any(header):
        raise ValueError(f"{path} is empty: a header line with column names is needed")
    return header, rows, lines


def _read_parquet(path: str | Path) -> tuple[list[str], list[list[Any]], list[int]]:
    try:
        import pandas
        import pyarrow  # noqa: F401
    except ImportError:
        raise ValueError(f"{path}: Parquet needs pandas and pyarrow; pip install 'llr-cvx[tables]'") from None
    try:
        frame = pandas.read_parquet(path)
    except Exception as error:  # pyarrow has many, and all of them mean the same to a reader
        raise ValueError(f"{path} is not a readable Parquet file: {error}") from None
    rows = [list(row) for row in frame.itertuples(index=False, name=None)]
    return [str(name) for name in frame.columns], rows, list(range(1, len(rows) + 1))


def _check_header(path: str | Path, header: list[str]) -> None:
    if all(_is_number(name) for name in header):
        raise ValueError(f"{path}: the first line holds numbers; a header line with column names is needed")
    for k, name in enumerate(header):
        if not name:
            raise ValueError(f"{path}: column {k + 1} has no name in the header")
        if name in header[:k]:
            raise ValueError(f"{path}: the header names {name!r} twice")


def _numbers(path: str | Path, name: str, cells: list[Any], lines: list[int]) -> NDArray[np.float64]:
    """A column as finite numbers, or where it is none and what to do."""
    values = np.array([float(cell) if _is_number(cell) else np.nan for cell in cells])
    bad = np.flatnonzero(~np.isfinite(values))
    if not bad.size:
        return values
    k = int(bad[0])
    cell = _text(cells[k])
    what = "is empty" if not cell else f"holds {cell[:40]!r}, not a finite number"
    more = f" ({bad.size} such cells in this column)" if bad.size > 1 else ""
    place = f"{path}, {'row' if _is_parquet(path) else 'line'} {lines[k]}"
    raise ValueError(
        f"{place}, column {name!r} {what}{more}: fill or remove such rows, or leave the column out "
        "(--id NAME to name rows by it, --drop NAME to ignore it)"
    )


def _text(cell: Any) -> str:
    return "" if cell is None else str(cell).strip()


def _is_number(cell: Any) -> bool:
    try:
        float(cell)
    except (TypeError, ValueError):
        return False
    return "_" not in str(cell)  # Python reads 1_000 as a number; a table that says so means something else


def _listing(names: Sequence[str], limit: int = 8) -> str:
    return ", ".join(repr(name) for name in names[:limit]) + (", ..." if len(names) > limit else "")
