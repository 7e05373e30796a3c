"""The process under which entries run: it forks one supervisor per run, which forks the entry and ends it with all
its descendants.

    arena  --orders, one JSON object per line-->  warden  --fork-->  supervisor  --fork-->  entry

The warden has imported everything a Python entry needs, so that starting one takes milliseconds, and has no threads,
so that forking is safe. The supervisor is the reaper of all its descendants (PR_SET_CHILD_SUBREAPER): processes that
leave their session or lose their parent stay in its tree, are counted in the memory, and are killed at the end.
Where the system is not Linux, only the process group of the entry is killed, and memory is not limited.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import select
import signal
import sys
import time
import traceback
from typing import Any, NoReturn

from llr_cvx.arena import landlock, worker

#: Seconds between two looks at the limits, and between two searches for descendants, which read all of /proc.
POLL, SEARCH = 0.02, 0.25
#: Bytes kept of the end of each output stream; the rest is read, counted and dropped.
KEPT_OUTPUT = 16 * 1024
#: More processes than this in one entry are taken for a fork bomb.
MAX_PROCESSES = 256
#: What an entry may change besides its own folder: devices such as /dev/null, and shared memory.
DEVICES = "/dev"
_SUBREAPER = 36
_LINUX = sys.platform == "linux"

Order = dict[str, Any]


def serve() -> None:
    """Carry out the orders on standard input, one at a time, until the arena closes it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C ends the arena, and this with it
    for line in sys.stdin:
        inner, outer = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(inner)
            _supervise_and_exit(json.loads(line), outer)
        os.close(outer)
        with open(inner, "rb") as stream:
            answer = stream.read()
        os.waitpid(pid, 0)
        sys.stdout.write((answer.decode() or json.dumps({"end": "lost"})) + "\n")
        sys.stdout.flush()


def _supervise_and_exit(order: Order, outer: int) -> NoReturn:
    try:
        os.write(outer, json.dumps(Supervisor(order).run()).encode())
    except BaseException:
        traceback.print_exc()
    os._exit(0)


class Supervisor:
    """One run of one entry, under limits.

    The order holds `argv` (a program) or `worker` (arguments of `llr_cvx.arena.worker.run`), the folder `cwd`, which is
    the only one that may be changed, the environment `env`, and the limits `seconds` and `memory` (bytes).
    """

    def __init__(self, order: Order) -> None:
        self.order = order
        self.output = {"stdout": b"", "stderr": b""}
        self.printed = 0
        self.code: int | None = None
        self.end = "exit"
        self.cpu_seconds, self.peak = 0.0, 0
        self.tree: list[int] = []
        self.searched = 0.0

    def run(self) -> dict[str, Any]:
        """Start the entry, watch it, end it; what happened."""
        if _LINUX:
            ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)
        pipes = {name: os.pipe() for name in self.output}
        began, self.began = time.time(), time.monotonic()
        self.pid = os.fork()
        if self.pid == 0:
            _become_entry(self.order, pipes["stdout"][1], pipes["stderr"][1])
        for _, write_end in pipes.values():
            os.close(write_end)
        self.streams = {read_end: name for name, (read_end, _) in pipes.items()}
        for fd in self.streams:
            os.set_blocking(fd, False)
        self.watch()
        seconds = time.monotonic() - self.began
        self.read(0.0)
        self.reap()
        left_behind = len(living(descendants(os.getpid()))) if self.end == "exit" else 0
        self.kill_all()
        return {
            "end": self.end,
            "code": self.code,
            "began": began,
            "seconds": seconds,
            "cpu_seconds": self.cpu_seconds,
            "memory": self.peak,
            "left_behind": left_behind,
            "confined": landlock.version() > 0,
            "printed": self.printed,
            **{name: text.decode(errors="replace") for name, text in self.output.items()},
        }

    def watch(self) -> None:
        """Until the entry ends or exceeds a limit."""
        client = select.poll()
        client.register(0, select.POLLHUP)
        checked = 0.0
        while self.code is None and self.end == "exit":
            self.read(POLL)
            now = time.monotonic()
            if now - checked >= POLL:
                checked = now
                self.reap()
                if self.code is None:
                    self.end = self.exceeded(now, bool(client.poll(0)))

    def exceeded(self, now: float, abandoned: bool) -> str:
        """The limit that is exceeded, or "exit"."""
        if now - self.searched > SEARCH:
            self.tree, self.searched = descendants(os.getpid()), now
        tree = self.tree or [self.pid]
        used = resident(tree)
        if used > self.peak and len(tree) > 1:
            used = proportional(tree)
        self.peak = max(self.peak, used)
        if abandoned:
            return "abandoned"
        if now - self.began > self.order["seconds"]:
            return "time"
        if used > self.order["memory"] and proportional(tree) > self.order["memory"]:
            return "memory"
        return "processes" if len(tree) > MAX_PROCESSES else "exit"

    def read(self, timeout: float) -> None:
        """Take what the entry has printed and keep its end."""
        for fd in select.select(list(self.streams), [], [], timeout)[0]:
            try:
                chunk = os.read(fd, 1 << 20)
            except BlockingIOError:
                continue
            if not chunk:
                os.close(fd)
                del self.streams[fd]
                continue
            name = self.streams[fd]
            self.printed += len(chunk)
            self.output[name] = (self.output[name] + chunk)[-KEPT_OUTPUT:]

    def reap(self) -> None:
        """Collect processes that ended, orphans included."""
        while True:
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            self.cpu_seconds += usage.ru_utime + usage.ru_stime
            if pid == self.pid:
                self.code = os.waitstatus_to_exitcode(status)

    def kill_all(self) -> None:
        """End every descendant, however far it has run away."""
        while tree := descendants(os.getpid()) if _LINUX else [self.pid] * (self.code is None):
            for pid in tree:
                try:
                    os.kill(pid, signal.SIGKILL) if _LINUX else os.killpg(pid, signal.SIGKILL)
                except ProcessLookupError:
                    continue
            self.reap()
            time.sleep(0.002)


