"""The problems that entries are given, and one run of one entry on one of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

from llr_cvx.arena.entries import Entry
from llr_cvx.arena.judge import Known, Row, judge_run
from llr_cvx.arena.sandbox import Limits, execute
from llr_cvx.instances import Instance, list_instances, load_instance
from llr_cvx.instances.drill import GENERATORS
from llr_cvx.problem import Problem
from llr_cvx.verdicts.weights import Reference

#: Small instances of different kinds, for a dry run: one without network, one with some and one with planted fusion.
DRY_RUN = ("decoupled", "fused-some", "planted-clusters")


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
            ready = getattr(found, "stored", found) is not None  # large instances come without a reference point
            return found.problem, Known(found.lower, found.upper, partial(_point, found), ready)
        if self.origin == "file":
            return Problem.load(self.place), None
        return GENERATORS[self.origin](int(self.place)), None


def _point(instance: Instance) -> Reference:
    return Reference(instance.W, instance.alpha, instance.U)


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
    names = [path.stem for path in paths]
    twice = next((name for k, name in enumerate(names) if name in names[:k]), None)
    if twice is not None:
        raise ValueError(f"two problems are called {twice!r}: results are listed by file name, so rename one of them")
    for path in paths:
        Problem.load(path).require_attained()
    digests = [sha256(path.read_bytes()).hexdigest()[:16] for path in paths]
    return [Case(path.stem, "file", str(path.resolve()), digest) for path, digest in zip(paths, digests, strict=True)]


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
