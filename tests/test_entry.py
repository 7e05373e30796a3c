"""The command as the system starts it: a lost output ends in one line. For signals see project/test_kills.py."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from sizes import in_long

START = [sys.executable, "-c", "from llr_cvx.entry import main; main()"]


def run(*arguments: str, **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*START, *arguments], stderr=subprocess.PIPE, text=True, check=False, **options)  # type: ignore[call-overload, no-any-return]


@pytest.mark.parametrize(
    "arguments", [["instances", "list"], in_long(["instances", "list", "--json", "-"]), in_long(["--help"])]
)
def test_a_reader_that_has_gone(arguments: list[str]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = run(*arguments, stdout=writing)
    finally:
        os.close(writing)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].endswith("cannot write standard output: Broken pipe")
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr


@pytest.mark.parametrize("arguments", [["instances", "list"], in_long(["--version"])])
def test_no_space_left(arguments: list[str]) -> None:
    with open("/dev/full", "w") as full:
        done = run(*arguments, stdout=full)
    assert (done.returncode, done.stderr) == (1, "llr-cvx: cannot write standard output: No space left on device\n")


@pytest.mark.long
def test_errors_help_and_exit_codes_are_those_of_the_commands() -> None:
    nonsense = run("nonsense")
    assert nonsense.returncode == 2
    assert "No such command" in nonsense.stderr
    missing = run("detect", "--inliers", "none\x1b[31m\n.csv", "--test", "none\x1b[31m\n.csv")
    assert missing.returncode == 1
    assert missing.stderr == "Error: none\\x1b[31m\\n.csv: no such file\n"


#: What compiled code and the interpreter may do with the exception that ends the command.
STOPPED = {
    "lost": "try:\n    stop()\nexcept SystemExit:\n    pass\ntime.sleep(60)",
    "another": "try:\n    stop()\nexcept SystemExit:\n    raise RuntimeError('Error calling __set_name__') from None",
    "an error shown": "try:\n    stop()\nexcept SystemExit:\n    raise click.ClickException('no luck') from None",
    "a long cleaning": "try:\n    stop()\nfinally:\n    time.sleep(1.5)\n    open('cleaned', 'w').close()",
    "a long way out": "import atexit\natexit.register(time.sleep, 1.5)\nstop()",
    "a later error": "try:\n    stop()\nfinally:\n    try:\n        1 / 0\n    except ValueError:\n        pass",
}


@pytest.mark.parametrize("case", [in_long(case) if "sleep" in STOPPED[case] else case for case in STOPPED])
def test_a_stop_is_not_lost(case: str, tmp_path: Path) -> None:
    code = f"""
import os, signal, time, click
import llr_cvx.cli
from llr_cvx.entry import main

def stop():
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(60)

@click.command()
def command():
{textwrap.indent(STOPPED[case], "    ")}

llr_cvx.cli.main = command
main()
"""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=50, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (143, "", "llr-cvx: terminated\n")
    assert (tmp_path / "cleaned").exists() == (case == "a long cleaning")


def test_it_is_ready_for_signals_before_anything_heavy_is_imported() -> None:
    code = "import sys, llr_cvx.entry; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert {"numpy", "scipy", "sklearn", "cvxpy", "click", "typing"}.isdisjoint(loaded)


@pytest.mark.long
def test_the_front_door_opens_on_demand() -> None:
    code = (
        "import sys, llr_cvx as llr\nassert 'numpy' not in sys.modules\n"
        "assert set(llr.__all__) == set(llr._HOME) and set(llr.__all__) <= set(dir(llr))\n"
        "assert all(getattr(llr, name).__name__ == name for name in llr.__all__)\n"
        "llr.checker.check, llr.instances.load_instance\n"
        "try: llr.nothing\nexcept AttributeError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout == "module 'llr_cvx' has no attribute 'nothing'\n", done.stderr


#: What can be done without waiting for CVXPY, and what needs it.
WITHOUT_CVXPY = {
    "import": "",
    "use": "llr.certify(p, llr.solve_fast(p).W), llr.solve_irls(p), llr.LLRDetector().fit(p.X, p.y), llr.LLRDetectorCV",
}
WITH_CVXPY = {"exact": "llr.LLRDetector(solver='exact').fit(p.X, p.y)"}


def imported_by(code: str) -> set[str]:
    """Top-level modules that a new interpreter loads to run a line with `llr`, given a small problem p."""
    data = "llr.make_synthetic(d=2, random_state=0, n_inlier=12, n_test_inlier=6, n_outlier=2)[:2]"
    problem = f"p = llr.Problem.from_samples(*{data})\n" if code else ""
    program = f"import sys, llr_cvx as llr\n{problem}{code}\nprint(*{{name.partition('.')[0] for name in sys.modules}})"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


@pytest.mark.parametrize("name", ["import", in_long("use"), in_long("exact")])
def test_cvxpy_is_imported_only_where_it_is_needed(name: str) -> None:
    loaded = imported_by((WITHOUT_CVXPY | WITH_CVXPY)[name])
    assert ("cvxpy" in loaded) == ("clarabel" in loaded) == (name in WITH_CVXPY)
    assert ("numpy" in loaded) == (name != "import")


def test_a_problem_with_a_graph_needs_neither_cvxpy_nor_scikit_learn() -> None:
    """Solving, proving and listing start in half a second; over a second more goes into imports otherwise."""
    code = (
        "import sys, llr_cvx as llr, llr_cvx.cli.cmd_instances\n"
        "p = llr.Problem([[1.0], [-1.0]], [1, -1], [[0, 1]], [1.0])\n"
        "llr.verify(p, llr.solve_fast(p).W), llr.solve_irls(p)\n"
        "print(*sys.modules)"
    )
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert {"cvxpy", "sklearn", "pandas", "scipy.stats"}.isdisjoint(loaded)
    assert {"matplotlib", "pyarrow", "jinja2", "flint", "distributed", "dask"}.isdisjoint(loaded)
    assert "scipy.sparse" in loaded
