"""Results as Markdown for people and CSV for programs."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from llr_cvx import archive
from llr_cvx.arrays import FloatArray
from llr_cvx.experiments.methods import METHODS, Property
from llr_cvx.experiments.printed import PRINTED_METHODS, TABLE1, TABLE2
from llr_cvx.experiments.statistics import Summary, comparable, summarize, table
from llr_cvx.store import Record
from llr_cvx.text import csv_cell


def markdown(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A Markdown table.

    >>> print(markdown(["set", "AUC"], [["Heart", 0.74]]))
    | set | AUC |
    |---|---|
    | Heart | 0.74 |
    """
    lines = [header, ["---"] * len(header), *rows]
    text = ["| " + " | ".join(str(cell).replace("|", r"\|") for cell in line) + " |" for line in lines]
    text[1] = "|" + "---|" * len(header)
    return "\n".join(text)


def rounded(rows: Iterable[Iterable[Any]], spec: str) -> list[list[Any]]:
    """Rows with every float in a format, such as ".2f"."""
    return [[format(cell, spec) if isinstance(cell, float) else cell for cell in row] for row in rows]


def bold(text: str, emphasised: bool) -> str:
    """The text, bold or as it is."""
    return f"**{text}**" if emphasised else text


def ranked(columns: Mapping[str, FloatArray], spec: str) -> list[str]:
    """Means over the trials; bold are the best and every one that a paired t-test does not tell from it."""
    best = comparable(columns)
    return [bold(format(summarize(values).mean, spec), label in best) for label, values in columns.items()]


