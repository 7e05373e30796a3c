"""Every way in which a solver can lie or break gets the right row, and never ends the run."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from llr_cvx.arena import landlock
from llr_cvx.arena.entries import Entry, python_entry
from llr_cvx.arena.judge import STATUSES
from llr_cvx.arena.sandbox import Limits, _listing
from llr_cvx.arena.tournament import Case, Task, run_task
from llr_cvx.instances import load_instance

GIVEN = load_instance("fused-some")
FILE = Path(__file__).with_name("entrants.py")
CASE = Case("fused-some", "library")
PLENTY = Limits(60.0, 2 * 2**30)
SHORT = Limits(1.0, 2 * 2**30)


def run(function: str, limits: Limits = PLENTY, case: Case = CASE) -> dict[str, Any]:
    """The row of one entrant; whatever it did, the row is complete and only a proof is accepted."""
    row = run_task(Task(python_entry(f"{FILE}:{function}"), case, 0, 1e-6, limits))
    assert row["status"] in STATUSES
    assert row["accepted"] == (row["status"] == "proved")
    assert row["accepted"] or row["reason"]
    return row


# ---- honest ones, so that the others are known to fail for their own fault -----------------------------------------


@pytest.mark.parametrize("function", ["right", "with_a_dual_point", "yields"])
def test_an_honest_entry_is_proved(function: str) -> None:
    row = run(function)
    assert row["status"] == "proved", row["reason"]
    low, high = row["suboptimality"]
    assert 0 <= low <= high <= 1e-9 * row["objective"]
    assert row["notes"] == []
    assert row["memory"] > 0


def test_iterates_are_timed_and_judged() -> None:
    row = run("yields")
    assert row["monotone"] is True
    assert row["stamped_by"] == "runner"
    times = [row["time_to"][name] for name in ("1e-03", "1e-06", "1e-09")]
    assert times == sorted(times)
    assert 0 < times[0]
    assert times[-1] <= row["seconds"]
    assert len(row["curve"]) == 6


def test_a_rising_objective_is_seen() -> None:
    row = run("rises")
    assert row["monotone"] is False
    assert row["first_rise"] == 2
    assert row["status"] == "proved"  # the last iterate counts


def test_a_generator_is_stopped_at_the_limit() -> None:
    row = run("never_ends", SHORT)
    assert row["status"] == "proved"
    assert any("stopped at the time limit" in note for note in row["notes"])


# ---- lies ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("function", "words"),
    [
        ("claims_a_small_objective", r"claims J\(W\) = 34\.33.* but J\(W\) = 34\.37"),
        ("claims_a_large_dual", r"claims J\* >= 34\.40.* but J\* <= 34\.37"),
        ("claims_more_than_its_dual_point_proves", "its dual point proves .* only"),
        ("forges_its_trace", "reports J = 37.8.* for iterate 0, but J = 44.3"),
        ("claims_a_trace_below_the_optimum", "its trace holds 30.9.* but"),
    ],
)
def test_a_lie_is_called_one_although_the_answer_is_right(function: str, words: str) -> None:
    row = run(function)
    assert row["status"] == "false claim"
    assert re.search(words, row["reason"])
    assert row["suboptimality"][1] < 1e-9 * row["objective"]  # the W itself is optimal


def test_the_best_of_another_instance_is_not_proved() -> None:
    row = run("best_of_another_instance")
    assert row["status"] == "not proved"
    assert row["suboptimality"][0] > 1e-6 * row["objective"]  # proved to be worse
    assert re.search("of the gap is in (fit|network|selection); worst sample", row["reason"])
    assert sum(row["violations"].values()) == pytest.approx(row["suboptimality"][1], rel=1e-6)


def test_an_infeasible_dual_point_proves_nothing() -> None:
    row = run("infeasible_dual_point")
    assert row["status"] == "not proved"
    assert row["suboptimality"][0] > 0


# ---- not a W -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("function", "words"),
    [
        ("transposed", r"shape \(6, 64\) but the problem needs \(64, 6\): it is transposed"),
        ("complex_numbers", "complex128: real numbers"),
        ("not_a_number", "1 NaN or infinite entries, the first at 3, 2"),
        ("nothing", "returned None"),
        ("yields_nothing", "returned None"),
        ("words", "dtype <U7"),
        ("an_object", "W is not an array of numbers, it is of type object"),
        ("a_wrong_iterate", r"iterate 0 has shape \(5, 6\)"),
    ],
)
def test_what_is_not_a_matrix_of_this_problem_is_invalid(function: str, words: str) -> None:
    row = run(function)
    assert row["status"] == "invalid"
    assert re.search(words, row["reason"])
    assert row["suboptimality"] is None


def test_single_precision_is_judged_by_its_value_and_noted() -> None:
    row = run("single_precision")
    assert row["status"] == "proved"
    W = GIVEN.W.astype(np.float32).astype(float)
    assert row["objective"] == GIVEN.problem.objective(W)
    assert row["notes"] == ["W is float32: judged by its values as float64"]


# ---- broken --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("function", "status", "words"),
    [
        ("raises", "crash", "exit status 1: RuntimeError: the step length became negative"),
        ("half_a_file_and_dies", "crash", "SIGKILL"),
        ("exits_silently", "invalid", "no output"),
        ("vanishes", "invalid", "no output"),
        ("fakes_the_record", "invalid", "it ended before it returned"),
        ("enormous", "not proved", "J(W) overflows"),
    ],
)
def test_a_broken_entry_gets_its_reason(function: str, status: str, words: str) -> None:
    row = run(function)
    assert row["status"] == status
    assert words in row["reason"]


@pytest.mark.long
@pytest.mark.parametrize("function", ["hangs", "sleeps_past_the_limit"])
def test_what_takes_too_long_is_a_timeout(function: str) -> None:
    assert run(function, SHORT)["status"] == "timeout"


def gone(pid: int) -> bool:
    """Ended; a zombie that its new parent has not buried yet counts as that."""
    try:
        return ") Z " in Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except OSError:
        return True


@pytest.mark.long
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="descendants are found in /proc")
def test_all_descendants_are_killed() -> None:
    row = run("forks_and_hangs", SHORT)
    assert row["status"] == "timeout"
    pids = [int(pid) for pid in re.findall(r"pid (\d+)", row["output"])]
    assert len(pids) == 2
    assert all(gone(pid) for pid in pids)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="descendants are found in /proc")
def test_a_daemon_left_behind_is_killed_and_noted() -> None:
    row = run("leaves_a_daemon")
    assert row["status"] == "proved"
    assert any(re.search(r"left \d process\(es\) running", note) for note in row["notes"])


@pytest.mark.skipif(landlock.version() < landlock.SCOPED_SINCE, reason="needs Landlock of Linux 6.12")
def test_an_entry_cannot_end_what_watches_it() -> None:
    row = run("ends_its_supervisor", SHORT)
    assert row["status"] == "crash"
    assert "PermissionError" in row["reason"]
    assert all(gone(int(pid)) for pid in re.findall(r"pid (\d+)", row["output"]))
    assert run("ends_its_own_child")["status"] == "proved"


def test_impossible_times_are_not_believed() -> None:
    row = run("turns_back_the_clock")
    assert row["status"] == "proved"
    assert 0 < row["seconds"] < 60
    assert 0 <= row["cpu_seconds"] < 60


def test_the_clock_needs_nothing_that_an_entry_can_replace() -> None:
    assert run("takes_numpy_away")["status"] == "proved"


def test_files_that_vanish_while_a_folder_is_listed_are_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("stays", "goes"):
        (tmp_path / name).touch()
    with os.scandir(tmp_path) as listed:
        items = list(listed)
    (tmp_path / "goes").unlink()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(os, "scandir", lambda folder: items)
    assert {path for path, *_ in _listing(Entry("nothing"))} == {str(tmp_path / "stays")}


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is measured from /proc")
@pytest.mark.parametrize("function", ["eats_memory", "a_child_eats_memory"])
def test_what_eats_memory_is_killed(function: str) -> None:
    row = run(function, Limits(60.0, 2**29))
    assert row["status"] == "crash"
    assert "more than 0.5 GiB of memory" in row["reason"]


@pytest.mark.long
def test_a_gigabyte_of_output_is_dropped() -> None:
    row = run("prints_a_gigabyte")
    assert row["status"] == "proved"
    assert any("it printed 1049 MB" in note for note in row["notes"])
    assert len(row["output"]) < 10_000


# ---- trespassers ---------------------------------------------------------------------------------------------------


def test_changing_the_problem_in_memory_is_noticed() -> None:
    row = run("changes_its_problem")
    assert (row["status"], row["reason"]) == ("invalid", "it changed its input")


@pytest.mark.skipif(not landlock.version(), reason="the system has no Landlock to refuse writing")
@pytest.mark.parametrize("function", ["writes_outside", "changes_its_input_file"])
def test_writing_outside_is_refused(function: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARENA_STAIN", str(tmp_path / "stain"))
    row = run(function)
    assert row["status"] == "crash"
    assert "PermissionError" in row["reason"]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not landlock.version(), reason="the system has no Landlock to refuse writing")
def test_writing_outside_in_secret_leaves_no_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARENA_STAIN", str(tmp_path / "stain"))
    assert run("writes_outside_in_secret")["status"] == "proved"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.long
@pytest.mark.usefixtures("without_landlock")
class TestWithoutLandlock:
    """What the system does not refuse is noticed."""

    @pytest.mark.parametrize("function", ["changes_its_input_file", "removes_its_input"])
    def test_a_changed_input_file(self, function: str) -> None:
        row = run(function)
        assert (row["status"], row["reason"]) == ("invalid", "it changed its input")

    def test_a_file_beside_its_folder_and_one_where_it_was_started(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("ARENA_STAIN", str(tmp_path / "stain"))
        row = run("writes_outside_in_secret")
        assert (row["status"], row["reason"]) == ("invalid", "it changed stain")
        assert any(str(tmp_path / "stain") in note for note in row["notes"])


def test_the_run_goes_on_after_all_of_this() -> None:
    assert run("right")["status"] == "proved"
