"""Honest, lying and broken solvers, as entries of the arena: each is named for what it does."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import llr_cvx as llr
from llr_cvx.arena import worker
from llr_cvx.instances import load_instance

#: The problem that all of them are given, and another one of the same shape.
GIVEN, OTHER = load_instance("fused-some"), load_instance("fused-most")
#: Gone after a second of work in the background.
FOREVER = 1000.0


def right(problem: llr.Problem) -> np.ndarray:
    return GIVEN.W


def with_a_dual_point(problem: llr.Problem) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return GIVEN.W, GIVEN.alpha, GIVEN.U


def yields(problem: llr.Problem) -> Iterator[np.ndarray]:
    for share in (0.0, 0.5, 0.9, 0.999, 0.9999999, 1.0):
        yield share * GIVEN.W


def rises(problem: llr.Problem) -> Iterator[np.ndarray]:
    for share in (0.0, 0.9, 0.5, 1.0):
        yield share * GIVEN.W


def never_ends(problem: llr.Problem) -> Iterator[np.ndarray]:
    while True:
        yield GIVEN.W
        time.sleep(0.01)


# ---- lies ----------------------------------------------------------------------------------------------------------


def best_of_another_instance(problem: llr.Problem) -> np.ndarray:
    return OTHER.W


def claims_a_small_objective(problem: llr.Problem) -> dict[str, Any]:
    return {"W": GIVEN.W, "objective": 0.999 * GIVEN.lower}


def claims_a_large_dual(problem: llr.Problem) -> dict[str, Any]:
    return {"W": GIVEN.W, "dual": 1.001 * GIVEN.upper}


def claims_more_than_its_dual_point_proves(problem: llr.Problem) -> dict[str, Any]:
    return {"W": GIVEN.W, "alpha": 0.5 * GIVEN.alpha, "U": 0.0 * GIVEN.U, "dual": GIVEN.lower}


def forges_its_trace(problem: llr.Problem) -> Iterator[dict[str, Any]]:
    for k in range(5):
        yield {"W": GIVEN.W * k / 4, "objective": GIVEN.upper * (1 + 0.1 ** (k + 1))}


def claims_a_trace_below_the_optimum(problem: llr.Problem) -> dict[str, Any]:
    return {"W": GIVEN.W, "trace": [50.0, 40.0, 0.9 * GIVEN.lower]}


def infeasible_dual_point(problem: llr.Problem) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Far outside its domain, where D would be huge; its W is poor."""
    return 0.9 * GIVEN.W, 50.0 * GIVEN.alpha, 1e6 * np.ones_like(GIVEN.U)


# ---- not a W -------------------------------------------------------------------------------------------------------


def single_precision(problem: llr.Problem) -> np.ndarray:
    return GIVEN.W.astype(np.float32)


def transposed(problem: llr.Problem) -> np.ndarray:
    return GIVEN.W.T


def complex_numbers(problem: llr.Problem) -> np.ndarray:
    return GIVEN.W + 0j


def not_a_number(problem: llr.Problem) -> np.ndarray:
    W = GIVEN.W.copy()
    W[3, 2] = np.nan
    return W


def nothing(problem: llr.Problem) -> None:
    return None


def yields_nothing(problem: llr.Problem) -> Iterator[np.ndarray]:
    yield from ()


def words(problem: llr.Problem) -> str:
    return "optimal"


def an_object(problem: llr.Problem) -> object:
    return object()


def a_wrong_iterate(problem: llr.Problem) -> Iterator[np.ndarray]:
    yield GIVEN.W[:5]
    yield GIVEN.W


# ---- broken --------------------------------------------------------------------------------------------------------


def raises(problem: llr.Problem) -> np.ndarray:
    raise RuntimeError("the step length became negative")


def exits_silently(problem: llr.Problem) -> np.ndarray:
    sys.exit(0)


def vanishes(problem: llr.Problem) -> np.ndarray:
    os._exit(0)


