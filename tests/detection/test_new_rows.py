"""Scores of new rows: as good as fitted ones, trustworthy far from the data, proved, independent of the batch."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from sizes import in_long
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.metrics import roc_auc_score

from llr_cvx.datasets import make_synthetic
from llr_cvx.detection import new_rows
from llr_cvx.detection.estimator import LLRDetector
from llr_cvx.detection.new_rows import FittedRows
from llr_cvx.detection.settings import SETTINGS
from llr_cvx.oracles import decoupled_weight
from llr_cvx.problem import Problem
from llr_cvx.solvers.fast.solver import solve_fast

#: Loader, classes of the inliers, known inliers, unlabelled inliers that are fitted.
SETS = {
    "breast cancer": (load_breast_cancer, {1}, 150, 40),
    "wine": (load_wine, {0}, 25, 10),
    "digits": (load_digits, {3}, 80, 30),
}


@cache
def split(name):
    """Known inliers, a fitted batch with a fifth of outliers, and rows that are held out with their truth."""
    load, classes, n_inlier, n_fitted = SETS[name]
    X, target = load(return_X_y=True)
    out = ~np.isin(target, list(classes))
    rng = np.random.default_rng(0)
    good, bad = rng.permutation(np.flatnonzero(~out)), rng.permutation(np.flatnonzero(out))
    known = good[:n_inlier]
    keep = X[known].std(axis=0) > 0
    Z = ((X - X[known].mean(axis=0)) / np.where(keep, X[known].std(axis=0), 1.0))[:, keep]
    share = n_fitted // 4
    batch = np.concatenate([good[n_inlier : n_inlier + n_fitted], bad[:share]])
    held_out = np.concatenate([good[n_inlier + n_fitted :][:60], bad[share : share + 60]])
    return Z[known], Z[batch], Z[held_out], out[held_out]


@cache
def fitted(name):
    known, batch, _, _ = split(name)
    return LLRDetector().fit(np.vstack([known, batch]), np.repeat([1, -1], [len(known), len(batch)]))


@pytest.fixture
def joined_once(monkeypatch):
    """What is asked about the rows that were joined last is answered without joining them again."""
    last, join = [], FittedRows.join

    def remembering(self, X):
        if not (last and last[0] is self and np.array_equal(last[1], X)):
            last[:] = self, X.copy(), join(self, X)
        return last[2]

    monkeypatch.setattr(FittedRows, "join", remembering)


@pytest.mark.parametrize("name", [name if name == "wine" else in_long(name) for name in SETS])
def test_new_rows_are_ranked_as_well_as_fitted_ones_and_proved(name):
    known, batch, rows, outlier = split(name)
    everything = np.vstack([known, batch, rows])
    y = np.repeat([1, -1], [len(known), len(batch) + len(rows)])
    joint = LLRDetector(tol=1e-6).fit(everything, y).log_ratio_[-len(rows) :]
    score = fitted(name).score_samples(rows)
    assert abs(roc_auc_score(outlier, -score) - roc_auc_score(outlier, -joint)) <= 0.03
    assert fitted(name).join(rows).relative_gap.max() <= 1e-8
    weber = LLRDetector(new_rows="weber").fit(everything[: -len(rows)], y[: -len(rows)]).score_samples(rows)
    assert roc_auc_score(outlier, -weber) < roc_auc_score(outlier, -score) - 0.05


@cache
def synthetic():
    """Known inliers, rows that are held out, and a detector."""
    rng = np.random.default_rng(0)
    known, rows = rng.normal(size=(150, 8)), rng.normal(size=(60, 8))
    X = np.vstack([known, rng.normal(size=(50, 8))])
    return known, rows, LLRDetector().fit(X, np.repeat([1, -1], [150, 50]))


@pytest.mark.parametrize(
    "name", [name if name in ("wine", "synthetic") else in_long(name) for name in (*SETS, "synthetic")]
)
@pytest.mark.parametrize("z", [-10.0, *map(in_long, (-50.0, -20.0, 10.0, 20.0, 50.0))])
@pytest.mark.usefixtures("joined_once")
def test_a_single_feature_spike_scores_below_all_inliers(name, z):
    """Below all known inliers, and below all held-out ones that are not themselves as far out as the spike.

    Some of digits are: a pixel that is nearly constant is at 72 in one of them, and 3 of 60 are beyond 10.
    """
    if name == "synthetic":
        known, rows, detector = synthetic()
    else:
        known, _, rows, outlier = split(name)
        rows, detector = rows[~outlier], fitted(name)
    inliers = rows[np.abs(rows).max(axis=1) < abs(z)]
    d = rows.shape[1]
    spiked = np.tile(np.arange(d), len(inliers))
    spikes = np.repeat(inliers, d, axis=0)
    spikes[np.arange(len(spikes)), spiked] = z
    score = detector.score_samples(spikes)
    assert score.max() < detector.score_samples(inliers).min()
    assert score.max() < detector.log_ratio_[: len(known)].min()
    assert np.array_equal(detector.feature_ranking(spikes)[:, 0], spiked)


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("far", [1e4, -1e4, *map(in_long, (1e9, 1e18, 1e77, 1e150)), -1e150, 1e200])
@pytest.mark.usefixtures("joined_once")
def test_a_monstrous_entry_is_an_outlier_without_a_warning(name, far):
    detector, rows = fitted(name), split(name)[2][:20].copy()
    ordinary = detector.score_samples(rows).min()
    rows[np.arange(20), np.arange(20) % rows.shape[1]] = far
    score = detector.score_samples(rows)
    assert np.isfinite(score).all()
    assert score.max() < min(ordinary, detector.log_ratio_.min())
    assert np.all(detector.predict(rows) == -1)
    assert detector.join(rows).relative_gap.max() <= 1e-8


@cache
def with_few_graph_columns(setting, d):
    """A detector whose graph uses at most the first two columns, so that rows with other entries stay coupled."""
    inlier, test, _ = make_synthetic(d, 0, 120, 40, 8)
    columns = [0, 1] if d > 2 else None
    detector = LLRDetector(**SETTINGS[setting], graph_columns=columns, sigma=1.0)
    return detector.fit(np.vstack([inlier, test]), np.repeat([1, -1], [120, 48]))


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("d", [1, 5, in_long(20), in_long(100)])
@pytest.mark.usefixtures("joined_once")
def test_a_monstrous_entry_outside_the_graph_is_an_outlier_without_a_warning(setting, d):
    """The row stays coupled to its neighbours, however large the entry; a warning would be an error here."""
    detector = with_few_graph_columns(setting, d)
    rows = np.random.default_rng(3).normal(size=(8, d))
    assert detector.join(rows).relative_gap.max() <= 1e-9
    ordinary = min(detector.score_samples(rows).min(), detector.log_ratio_.min())
    far = 10.0 ** np.array([4, 5, 6, 7, 8, 10, 12, 15, 18, 30, 77, 150])
    huge = np.tile(rows, (2 * len(far), 1))  # together: a row's answer does not depend on the others, see below
    huge[:, d // 2] = np.repeat([*far, *-far], len(rows))
    score = detector.score_samples(huge)
    assert np.isfinite(score).all()
    assert score.max() < ordinary
    assert np.all(detector.predict(huge) == -1)
    assert detector.join(huge).relative_gap.max() <= 1e-9
    assert np.all(detector.feature_ranking(huge)[:, 0] == d // 2)


@pytest.mark.parametrize("d", [3, 20])
@pytest.mark.usefixtures("joined_once")
def test_monstrous_entries_beside_fitted_rows_without_weights_are_outliers_without_a_warning(d):
    """A group of rows that are all zero has w_j = 0 exactly, and new rows join it by the columns of the graph."""
    rng = np.random.default_rng(0)
    inlier, test, zero = rng.normal(4.0, size=(60, d)), rng.normal(4.0, size=(20, d)), np.zeros((20, d))
    detector = LLRDetector(graph_columns=[0, 1], sigma=1.0)
    detector.fit(np.vstack([inlier, zero, test, zero]), np.repeat([1, -1], [80, 40]))
    assert not detector.coef_[60:80].any()
    far = 10.0 ** np.array([4, 5, 6, 8, 10, 12, 15, 20, 30, 77, 100, 150])
    one = 0.1 * rng.normal(size=(24, d))
    one[:, 2] = [*far, *-far]
    several = 0.1 * rng.normal(size=(24, d))
    several[:, 2:] = rng.choice([-1.0, 1.0], size=(24, d - 2)) * np.tile(far, 2)[:, None]
    for rows in (one, several):
        score = detector.score_samples(rows)
        assert np.isfinite(score).all()
        assert score.max() < detector.log_ratio_.min() - 5.0
        assert np.all(detector.predict(rows) == -1)
        assert detector.join(rows).relative_gap.max() <= 1e-9


@pytest.mark.parametrize(
    "parameters", [in_long({}), {"fit_intercept": True}, in_long({"lambda1": 1.0, "lambda2": 0.01})]
)
def test_scores_do_not_depend_on_the_batch_or_the_order_to_the_last_bit(parameters):
    inlier, test, _ = make_synthetic(7, 0, 60, 30, 4)
    detector = LLRDetector(**parameters).fit(np.vstack([inlier, test]), np.repeat([1, -1], [60, 34]))
    rows = np.vstack([np.random.default_rng(8).normal(size=(40, 7)) * 2.0, inlier[:3], 1e6 * test[:3]])
    together = detector.explain(rows)
    assert np.array_equal(np.vstack([detector.explain(row[None]) for row in rows]), together)
    assert np.array_equal(detector.explain(rows[::-1])[::-1], together)
    assert np.array_equal(detector.explain(np.asfortranarray(rows)), together)
    score = detector.score_samples(rows)
    assert np.array_equal(np.concatenate([detector.score_samples(row[None]) for row in rows]), score)
    assert np.array_equal(np.concatenate([detector.score_samples(rows[:7]), detector.score_samples(rows[7:])]), score)
    np.testing.assert_allclose(together.sum(axis=1) + detector.solution_.problem.base, score, atol=1e-13)


def test_blocks_change_nothing(monkeypatch):
    detector, rows = fitted("wine"), split("wine")[2]
    whole = detector.score_samples(rows)
    monkeypatch.setattr(new_rows, "BLOCK_ROWS", 7)
    assert np.array_equal(detector.score_samples(rows), whole)


def test_a_row_joins_with_its_own_gaussian_weights():
    """J of the answer, written out: the K nearest fitted rows, each with lambda1 exp(-dist^2 / (2 sigma^2))."""
    inlier, test, _ = make_synthetic(4, 0, 60, 30, 4)
    X = np.vstack([inlier, test])
    detector = LLRDetector(lambda1=0.4, lambda2=0.2, n_neighbors=3).fit(X, np.repeat([1, -1], [60, 34]))
    rng = np.random.default_rng(1)
    for x in rng.normal(size=(10, 4)):
        distance = np.linalg.norm(X - x, axis=1)
        near = np.argsort(distance)[:3]
        c = 0.4 * np.exp(-(distance[near] ** 2) / (2 * detector.sigma_**2))

        def J(w, x=x, near=near, c=c):
            return (
                np.logaddexp(0, w @ x) + c @ np.linalg.norm(w - detector.coef_[near], axis=1) + 0.2 * abs(w).sum() ** 2
            )

        w = detector.local_coef(x[None])[0]
        trials = w + 10.0 ** rng.uniform(-6, 0, size=(300, 1)) * rng.normal(size=(300, 4))
        assert J(w) <= min(map(J, [*trials, *detector.coef_[near]])) * (1 + 1e-9)


def test_without_coupling_the_score_is_that_of_the_largest_entry():
    inlier, test, _ = make_synthetic(4, 0, 30, 20, 4)
    detector = LLRDetector(lambda1=0.0).fit(np.vstack([inlier, test]), np.repeat([1, -1], [30, 24]))
    rows = np.random.default_rng(1).normal(size=(30, 4))
    largest = np.abs(rows).max(axis=1)
    expected = np.log(24 / 30) - largest * decoupled_weight(largest, 1.0)
    np.testing.assert_allclose(detector.score_samples(rows), expected, rtol=1e-14)


def test_joining_needs_lambda2_and_says_what_to_do():
    inlier, test, _ = make_synthetic(2, 0, 20, 10, 2)
    X, y = np.vstack([inlier, test]), np.repeat([1, -1], [20, 12])
    detector = LLRDetector(lambda1=1.0, lambda2=0.0, tol=1e-2).fit(X, y)
    with pytest.raises(ValueError, match=r'lambda2 = 0.*new_rows="weber"'):
        detector.score_samples([[0.3, 0.1]])
    assert np.array_equal(detector.score_samples(X), detector.log_ratio_)


def test_a_problem_without_a_width_is_refused():
    p = Problem([[1.0], [2.0]], [1, -1], [[0, 1]], [1.0])
    with pytest.raises(ValueError, match="sigma and n_neighbors"):
        FittedRows(solve_fast(p))
