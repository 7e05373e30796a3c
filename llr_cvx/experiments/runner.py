"""Run trials on all cores or a Dask cluster, storing each as soon as it finishes."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, Any

from joblib import Parallel, delayed, parallel_config

from llr_cvx.experiments.store import Record, TrialStore
from llr_cvx.experiments.trials import Task, run_trial
from llr_cvx.extras import pip_install


@dataclass(frozen=True)
class Workers:
    """Where trials run.

    Attributes
    ----------
    jobs : int
        Processes on this machine; -1 for one per core. With Dask, the cluster decides.
    backend : {"loky", "dask"}
    scheduler : str or None
        Address of the Dask scheduler, for example "tcp://10.0.0.1:8786".
    """

    jobs: int = -1
    backend: str = "loky"
    scheduler: str | None = None

    def __post_init__(self) -> None:
        if self.backend not in ("loky", "dask"):
            raise ValueError(f"backend must be 'loky' or 'dask', got {self.backend!r}")
        if (self.backend == "dask") != (self.scheduler is not None):
            raise ValueError("backend 'dask' and a scheduler address go together: give both or neither")
        if self.jobs == 0 or self.jobs < -1:
            raise ValueError(f"jobs must be a number of processes or -1 for all cores, got {self.jobs}")


def run_all(
    tasks: Sequence[Task], store: TrialStore, workers: Workers | None = None, stream: IO[str] | None = None
) -> dict[tuple[str, int], Record]:
    """Run the tasks that are not yet stored; return the records of all tasks, in task order.

    A run that is killed at any moment and restarted repeats no finished trial.
    """
    records = store.read()
    todo = [task for task in tasks if task.key not in records]
    progress = Progress(tasks[0].experiment if tasks else "", len(tasks), len(tasks) - len(todo), stream)
    start, session = time.monotonic(), 1 + max(store.sessions(), default=0)
    if todo:
        with store.writing() as writer, _parallel(workers or Workers()) as parallel:
            for record in parallel(delayed(run_trial)(task) for task in todo):
                record |= {"session": session, "elapsed": round(time.monotonic() - start, 2)}
                writer.append(record)
                records[record["cell"], record["trial"]] = record
                progress.advance()
    progress.close()
    return {task.key: records[task.key] for task in tasks}


@contextmanager
def _parallel(workers: Workers) -> Iterator[Parallel]:
    """A pool that returns each trial as soon as it finishes."""
    # batch_size=1: a larger batch is returned, and stored, only when its last trial has finished.
    options: dict[str, Any] = {"return_as": "generator_unordered", "batch_size": 1}
    if workers.backend == "loky":
        yield Parallel(n_jobs=workers.jobs, **options)
        return
    try:
        from distributed import Client
    except ImportError:
        raise ImportError(f"backend 'dask' requires the package distributed: {pip_install('distributed')}") from None
    with Client(workers.scheduler, set_as_default=False) as client, parallel_config("dask", client=client):
        yield Parallel(n_jobs=-1, **options)


class Progress:
    """Report finished trials on stderr: one updating line on a terminal, otherwise one line per tenth."""

    def __init__(self, label: str, total: int, done: int, stream: IO[str] | None = None) -> None:
        self.label, self.total, self.done = label, total, done
        self.stream = sys.stderr if stream is None else stream
        self.fresh = 0
        self.start = time.monotonic()
        self.terminal = self.stream.isatty()
        if total:
            self._show(end="" if self.terminal else "\n")

    def advance(self) -> None:
        """Count one more stored trial."""
        self.done, self.fresh = self.done + 1, self.fresh + 1
        if self.terminal:
            self._show(end="")
        elif self.done * 10 // self.total > (self.done - 1) * 10 // self.total:
            self._show(end="\n")

    def close(self) -> None:
        """End the line."""
        if self.terminal and self.total:
            print(file=self.stream)

    def _show(self, end: str) -> None:
        elapsed = time.monotonic() - self.start
        left = f", about {elapsed / self.fresh * (self.total - self.done):.0f} s left" if self.fresh else ""
        filled = 30 * self.done // self.total
        bar = f"[{'#' * filled}{'.' * (30 - filled)}]"
        text = f"{self.label} {bar} {self.done}/{self.total} trials, {elapsed:.0f} s{left}"
        print(f"\r{text:<100}" if self.terminal else text, end=end, file=self.stream, flush=True)
