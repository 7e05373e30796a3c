"""Run trials, or other tasks, on all cores or a Dask cluster, storing each as soon as it finishes."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import current_process
from typing import IO, Any, Protocol

from joblib import Parallel, delayed, parallel_config

from llr_cvx.experiments.trials import run_trial
from llr_cvx.extras import pip_install
from llr_cvx.processes import end_with_parent
from llr_cvx.progress import Progress
from llr_cvx.store import Record, Store


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


class Keyed(Protocol):
    """A task: what it belongs to, and the (cell, trial) under which its record is stored."""

    @property
    def experiment(self) -> str: ...  # noqa: D102
    @property
    def key(self) -> tuple[str, int]: ...  # noqa: D102


def run_all(
    tasks: Sequence[Keyed],
    store: Store,
    workers: Workers | None = None,
    stream: IO[str] | None = None,
    run: Callable[[Any], Record] | None = None,
) -> dict[tuple[Any, ...], Record]:
    """Run the tasks that are not yet stored; return the records of all tasks, in task order.

    A run that is killed at any moment and restarted repeats no finished trial. `run` turns a task into its record;
    without it, `run_trial` does.
    """
    records = store.read()
    todo = [task for task in tasks if task.key not in records]
    progress = Progress(tasks[0].experiment if tasks else "", len(tasks), len(tasks) - len(todo), stream)
    start, session = time.monotonic(), 1 + max(store.sessions(), default=0)
    if todo:
        with store.writing() as writer, _finished(todo, run or run_trial, workers or Workers()) as finished:
            for record in finished:
                record |= {"session": session, "elapsed": round(time.monotonic() - start, 2)}
                writer.append(record)
                records[record["cell"], record["trial"]] = record
                progress.advance()
    progress.close()
    return {task.key: records[task.key] for task in tasks}


def _in_worker(run: Callable[[Any], Record], task: Keyed, parent: int) -> Record:
    """The record of a task; a process that was started for it ends with the one that started it."""
    if current_process().name.startswith("Loky"):
        end_with_parent(parent)
    return run(task)


@contextmanager
def _finished(tasks: Sequence[Keyed], run: Callable[[Any], Record], workers: Workers) -> Iterator[Iterator[Record]]:
    """The records of tasks as they finish; an interruption ends the workers and waits for none of them."""
    with _parallel(workers) as parallel:
        records = parallel(delayed(_in_worker)(run, task, os.getpid()) for task in tasks)
        try:
            yield records
        except BaseException:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # joblib's, about the trials that are cancelled
                records.close()
            raise


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
