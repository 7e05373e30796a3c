"""Run an entry on a problem: its folders, its limits, and what it must not have touched.

<temporary>/input/     the problem, read-only
<temporary>/scratch/   current folder and temporary files of the entry, the only place it may write to
<temporary>/scratch/out/   its answer
"""

from __future__ import annotations

import atexit
import json
import os
import secrets
import signal
import subprocess
import sys
import tempfile
import threading
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from llr_cvx.arena.answers import Answer, read_answer
from llr_cvx.arena.entries import Entry
from llr_cvx.instances.export import export_problem
from llr_cvx.instances.library import sizes
from llr_cvx.problem import Problem
from llr_cvx.processes import THREAD_VARIABLES

#: A Python entry that yields iterates is told to stop at its limit; this long after it, it is killed.
GRACE = 1.0


class Limits(NamedTuple):
    """Seconds and bytes that an entry may use for one problem, and threads that its linear algebra may use."""

    seconds: float = 120.0
    memory: int = 4 * 2**30
    threads: int = 1


@dataclass(frozen=True)
class Outcome:
    """How the process of an entry ended; times and memory are those of the process with all its descendants."""

    end: str  # "exit" by itself; "time", "memory" or "processes" by a limit; "abandoned" or "lost" by the arena
    code: int | None = None  # exit status; -k if signal k ended it
    began: float = 0.0  # time of day at which it was started
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    memory: int = 0
    left_behind: int = 0  # processes that were still running when it ended
    confined: bool = False  # whether writing outside its folder was refused by the system
    printed: int = 0  # bytes on standard output and error, of which the next two are the ends
    stdout: str = ""
    stderr: str = ""
    trespasses: tuple[str, ...] = ()  # its input, or files of the arena beside it, if it changed them
    suspicions: tuple[str, ...] = ()  # files changed during the run elsewhere, where the system could not refuse it

    def failure(self, limits: Limits) -> tuple[str, str]:
        """The status of a row and the reason, if there is no answer to judge; else ("", "")."""
        if self.end == "time":
            return "timeout", f"killed after {limits.seconds:g} s"
        if self.end == "memory":
            return "crash", f"killed: it used more than {limits.memory / 2**30:.3g} GiB of memory"
        if self.end == "processes":
            return "crash", "killed: it started too many processes"
        if self.end != "exit":
            return "crash", "the process that ran it was ended from outside"
        if self.trespasses:
            return "invalid", f"it changed {', '.join(self.trespasses)}"
        if not self.code:
            return "", ""
        name = next((known.name for known in signal.Signals if known == -self.code), f"signal {-self.code}")
        how = f"exit status {self.code}" if self.code > 0 else f"ended by {name}"
        last = (self.stderr.strip().splitlines() or [""])[-1][:200]
        return "crash", f"{how}: {last}" if last else how

    def notes(self) -> list[str]:
        """What else is worth telling."""
        notes = []
        if self.left_behind:
            notes.append(f"it left {self.left_behind} process(es) running: killed")
        if self.printed > 10**6:
            notes.append(f"it printed {self.printed / 1e6:.0f} MB: only the end was kept")
        if self.suspicions:
            notes.append(f"files outside its folder changed while it ran: {', '.join(self.suspicions[:3])}")
        return notes


def execute(entry: Entry, problem: Problem, tol: float, limits: Limits) -> tuple[Outcome, Answer]:
    """Run the entry on the problem, once, and read its answer."""
    token = "" if entry.argv else secrets.token_hex()
    with tempfile.TemporaryDirectory(prefix="llr-arena-", ignore_cleanup_errors=True) as name:
        root = Path(name).resolve()
        given, scratch, out = root / "input", root / "scratch", root / "scratch" / "out"
        out.mkdir(parents=True)
        if entry.argv:
            export_problem(problem, given)
            # Unlike in an exported instance, nothing about the optimum.
            (given / "instance.json").write_text(json.dumps(sizes(problem), indent=1), encoding="utf-8")
        else:
            given.mkdir()
            problem.save(given / "problem.npz")
        _protect(given, read_only=True)
        before, watched = _contents(given), _listing(entry)
        order = _order(entry, given, out, tol, limits, token)
        outcome = _Warden.here(limits.threads).run(order)
        if entry.argv and _wants_a_file(outcome, out):
            out.rmdir()
            outcome = _Warden.here(limits.threads).run(order)
        answer = read_answer(out, problem.shape, len(problem.edges), outcome.get("began", 0.0), token)
        found = ["its input"] * (_contents(given) != before or bool(answer.facts.get("changed")))
        found += sorted(str(path.name) for path in root.iterdir() if path not in (given, scratch))
        suspects = [] if outcome.get("confined") else sorted({path for path, *_ in watched ^ _listing(entry)})
        _protect(given, read_only=False)
    return Outcome(**outcome, trespasses=tuple(found), suspicions=tuple(suspects)), answer


