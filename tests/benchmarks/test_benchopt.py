"""The benchopt benchmark, run by benchopt itself in a process of its own, offline."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from scripts import load

from llr_cvx.instances import list_instances, load_instance

FOLDER = Path(__file__).parents[2] / "benchmarks" / "benchopt"
REACHES = {"FAST": 1e-9, "IRLS": 1e-9, "CVXPY": 1e-9, "ADMM": 1e-2, "Algorithm 1": 1e-2, "Subgradient": 1e-2}


def benchopt(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "benchopt", *arguments]
    environment = os.environ | {"HOME": str(folder), "OMP_NUM_THREADS": "1", "NO_COLOR": "1"}
    environment |= dict.fromkeys(("http_proxy", "https_proxy"), "http://127.0.0.1:9")  # nothing is fetched
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The benchmark in a folder of its own: benchopt writes its cache beside it."""
    folder = tmp_path_factory.mktemp("benchopt") / "benchmark"
    return Path(shutil.copytree(FOLDER, folder, ignore=shutil.ignore_patterns("outputs", "__*__")))


@pytest.mark.long
def test_every_solver_runs_and_its_gap_is_certified(copy: Path) -> None:
    import pandas as pd

    names = ("fused-some", "no-edges")
    chosen = f"library[instance=[{','.join(names)}]]"
    output = copy / "result" / "run.parquet"
    done = benchopt(copy, "run", ".", "-d", chosen, "-n", "9", "-r", "1", "--no-plot", "--output", str(output))
    assert done.returncode == 0, done.stderr
    assert "error" not in done.stdout.lower(), done.stderr
    table = pd.read_parquet(output)
    for name in names:
        instance = load_instance(name)
        rows = table[table["dataset_name"].str.contains(name)]
        runs = rows["solver_name"].str.split("[").str[0]
        assert set(runs) == set(REACHES)
        assert rows["solver_name"].nunique() == len(REACHES) + 1  # CVXPY with Clarabel and with SCS
        for solver, tol in REACHES.items():
            assert rows["objective_value"][runs == solver].min() <= tol, solver
        # The metric is what the proven interval says of J, never too small.
        J, gap = rows["objective_J"].to_numpy(), rows["objective_value"].to_numpy()
        np.testing.assert_allclose(gap, (J - instance.lower) / J, rtol=1e-12, atol=1e-15)
        assert np.all(J >= instance.lower)


@pytest.mark.long
def test_data_and_metric(copy: Path) -> None:
    """The solver is not told the bound, the whole library is offered, and a W that is none gets an infinite gap."""
    code = """
import numpy as np
from benchopt.benchmark import Benchmark
benchmark = Benchmark(".")
Dataset = next(d for d in benchmark.get_datasets() if d.name == "Simulated")
objective = benchmark.get_benchmark_objective()()
data = Dataset.get_instance(n_samples=31, d=3).get_data()
objective.set_data(**data)
X = data["X"]
zero = objective.evaluate_result(**objective.get_one_result())
print(X.shape, zero["J"], zero["value"], "lower" in objective.get_objective())
Library = next(d for d in benchmark.get_datasets() if d.name == "library")
print(*Library.parameters["instance"])
for W in (np.full(X.shape, np.nan), np.zeros(X.shape[::-1]), np.zeros(X.shape) + np.inf):
    print(objective.evaluate_result(W)["value"])
"""
    environment = os.environ | {"HOME": str(copy)}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=copy, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    first, offered, *wrong = done.stdout.splitlines()
    shape, J, gap, told = first.rsplit(maxsplit=3)
    assert shape == "(31, 3)"
    assert float(J) == pytest.approx(31 * np.log(2))
    assert 0 < float(gap) < 1
    assert told == "False"
    assert offered.split() == list_instances()
    assert wrong == ["inf"] * 3


def test_the_metric_and_the_library_without_benchopt(monkeypatch: pytest.MonkeyPatch) -> None:
    """The two files that matter, with classes in place of benchopt's: an instance, its bound, and the gap of a W."""
    monkeypatch.setitem(sys.modules, "benchopt", SimpleNamespace(BaseObjective=object, BaseDataset=object))
    library = load("benchmarks/benchopt/datasets/library.py").Dataset()
    assert library.parameters["instance"] == list_instances()
    library.instance = "fused-some"
    objective = load("benchmarks/benchopt/objective.py").Objective()
    objective.set_data(**library.get_data())
    assert "lower" not in objective.get_objective()
    instance = load_instance("fused-some")
    assert 0 <= objective.evaluate_result(instance.W)["value"] <= 1e-9
    assert 0 < objective.evaluate_result(**objective.get_one_result())["value"] < 1
    for W in (np.full(instance.W.shape, np.nan), np.zeros(instance.W.shape[::-1])):
        assert objective.evaluate_result(W)["value"] == np.inf
