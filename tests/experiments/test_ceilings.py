"""Supervised ceilings: the in-sample bound is a bound, and cross-validation keeps rows out of their own fit."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.neighbors import KNeighborsClassifier

from llr_cvx.experiments import ceilings


def test_no_function_of_x_beats_the_in_sample_ceiling():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 3, size=(200, 2)).astype(float)
    outlier = rng.random(200) < 0.1 + 0.2 * X[:, 0]
    bound = ceilings.best_in_sample(X, outlier)
    assert 0.5 < bound < 1
    for _ in range(200):
        score = rng.normal(size=(3, 3))[X[:, 0].astype(int), X[:, 1].astype(int)]
        assert roc_auc_score(outlier, score) <= bound + 1e-12
    assert ceilings.best_in_sample(rng.normal(size=(50, 2)), outlier[:50]) == 1.0  # distinct rows: anything fits


def test_held_out_rows_take_no_part_in_the_fit():
    """A classifier that memorises scores 1 on its own rows and 1/2 on noise that it has not seen."""
    rng = np.random.default_rng(0)
    X, outlier = rng.normal(size=(400, 3)), rng.random(400) < 0.4
    memory = KNeighborsClassifier(1)
    assert roc_auc_score(outlier, memory.fit(X, outlier).predict_proba(X)[:, 1]) == 1.0
    assert ceilings.held_out(memory, X, outlier, 0)["auc"] == pytest.approx(0.5, abs=0.08)
    X[outlier, 0] += 2.0
    assert ceilings.held_out(LogisticRegression(), X, outlier, 0)["auc"] > 0.85


def test_printed_above_both():
    row = {"logistic": 0.70, "forest": 0.72, "paper_mean": 0.76, "paper_standard_error": 0.01}
    assert ceilings.above(row)
    assert not ceilings.above({**row, "forest": 0.75})
