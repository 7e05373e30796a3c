"""The command behind the tables of docs/detect.md."""

from __future__ import annotations

import numpy as np
import pytest

from llr_cvx.experiments import decisions
from llr_cvx.experiments.decisions import Data, decide


def small(n_inlier=40, n_test=12):
    rng = np.random.default_rng(0)
    return Data(rng.normal(size=(120, 3)), rng.normal(size=(30, 3)) + 7.0, n_inlier, n_test)


def test_a_draw_holds_what_it_says():
    data = small()
    X, y, outlier = data.draw(0.25, seed=1)
    assert (X.shape, int(outlier.sum())) == ((52, 3), 3)
    assert np.all(X[y < 0][outlier].mean(axis=1) > 4)
    assert np.all(X[: -int(outlier.sum())].mean(axis=1) < 4)
    assert np.array_equal(y, np.repeat([1, -1], [40, 12]))


def test_plain_outliers_are_found():
    outcome = decide(small(100), 1.0, 0)
    assert outcome["auc"] > 0.99
    assert outcome["found"] > 0.9
    assert outcome["false_discoveries"] == 0.0
    assert 1 <= outcome["reasons"] <= 3


@pytest.mark.long
def test_both_tables_are_printed(monkeypatch, capsys):
    monkeypatch.setattr(decisions, "data_sets", lambda: {"breast cancer": small()})
    decisions.main(["--draws", "1"])
    settings, clean = capsys.readouterr().out.split("\n\n")
    assert len(settings.splitlines()) == 2 + 3 * 2
    assert len(clean.splitlines()) == 2 + 2 * 2
    assert {line.count("|") for line in settings.splitlines()} == {8}
    assert {line.count("|") for line in clean.splitlines()} == {6}


def test_the_public_data_are_as_large_as_a_draw_needs():
    for data in decisions.data_sets().values():
        assert len(data.inliers) >= data.n_inlier + data.n_test
        assert len(data.outliers) >= data.n_test