def fakes_the_record(problem: llr.Problem) -> np.ndarray:
    """Writes what the worker would, with a better time, and leaves before it can."""
    np.save("out/W.npy", GIVEN.W)
    Path("out/run.json").write_text('{"seconds": 1e-9, "cpu_seconds": 1e-9, "token": ""}', encoding="utf-8")
    os._exit(0)


def enormous(problem: llr.Problem) -> np.ndarray:
    return np.full(problem.shape, 1e300)


def removes_its_input(problem: llr.Problem) -> np.ndarray:
    shutil.rmtree("../input")
    return GIVEN.W


def half_a_file_and_dies(problem: llr.Problem) -> np.ndarray:
    np.save("out/W.npy", GIVEN.W)
    os.truncate("out/W.npy", 1000)
    os.kill(os.getpid(), signal.SIGKILL)
    return GIVEN.W


def hangs(problem: llr.Problem) -> np.ndarray:
    while True:
        pass


def sleeps_past_the_limit(problem: llr.Problem) -> np.ndarray:
    time.sleep(1.5)
    return GIVEN.W


def forks_and_hangs(problem: llr.Problem) -> np.ndarray:
    """A child, a grandchild in a session of its own, and an orphan; all ignore friendly signals."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    for detached in (False, True):
        if os.fork() == 0:
            if detached:
                os.setsid()
                if os.fork() > 0:
                    os._exit(0)
            print("pid", os.getpid(), file=sys.stderr, flush=True)
            time.sleep(FOREVER)
            os._exit(0)
    time.sleep(FOREVER)
    return GIVEN.W


def leaves_a_daemon(problem: llr.Problem) -> np.ndarray:
    if os.fork() == 0:
        os.setsid()
        if os.fork() > 0:
            os._exit(0)
        time.sleep(FOREVER)
        os._exit(0)
    return GIVEN.W


def ends_its_supervisor(problem: llr.Problem) -> np.ndarray:
    print("pid", os.getpid(), file=sys.stderr, flush=True)
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(FOREVER)
    return GIVEN.W


def ends_its_own_child(problem: llr.Problem) -> np.ndarray:
    child = os.fork()
    if child == 0:
        time.sleep(FOREVER)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return GIVEN.W


def turns_back_the_clock(problem: llr.Problem) -> np.ndarray:
    worker._clock, worker._cpu = (lambda: -np.inf), (lambda: np.nan)
    return GIVEN.W


def takes_numpy_away(problem: llr.Problem) -> np.ndarray:
    """The clock must need nothing that an entry can replace."""
    W = right(problem)
    np.array = None  # type: ignore[assignment]
    return W


def eats_memory(problem: llr.Problem) -> np.ndarray:
    eaten = [np.ones(2**21) for _ in range(128)]  # 2 GiB if nobody stops it
    return GIVEN.W + 0.0 * eaten[0][0]


def a_child_eats_memory(problem: llr.Problem) -> np.ndarray:
    if os.fork() == 0:
        eats_memory(problem)
        os._exit(0)
    os.wait()
    return GIVEN.W


def prints_a_gigabyte(problem: llr.Problem) -> np.ndarray:
    block = b"x" * 2**20
    for _ in range(1000):
        os.write(1, block)
    return GIVEN.W


# ---- trespassers ---------------------------------------------------------------------------------------------------


def changes_its_problem(problem: llr.Problem) -> np.ndarray:
    problem.X.setflags(write=True)
    problem.X[:] = 0.0
    return GIVEN.W


def changes_its_input_file(problem: llr.Problem) -> np.ndarray:
    path = Path("../input/problem.npz")
    path.chmod(0o644)
    path.write_bytes(b"nothing")
    return GIVEN.W


def writes_outside(problem: llr.Problem) -> np.ndarray:
    Path(os.environ["ARENA_STAIN"]).write_text("here I was", encoding="utf-8")
    return GIVEN.W


def writes_outside_in_secret(problem: llr.Problem) -> np.ndarray:
    for path in (Path(os.environ["ARENA_STAIN"]), Path("../stain")):
        try:
            path.write_text("here I was", encoding="utf-8")
        except OSError:
            continue
    return GIVEN.W
