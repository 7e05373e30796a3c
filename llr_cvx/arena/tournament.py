"""A whole run: every entry on every problem, repeated in turns, resumable, and collected into one document."""

from __future__ import annotations

import os
import platform
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from itertools import product
from pathlib import Path
from statistics import median
from typing import IO, Any

from llr_cvx.arena.entries import Entry
from llr_cvx.arena.judge import STATUSES, Known, Row, judge_run
from llr_cvx.arena.sandbox import Limits, execute
from llr_cvx.experiments.runner import Workers, run_all
from llr_cvx.instances import list_instances, load_instance
from llr_cvx.instances.drill import GENERATORS
from llr_cvx.problem import Problem
from llr_cvx.store import Store, code_version
from llr_cvx.verdicts.weights import Reference

#: Small instances of different kinds, for a dry run: one without network, one with some and one with planted fusion.
DRY_RUN = ("decoupled", "fused-some", "planted-clusters")
#: From the best row to the worst: the row of repeated runs is their worst.
WORST_LAST = list(STATUSES)
DEFAULT_LIMITS, ONE_AT_A_TIME = Limits(), Workers(jobs=1)


# ---- problems ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """A problem by where it comes from: "library", a generator of the drill, or "file" with a `digest` of its contents.

    >>> Case("fused-some", "library").load()[0]
    Problem(N=64, d=6, edges=234, lambda1=0.1, lambda2=0.1)
    """

    name: str
    origin: str
    place: str = ""
    digest: str = ""

    @property
    def label(self) -> str:
        """What stored runs are found by: a file that has changed is another problem."""
        return f"{self.name} {self.digest}" if self.digest else self.name

    def load(self) -> tuple[Problem, Known | None]:
        """The problem, and what is known about its optimum."""
        if self.origin == "library":
            found = load_instance(self.name)
            ready = found.stored is not None  # large instances come without a reference point
            return found.problem, Known(found.lower, found.upper, lambda: Reference(*found.point), ready)
        if self.origin == "file":
            return Problem.load(self.place), None
        return GENERATORS[self.origin](int(self.place)), None


def library_cases(names: Sequence[str] = ()) -> list[Case]:
    """Instances of the library by name; all without names."""
    unknown = [name for name in names if name not in list_instances()]
    if unknown:
        raise ValueError(f"no instance is called {unknown[0]!r}: see llr-cvx instances list")
    return [Case(name, "library") for name in names or list_instances()]


def drill_cases(count: int, generator: str, first_seed: int = 0) -> list[Case]:
    """Random problems of a generator of the drill."""
    return [Case(f"{generator}-{seed}", generator, str(seed)) for seed in range(first_seed, first_seed + count)]


def file_cases(paths: Sequence[Path]) -> list[Case]:
    """Problems saved by `Problem.save`; each is read once, so that a bad one is noticed before anything runs."""
    cases: dict[str, Case] = {}
    for path in paths:
        name, digest = path.stem, sha256(path.read_bytes()).hexdigest()[:16]
        if name in cases:
            raise ValueError(
                f"two problems are called {name!r}: results are listed by file name, so rename one of them"
            )
        Problem.load(path).require_attained()
        cases[name] = Case(name, "file", str(path.resolve()), digest)
    return list(cases.values())


# ---- runs ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Task:
    """One run of one entry on one problem."""

    entry: Entry
    case: Case
    repeat: int
    tol: float
    limits: Limits

    @property
    def experiment(self) -> str:
        """Label of the progress line."""
        return "arena"

    @property
    def key(self) -> tuple[str, int]:
        """Under which its record is stored."""
        return f"{self.entry.name} on {self.case.label}", self.repeat


def run_task(task: Task) -> dict[str, Any]:
    """Run the entry in its sandbox and judge its answer; the record to store."""
    problem, known = task.case.load()
    outcome, answer = execute(task.entry, problem, task.tol, task.limits)
    try:
        row = judge_run(problem, known, outcome, answer, task.tol, task.limits)
    except Exception as error:  # whatever an answer does to the judge, the run goes on
        row = Row("invalid", f"it could not be judged: {type(error).__name__}: {error}")
    cell, trial = task.key
    sizes = {"N": problem.shape[0], "d": problem.shape[1], "edges": len(problem.edges)}
    return {"cell": cell, "trial": trial, "entry": task.entry.name, "instance": task.case.name, **sizes, **asdict(row)}


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
        turns = product(range(self.repeats), self.cases, self.entries)
        return [Task(entry, case, repeat, self.tol, self.limits) for repeat, case, entry in turns]

    def header(self) -> dict[str, Any]:
        """What stored records depend on, the code of this package included; repeats and problems may become more."""
        entries = [asdict(entry) | {"folders": []} for entry in self.entries]
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
    header = plan.header()
    records = run_all(plan.tasks(), Store(store, header), plan.workers, stream, run_task)
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
    summary = summarise(results)
    return {"conditions": conditions, "entries": header["entries"], "summary": summary, "results": results}


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
        memory = max(row["memory"] for row in rows)
        found.append({"entry": name, "rows": len(rows), **counts, **totals, "memory": memory})
    return sorted(found, key=lambda one: (-one["proved"], one["seconds"]))
