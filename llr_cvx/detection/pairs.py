"""Read the known inliers and the rows to check as two tables with the same columns, or say all that is in the way."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

from llr_cvx.arrays import FloatArray
from llr_cvx.detection.encoding import kind_of, values_of
from llr_cvx.detection.tables import NAMELESS, alike, read_table, settle_points
from llr_cvx.text import listing, printable

DECIMAL_COMMA = r"[+-]?\d[\d.]*,\d+"
#: Text that is something else in disguise: its form, the least share of it, the most levels of a category that may look
#: so (such as age groups), what it is, and what helps.
DISGUISES = (
    (DECIMAL_COMMA, 0.5, 0, "numbers", "'--decimal ,'"),
    (r"\d{1,4}[./-]\d{1,2}[./-]\d{1,4}.*", 0.9, 10, "dates", "write them like 2024-12-31"),
    (r"[^\w\s.,+-]?\s*[+-]?\d[\d.,'\s]*(%|[^\w\s]|[A-Za-z]{1,3})?", 0.9, 10, "numbers", "write plain numbers"),
)
#: Names of columns that identify rows; "index" only on its own, since a refractive_index is a measurement.
ROW_NAME_PATTERN = re.compile(r"(.*[\W_])?id|index|unnamed.*", re.IGNORECASE)
#: With at least this many rows, consecutive whole numbers are unlikely to be a coincidence.
MIN_COUNT_ROWS = 5
Missing = Literal["refuse", "drop", "median", "indicator"]


class TableProblems(ValueError):
    """All that is in the way of using two tables: a line for each problem, with what solves it."""

    def __init__(self, problems: Iterable[str]) -> None:
        lines = [printable(problem) for problem in dict.fromkeys(problems)]
        super().__init__(lines[0] if len(lines) == 1 else "\n  - ".join([f"{len(lines)} problems", *lines]))


def read_pair(
    inliers: str | Path,
    test: str | Path,
    id_column: str | None = None,
    drop: Sequence[str] = (),
    missing: Missing = "refuse",
    sheets: Sequence[str] = (),
    **text: Any,
) -> tuple[Any, Any, list[str]]:
    """Read two tables; the columns are those of the first, found in the second up to case and blanks.

    `id_column` names the rows of the second file, each by another name; the first file may lack it. `drop` are columns
    of either file to leave out; missing values are a problem, a reason to leave a row out ("drop"), or left to the
    `TableEncoder`. `sheets` are for both workbooks, or one for each; for `text` see `read_table`.

    Returns both as DataFrames with the same columns, rows named by the index and the file by attrs["source"], and
    notes for the reader. Raises TableProblems with every problem of both files.
    """
    tables, problems, notes = list[Any](), list[str](), list[str]()
    for path, sheet in ((inliers, sheets[:1]), (test, sheets[-1:])):
        try:
            tables.append(read_table(path, *sheet, id_column=id_column, **text))
        except (OSError, ValueError) as error:
            problems.append(str(error))
    if problems:
        raise TableProblems(problems)
    places, tables = [table.index for table in tables], [table.dropna(how="all") for table in tables]
    known, checked = tables
    good, new = (table.attrs["source"] for table in tables)
    similar = {alike(checked, name): name for name in known if name not in checked}
    if renamed := {found: name for found, name in similar.items() if found and found not in known}:
        checked.rename(columns=renamed, inplace=True)
        notes.append(f"matched up to case and blanks in {new}: {listing(renamed)}")
    columns = dict.fromkeys([*known, *checked])
    named = None if id_column is None else alike(columns, id_column)
    if id_column is not None and named not in checked:
        problems.append(f"{new} has no column {id_column!r}; its columns are {listing(checked)}")
    dropped = {name: alike(columns, name) for name in drop}
    problems += [f"no column {name!r} to drop in either file" for name, found in dropped.items() if found is None]
    unused = {named, *dropped.values()}
    if nameless := [name for name in known if name.startswith(NAMELESS) and name not in unused]:
        notes.append(f"left out of {good}: a column without a name, as pandas writes row numbers")
    used = [name for name in known if name not in unused and name not in nameless]
    if not used:
        problems.append(f"{good} has no columns left to use: its columns are {listing(known)}")
    if lacking := [name for name in used if name not in checked]:
        cure = f"its columns are {listing(checked)}" if lacking == used else _drop(lacking)
        problems.append(f"{good} has {listing(lacking)}, which {new} has not: {cure}")
    if others := [name for name in columns if name not in known and name not in unused]:
        notes.append(f"ignored in {new}: {listing(others)}, which {good} has not")
    for name in used:
        settle_points(tables, name)
    problems += _misfits(known, checked, used)
    shared = [name for name in used if name not in lacking]
    filled = [name for name in shared if known[name].notna().any()]
    frames, gone = list[Any](), list[Any]()
    for source, table, place in zip((good, new), tables, places, strict=True):
        frame, absent = table[shared], table[filled].isna()
        if named in table:
            labels = table[named].map(str, na_action="ignore").fillna("").str.strip()
            problems += _repeated(source, labels)
            frame = frame.set_axis(labels)
        else:
            frame = frame.set_axis(place.get_indexer(table.index) + 1)  # its row in the file
        if missing == "refuse":
            problems += _absent(source, absent)
        left_out = absent.any(axis=1).to_numpy() & (missing == "drop")
        gone.append(frame.index[left_out].astype(str))
        frames.append(frame[~left_out])
    if not all(map(len, frames)):
        problems.append("every row of a file has a missing value: --missing median")
    if problems:
        raise TableProblems(problems)
    if any(map(len, gone)):
        rows = f"{len(gone[0])} inliers, and {len(gone[1])} test rows {listing(gone[1])}"
        notes.append(f"left out for missing values: {rows}")
    numbers = {n: [frame[n].dropna().to_numpy(float) for frame in frames] for n in frames[0].select_dtypes("number")}
    return frames[0], frames[1], [*notes, *row_name_note(numbers)]


def _misfits(known: Any, checked: Any, used: Sequence[str]) -> Iterator[str]:
    """Cells that are not of the kind of their column among the inliers; columns that all need the same in one line."""
    same = dict[tuple[str, ...], dict[str, str]]()
    for name in used:
        kind = kind_of(known[name])
        if kind == "category":
            text = known[name].dropna().astype(str).str.strip()
            kind = next((of for of in ("number", "date") if values_of(text, of).notna().mean() >= 0.5), "empty")
            kind = "boolean" if known[name].map(type).eq(bool).sum() >= len(text) / 2 else kind
            for form, least, most, what, cure in DISGUISES if kind == "empty" else ():
                cells = text[text.str.fullmatch(form)]
                if len(cells) >= least * len(text) and text.nunique() > most:
                    cure = cure if form != DECIMAL_COMMA or known.attrs.get("decimal") == "." else DISGUISES[-1][-1]
                    same.setdefault((known.attrs["source"], what, cure), {})[name] = cells.iloc[0]
                    break
        for table in [table for table in (known, checked) if kind != "empty" and name in table]:
            values = values_of(table[name], kind)
            if len(wrong := table[name][np.isinf(values) | (values.isna() & table[name].notna())]):
                cell, more = str(wrong.iloc[0]).strip(), f" ({len(wrong)} such cells)" if len(wrong) > 1 else ""
                if table.attrs.get("decimal") == "." and re.fullmatch(DECIMAL_COMMA, cell):
                    same.setdefault((table.attrs["source"], *DISGUISES[0][3:]), {})[name] = cell
                    continue
                place = f"{table.attrs['source']}, {table.index.name} {wrong.index[0]}, column {name!r}"
                yield f"{place} holds {cell[:40]!r}, not a {kind}{more}: correct it, or {_drop([name])}"
    for (source, what, cure), found in same.items():
        cell, many = next(iter(found.values()))[:40], len(found) > 1
        columns = f"column{'s' * many} {listing(found)} hold{'s' * (not many)}"
        yield f"{source}, {columns} {what} such as {cell!r}: {cure} or {_drop(found)}"


def _absent(source: str, absent: Any) -> Iterator[str]:
    """The columns with missing values, in one line."""
    counts, place = absent.sum(), absent.index.name
    if some := [f"{n!r} ({m}, first in {place} {absent[n].idxmax()})" for n, m in counts[counts > 0].items()]:
        yield f"{source} has missing values in {listing(some, quoted=False)}: --missing median, indicator or drop"


def _repeated(source: str, ids: Any) -> Iterator[str]:
    """The first row whose id is empty or that of another row."""
    for row in ids.index[(ids == "") | ids.duplicated()][:1]:
        first = f"{ids.index.name} {ids.index[ids == ids[row]][0]}"
        what = f": the id {ids[row]!r} is that of {first} already" if ids[row] else " is empty"
        cure = f"give every row a unique id, or ignore the column ({_drop([ids.name])}) to number the rows"
        yield f"{source}, {ids.index.name} {row}, column {ids.name!r}{what}: {cure}"


def row_name_note(columns: dict[str, list[FloatArray]]) -> list[str]:
    """A note on columns that merely number the rows: used as features, they can hide the outliers.

    Their name says so, or their values in one of the tables count by one without repetition.

    >>> row_name_note({"n": [np.arange(9.0)], "acid": [np.array([3.0, 1.0])]})
    ["column 'n' looks like row names: --id n to use it as such, --drop n to ignore it"]
    """

    def counts(values: FloatArray) -> bool:
        return len(values) >= MIN_COUNT_ROWS and bool(np.all(values % 1 == 0) and np.all(np.diff(np.sort(values)) == 1))

    names = [name for name, tables in columns.items() if ROW_NAME_PATTERN.fullmatch(name) or any(map(counts, tables))]
    subject = f"column {listing(names)} looks" if len(names) == 1 else f"columns {listing(names)} look"
    cure = f"--id {shlex.quote(names[0])} to use it as such, {_drop(names)} to ignore it" if names else ""
    return [f"{subject} like row names: {cure}"] if names else []


def _drop(names: Iterable[str]) -> str:
    return " ".join(f"--drop {shlex.quote(name)}" for name in [*names][:8])
