"""Read the cells of a CSV or Parquet file, with its header and the position of each row."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from llr_cvx.extras import pip_install

#: Candidate separators; the most frequent in the header line is used.
DELIMITERS = ",;\t|"


def read(path: str | Path, headerless: bool, header_only: bool = False) -> tuple[list[str], list[list[Any]], list[int]]:
    """Header, rows and their positions in the file, counted from 1.

    Header names are unique and not empty. A text file whose first line holds only numbers has no header: with
    `headerless` its columns are named 1, 2, ...; otherwise it is refused.
    """
    if not Path(path).exists():
        raise FileNotFoundError(f"{path}: no such file")
    if _is_parquet(path):
        header, rows, lines = _read_parquet(path)
    else:
        header, rows, lines = _read_text(path, header_only)
        if all(map(is_number, header)):
            if headerless:
                return column_numbers(header), [header, *rows], [1, *lines]
            raise ValueError(f"{path}: the first line holds numbers; a header line with column names is needed")
    _check_header(path, header)
    return header, rows, lines


def column_numbers(header: Sequence[str]) -> list[str]:
    """The names "1", "2", ... for as many columns as `header` has."""
    return [str(k) for k in range(1, len(header) + 1)]


def _is_parquet(path: str | Path) -> bool:
    return Path(path).suffix.lower() in (".parquet", ".pq")


def _read_text(path: str | Path, header_only: bool = False) -> tuple[list[str], list[list[str]], list[int]]:
    """Header, rows and their line numbers; every row has as many cells as the header."""
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
                        f"{path}, line {reader.line_num}: {len(row)} cell(s) where the first line has {len(header)}"
                    )
                rows.append(row)
                lines.append(reader.line_num)
    except OSError as error:
        raise OSError(f"cannot read {path}: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not UTF-8 text ({error.reason} at byte {error.start})") from None
    except csv.Error as error:
        raise ValueError(f"{path} is not a readable CSV file: {error}") from None
    if not any(header):
        raise ValueError(f"{path} is empty: a header line with column names and rows of numbers are needed")
    return header, rows, lines


def _read_parquet(path: str | Path) -> tuple[list[str], list[list[Any]], list[int]]:
    try:
        import pandas
        import pyarrow  # noqa: F401
    except ImportError:
        raise ValueError(f"{path}: Parquet needs pandas and pyarrow: {pip_install('tables')}") from None
    try:
        frame = pandas.read_parquet(path)
    except Exception as error:  # pyarrow raises many types, all with this meaning
        raise ValueError(f"{path} is not a readable Parquet file: {error}") from None
    rows = [list(row) for row in frame.itertuples(index=False, name=None)]
    return [str(name) for name in frame.columns], rows, list(range(1, len(rows) + 1))


def _check_header(path: str | Path, header: list[str]) -> None:
    for k, name in enumerate(header):
        if not name:
            raise ValueError(f"{path}: column {k + 1} has no name in the header")
        if name in header[:k]:
            raise ValueError(f"{path}: the header names {name!r} twice")


def text(cell: Any) -> str:
    """A cell as text."""
    return "" if cell is None else str(cell).strip()


def is_number(cell: Any) -> bool:
    """Whether a cell can be read as a number, finite or not."""
    try:
        float(cell)
    except (TypeError, ValueError):
        return False
    return "_" not in str(cell)  # Python reads 1_000 as a number, but in a table it is text


def place(path: str | Path, number: int) -> str:
    """The position of a row, as "line 7" or, since Parquet files have no lines, "row 7"."""
    return f"{'row' if _is_parquet(path) else 'line'} {number}"
