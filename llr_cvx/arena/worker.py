"""Run a Python entry inside its own process: call it, stamp its iterates, and leave its answer as files.

What is on its clock: the call, and for a generator the time between two iterates; not importing it, reading the problem
or storing what it yields. The files are those that a program in another language may write too, see `answers`.
"""

from __future__ import annotations

import inspect
import json
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from llr_cvx.arena import entries
from llr_cvx.instances.library import digest
from llr_cvx.problem import Problem
from llr_cvx.processes import peak_memory

#: Iterates are all stored up to this many or this many bytes, then every 2nd, 4th, ... as more such blocks fill up.
BLOCK, BLOCK_BYTES = 1000, 200e6
#: Taken before an entry is imported.
_clock, _cpu = time.perf_counter, time.process_time


class Recorder:
    """Stores iterates as they come, with the clock stopped meanwhile.

    `iterates.npys` holds one .npy block per stored iterate, `stamps.bin` three doubles for each: seconds, epsilon and
    the objective it claimed, NaN where there is none.
    """

    def __init__(self, out: Path) -> None:
        self.blocks, self.stamps = open(out / "iterates.npys", "wb"), open(out / "stamps.bin", "wb", buffering=0)  # noqa: SIM115
        self.count = self.stored = 0
        self.stride = 1
        self.stopped_for = self.stopped_cpu = 0.0
        self.began, self.began_cpu = _clock(), _cpu()

    @property
    def seconds(self) -> float:
        """Time on the clock of the entry."""
        return _clock() - self.began - self.stopped_for

    @property
    def cpu_seconds(self) -> float:
        """Processor time on the clock of the entry, its threads included."""
        return _cpu() - self.began_cpu - self.stopped_cpu

    def record(self, value: Any) -> None:
        """Store one iterate."""
        seconds, stopped, stopped_cpu = self.seconds, _clock(), _cpu()
        if self.count % self.stride == 0:
            self._store(unpacked(value), seconds)
        self.count += 1
        self.stopped_for += _clock() - stopped
        self.stopped_cpu += _cpu() - stopped_cpu

    def _store(self, parts: dict[str, Any], seconds: float) -> None:
        W = np.asarray(parts.get("W"))
        W = np.empty(0) if W.dtype.hasobject else W  # no matrix of numbers: the wrong shape says so
        np.save(self.blocks, W, allow_pickle=False)
        self.blocks.flush()
        row = [seconds, *(float(parts.get(name, np.nan)) for name in ("epsilon", "objective"))]
        self.stamps.write(np.array(row).tobytes())
        self.stored += 1
        if self.stored % max(2, min(BLOCK, int(BLOCK_BYTES / (W.nbytes + 1)))) == 0:
            self.stride *= 2


def unpacked(value: Any) -> dict[str, Any]:
    """An answer in any of its forms as a mapping."""
    if isinstance(value, Mapping):
        return dict(value)
    if hasattr(value, "W"):
        parts = {name: getattr(value, name) for name in ("W", "epsilon", "objective") if hasattr(value, name)}
        proof = getattr(value, "certificate", None)
        return parts | ({name: getattr(proof, name) for name in ("alpha", "U", "dual")} if proof is not None else {})
    if isinstance(value, tuple) and len(value) == 3:
        return dict(zip(("W", "alpha", "U"), value, strict=True))
    return {"W": value}


def run(spec: str, problem: str, out: str, folders: list[str], tol: float, time_limit: float, token: str) -> int:
    """Run the entry on the problem and leave its answer in the folder `out`; the exit status of the process.

    The token goes into run.json: an entry that writes its answer past this function does not know it.
    """
    sys.dont_write_bytecode = True
    sys.path[:0] = folders
    given = Problem.load(problem)
    before = digest(given)
    solve = entries.load(spec)
    recorder = Recorder(Path(out))
    offered = {"tol": tol, "record": recorder.record}
    wanted = inspect.signature(solve).parameters
    result = solve(given, **{name: value for name, value in offered.items() if name in wanted})
    stopped = False
    if isinstance(result, Iterator):
        steps, result = result, None
        for result in steps:
            recorder.record(result)
            if recorder.seconds >= time_limit:
                stopped = True
                break
    facts: dict[str, Any] = {
        "seconds": recorder.seconds,
        "cpu_seconds": recorder.cpu_seconds,
        "iterates": recorder.count,
        "stopped": stopped,
    }
    facts |= {"changed": digest(given) != before, "token": token, "memory": peak_memory()}
    leave(unpacked(result), Path(out), facts)
    return 0


def leave(parts: dict[str, Any], out: Path, facts: dict[str, Any]) -> None:
    """Write the answer; the file run.json comes last."""
    if parts.get("W") is None:
        facts["fault"] = f"returned {parts.get('W', 'a mapping without W')!r:.80}, not a W"
    for name in ("W", "alpha", "U"):
        if parts.get(name) is not None:
            array = np.asarray(parts[name])
            if array.dtype.hasobject:
                facts["fault"] = f"{name} is not an array of numbers, it is of type {type(parts[name]).__name__}"
            else:
                np.save(out / f"{name}.npy", array, allow_pickle=False)
    claims = {name: parts[name] for name in ("objective", "dual", "trace") if parts.get(name) is not None}
    (out / "claims.json").write_text(json.dumps(claims, default=_plain), encoding="utf-8")
    (out / "run.json").write_text(json.dumps(facts), encoding="utf-8")


def _plain(value: Any) -> Any:
    return value.tolist() if isinstance(value, (np.ndarray, np.generic)) else str(value)
