"""Variants of Figure 1: what is planted, how selection is judged, a small run of the command, and the stored trials."""

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from llr_cvx.cli import main
from llr_cvx.experiments import tables
from llr_cvx.experiments.tables import bullets
from llr_cvx.experiments.variants import report, trials

pytest.importorskip("matplotlib", reason="needs matplotlib: pip install .[plots]")

RESULTS = Path(__file__).parents[2] / "results"


@pytest.fixture(scope="module")
def stored():
    return report.read(tables.read_csv(RESULTS / "variants_trials.csv"))


@pytest.mark.parametrize("name", trials.VARIANTS)
def test_planted_features_are_the_shifted_ones(name):
    variant = trials.VARIANTS[name]
    samples = [trials.make(variant, 6, np.random.default_rng(seed)) for seed in range(300)]
    assert (samples[0].is_outlier.sum(), len(samples[0].X_inlier)) == (variant.n_outlier, 200)
    rows = np.vstack([s.X_test[s.is_outlier] for s in samples])
    planted = np.vstack([s.planted[s.is_outlier] for s in samples])
    assert (planted.sum(axis=1) == 2).all()
    assert not any(s.planted[~s.is_outlier].any() for s in samples)
    assert np.abs(rows[planted]).mean() == pytest.approx(np.mean([3.0, 2.02]), abs=0.1)
    assert np.abs(rows[~planted]).mean() == pytest.approx(np.sqrt(2 / np.pi), abs=0.05)
    if variant.own:
        assert len(np.unique(planted, axis=0)) == 15  # every pair of six
        assert abs(rows[planted].mean()) < 0.2
    inliers = np.vstack([s.X_inlier for s in samples])
    assert np.corrcoef(inliers.T)[0, 1] == pytest.approx(variant.correlation, abs=0.02)


def test_selection_by_hand():
    importance = np.array([[3.0, 2.0, 1.0, 0.0], [0.0, 0.0, 0.0, 1.0], [0.0, 0.0, 0.0, 0.0]])
    planted = np.array([[True, False, True, False], [True, True, False, False], [True, True, False, False]])
    found = trials.selection(importance, planted)
    assert found["precision"] == pytest.approx((2 / 3 + 0 + 0) / 3)
    assert found["recall"] == pytest.approx((1 + 0 + 0) / 3)
    assert found["first_two"] == pytest.approx((1 / 2 + 0 + 0) / 3)


@pytest.mark.long
def test_the_command_writes_its_files_and_resumes(tmp_path, monkeypatch):
    monkeypatch.setattr(trials, "N_INLIER", 60)
    monkeypatch.setattr(trials, "N_TEST_INLIER", 30)
    monkeypatch.setattr(trials, "DIMENSIONS", (10,))
    monkeypatch.setattr("llr_cvx.experiments.variants.figure.DIMENSIONS", (10,))
    command = ["reproduce", "variants", "--trials", "2", "--jobs", "1", "--out", str(tmp_path)]
    result = CliRunner().invoke(main, command)
    assert result.exit_code == 0, result.output
    kept = next((tmp_path / "trials").iterdir()).read_bytes()
    assert CliRunner().invoke(main, command).exit_code == 0
    assert next((tmp_path / "trials").iterdir()).read_bytes() == kept
    values = report.read(tables.read_csv(tmp_path / "variants_trials.csv"))
    assert report.sections(values) in (tmp_path / "variants.md").read_text(encoding="utf-8")
    assert {len(column) for column in values["auc"].values()} == {2}


# ---- the committed results ---------------------------------------------------------------------------------


def test_the_committed_report_is_that_of_its_trials(stored):
    text = (RESULTS / "variants.md").read_text(encoding="utf-8")
    assert report.sections(stored) in text
    assert bullets(report.findings(stored)) in text
    assert "Failed trials: none." in text
    changed = {m: {k: v * 0.5 if k[1] == "llr" else v for k, v in by.items()} for m, by in stored.items()}
    assert report.sections(changed) not in text
    assert bullets(report.findings(changed)) not in text


def test_the_order_of_methods_where_outliers_differ_in_their_features(stored):
    """No common model explains them: LLR is significantly ahead of both methods that choose features for all."""
    for rival in ("l1lr", "lokdr"):
        for measure in ("auc", "precision", "first_two"):
            ahead = report.compare(stored, measure, "llr", rival)[1]
            assert {cell for cell in trials.cells() if cell.startswith("own features")} <= set(ahead), (rival, measure)


def test_where_many_outliers_share_features_a_common_model_is_ahead(stored):
    below = report.compare(stored, "auc", "llr", "l1lr")[-1]
    assert {"many, d = 10", "many, d = 50"} <= set(below)
