"""Read plain numeric CSV, with or without a header line, by the standard library alone."""

from __future__ import annotations

import csv
import math
from collections.abc import Collection
from pathlib import Path
from typing import IO

import numpy as np

from llr_cvx.arrays import FloatArray
from llr_cvx.detection.tables import read_table
from llr_cvx.inputs import contents
from llr_cvx.text import cells_of, is_number, listing, separator_of


def read_columns(
    path: str | Path, drop: Collection[str] = (), stream: IO[bytes] | None = None
) -> tuple[list[str], FloatArray]:
    """Names and finite numbers of the columns of a text file in UTF-8, but for those to drop, which may hold anything.

    A first line that holds only numbers is a row: the columns are then named 1, 2, ... Raises OSError or ValueError,
    naming file, line and column. Parquet is left to pandas.
    """
    if Path(path).suffix.lower() in (".parquet", ".pq"):
        frame = read_table(path).dropna(how="all").drop(columns=list(drop), errors="ignore")
        return list(frame), frame.to_numpy(float)
    try:
        text = contents(path, stream).decode("utf-8-sig")
        lines = [(k, row) for k, row in cells_of(text, separator_of(text), strict=True) if any(map(str.strip, row))]
    except (UnicodeDecodeError, csv.Error) as error:
        raise ValueError(f"{path} is not CSV in UTF-8: {error}") from None
    names = [name.strip() for name in lines[0][1]] if lines else []
    if all(map(is_number, names)):
        names = [str(k) for k in range(1, len(names) + 1)]
    else:
        lines = lines[1:]
    kept = [k for k, name in enumerate(names) if name not in drop]
    if not lines or not kept:
        raise ValueError(f"{path} has no {'columns left to use' if lines else 'rows'}: rows of numbers are needed")
    if "" in names or len(set(names)) < len(names):
        raise ValueError(f"{path}: the header has a column without a name, or a name twice")
    for line, row in lines:
        if len(row) != len(names):
            raise ValueError(f"{path}, line {line}: {len(row)} cell(s) where the first line has {len(names)}")
        for k in kept:
            if not is_number(row[k]) or not math.isfinite(float(row[k])):
                what = f"holds {row[k].strip()[:40]!r}, not a finite number" if row[k].strip() else "is empty"
                raise ValueError(f"{path}, line {line}, column {names[k]!r} {what}: fill or remove such rows")
    return [names[k] for k in kept], np.array([[float(row[k]) for k in kept] for _, row in lines])


def read_samples(
    inliers: str | Path, test: str | Path, drop: Collection[str]
) -> tuple[list[str], FloatArray, FloatArray]:
    """Names and numbers of two files with the same columns, in any order."""
    (known, X_inlier), (names, X_test) = (read_columns(path, drop) for path in (inliers, test))
    bare = [found == [str(k + 1) for k in range(len(found))] for found in (known, names)]
    if bare[0] != bare[1]:
        having, without = (test, inliers) if bare[0] else (inliers, test)
        raise ValueError(f"{having} has a header line and {without} has none: give both the same header, or none")
    for one, other, extra in ((inliers, test, set(known) - set(names)), (test, inliers, set(names) - set(known))):
        if extra:
            raise ValueError(f"{one} has {listing(sorted(extra))}, which {other} has not: --drop NAME")
    return known, X_inlier, X_test[:, [names.index(name) for name in known]]
