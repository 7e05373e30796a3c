"""Whole runs: the built-in entries, repeats in turns, resuming after a kill, several workers, comparison."""

from __future__ import annotations

import copy
import io
import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import llr_cvx as llr
from llr_cvx.arena import tournament
from llr_cvx.arena.compare import compare, split
from llr_cvx.arena.entries import BUILT_IN, python_entry
from llr_cvx.arena.sandbox import Limits
from llr_cvx.arena.tournament import (
    DRY_RUN,
    Plan,
    Task,
    collected,
    drill_cases,
    file_cases,
    library_cases,
    run_plan,
    run_task,
)
from llr_cvx.arena.warden import descendants
from llr_cvx.experiments.runner import Workers
from llr_cvx.instances import list_instances, load_instance

ENTRANTS = Path(__file__).with_name("entrants.py")
LIMITS = Limits(120.0, 2 * 2**30)


def plan(*names: str, only: tuple[str, ...] = ("fused-some",), **options: Any) -> Plan:
    return Plan([python_entry(name) for name in names], library_cases(only), limits=LIMITS, **options)


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """All built-in entries, and a conic solver by its name, on the dry run."""
    return run_plan(plan(*BUILT_IN, "SCS", only=DRY_RUN), tmp_path_factory.mktemp("arena") / "runs")


def rows_of(document: dict[str, Any], entry: str) -> list[dict[str, Any]]:
    return [row for row in document["results"] if row["entry"] == entry]


# ---- the built-in entries ------------------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("entry", ["fast", "irls", "exact", "admm"])
def test_the_built_in_solvers_are_proved(document: dict[str, Any], entry: str) -> None:
    rows = rows_of(document, entry)
    assert [row["status"] for row in rows] == ["proved"] * 3


def test_the_monotonicity_of_irls_is_real(document: dict[str, Any]) -> None:
    """J_epsilon, recomputed from the iterates, never rises; J itself does on some problem."""
    for entry in ("irls", "algorithm1"):
        assert all(row["monotone_smoothed"] for row in rows_of(document, entry))
    assert not all(row["monotone"] for row in rows_of(document, "irls"))
    assert all(row["monotone_smoothed"] is None for row in rows_of(document, "admm"))


@pytest.mark.parametrize("entry", ["algorithm1", "subgradient"])
def test_slow_methods_are_not_proved_and_told_why(document: dict[str, Any], entry: str) -> None:
    for row in rows_of(document, entry):
        assert row["status"] == "not proved"
        assert 1e-6 < row["relative_gap"] < 0.1
        assert "of the gap is in" in row["reason"]


def test_any_conic_solver_can_be_named(document: dict[str, Any]) -> None:
    assert all(row["status"] in ("proved", "not proved") for row in rows_of(document, "SCS"))


def test_judging_costs_little(document: dict[str, Any]) -> None:
    (summary,) = (one for one in document["summary"] if one["entry"] == "exact")
    assert summary["judge_seconds"] < 0.2 * summary["cpu_seconds"]


def test_the_dry_run_is_of_the_library() -> None:
    assert set(DRY_RUN) <= set(list_instances())
    assert len(DRY_RUN) == 3


# ---- problems without a stored optimum -----------------------------------------------------------------------------


@pytest.mark.long
def test_random_problems_and_own_files_are_judged_by_a_search(tmp_path: Path) -> None:
    X_inlier, X_test, _ = llr.make_synthetic(3, 0, 15, 8, 2)
    llr.Problem.from_samples(X_inlier, X_test).save(tmp_path / "mine.npz")
    some = [*drill_cases(3, "hostile", first_seed=5), *file_cases([tmp_path / "mine.npz"])]
    found = run_plan(Plan([python_entry("fast"), python_entry("subgradient")], some, limits=LIMITS), tmp_path / "runs")
    assert [row["instance"] for row in rows_of(found, "fast")] == ["hostile-5", "hostile-6", "hostile-7", "mine"]
    assert all(row["status"] == "proved" for row in rows_of(found, "fast"))
    poor = rows_of(found, "subgradient")[-1]
    assert poor["status"] == "not proved"
    assert poor["suboptimality"][0] > 0


