"""Read a folder of results back as rows."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from llr_cvx.experiments import tables
from llr_cvx.experiments.plans import FACTORS
from llr_cvx.experiments.protocol import Protocol

Row = Mapping[str, Any]

#: The reports that name the time they took.
TIMED = ("table2", "figure1", "variants", "exact", "protocol", "forensics")


@dataclass(frozen=True)
class Results:
    """The stored files as rows, the protocol of Table 2, and the processor time of each run in seconds."""

    table2: Sequence[Row]
    table2_trials: Sequence[Row]
    figure1: Sequence[Row]
    figure1_trials: Sequence[Row]
    exact: Sequence[Row]
    protocol: Sequence[Row]
    ceilings: Sequence[Row]
    forensics_trials: Sequence[Row]
    forensics_fresh: Sequence[Row]
    variants_trials: Sequence[Row]
    made_with: Protocol
    seconds: Mapping[str, float]


def read(folder: str | Path) -> Results:
    """The results in a folder; an error names the missing file and the command that makes it."""
    folder = Path(folder)
    rows = {}
    for name in (field.name for field in fields(Results) if field.name not in ("made_with", "seconds")):
        path = folder / f"{name}.csv"
        if not path.exists():
            target = "forensics" if name == "ceilings" else name.partition("_")[0]
            raise FileNotFoundError(f"{path} does not exist: run `llr-cvx reproduce {target} --out {folder}`")
        rows[name] = tables.read_csv(path)
    _require_all_choices(folder / "protocol.csv", rows["protocol"])
    made_with = Protocol(
        **{name: tables.value(_find(folder / "table2.md", rf"\| `{name}` \| ([\w-]+)")) for name in FACTORS}
    )
    seconds = {name: float(_find(folder / f"{name}.md", r"([\d.]+) s of processor time")) for name in TIMED}
    return Results(**rows, made_with=made_with, seconds=seconds)


def _require_all_choices(path: Path, study: Sequence[Row]) -> None:
    """The study holds every value of every choice, or it is not whole: nothing could be said about the missing ones."""
    for name, values in FACTORS.items():
        missing = [value for value in values if value not in {row.get(name) for row in study}]
        if missing:
            raise ValueError(f"{path} has no row with {name} {missing[0]}: run `llr-cvx reproduce protocol` again")


def _find(report: Path, pattern: str) -> str:
    found = re.search(pattern, report.read_text(encoding="utf-8"))
    if not found:
        raise ValueError(f"{report} has no match for {pattern!r}: run `llr-cvx reproduce {report.stem}` again")
    return found.group(1)
