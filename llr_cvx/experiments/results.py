"""Read a folder of results back as rows."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from llr_cvx.experiments import tables
from llr_cvx.experiments.benchmarks import BENCHMARKS
from llr_cvx.experiments.plans import FACTORS
from llr_cvx.experiments.printed import PRINTED_METHODS
from llr_cvx.experiments.protocol import Protocol

Row = Mapping[str, Any]

_FILES = ("table2", "table2_trials", "figure1", "figure1_trials", "exact", "protocol")


@dataclass(frozen=True)
class Results:
    """The stored files as rows, the protocol of Table 2, and the wall-clock seconds of the two full runs."""

    table2: Sequence[Row]
    table2_trials: Sequence[Row]
    figure1: Sequence[Row]
    figure1_trials: Sequence[Row]
    exact: Sequence[Row]
    protocol: Sequence[Row]
    made_with: Protocol
    clock: Mapping[str, float]


def read(folder: str | Path) -> Results:
    """The results in a folder; an error names the missing file and the command that makes it."""
    folder = Path(folder)
    rows = {}
    for name in _FILES:
        path = folder / f"{name}.csv"
        if not path.exists():
            raise FileNotFoundError(
                f"{path} does not exist: run `llr-cvx reproduce {name.removesuffix('_trials')} --out {folder}`"
            )
        rows[name] = tables.read_csv(path)
    made_with = Protocol(
        **{name: tables.value(_find(folder / "table2.md", rf"\| `{name}` \| (\w+)")) for name in FACTORS}
    )
    clock = {name: float(_find(folder / f"{name}.md", r"([\d.]+) s by the clock")) for name in ("table2", "figure1")}
    return Results(**rows, made_with=made_with, clock=clock)


def _find(report: Path, pattern: str) -> str:
    found = re.search(pattern, report.read_text(encoding="utf-8"))
    if not found:
        raise ValueError(f"{report} has no match for {pattern!r}: run `llr-cvx reproduce {report.stem}` again")
    return found.group(1)


def protocol_of(row: Row) -> Protocol:
    """The protocol of a row of the study."""
    return Protocol(**{name: row[name] for name in FACTORS})


def tied(study: Sequence[Row]) -> list[Row]:
    """The rows that are at most two standard errors further from the paper than the first."""
    nearest = study[0]["distance"]
    return [row for row in study if row["distance"] - nearest <= 2.0 * row["excess_standard_error"]]


def differences(table2: Sequence[Row]) -> dict[tuple[str, str], float]:
    """(mean here - printed mean) / printed standard deviation, for each set and printed method."""
    return {
        (row["set"], row["method"]): float(row["difference_in_paper_sd"])
        for row in table2
        if row["set"] in BENCHMARKS and row["method"] in PRINTED_METHODS
    }