def _order(entry: Entry, given: Path, out: Path, tol: float, limits: Limits, token: str) -> dict[str, Any]:
    """What the warden is told to do."""
    threads = dict.fromkeys(THREAD_VARIABLES, str(limits.threads))
    env = {**os.environ, **threads, "TMPDIR": str(out.parent), "PWD": str(out.parent)}
    order: dict[str, Any] = {"cwd": str(out.parent), "env": env, "memory": limits.memory}
    if entry.argv:
        words = [word.replace("{problem}", str(given)).replace("{out}", str(out)) for word in entry.argv]
        return order | {"argv": words, "seconds": limits.seconds}
    arguments = {"spec": entry.spec, "problem": str(given / "problem.npz"), "out": str(out), "tol": tol}
    arguments |= {"folders": list(entry.folders), "time_limit": limits.seconds, "token": token}
    return order | {"worker": arguments, "seconds": limits.seconds + GRACE}


def _wants_a_file(outcome: dict[str, Any], out: Path) -> bool:
    """Whether a program failed because {out} is a folder: it gets a second run in which it is the name of a file."""
    failed = outcome["end"] == "exit" and outcome["code"] != 0
    return failed and "s a directory" in outcome["stderr"] and out.is_dir() and not any(out.iterdir())


# ---- what it must not touch ----------------------------------------------------------------------------------------


def _protect(folder: Path, read_only: bool) -> None:
    if folder.is_dir():  # an entry may have removed it
        for path in folder.iterdir():
            path.chmod(0o444 if read_only else 0o644)
        folder.chmod(0o555 if read_only else 0o755)


def _contents(folder: Path) -> dict[str, str]:
    """Name and fingerprint of every file below a folder."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): sha256(path.read_bytes()).hexdigest() for path in files}


def _listing(entry: Entry) -> set[tuple[str, int, int]]:
    """Files where an entry is most likely to write by mistake, the folders it was started from: name, time and size."""
    folders = [Path.cwd(), *map(Path, entry.folders), *(Path(word).parent for word in entry.argv if os.sep in word)]
    found = set[tuple[str, int, int]]()
    for item in [item for folder in {f.resolve() for f in folders if f.is_dir()} for item in os.scandir(folder)]:
        with suppress(FileNotFoundError):  # gone meanwhile
            status = item.stat(follow_symlinks=False)
            found.add((item.path, status.st_mtime_ns, status.st_size))
    return found


# ---- the warden's end of the line ----------------------------------------------------------------------------------


class _Warden:
    """The warden of this process: started when first needed, ended with this process."""

    _running: ClassVar[dict[int, _Warden]] = {}
    _lock = threading.Lock()

    @classmethod
    def here(cls, threads: int) -> _Warden:
        with cls._lock:
            if threads not in cls._running or cls._running[threads].process.poll() is not None:
                cls._running[threads] = cls(threads)
            return cls._running[threads]

    def __init__(self, threads: int) -> None:
        env = {**os.environ, **dict.fromkeys(THREAD_VARIABLES, str(threads)), "PYTHONWARNINGS": "ignore"}
        command = [sys.executable, "-m", "llr_cvx.arena.warden"]
        self.busy = threading.Lock()
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env, text=True)
        atexit.register(self.close)

    def run(self, order: dict[str, Any]) -> dict[str, Any]:
        """Carry out one order and wait for its end."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        with self.busy:
            try:
                self.process.stdin.write(json.dumps(order) + "\n")
                self.process.stdin.flush()
                line = self.process.stdout.readline()
            except BrokenPipeError:
                line = ""
        return dict(json.loads(line)) if line else {"end": "lost"}

    def close(self) -> None:
        """End it; an entry that is running dies with it."""
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                stream.close()
        self.process.wait(timeout=20)
