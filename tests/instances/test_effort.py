"""What it takes to solve the instances: measured, stored, shown."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from llr_cvx.cli import main
from llr_cvx.instances import effort, list_instances, load_instance
from llr_cvx.instances.effort import EASY, MEDIUM, Effort, count_cg, load_efforts, measure, save_efforts
from llr_cvx.solution import SolverError


def test_every_instance_is_measured_and_the_grades_split_the_library() -> None:
    efforts = load_efforts()
    assert list(efforts) == list_instances()
    grades = [e.difficulty for e in efforts.values()]
    for grade in ("easy", "medium", "hard"):
        assert 15 <= grades.count(grade) <= 25
    for name, e in efforts.items():
        assert e.fast_seconds > 0
        assert (e.clarabel_seconds is None) == (e.clarabel == "not tried"), name
        assert (e.clarabel_excess is None) == (e.clarabel in ("failed", "not tried")), name


def test_the_file_says_what_made_it() -> None:
    made = json.loads(effort.EFFORT_FILE.read_text(encoding="utf-8"))["made"]
    assert made["command"].startswith("OMP_NUM_THREADS=1 llr-cvx instances measure --time-limit")
    assert {"machine", "python", "clarabel", "cvxpy"} <= set(made)


@pytest.mark.parametrize("name", ["pair-fused", "wide", "planted-fused", "network-lasso-1e-4"])
def test_difficulty_is_that_of_the_problem(name: str) -> None:
    """Libraries may differ in rounding, so a count may differ a little, but not a problem's difficulty."""
    assert count_cg(load_instance(name).problem) == pytest.approx(load_efforts()[name].cg_iterations, rel=0.3)


def test_grades() -> None:
    assert [Effort(n, 1.0).difficulty for n in (EASY, EASY + 1, MEDIUM, MEDIUM + 1, None)] == [
        *("easy", "medium", "medium", "hard", "hard")
    ]


def test_measured_excess_is_proved() -> None:
    instance = load_instance("fused-some")
    found = measure(instance, time_limit=60.0)
    assert found.clarabel == "optimal"
    assert 0 <= found.clarabel_excess <= 1e-6
    assert found.clarabel_seconds > 0


def test_a_limit_and_a_failure_are_told_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    instance = load_instance("size-100")
    stopped = measure(instance, time_limit=1e-6)
    assert stopped.clarabel == "user_limit"
    assert stopped.clarabel_time.startswith("> ")
    assert stopped.clarabel_excess > 1e-3
    assert measure(instance, 60.0, try_clarabel=False).clarabel_time == "not tried"

    def fail(*_: object, **__: object) -> None:
        raise SolverError("no W")

    monkeypatch.setattr("llr_cvx.solvers.exact.solve_exact", fail)
    failed = measure(instance, 60.0)
    assert (failed.clarabel, failed.clarabel_excess) == ("failed", None)
    assert failed.clarabel_time.startswith("failed, ")


def test_command_measure_keeps_what_it_does_not_measure(tmp_path: Path) -> None:
    out = tmp_path / "effort.json"
    save_efforts({"star": Effort(1, 2.0), "zeros": Effort(3, 4.0)}, "by hand", out)
    arguments = ["instances", "measure", "--only", "zeros", "--only", "pair-apart", "--largest", "5", "--out", str(out)]
    done = CliRunner().invoke(main, arguments)
    assert done.exit_code == 0, done.output
    found = load_efforts(out)
    assert list(found) == ["pair-apart", "star", "zeros"]  # in the order of the library
    assert found["star"] == Effort(1, 2.0)
    assert found["pair-apart"].clarabel == "optimal"
    assert found["zeros"].cg_iterations > 3
    assert found["zeros"].clarabel == "not tried"  # more than 5 unknowns
