"""Full rankings: all features, contributions first; on planted outliers no worse than |z|; reports name them."""

from __future__ import annotations

from dataclasses import asdict

import numpy as np
import pytest
from sizes import in_long

from llr_cvx.detection.estimator import LLRDetector
from llr_cvx.detection.ranking import rank_features, selected_features, selection_distance


def planted(d, n_planted, seed, n_outlier=12):
    """Scaled inliers, unlabelled inliers, outliers with 3.5 to 6 standard deviations in a few features; the truth."""
    rng = np.random.default_rng(seed)
    known, batch, outliers = (rng.normal(size=(n, d)) for n in (120, 50, n_outlier))
    truth = np.zeros(outliers.shape, dtype=bool)
    for i in range(n_outlier):
        truth[i, rng.choice(d, n_planted, replace=False)] = True
    size = rng.choice([-1, 1], truth.shape) * rng.uniform(3.5, 6.0, truth.shape)
    mean, spread = known.mean(axis=0), known.std(axis=0)
    known, batch, outliers = ((X - mean) / spread for X in (known, batch, outliers))
    return known, batch, np.where(truth, size, outliers), truth


def auroc(responsibility, truth):
    """For each row the probability that a planted feature is ranked above another one."""
    return [float(np.mean(r[t][:, None] > r[~t])) for r, t in zip(responsibility, truth, strict=True)]


def responsibility(ranking):
    return -np.argsort(ranking, axis=1)


def test_a_weight_counts_beside_its_own_row_and_by_what_it_does_to_a_score():
    X = np.array([[1.0, 100.0], [1.0, 1.0]])
    W = np.array([[1e3, 0.5], [1e-3, 1e-8], [5e-8, 5e-9]])
    assert selected_features(X, W).tolist() == [[True, True], [True, False], [False, True]]


def test_a_selected_feature_comes_first_even_if_it_contributes_nothing():
    ranking = rank_features(np.zeros((1, 3)), np.array([[False, False, True]]), np.array([[0.4, 0.1, 0.0]]))
    assert ranking.tolist() == [[2, 1, 0]]
    unknown = rank_features(np.zeros((1, 3)), np.zeros((1, 3), dtype=bool), np.full((1, 3), np.nan))
    assert unknown.tolist() == [[0, 1, 2]]


@pytest.mark.parametrize("n_planted", [1, 2])
@pytest.mark.parametrize("d", [10, in_long(30), in_long(100)])
def test_planted_features_are_ranked_at_least_as_well_as_by_size(d, n_planted):
    """At least the AUROC of |z|, up to two standard errors of the paired difference over 24 outliers."""
    of_size, of_fitted, of_new, of_contributions = [], [], [], []
    for seed in range(2):
        known, batch, outliers, truth = planted(d, n_planted, seed)
        y = np.repeat([1, -1, -1], [len(known), len(batch), len(outliers)])
        X = np.vstack([known, batch, outliers])
        joint = LLRDetector(tol=1e-6).fit(X, y)
        detector = LLRDetector(tol=1e-6).fit(X[: -len(outliers)], y[: -len(outliers)])
        of_size += auroc(np.abs(outliers), truth)
        of_fitted += auroc(responsibility(joint.feature_ranking()[-len(outliers) :]), truth)
        of_new += auroc(responsibility(detector.feature_ranking(outliers)), truth)
        of_contributions += auroc(np.abs(detector.explain(outliers)), truth)
    for found in (of_fitted, of_new):
        difference = np.subtract(found, of_size)
        assert difference.mean() >= -2.0 * difference.std(ddof=1) / np.sqrt(len(difference))
        assert difference.mean() >= -1e-3
    if n_planted > 1:
        assert np.mean(of_new) >= np.mean(of_contributions)


@pytest.fixture(scope="module")
def fitted():
    known, batch, outliers, _ = planted(8, 2, 0)
    X, y = np.vstack([known, batch, outliers]), np.repeat([1, -1], [120, 62])
    return LLRDetector(contamination=0.1).fit(X, y), X


@pytest.mark.parametrize("new", [False, True])
@pytest.mark.parametrize("rule", ["join", "weber"])
def test_all_features_contributions_first_then_selection_distance(fitted, new, rule):
    detector, X = fitted
    if rule == "weber":
        detector = LLRDetector(contamination=0.1, new_rows="weber").fit(X, detector.solution_.problem.y)
    rows = np.random.default_rng(5).normal(size=(30, 8)) if new else None
    ranking, contributions = detector.feature_ranking(rows), detector.explain(rows)
    distance = selection_distance(detector.join(rows).V)
    assert np.array_equal(np.sort(ranking, axis=1), np.tile(np.arange(8), (len(ranking), 1)))
    for order, c, away in zip(ranking, np.abs(contributions), distance, strict=True):
        chosen = c[order] > 1e-3 * c.max()
        n = int(chosen.sum())
        assert chosen[:n].all()
        assert np.all(np.diff(c[order][:n]) <= 0)
        rest = order[c[order] == 0]
        assert np.all(np.diff(away[rest]) >= 0)


def test_the_intercept_is_no_feature(fitted):
    detector, X = fitted
    with_constant = LLRDetector(fit_intercept=True).fit(X, detector.solution_.problem.y)
    assert with_constant.feature_ranking(X[:4] + 0.1).shape == (4, 8)
    assert with_constant.feature_ranking().max() == 7


def test_a_row_of_zeros_keeps_the_order_of_the_columns():
    X = np.vstack([np.eye(4), -np.eye(4), np.zeros((1, 4))])
    detector = LLRDetector(lambda1=0.0).fit(X, [1] * 8 + [-1])
    assert detector.feature_ranking()[-1].tolist() == [0, 1, 2, 3]


def test_explanations_say_what_else_is_unusual(fitted):
    detector, X = fitted
    low, high = np.quantile(X[:120], [0.05, 0.95], axis=0)
    table = detector.explain_table()
    assert any(e.also_unusual for e in table)
    for e in table:
        selected = {r.column for r in e.reasons}
        distances = [u.distance for u in e.also_unusual]
        assert distances == sorted(distances)
        for u in e.also_unusual:
            assert u.column not in selected
            assert u.value == X[e.row, u.column]
            assert u.typical == (low[u.column], high[u.column])
            assert not low[u.column] <= u.value <= high[u.column]
            assert f"also unusual: x{u.column} = {u.value:.4g}, {u.position} the inliers'" in str(e)
            assert f"{100 * u.distance:.3g} % short of selection" in str(e)
        if e.also_unusual:
            assert asdict(e)["also_unusual"][0]["distance"] == e.also_unusual[0].distance


def test_explaining_a_data_frame_gives_a_data_frame(fitted):
    pandas = pytest.importorskip("pandas")
    detector, X = fitted
    frame = pandas.DataFrame(X, columns=list("abcdefgh"), index=[f"row {k}" for k in range(len(X))])
    named = LLRDetector(fit_intercept=True).fit(frame, detector.solution_.problem.y)
    why = named.explain(frame[:5] + 0.1)
    assert why.columns.tolist() == [*"abcdefgh", "(intercept)"]
    assert why.index.tolist() == frame.index[:5].tolist()
    scores = named.score_samples(frame[:5] + 0.1)
    np.testing.assert_allclose(why.sum(axis=1), scores - named.solution_.problem.base, atol=1e-13)
    assert isinstance(scores, np.ndarray)
    assert isinstance(named.explain(), np.ndarray)
