"""The detector on the paper's synthetic data: what the documentation says of it, measured."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from llr_cvx.datasets import make_synthetic
from llr_cvx.detector import LLRDetector

SEEDS = range(20)


@cache
def fits(d):
    """The detector, fitted to 20 draws, with the mask of the planted outliers among all rows."""
    drawn = []
    for seed in SEEDS:
        inlier, test, outlier = make_synthetic(d, seed)
        y = np.repeat([1, -1], [len(inlier), len(test)])
        detector = LLRDetector(contamination=10 / 110, tol=1e-9).fit(np.vstack([inlier, test]), y)
        drawn.append((detector, np.concatenate([np.zeros(len(inlier), bool), outlier])))
    return drawn


def auc_range(outlier, low, high):
    """The smallest and largest AUC of -z over all z with low <= z <= high."""
    o, i = outlier, ~outlier
    worst = np.mean(high[o][:, None] < low[i][None])
    best = np.mean(low[o][:, None] <= high[i][None])
    return worst, best


@pytest.mark.parametrize("d", [10, 100])
def test_auc_is_proved_to_be_that_of_the_exact_optimum(d):
    """Every score of the exact optimum lies in its proven interval, and so does the AUC they give."""
    for detector, outlier in fits(d):
        test = detector.solution_.problem.y < 0
        low, high = (end[test] for end in detector.solution_.certificate.score_bounds)
        worst, best = auc_range(outlier[test], low, high)
        auc = roc_auc_score(outlier[test], -detector.log_ratio_[test])
        assert worst - 1e-12 <= auc <= best + 1e-12
        assert best - worst <= 1e-3 + 1e-12


@pytest.mark.parametrize(("d", "auc", "share", "precision"), [(10, 0.92, 0.95, 0.9), (100, 0.77, 0.8, 0.55)])
def test_planted_features_explain_the_detected_outliers(d, auc, share, precision):
    """Measured: AUC 0.93, 0.79; share of the contribution 0.96, 0.84; precision of the features 0.94, 0.59."""
    aucs, shares, planted, selected = [], [], 0, 0
    for detector, outlier in fits(d):
        test = detector.solution_.problem.y < 0
        aucs.append(roc_auc_score(outlier[test], -detector.log_ratio_[test]))
        push = np.abs(detector.explain())
        for e in detector.explain_table():
            if outlier[e.row]:
                shares.append(push[e.row, :2].sum() / push[e.row].sum())
                planted += sum(r.column < 2 for r in e.reasons)
                selected += len(e.reasons)
    assert np.mean(aucs) > auc
    assert np.mean(shares) > share
    assert planted / selected > precision


def test_default_threshold_flags_few_rows_and_mostly_outliers_where_tau_1_flags_all():
    flagged = true = 0
    for detector, outlier in fits(10):
        test = detector.solution_.problem.y < 0
        score = detector.log_ratio_[test]
        fence = score < LLRDetector()._offset(score)
        assert np.all(score < 0)
        flagged, true = flagged + fence.sum(), true + (fence & outlier[test]).sum()
    assert 3.5 < flagged / 20 < 5
    assert true / flagged > 0.85
