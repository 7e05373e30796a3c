"""Worker processes that do not outlive the command that started them, however it ends; the memory of a process."""

from __future__ import annotations

import ctypes
import os
import pickle
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any

#: Variables that set the number of threads of linear algebra.
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
#: Linux: the signal that a process gets when its parent ends (prctl(2)).
_PR_SET_PDEATHSIG = 1
#: Elsewhere: seconds between two looks for the parent.
_POLL_SECONDS = 0.5
_bound = threading.Event()


def end_with_parent(parent: int) -> None:
    """In a worker: end when the process `parent`, which started it, does, even by kill -9; further calls do nothing.

    A Ctrl-C, which reaches every process of a terminal, is for the parent to answer.
    """
    if _bound.is_set():
        return
    _bound.set()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it ended before
            os._exit(1)
    else:
        threading.Thread(target=_watch, args=(parent,), daemon=True).start()


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_POLL_SECONDS)
    os._exit(1)


def peak_memory() -> int | None:
    """Peak of this process's resident memory in bytes; None where the system does not tell.

    On Linux from VmHWM, since ru_maxrss of a new process also counts the process that started it.

    >>> peak_memory() > 10_000_000
    True
    """
    with suppress(OSError, StopIteration), open("/proc/self/status", encoding="ascii") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM"))
    with suppress(ImportError):  # on Windows
        from resource import RUSAGE_SELF, getrusage

        return getrusage(RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    return None


def call_apart(function: Callable[..., Any], *args: Any) -> Any:
    """The result of a function called in a new process, which ends with this one and with any interruption.

    >>> import math
    >>> call_apart(math.sqrt, 4.0)
    2.0
    """
    context = get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    call = pickle.dumps((function, args))  # read by the new process once it is bound to this one: that takes imports
    process = context.Process(target=_answer, args=(sender, os.getpid(), call), daemon=True)
    process.start()
    sender.close()
    try:
        result, error = receiver.recv()
    except EOFError:
        process.join()
        raise RuntimeError(f"the process for {function.__name__} ended with exit code {process.exitcode}") from None
    finally:
        receiver.close()
        process.terminate()
        process.join()
    if error is not None:
        raise error
    return result


def _answer(sender: Connection, parent: int, call: bytes) -> None:
    end_with_parent(parent)
    try:
        function, args = pickle.loads(call)
        sender.send((function(*args), None))
    except Exception as error:
        sender.send((None, error))
