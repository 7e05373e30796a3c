"""Threads and memory of this process."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import cvxpy as cp
from threadpoolctl import threadpool_limits


@contextmanager
def blas_threads(threads: int) -> Iterator[None]:
    """The same number of BLAS and OpenMP threads for every solver in this process."""
    cp.installed_solvers()  # loads the solvers: a library can be limited only once it is there
    with threadpool_limits(threads):
        yield


def peak_memory() -> int | None:
    """Peak of this process's resident memory in bytes; None where the system does not tell.

    On Linux from VmHWM, since ru_maxrss of a new process also counts the process that started it.

    >>> peak_memory() > 10_000_000
    True
    """
    try:
        with open("/proc/self/status", encoding="ascii") as status:
            return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM"))
    except (OSError, StopIteration):
        pass
    try:
        from resource import RUSAGE_SELF, getrusage
    except ImportError:  # not on Windows
        return None
    return getrusage(RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
