"""Programs in other languages: what they may write, what they get, and how they fail."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from llr_cvx.arena import answers
from llr_cvx.arena.entries import command_entry
from llr_cvx.arena.sandbox import Limits
from llr_cvx.arena.tournament import Case, Task, run_task
from llr_cvx.instances import load_instance

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
GIVEN = load_instance("pair-apart")
LIMITS = Limits(60.0, 2**30)


def run(command: str, limits: Limits = LIMITS, name: str = GIVEN.name) -> dict[str, Any]:
    return run_task(Task(command_entry(command), Case(name, "library"), 0, 1e-6, limits))


@pytest.fixture
def program(tmp_path: Path) -> Any:
    """Make a program of Python source, with `out`, `problem` and the text of the right W at hand, and run it."""

    def make(source: str, limits: Limits = LIMITS) -> dict[str, Any]:
        path = tmp_path / "program.py"
        rows = "\\n".join(",".join(map(repr, row)) for row in GIVEN.W.tolist())
        head = f"import json, os, pathlib, sys, time\nproblem, out = map(pathlib.Path, sys.argv[1:])\nW = '{rows}\\n'\n"
        path.write_text(head + f"rows = {GIVEN.W.tolist()!r}\n" + source, encoding="utf-8")
        return run(f"{sys.executable} -I {path} {{problem}} {{out}}", limits)

    return make


# ---- the example in C ----------------------------------------------------------------------------------------------


@pytest.mark.long
def test_the_example_in_c_is_proved(tmp_path: Path) -> None:
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler: install gcc")
    subprocess.run([compiler, "-O2", "-o", tmp_path / "admm", EXAMPLES / "admm.c", "-lm"], check=True)
    row = run(f"{tmp_path / 'admm'} {{problem}} {{out}}", name="fused-some")
    assert row["status"] == "proved", row["reason"]
    assert row["stamped_by"] == "system"
    assert row["iterates"] == 150
    times = [row["time_to"][level] for level in ("1e-03", "1e-06", "1e-09")]
    assert times == sorted(times)
    assert times[-1] <= row["seconds"] + 0.1  # the clocks of files tick in hundredths


# ---- what a program gets and may write -----------------------------------------------------------------------------


def test_it_gets_the_problem_and_not_the_answer(program: Any) -> None:
    row = program("sys.exit(json.dumps([p.name for p in problem.iterdir()]))")
    assert {name.partition(".")[0] for name in json.loads(row["output"])} == {"edges", "instance", "problem", "samples"}
    row = program("sys.exit((problem / 'instance.json').read_text())")
    facts = json.loads(row["output"])
    assert facts == {"N": 2, "d": 1, "edges": 1, "lambda1": GIVEN.problem.lambda1, "lambda2": GIVEN.problem.lambda2}


@pytest.mark.parametrize(
    "source",
    [
        "(out / 'W.csv').write_text(W)",
        "(out / 'W.csv').write_text('w0\\n' + W)",
        "(out / 'W.json').write_text(json.dumps(rows))",
        "(out / 'W.json').write_text(json.dumps({'W': rows}))",
        "(out / 'answer.json').write_text(json.dumps({'W': rows, 'seconds': [0.1], 'iterates': [rows]}))",
        "out.with_suffix('.csv').write_text(W)",
        "open(out, 'w').write(W)",  # takes {out} for a file
        "open(out, 'w').write(json.dumps(rows))",
    ],
)
def test_forms_of_an_answer(program: Any, source: str) -> None:
    row = program(source)
    assert row["status"] == "proved", row["reason"]


def test_numpy_files_with_a_dual_point(tmp_path: Path) -> None:
    for name in ("W", "alpha", "U"):
        np.save(tmp_path / f"{name}.npy", getattr(GIVEN, name))
    row = run(f"cp {tmp_path}/W.npy {tmp_path}/alpha.npy {tmp_path}/U.npy {{out}} -t {{out}} {{problem}}/samples.csv")
    assert row["status"] == "crash"  # two targets: cp refuses
    (tmp_path / "copy.sh").write_text(f'cp {tmp_path}/*.npy "$2"', encoding="utf-8")
    row = run(f"sh {tmp_path}/copy.sh {{problem}} {{out}}")
    assert row["status"] == "proved"


def test_iterates_in_files_are_stamped_by_the_system(program: Any) -> None:
    source = (
        "(out / 'iterates').mkdir()\n"
        "for k in range(3):\n"
        "    time.sleep(0.1)\n"
        "    path = out / 'iterates' / f'{k}.csv'\n"
        "    path.write_text('0\\n0\\n' if k < 2 else W)\n"
        "    os.utime(path, (0, 0))\n"  # a file can lie about when it was modified, not about when it was changed
        "(out / 'W.csv').write_text(W)"
    )
    row = program(source)
    assert (row["status"], row["stamped_by"], row["monotone"]) == ("proved", "system", True)
    assert 0.25 < row["time_to"]["1e-03"] <= row["seconds"] + 0.1


def test_no_more_iterates_are_read_than_fit_into_memory(program: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "MAX_BYTES", 1000)  # of all together; each of these is smaller
    many = "(out / 'iterates').mkdir(); [(out / 'iterates' / f'{k:03}.csv').write_text(W) for k in range(900)]"
    row = program(f"{many}; (out / 'W.csv').write_text(W)")
    assert row["status"] == "proved"
    assert 0 < row["judged_iterates"] < 900
    assert any(f"only the first {row['judged_iterates']} of its 900 iterates" in note for note in row["notes"])


def test_no_text_is_read_that_would_not_fit_into_memory(program: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "MAX_TEXT", 1000)
    for name in ("W.csv", "W.json", "answer.json"):
        row = program(f"(out / '{name}').write_text('[' * 1001)")
        assert row["status"] == "invalid"
        assert "more than 1000 bytes of text" in row["reason"]


def test_reported_times_are_marked_as_such(program: Any) -> None:
    row = program("(out / 'answer.json').write_text(json.dumps({'W': rows, 'iterates': [rows], 'seconds': [1e-9]}))")
    assert row["stamped_by"] == "entry"
    assert row["time_to"]["1e-06"] == 1e-9


def test_a_forged_trace(program: Any) -> None:
    claim = "{'W': rows, 'iterates': [[[0.0], [0.0]], rows], 'trace': [1.0, 0.9]}"
    row = program(f"(out / 'answer.json').write_text(json.dumps({claim}))")
    assert row["status"] == "false claim"
    assert "reports J = 1 for iterate 0" in row["reason"]


# ---- failures ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "status", "words"),
    [
        ("pass", "invalid", "no output"),
        ("(out / 'W.csv').write_text(W[:3] + ',,'); os.kill(os.getpid(), 9)", "crash", "SIGKILL"),
        ("(out / 'W.csv').write_text(W[:-5] + ',x')", "invalid", "not whole or not a matrix"),
        ("(out / 'W.json').write_text(json.dumps(rows)[:-3])", "invalid", "not whole"),
        ("(out / 'W.csv').write_text('1,2')", "invalid", "shape (1, 2) but the problem needs (2, 1): it is transposed"),
        ("(out / 'W.csv').write_text('nan\\n0')", "invalid", "1 NaN or infinite"),
        ("(out / 'W.csv').write_text('1+2j\\n0')", "invalid", "shape (1, 1)"),
        ("os.symlink('/dev/zero', out / 'W.csv')", "invalid", "unreadable"),
        ("os.mkfifo(out / 'W.csv')", "invalid", "not a plain file"),
        ("(out / 'W.json').write_text('[' * 100000)", "invalid", "unreadable output: RecursionError"),
        ("(out / 'W.csv').write_text(W); sys.exit(7)", "crash", "exit status 7"),
        ("(out / 'claims.json').write_text('{'); (out / 'W.csv').write_text(W)", "invalid", "claims.json"),
    ],
)
def test_a_bad_answer_gets_its_reason(program: Any, source: str, status: str, words: str) -> None:
    row = program(source)
    assert row["status"] == status
    assert words in row["reason"]
    assert row["accepted"] is False


def test_a_claim_in_a_file_is_checked(program: Any) -> None:
    row = program("(out / 'W.csv').write_text(W); (out / 'claims.json').write_text('{\"objective\": 0.1}')")
    assert row["status"] == "false claim"


def test_no_shell_is_involved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    row = run("echo {problem} {out} ; touch stain")
    assert row["status"] == "invalid"
    assert list(tmp_path.iterdir()) == []


def test_a_relative_program_is_found_from_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rows = "\n".join(map(repr, GIVEN.W.ravel().tolist()))
    Path("mine").write_text(f'#!/bin/sh\necho "{rows}" > "$2/W.csv"\n', encoding="utf-8")
    Path("mine").chmod(0o755)
    for command in ("./mine {problem} {out}", "sh mine {problem} {out}"):
        row = run(command)
        assert row["status"] == "proved", row["reason"]


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("true {problem}", "must hold {out}"),
        ("no-such-program {problem} {out}", "no program is called 'no-such-program'"),
        ("true '{problem} {out}", "cannot be split"),
    ],
)
def test_a_bad_command_is_refused_before_anything_runs(command: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        command_entry(command)
