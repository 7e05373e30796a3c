"""The detector on 20 draws of the paper's synthetic data: measures what the documentation claims."""

from __future__ import annotations

import numpy as np
import pytest
from sizes import in_long
from sklearn.metrics import roc_auc_score

from llr_cvx.datasets import make_synthetic
from llr_cvx.detection.decision import fence
from llr_cvx.detection.estimator import LLRDetector


def auc_range(outlier, low, high):
    """The smallest and largest AUC of -z over all z with low <= z <= high."""
    worst = np.mean(high[outlier][:, None] < low[~outlier][None])
    best = np.mean(low[outlier][:, None] <= high[~outlier][None])
    return worst, best


# Measured: AUC 0.93, 0.79; share of the contribution 0.96, 0.84; precision of the selected features 0.94, 0.59.
@pytest.mark.parametrize(
    ("draws", "d", "auc", "share", "precision"),
    [(6, 10, 0.92, 0.95, 0.9), *map(in_long, ((20, 10, 0.92, 0.95, 0.9), (20, 100, 0.77, 0.8, 0.55)))],
)
def test_auc_planted_features_and_default_threshold(draws, d, auc, share, precision):
    aucs, shares, planted, selected, flagged, right = [], [], 0, 0, 0, 0
    for seed in range(draws):
        inlier, test, outlier = make_synthetic(d, seed)
        y = np.repeat([1, -1], [len(inlier), len(test)])
        detector = LLRDetector(contamination=10 / 110, tol=1e-12).fit(np.vstack([inlier, test]), y)
        score = detector.log_ratio_[y < 0]
        aucs.append(roc_auc_score(outlier, -score))

        # Every score of the exact optimum lies in its proven interval, and so the AUC of any exact solver is known.
        low, high = (end[y < 0] for end in detector.solution_.certificate.score_bounds)
        worst, best = auc_range(outlier, low, high)
        assert worst - 1e-12 <= aucs[-1] <= best + 1e-12
        assert best - worst <= 1e-3 + 1e-12

        # Detected outliers are explained by the two planted features.
        push = np.abs(detector.explain())
        for e in detector.explain_table():
            if outlier[e.row - len(inlier)]:
                shares.append(push[e.row, :2].sum() / push[e.row].sum())
                planted += sum(r.column < 2 for r in e.reasons)
                selected += len(e.reasons)

        # The default threshold flags few rows; tau = 1 would flag all of them.
        assert np.all(score < 0)
        below = score < fence(score)
        flagged, right = flagged + below.sum(), right + (below & outlier).sum()

    assert np.mean(aucs) > auc
    assert np.mean(shares) > share
    assert planted / selected > precision
    assert 2 < flagged / draws < 5
    assert right / flagged > 0.65
