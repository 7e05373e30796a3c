"""A whole run: every entry on every problem, repeated in turns, resumable, and collected into one document."""

from __future__ import annotations

import os
import platform
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import IO, Any

from llr_cvx.arena.cases import Case, Task, run_task
from llr_cvx.arena.entries import Entry
from llr_cvx.arena.judge import STATUSES
from llr_cvx.arena.sandbox import Limits
from llr_cvx.experiments.runner import Workers, run_all
from llr_cvx.resume import code_version
from llr_cvx.store import Store

#: From the best row to the worst: the row of repeated runs is their worst.
WORST_LAST = list(STATUSES)
DEFAULT_LIMITS, ONE_AT_A_TIME = Limits(), Workers(jobs=1)


@dataclass(frozen=True)
class Plan:
    """What is run: entries, problems, and under which conditions."""

    entries: Sequence[Entry]
    cases: Sequence[Case]
    tol: float = 1e-6
    repeats: int = 1
    limits: Limits = DEFAULT_LIMITS
    workers: Workers = ONE_AT_A_TIME

    @property
    def comparable(self) -> bool:
        """Whether times can be compared: not if runs share cores."""
        return self.workers.jobs == 1 and self.workers.backend == "loky"

    def tasks(self) -> list[Task]:
        """In turns: all entries on a problem, then the next problem; after the last problem, the next repeat."""
        places = [
            (repeat, case, entry) for repeat in range(self.repeats) for case in self.cases for entry in self.entries
        ]
        return [Task(entry, case, repeat, self.tol, self.limits) for repeat, case, entry in places]

    def header(self) -> dict[str, Any]:
        """What stored records depend on, the code of this package included; repeats and problems may become more."""
        entries = [{"name": e.name, "spec": e.spec, "argv": list(e.argv), "source": e.source} for e in self.entries]
        conditions = {"tol": self.tol, "limits": self.limits._asdict(), "comparable": self.comparable}
        return {"entries": entries, **conditions, "code": code_version()}


def run_plan(plan: Plan, store: Path | None = None, stream: IO[str] | None = None) -> dict[str, Any]:
    """Run what the store does not hold yet; the document of all results, as `llr-cvx arena --json` writes it.

    Parameters
    ----------
    plan : Plan
    store : path, optional
        A file for finished runs, with which an interrupted run goes on where it stopped.
    stream : file, optional
        Where progress is reported. [default: standard error]
    """
    if store is None:
        with tempfile.TemporaryDirectory() as folder:
            return run_plan(plan, Path(folder) / "runs", stream)
    records = run_all(plan.tasks(), Store(store, plan.header()), plan.workers, stream, run_task)
    results = [
        collected([records[f"{entry.name} on {case.label}", repeat] for repeat in range(plan.repeats)])
        for entry in plan.entries
        for case in plan.cases
    ]
    conditions = {
        "tol": plan.tol,
        "time_limit": plan.limits.seconds,
        "memory_limit": plan.limits.memory,
        "threads": plan.limits.threads,
        "repeats": plan.repeats,
        "comparable_times": plan.comparable,
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
    }
    entries = [asdict(entry) | {"folders": []} for entry in plan.entries]
    return {"conditions": conditions, "entries": entries, "summary": summarise(results), "results": results}


def collected(records: list[dict[str, Any]]) -> dict[str, Any]:
    """One result from the repeats: its worst row, with the median of the times and all of them."""
    worst = max(records, key=lambda record: WORST_LAST.index(record["status"]))
    kept = {key: value for key, value in worst.items() if key not in ("cell", "trial", "session", "elapsed")}
    times = {name: [record[name] for record in records] for name in ("seconds", "cpu_seconds")}
    return kept | {name: median(values) for name, values in times.items()} | {"repeats": times}


def summarise(results: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """For each entry: how many rows of each status, the total time, and the cost of judging, the best first.

    >>> times = {"seconds": 2.0, "cpu_seconds": 2.0, "judge_seconds": 0.1}
    >>> summarise([{"entry": "mine", "status": "proved", "memory": 7, **times}])[0]["proved"]
    1
    """
    found = []
    for name in dict.fromkeys(row["entry"] for row in results):
        rows = [row for row in results if row["entry"] == name]
        counts = {status: sum(row["status"] == status for row in rows) for status in STATUSES}
        totals = {key: sum(row[key] for row in rows) for key in ("seconds", "cpu_seconds", "judge_seconds")}
        found.append(
            {"entry": name, "rows": len(rows), **counts, **totals, "memory": max(row["memory"] for row in rows)}
        )
    return sorted(found, key=lambda one: (-one["proved"], one["seconds"]))