def test_problems_of_the_same_name_are_refused(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        load_instance("pair-apart").problem.save(tmp_path / folder / "mine.npz")
    with pytest.raises(ValueError, match="two problems are called 'mine'"):
        file_cases([tmp_path / "a" / "mine.npz", tmp_path / "b" / "mine.npz"])


def test_a_problem_file_that_changed_is_not_taken_from_an_earlier_run(tmp_path: Path) -> None:
    path, found = tmp_path / "mine.npz", []
    for name in ("pair-apart", "pair-fused"):
        given = load_instance(name)
        given.problem.save(path)
        own = Plan([python_entry("fast")], file_cases([path]))
        found.append(run_plan(own, tmp_path / "runs", io.StringIO())["results"][0]["objective"])
        assert found[-1] == pytest.approx(given.upper, rel=1e-6)
    assert found[0] != found[1]


def test_a_run_by_other_code_is_not_gone_on_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pair = plan("fast", only=("pair-apart",))
    run_plan(pair, tmp_path / "runs", io.StringIO())
    monkeypatch.setattr(tournament, "code_version", lambda: "other")
    with pytest.raises(ValueError, match="records of another experiment"):
        run_plan(pair, tmp_path / "runs", io.StringIO())


def test_a_problem_without_a_minimiser_is_refused(tmp_path: Path) -> None:
    llr.Problem([[1.0], [-1.0]], [1, -1], [[0, 1]], [1.0], 0.1, 0.0).save(tmp_path / "open.npz")
    with pytest.raises(ValueError, match="no minimiser"):
        file_cases([tmp_path / "open.npz"])


# ---- repeats, resuming, workers ------------------------------------------------------------------------------------


def test_repeats_are_in_turns() -> None:
    order = [(t.repeat, t.case.name, t.entry.name) for t in plan("fast", "irls", only=DRY_RUN[:2], repeats=2).tasks()]
    a, b = DRY_RUN[:2]
    once = [(a, "fast"), (a, "irls"), (b, "fast"), (b, "irls")]
    assert order == [(repeat, *rest) for repeat in (0, 1) for rest in once]


def test_the_row_of_repeats_is_the_worst_one() -> None:
    records = [
        {"cell": "c", "trial": k, "status": status, "seconds": s, "cpu_seconds": s}
        for k, (status, s) in enumerate([("proved", 1.0), ("crash", 9.0), ("proved", 2.0)])
    ]
    row = collected(records)
    assert (row["status"], row["seconds"]) == ("crash", 2.0)
    assert row["repeats"]["seconds"] == [1.0, 9.0, 2.0]


def test_finished_runs_are_not_repeated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_plan(plan("fast", only=DRY_RUN[:1]), tmp_path / "runs")
    ran = []

    def counting(task: Task) -> dict[str, Any]:
        ran.append(task.key)
        return run_task(task)

    monkeypatch.setattr(tournament, "run_task", counting)
    found = run_plan(plan("fast", only=DRY_RUN[:2]), tmp_path / "runs")
    assert ran == [(f"fast on {DRY_RUN[1]}", 0)]
    assert len(found["results"]) == 2


def test_an_edited_solver_does_not_mix_with_its_past(tmp_path: Path) -> None:
    solver = tmp_path / "mine.py"
    solver.write_text("import numpy as np\ndef solve(p):\n    return np.zeros(p.shape)\n", encoding="utf-8")
    run_plan(plan(f"{solver}:solve"), tmp_path / "runs")
    solver.write_text("import numpy as np\ndef solve(p):\n    return np.ones(p.shape)\n", encoding="utf-8")
    with pytest.raises(ValueError, match="another experiment"):
        run_plan(plan(f"{solver}:solve"), tmp_path / "runs")


@pytest.mark.long
def test_a_killed_run_goes_on_and_leaves_no_process(tmp_path: Path) -> None:
    """Killed while the second entry hangs: it dies too, and the next run starts with what was finished."""
    command = [sys.executable, "-c", "from llr_cvx.cli import main; main()", "arena", "--solver", "fast"]
    command += ["--solver", f"{ENTRANTS}:hangs", "--only", "fused-some", "--json", str(tmp_path / "a.json")]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    store = tmp_path / "a.json.part"
    deadline = time.monotonic() + 60
    while not (store.exists() and store.read_text(encoding="utf-8").count("\n") >= 2):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    running = descendants(process.pid)
    process.send_signal(signal.SIGKILL)
    process.wait()
    deadline = time.monotonic() + 20
    while any(Path(f"/proc/{pid}").exists() for pid in running):
        assert time.monotonic() < deadline, "the entry outlived the arena"
        time.sleep(0.05)
    kept = [json.loads(line) for line in store.read_text(encoding="utf-8").splitlines()[1:]]
    assert [row["entry"] for row in kept] == ["fast"]


@pytest.mark.long
def test_several_at_a_time_are_marked_as_not_comparable(tmp_path: Path) -> None:
    found = run_plan(plan("fast", only=DRY_RUN, workers=Workers(jobs=2)), tmp_path / "runs")
    assert [row["status"] for row in found["results"]] == ["proved"] * 3
    assert found["conditions"]["comparable_times"] is False


def test_on_a_dask_cluster(tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0"
    ) as cluster:
        workers = Workers(backend="dask", scheduler=cluster.scheduler_address)
        found = run_plan(plan("fast", only=DRY_RUN[:2], workers=workers), tmp_path / "runs")
    assert [row["status"] for row in found["results"]] == ["proved"] * 2
    assert found["conditions"]["comparable_times"] is False


# ---- comparison ----------------------------------------------------------------------------------------------------


def timed(document: dict[str, Any], factor: float, noise: float = 0.02, seed: int = 0) -> dict[str, Any]:
    """The same results with five repeats around `factor` seconds."""
    changed, rng = copy.deepcopy(document), np.random.default_rng(seed)
    for row in changed["results"]:
        times = (factor * (1 + noise * rng.random(5))).tolist()
        row["repeats"] = {"seconds": times, "cpu_seconds": times}
    return changed


@pytest.fixture
def one(document: dict[str, Any]) -> dict[str, Any]:
    return {**document, "results": rows_of(document, "fast")}


def test_a_slower_solver_is_marked_and_noise_is_not(one: dict[str, Any]) -> None:
    before = timed(one, 1.0)
    for factor, verdict in ((1.0, "same"), (1.5, "slower"), (0.6, "faster")):
        assert {change.verdict for change in compare(before, timed(one, factor, seed=1))[0]} == {verdict}
    noisy = compare(timed(one, 1.0, noise=0.5), timed(one, 1.2, noise=0.5, seed=1))[0]
    assert {change.verdict for change in noisy} == {"same"}
    assert compare(before, timed(one, 1.5))[0][0].ratio == pytest.approx(1.5, rel=0.05)


def test_what_broke_is_marked(one: dict[str, Any]) -> None:
    before, after = timed(one, 1.0), timed(one, 1.0)
    after["results"][1] |= {"status": "timeout", "accepted": False}
    assert [change.verdict for change in compare(before, after)[0]] == ["same", "broken", "same"]
    assert [change.verdict for change in compare(after, before)[0]] == ["same", "mended", "same"]


def test_times_of_shared_cores_or_other_machines_are_not_judged(one: dict[str, Any]) -> None:
    before, after = timed(one, 1.0), timed(one, 3.0)
    for key, value in (("comparable_times", False), ("machine", "another"), ("threads", 4)):
        other = {**after, "conditions": after["conditions"] | {key: value}}
        changes, notes = compare(before, other)
        assert {change.verdict for change in changes} == {"unmeasured"}
        assert notes


def test_one_repeat_is_no_measurement(one: dict[str, Any]) -> None:
    assert {change.verdict for change in compare(one, one)[0]} == {"unmeasured"}


def test_other_tolerances_are_not_compared(one: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="differ in tol"):
        compare(one, {**one, "conditions": one["conditions"] | {"tol": 1e-3}})


def test_two_entries_of_one_run(document: dict[str, Any]) -> None:
    two = {**document, "results": rows_of(document, "fast") + rows_of(document, "subgradient")}
    assert [change.verdict for change in compare(*split(two))[0]] == ["broken"] * 3
    with pytest.raises(ValueError, match="two entries"):
        split(document)