def write_csv(path: str | Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write one row per mapping; the columns are those of the first."""
    with archive.replacing(path, "w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, fieldnames=list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows({name: csv_cell(cell) for name, cell in row.items()} for row in rows)


def read_csv(path: str | Path) -> list[dict[str, Any]]:
    """Read rows written by `write_csv`, with booleans and numbers converted and empty cells as "".

    Raises OSError if the file cannot be read, ValueError if it is no such table.
    """
    try:
        with Path(path).open(encoding="utf-8", newline="") as stream:
            header, *rows = csv.reader(stream, strict=True)
            return [{name: value(cell) for name, cell in zip(header, row, strict=True)} for row in rows]
    except (csv.Error, ValueError) as error:
        raise ValueError(f"{path} is not a table of results: {error}") from None


def value(cell: str) -> Any:
    """The value of a CSV cell.

    >>> value("True"), value("5"), value("0.5"), value("minmax")
    (True, 5, 0.5, 'minmax')
    """
    if cell in ("True", "False"):
        return cell == "True"
    for kind in (int, float):
        try:
            return kind(cell)
        except ValueError:
            continue
    return cell


def write_text(path: str | Path, text: str) -> None:
    """Write text that ends with a single newline."""
    with archive.replacing(path, "w", encoding="utf-8") as stream:
        stream.write(text.rstrip("\n") + "\n")


# ---- sentences ----------------------------------------------------------------------------------


class Finding(NamedTuple):
    """A subject and what the results say about it."""

    subject: str
    text: str


def bullets(items: Iterable[Finding]) -> str:
    """A Markdown list.

    >>> print(bullets([Finding("Time", "none.")]))
    - **Time:** none.
    """
    return "\n".join(f"- **{item.subject}:** {item.text}" for item in items)


def listed(items: Sequence[str], last: str = "and") -> str:
    """A list in words, with semicolons where an item has a comma of its own; "none" if it is empty.

    >>> listed(["a", "b", "c"]), listed(["a, 1", "b, 1", "b, 2"]), listed([])
    ('a, b and c', 'a, 1; b, 1 and b, 2', 'none')
    """
    if len(items) < 2:
        return items[0] if items else "none"
    between = "; " if any("," in item for item in items) else ", "
    return between.join(items[:-1]) + f" {last} {items[-1]}"


# ---- Table 1 ------------------------------------------------------------------------------------


def table1_rows() -> list[dict[str, str]]:
    """The properties of Table 1 from the registry, with the paper's entry where it differs."""
    rows = []
    for method in METHODS.values():
        nonlinear, selects, ratio, convex = (property in method.properties for property in Property)
        words = {
            "Outlier detection model": "Inlier-based" if ratio else "Unsupervised",
            "Linear/Nonlinear": "Nonlinear" if nonlinear else "Linear",
            "Feature Selection": "Yes" if selects else "No",
            "Ratio-Based": "Yes" if ratio else "No",
            "Convex": "Yes" if convex else "No",
            "Parameters": method.parameters,
        }
        row = {"Method": method.label}
        for name, word in words.items():
            printed = TABLE1.get(name, {}).get(method.key, word)
            row[name] = word + (f" (paper: {printed})" if printed != word else "")
        rows.append(row)
    return rows


def table1() -> str:
    """Table 1 as Markdown."""
    rows = table1_rows()
    return "\n\n".join(
        [
            "# Table 1: comparison of outlier detection algorithms",
            "Generated from the properties that the registry declares. Where the paper prints the method and says "
            "otherwise, its word follows in brackets.",
            markdown(list(rows[0]), [list(row.values()) for row in rows]),
            "LoKDR was made for labelled outliers: `llr_cvx/experiments/methods/lokdr.py` says what differs here.",
        ]
    )


# ---- Table 2 ------------------------------------------------------------------------------------


def table2_rows(records: Sequence[Record], sets: Sequence[str]) -> list[dict[str, Any]]:
    """One row per set and method: mean, sd, bold, printed value, difference in units of the printed sd."""
    rows = []
    for name in sets:
        aucs = table(records, name)
        best = comparable(aucs)
        rows += [_row(name, key, summarize(values), key in best) for key, values in aucs.items()]
    for key in aucs:
        means = [row["mean"] for row in rows if row["method"] == key]
        everything = summarize(np.concatenate([table(records, name)[key] for name in sets]))
        rows.append(_row("Average", key, everything._replace(mean=float(np.mean(means))), best=False))
    averages = [row for row in rows if row["set"] == "Average"]
    max(averages, key=lambda row: np.nan_to_num(row["mean"], nan=-1.0))["bold"] = True
    return rows


def _row(name: str, key: str, summary: Summary, best: bool) -> dict[str, Any]:
    printed = TABLE2[name].get(key)
    return {
        "set": name,
        "method": key,
        "mean": summary.mean,
        "sd": summary.sd,
        "trials": summary.n,
        "bold": best,
        "paper_mean": printed.mean if printed else "",
        "paper_sd": printed.sd if printed else "",
        "difference_in_paper_sd": (summary.mean - printed.mean) / printed.sd if printed else "",
    }


def table2(rows: Sequence[Mapping[str, Any]]) -> str:
    """Table 2 as Markdown: all methods, then the printed ones beside the paper."""
    sets = list(dict.fromkeys(row["set"] for row in rows))
    keys = list(dict.fromkeys(row["method"] for row in rows))
    cells = {(row["set"], row["method"]): row for row in rows}
    every = markdown(
        ["Set", *(METHODS[key].label for key in keys)],
        [[name, *(_cell(cells[name, key]) for key in keys)] for name in sets],
    )
    beside = []
    for key in PRINTED_METHODS:
        printed = [(TABLE2[name][key], f"{TABLE2[name][key].mean:.3f} ({TABLE2[name][key].sd:.3f})") for name in sets]
        beside += [
            [f"**{METHODS[key].label}**", *(_cell(cells[name, key]) for name in sets)],
            ["paper", *(bold(text, value.bold) for value, text in printed)],
            ["Δ/sd", *(f"{cells[name, key]['difference_in_paper_sd']:+.2f}" for name in sets)],
        ]
    return "\n\n".join(
        [
            "## All methods",
            "Mean AUC (standard deviation). Bold: the best mean of the row and every method that a paired t-test "
            "at 5 % does not tell from it; in the last row the best average.",
            every,
            "## Beside the paper",
            "Below each method the value that the paper prints, then the difference in units of the paper's standard "
            "deviation.",
            markdown(["Method", *sets], beside),
            _closeness(rows),
        ]
    )


def _closeness(rows: Sequence[Mapping[str, Any]]) -> str:
    """How close each printed method comes to the paper, over the sets."""
    lines = []
    for key in PRINTED_METHODS:
        z = [row["difference_in_paper_sd"] for row in rows if row["method"] == key and row["set"] != "Average"]
        within = sum(abs(value) <= 1 for value in z)
        means, sds = closeness(rows, key)
        lines.append([METHODS[key].label, f"{means:.2f}", f"{np.mean(z):+.2f}", f"{sds:.2f}", f"{within} of {len(z)}"])
    columns = ["root mean square of Δ/sd", "mean of Δ/sd", "of log(sd / printed sd)", "within one sd of the paper"]
    return markdown(["Method", *columns], lines)


def closeness(rows: Sequence[Mapping[str, Any]], key: str, without: Sequence[str] = ()) -> tuple[float, float]:
    """Root mean squares, over the sets, of Δ/sd and of log(sd / printed sd) of a printed method."""
    own = [row for row in rows if row["method"] == key and row["set"] not in ("Average", *without)]
    z = [row["difference_in_paper_sd"] for row in own]
    log = [np.log(row["sd"] / row["paper_sd"]) if row["sd"] > 0 else np.inf for row in own]
    return float(np.sqrt(np.mean(np.square(z)))), float(np.sqrt(np.mean(np.square(log))))


def _cell(row: Mapping[str, Any]) -> str:
    if not row["trials"]:
        return "failed"
    return bold(f"{row['mean']:.3f} ({row['sd']:.3f})", row["bold"])
