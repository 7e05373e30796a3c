"""Results as Markdown for people and CSV for programs."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from llr_cvx import archive
from llr_cvx.experiments.methods import METHODS, Method
from llr_cvx.experiments.plans import FACTORS
from llr_cvx.experiments.printed import PRINTED_METHODS, TABLE1, TABLE2
from llr_cvx.experiments.protocol import Protocol
from llr_cvx.experiments.statistics import Failure, Summary, comparable, summarize, table
from llr_cvx.experiments.store import Record
from llr_cvx.experiments.study import Fit, marginals, tied


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


def write_csv(path: str | Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write one row per mapping; the columns are those of the first."""
    with archive.replacing(path, "w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, fieldnames=list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def read_csv(path: str | Path) -> list[dict[str, Any]]:
    """Read rows written by `write_csv`, with booleans and numbers converted and empty cells as ""."""
    with Path(path).open(encoding="utf-8", newline="") as stream:
        return [{name: value(cell) for name, cell in row.items()} for row in csv.DictReader(stream)]


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


# ---- Table 1 ------------------------------------------------------------------------------------


def table1_rows() -> list[dict[str, str]]:
    """The properties of Table 1 from the registry, with the paper's entry where it differs."""
    words: dict[str, Callable[[Method], str]] = {
        "Outlier detection model": lambda m: m.model,
        "Linear/Nonlinear": lambda m: "Nonlinear" if m.nonlinear else "Linear",
        "Feature Selection": lambda m: "Yes" if m.selects_features else "No",
        "Ratio-Based": lambda m: "Yes" if m.ratio_based else "No",
        "Convex": lambda m: "Yes" if m.convex else "No",
        "Parameters": lambda m: m.parameters,
    }
    rows = []
    for method in METHODS.values():
        row = {"Method": method.label}
        for name, word in words.items():
            printed = TABLE1.get(name, {}).get(method.key)
            row[name] = word(method) + (f" (paper: {printed})" if printed not in (None, word(method)) else "")
        rows.append(row)
    return rows


def table1() -> str:
    """Table 1 as Markdown."""
    rows = table1_rows()
    notes = [f"- {m.label} is listed but not run: {m.why_not}." for m in METHODS.values() if m.fit is None]
    return "\n\n".join(
        [
            "# Table 1: comparison of outlier detection algorithms",
            "Generated from the properties that the registry declares. Where the paper prints the method and says "
            "otherwise, its word follows in brackets.",
            markdown(list(rows[0]), [list(row.values()) for row in rows]),
            "\n".join(notes),
        ]
    )


# ---- Table 2 ------------------------------------------------------------------------------------


def table2_rows(records: Sequence[Record], sets: Sequence[str]) -> list[dict[str, Any]]:
    """One row per set and method: mean, sd, bold, printed value, difference in units of the printed sd."""
    rows = []
    for name in sets:
        aucs = table(records, name)
        bold = comparable(aucs)
        rows += [_row(name, key, summarize(values), key in bold) for key, values in aucs.items()]
    for key in aucs:
        means = [row["mean"] for row in rows if row["method"] == key]
        everything = np.concatenate([table(records, name)[key] for name in sets])
        average = Summary(float(np.mean(means)), summarize(everything).sd, summarize(everything).n)
        rows.append(_row("Average", key, average, bold=False))
    best = max((row for row in rows if row["set"] == "Average"), key=lambda row: np.nan_to_num(row["mean"], nan=-1.0))
    best["bold"] = True
    return rows


def _row(name: str, key: str, summary: Summary, bold: bool) -> dict[str, Any]:
    printed = TABLE2[name].get(key)
    return {
        "set": name,
        "method": key,
        "mean": summary.mean,
        "sd": summary.sd,
        "trials": summary.n,
        "bold": bold,
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
    header = ["Set"]
    for key in PRINTED_METHODS:
        header += [METHODS[key].label, "paper", "Δ/sd"]
    beside = []
    for name in sets:
        line = [name]
        for key in PRINTED_METHODS:
            row, printed = cells[name, key], TABLE2[name][key]
            text = f"{printed.mean:.3f} ({printed.sd:.3f})"
            line += [_cell(row), f"**{text}**" if printed.bold else text, f"{row['difference_in_paper_sd']:+.2f}"]
        beside.append(line)
    return "\n\n".join(
        [
            "## All methods",
            "Mean AUC (standard deviation). Bold: the best mean of the row and every method that a paired t-test "
            "at 5 % does not tell from it; in the last row the best average.",
            every,
            "## Beside the paper",
            "The paper's printed value follows each column, then the difference in units of the paper's standard "
            "deviation.",
            markdown(header, beside),
            _closeness(rows),
        ]
    )


def _closeness(rows: Sequence[Mapping[str, Any]]) -> str:
    """How close each printed method comes to the paper, over the sets."""
    lines = []
    for key in PRINTED_METHODS:
        z = [row["difference_in_paper_sd"] for row in rows if row["method"] == key and row["set"] != "Average"]
        within = sum(abs(value) <= 1 for value in z)
        rms = float(np.sqrt(np.mean(np.square(z))))
        lines.append([METHODS[key].label, f"{rms:.2f}", f"{np.mean(z):+.2f}", f"{within} of {len(z)}"])
    head = ["Method", "root mean square of Δ/sd", "mean of Δ/sd", "sets within one sd of the paper"]
    return markdown(head, lines)


def _cell(row: Mapping[str, Any]) -> str:
    if not row["trials"]:
        return "failed"
    text = f"{row['mean']:.3f} ({row['sd']:.3f})"
    return f"**{text}**" if row["bold"] else text


# ---- end of every report ------------------------------------------------------------------


def failure_list(failures: Sequence[Failure]) -> str:
    """Failed trials, one line each."""
    if not failures:
        return "Failed trials: none."
    lines = [f"- {f.cell}, trial {f.trial}, {METHODS[f.label].label if f.label in METHODS else f.label}: {f.reason}"
             for f in failures]  # fmt: skip
    return "\n".join([f"Failed trials: {len(failures)}.", "", *lines])


def timing(seconds: Mapping[str, float], wall: float, trials: int) -> str:
    """Processor time and share of each method."""
    total = sum(seconds.values()) or 1.0
    rows = [[METHODS[k].label, f"{s:.1f}", f"{s / max(trials, 1):.3f}", f"{s / total:.0%}"] for k, s in seconds.items()]
    head = f"{trials} trials, {total:.0f} s of processor time, {wall:.0f} s by the clock."
    return head + "\n\n" + markdown(["Method", "seconds", "per trial", "share"], rows)


def protocol_list(protocol: Mapping[str, Any], environment: Mapping[str, Any]) -> str:
    """Every choice and every version."""
    rows = [[f"`{name}`", value] for name, value in {**protocol, **environment}.items()]
    return markdown(["choice", "value"], rows)


# ---- the protocol study -----------------------------------------------------------------------------


def study_rows(fits: Sequence[Fit]) -> list[dict[str, Any]]:
    """One row per protocol, closest first."""
    return [
        {
            **{factor: getattr(fit.protocol, factor) for factor in FACTORS},
            "distance": fit.distance,
            "excess_standard_error": fit.excess_error,
            "distance_without_doubtful": fit.distance_without,
            "mean_auc_difference": fit.mean_difference,
            **{f"distance_{key}": value for key, value in fit.by_method.items()},
        }
        for fit in fits
    ]


def study(fits: Sequence[Fit], default: Protocol, shown: int = 15) -> str:
    """The protocol study as Markdown: rank of the default, closest protocols, effect of each choice."""
    labels = [METHODS[key].label for key in PRINTED_METHODS]
    header = [*FACTORS, "distance", "± excess", "without LOF on Flare", "mean AUC diff.", *labels]
    body = [[f"{v:.3f}" if isinstance(v, float) else v for v in row.values()] for row in study_rows(fits[:shown])]
    choices = markdown(
        ["choice", "value", "closest distance with it", "without LOF on Flare"],
        [[r["choice"], r["value"], f"{r['distance']:.3f}", f"{r['distance_without']:.3f}"] for r in marginals(fits)],
    )
    return "\n\n".join(
        [
            "The distance of a protocol is the root mean square, over seven sets and six methods, of (mean here - "
            "printed mean) / printed standard deviation; the last columns give it for each method alone. "
            "`± excess` is the standard error, from resampled trials, of its distance minus that of the closest. "
            "`without LOF on Flare` leaves out one printed value, 0.415, which the paper contradicts: the average "
            "printed for LOF, 0.565, is that of its rows only if this one counts as 1 - 0.415.",
            _standing(fits, default),
            f"## The {shown} closest of {len(fits)} protocols",
            "All of them are in `protocol.csv`.",
            markdown(header, body),
            "## What each choice matters",
            "For each value of each choice, the distance of the closest protocol that has it.",
            choices,
        ]
    )


def _standing(fits: Sequence[Fit], default: Protocol) -> str:
    """How many protocols are tied with the closest, and the rank of the default."""
    place, own = next((i, fit) for i, fit in enumerate(fits, start=1) if fit.protocol == default)
    without = sorted(fits, key=lambda fit: fit.distance_without)
    behind = f"number {place}, further away by {own.distance - fits[0].distance:.3f} ± {own.excess_error:.3f}"
    return (
        f"The default protocol of this package is {behind if place > 1 else 'the closest'}, and number "
        f"{1 + without.index(own)} without LOF on Flare. {len(tied(fits))} protocols, the closest among them, are "
        "further away than it by at most two standard errors: these trials do not tell them apart."
    )
