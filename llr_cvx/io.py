"""Samples and weights in, JSON out; every error names the file, and the line and column where there is one."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from llr_cvx import _archive
from llr_cvx import _validation as check
from llr_cvx._validation import FloatArray


@dataclass(frozen=True, eq=False)
class Table:
    """Numbers read from a CSV file: `values` of shape (rows, columns), and the names in its header, if any."""

    path: str
    values: FloatArray
    columns: tuple[str, ...] | None

    def column(self, k: int) -> str:
        """What to call column k in a message: its number from 1, and its name if there is one."""
        return f"column {k + 1}" + (f" ({self.columns[k]!r})" if self.columns else "")


def read_table(path: str | Path) -> Table:
    """Read a comma-separated file of finite numbers, one sample a line.

    The first line is a header if none of its cells is a number.

    Raises
    ------
    FileNotFoundError, ValueError
        With the file, and the line and column (both from 1) of a cell that is missing or no finite number, or the
        line that has too many or too few cells.
    """
    lines = _lines(path)
    number, first = next(lines, (0, []))
    if not first:
        raise ValueError(f"{path} is empty: at least one line of numbers is needed")
    header = all(_number(cell) is None for cell in first) and any(cell.strip() for cell in first)
    columns = tuple(cell.strip() for cell in first) if header else None
    if columns and len(set(columns)) < len(columns):
        twice = next(name for k, name in enumerate(columns) if name in columns[:k])
        raise ValueError(f"{path}, line {number}: the header names {twice!r} twice")
    table = Table(str(path), np.empty((0, len(first))), columns)
    rows = [] if header else [_row(table, number, first)]
    rows += [_row(table, line, cells) for line, cells in lines]
    if not rows:
        raise ValueError(f"{path} has a header but no line of numbers")
    return Table(str(path), np.array(rows, dtype=float), columns)


def read_samples(inliers: str | Path, test: str | Path) -> tuple[Table, Table]:
    """Read known inliers and test samples, and make sure that both have the same columns in the same order."""
    a, b = read_table(inliers), read_table(test)
    n, m = a.values.shape[1], b.values.shape[1]
    if n != m:
        raise ValueError(f"{a.path} has {n} column(s) but {b.path} has {m}: same features, same order")
    if a.columns and b.columns:
        for k, (left, right) in enumerate(zip(a.columns, b.columns, strict=True)):
            if left != right:
                raise ValueError(
                    f"column {k + 1} is {left!r} in {a.path} but {right!r} in {b.path}: same features, same order"
                )
    return a, b


def read_weights(path: str | Path) -> FloatArray:
    """Read a matrix W, one weight vector a row: .npy, .npz with an array called W, or .csv."""
    suffix = Path(path).suffix.lower()
    if suffix == ".csv":
        return read_table(path).values
    if suffix == ".npz":
        W = _archive.load(path, required=("W",))["W"]
    elif suffix == ".npy":
        try:
            W = np.load(path, allow_pickle=False)
        except FileNotFoundError:
            raise FileNotFoundError(f"{path} does not exist") from None
        except (OSError, ValueError, EOFError) as error:
            raise ValueError(f"{path} is not a readable .npy file (truncated or foreign): {error}") from error
        if not isinstance(W, np.ndarray):
            W.close()
            raise ValueError(f"{path} is an .npz archive named .npy: rename it to .npz")
    else:
        raise ValueError(f"{path}: W must be a .npy, .npz or .csv file, got {suffix or 'no suffix'!r}")
    return check.real_array(W, f"W in {path}", ndim=2)


def write_json(path: str | Path, data: Any) -> None:
    """Write JSON, whole or not at all; arrays become lists, and numbers that are not finite become null."""
    text = json.dumps(_plain(data), indent=2, allow_nan=False) + "\n"
    with _archive.replacing(path, "w", encoding="utf-8") as stream:
        stream.write(text)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, (np.ndarray, np.generic)):
        return _plain(value.tolist())
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value


def _lines(path: str | Path) -> Iterator[tuple[int, list[str]]]:
    """Numbered lines of a CSV file; blank ones are allowed at the end only."""
    blank = 0
    try:
        with open(path, newline="", encoding="utf-8-sig") as stream:
            reader = csv.reader(stream, strict=True)
            for cells in reader:
                if not cells:
                    blank = blank or reader.line_num
                    continue
                if blank:
                    raise ValueError(f"{path}, line {blank} is blank: fill it in or remove it")
                yield reader.line_num, cells
    except FileNotFoundError:
        raise FileNotFoundError(f"{path} does not exist") from None
    except OSError as error:
        raise OSError(f"cannot read {path}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not a text file in UTF-8: {error}") from None
    except csv.Error as error:
        raise ValueError(f"{path}, line {reader.line_num}: not valid CSV: {error}") from None


def _row(table: Table, line: int, cells: list[str]) -> list[float]:
    expected = table.values.shape[1]
    if len(cells) != expected:
        raise ValueError(f"{table.path}, line {line} has {len(cells)} cell(s) but {expected} are expected")
    row = []
    for k, cell in enumerate(cells):
        number = _number(cell)
        if number is None or not np.isfinite(number):
            where = f"{table.path}, line {line}, {table.column(k)}"
            if not cell.strip():
                raise ValueError(f"{where}: the cell is missing; fill it in or remove the line")
            wrong = "is not a number" if number is None else "is not finite"
            hint = "; cells must be separated by commas" if set(cell) & set(";\t") else ""
            raise ValueError(f"{where}: {cell.strip()!r} {wrong}{hint}")
        row.append(number)
    return row


def _number(cell: str) -> float | None:
    try:
        return None if "_" in cell else float(cell)
    except ValueError:
        return None