def _become_entry(order: Order, stdout: int, stderr: int) -> NoReturn:
    """Turn this process into the entry: a session of its own, its folder, its limits, nothing else open."""
    code = 1
    try:
        os.setsid()
        os.chdir(order["cwd"])
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(stdout, 1)
        os.dup2(stderr, 2)
        os.closerange(3, min(resource.getrlimit(resource.RLIMIT_NOFILE)[0], 65536))
        for name, value in ((resource.RLIMIT_CORE, 0), (resource.RLIMIT_FSIZE, order["memory"])):
            resource.setrlimit(name, (value, value))
        for number in (signal.SIGINT, signal.SIGPIPE):
            signal.signal(number, signal.SIG_DFL)
        landlock.write_only_in([order["cwd"], DEVICES])
        if order.get("argv"):
            os.execvpe(order["argv"][0], order["argv"], order["env"])  # an OSError if there is no such program
        os.environ.clear()
        os.environ.update(order["env"])
        code = worker.run(**order["worker"])
    except SystemExit as leaving:
        code = leaving.code if isinstance(leaving.code, int) else int(leaving.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


# ---- the tree of processes, from /proc -----------------------------------------------------------------------------


def descendants(pid: int) -> list[int]:
    """All living and unreaped descendants of a process; none where the system does not tell."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc") if os.path.isdir("/proc") else ():
        if name.isdigit() and (stat := _proc(int(name), "stat")):
            children.setdefault(int(stat.rpartition(")")[2].split()[1]), []).append(int(name))
    found, waiting = [], [pid]
    while waiting:
        mine = children.get(waiting.pop(), [])
        found += mine
        waiting += mine
    return found


def living(pids: list[int]) -> list[int]:
    """Those that are not zombies, waiting for their parent to take note of their end."""
    return [pid for pid in pids if _proc(pid, "stat").rpartition(")")[2].split()[:1] not in ([], ["Z"])]


def resident(pids: list[int]) -> int:
    """Resident memory in bytes; pages that processes share are counted in each."""
    return sum(int((_proc(pid, "statm") or "0 0").split()[1]) for pid in pids) * resource.getpagesize()


def proportional(pids: list[int]) -> int:
    """Memory in bytes; a page that n processes share counts as 1/n in each."""
    lines = (line for pid in pids for line in _proc(pid, "smaps_rollup").splitlines())
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))


def _proc(pid: int, name: str) -> str:
    try:
        with open(f"/proc/{pid}/{name}", encoding="ascii") as stream:
            return stream.read()
    except OSError:
        return ""


if __name__ == "__main__":
    serve()
