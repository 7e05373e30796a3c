"""LLRDetector: scores, thresholds, unseen rows, and the effect of lambda1."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sizes import thinned
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from llr_cvx.datasets import make_synthetic
from llr_cvx.detection.estimator import LLRDetector
from llr_cvx.detection.weber import gaussian_weights
from llr_cvx.graph import GraphWarning
from llr_cvx.problem import Problem
from llr_cvx.solution import ConvergenceWarning


def pooled(d=5, seed=0, n_inlier=60, n_test_inlier=30, n_outlier=4):
    inlier, test, outlier = make_synthetic(d, seed, n_inlier, n_test_inlier, n_outlier)
    y = np.repeat([1, -1], [len(inlier), len(test)])
    return np.vstack([inlier, test]), y, np.concatenate([np.zeros(len(inlier), bool), outlier])


@pytest.fixture(scope="module")
def fitted():
    X, y, _ = pooled()
    return LLRDetector().fit(X, y)


# ---- fit ----------------------------------------


def test_attributes_keep_the_order_of_the_rows():
    X, y, _ = pooled()
    order = np.random.default_rng(0).permutation(len(X))
    straight, shuffled = LLRDetector(tol=1e-10).fit(X, y), LLRDetector(tol=1e-10).fit(X[order], y[order])
    np.testing.assert_allclose(shuffled.log_ratio_, straight.log_ratio_[order], atol=1e-4)
    np.testing.assert_allclose(shuffled.coef_, straight.coef_[order], atol=1e-4)


def test_it_solves_the_problem_of_the_paper(fitted):
    X, y, _ = pooled()
    p = Problem.from_samples(X[y > 0], X[y < 0])
    assert fitted.sigma_ == p.sigma
    assert fitted.n_neighbors_ == 5
    assert p.objective(fitted.coef_) == pytest.approx(fitted.solution_.objective, rel=1e-14)
    assert fitted.solution_.status == "optimal"
    np.testing.assert_allclose(p.log_ratio(fitted.coef_), fitted.log_ratio_, atol=1e-13)
    assert fitted.n_iter_ >= 1


def test_all_solvers_agree(fitted):
    X, y, _ = pooled()
    assert fitted.solution_.solver == "FAST"
    for solver, name in (("fast", "FAST"), ("irls", "IRLS"), ("exact", "CLARABEL")):
        detector = LLRDetector(solver=solver).fit(X, y)
        assert detector.solution_.solver == name
        np.testing.assert_allclose(detector.log_ratio_, fitted.log_ratio_, atol=1e-4)


def test_labels_one_zero_and_booleans_mean_the_same(fitted):
    X, y, _ = pooled()
    for labels in (y > 0, (y > 0).astype(int), y.astype(float), y.astype(object)):
        assert np.array_equal(LLRDetector().fit(X, labels).log_ratio_, fitted.log_ratio_)


def test_fit_without_y_says_what_y_means():
    with pytest.raises(ValueError, match=r"requires y .* \+1 for a known inlier, -1 for an unlabelled row"):
        LLRDetector().fit(np.ones((5, 2)))


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([1, 1, 1, 1], "1 class only"),
        ([1, 2, 1, 2], "labels 1, 2; y says"),
        ([-1, 0, 1, 1], "labels -1, 0, 1; y says"),
        (["a", "b", "a", "b"], "Unknown label type"),
        ([1, -1, 1], "inconsistent numbers of samples"),
    ],
)
def test_strange_labels_are_refused(y, message):
    with pytest.raises(ValueError, match=message):
        LLRDetector().fit(np.eye(4), y)


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"solver": "magic"}, ValueError, 'solver must be "fast", "irls" or "exact", got \'magic\''),
        ({"lambda1": -1.0}, ValueError, "lambda1"),
        ({"n_neighbors": 2.5}, TypeError, "n_neighbors"),
        ({"threshold": 0.0}, ValueError, "threshold"),
        ({"contamination": 0.7}, ValueError, "contamination"),
        ({"threshold": 1.0, "contamination": 0.1}, ValueError, "contradict"),
        ({"new_rows": "magic"}, ValueError, "new_rows must be one of 'join', 'weber', got 'magic'"),
    ],
)
def test_bad_parameters_are_named(parameters, error, message):
    X, y, _ = pooled(n_inlier=10, n_test_inlier=5)
    with pytest.raises(error, match=message):
        LLRDetector(**parameters).fit(X, y)


def test_few_rows_lower_n_neighbors():
    with pytest.warns(UserWarning, match="n_neighbors = 5 is lowered to 2"):
        detector = LLRDetector().fit([[0.0], [1.0], [5.0]], [1, 1, -1])
    assert detector.n_neighbors_ == 2
    assert detector.score_samples([[2.0]]).shape == (1,)


def test_not_reaching_the_tolerance_warns():
    X, y, _ = pooled()
    with pytest.warns(ConvergenceWarning):
        LLRDetector(max_iter=1).fit(X, y)


# ---- thresholds ----------------------------------------


def test_threshold_is_the_papers_tau(fitted):
    X, y, _ = pooled()
    detector = LLRDetector(threshold=0.3).fit(X, y)
    assert detector.offset_ == np.log(0.3)
    assert np.array_equal(detector.predict(X) == -1, np.exp(fitted.log_ratio_) < 0.3)


def test_contamination_flags_that_share_of_the_unlabelled_rows():
    X, y, _ = pooled()
    detector = LLRDetector(contamination=4 / 34)
    flagged = detector.fit_predict(X, y) == -1
    assert np.count_nonzero(flagged & (y < 0)) == 4
    assert np.array_equal(detector.predict(X) == -1, flagged)


def test_default_threshold_is_the_fence_of_the_unlabelled_scores(fitted):
    low, high = np.quantile(fitted.log_ratio_[fitted.solution_.problem.y < 0], [0.25, 0.75])
    assert fitted.offset_ == pytest.approx(low - 1.5 * (high - low))


def test_a_row_at_the_threshold_is_an_inlier():
    X, y, _ = pooled()
    detector = LLRDetector().fit(X, y)
    row = int(np.argmin(detector.log_ratio_))
    detector.offset_ = detector.log_ratio_[row]
    assert detector.decision_function(X)[row] == 0.0
    assert np.all(detector.predict(X) == 1)


# ---- unseen rows ----------------------------------------


def test_a_fitted_row_has_its_own_score(fitted):
    X, _, _ = pooled()
    assert np.array_equal(fitted.score_samples(X), fitted.log_ratio_)
    assert np.array_equal(fitted.local_coef(X), fitted.coef_)
    X[X == 0] = -0.0
    assert np.array_equal(fitted.score_samples(X + 0.0), fitted.log_ratio_)


def test_a_row_fitted_twice_takes_the_first_unlabelled_score():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(10, 2))
    detector = LLRDetector(lambda1=0.01, n_neighbors=3).fit(np.vstack([X, X]), np.repeat([1, -1], 10))
    assert np.array_equal(detector.score_samples(X), detector.log_ratio_[10:])
    assert np.all(detector.log_ratio_[10:] < detector.log_ratio_[:10])


def test_the_weber_rule_is_an_option():
    X, y, _ = pooled()
    fitted = LLRDetector(new_rows="weber").fit(X, y)
    new = np.random.default_rng(7).normal(size=(20, 5))
    W = fitted.local_coef(new)
    for x, w in zip(new, W, strict=True):
        near = np.argsort(((X - x) ** 2).sum(axis=1))[:5]
        a = gaussian_weights(x[None], X[near][None], fitted.sigma_)[0]

        def f(w, near=near, a=a):
            return a @ np.linalg.norm(fitted.coef_[near] - w, axis=1)

        trials = w + 1e-3 * np.random.default_rng(0).normal(size=(200, 5))
        assert f(w) <= min(f(t) for t in [*trials, *fitted.coef_[near]]) * (1 + 1e-10)
    np.testing.assert_allclose(fitted.score_samples(new), np.log(34 / 60) + (W * new).sum(axis=1), atol=1e-13)
    assert np.array_equal(fitted.local_coef([[1e5, 0, 0, 0, 0]])[0], fitted.coef_[np.argmax(X[:, 0])])
    assert np.isfinite(fitted.score_samples([[1e200, 0, 0, 0, 0]])).all()


# ---- what must hold ----------------------------------------


@pytest.mark.parametrize("seed", thinned(range(4), 4))
def test_auc_is_that_of_the_exact_solver(seed):
    X, y, outlier = pooled(10, seed, 60, 40, 8)
    test = y < 0
    auc = {
        solver: roc_auc_score(outlier[test], -LLRDetector(solver=solver).fit(X, y).log_ratio_[test])
        for solver in ("fast", "irls", "exact")
    }
    assert min(auc["fast"], auc["irls"]) >= auc["exact"] - 1e-3


def test_twins_that_fuse_have_the_score_of_no_information():
    """Identical samples, strongly coupled: W = 0, and every score is log(n/n') exactly."""
    X = np.random.default_rng(0).normal(size=(20, 4))
    detector = LLRDetector(lambda1=5.0, n_neighbors=3).fit(np.vstack([X, X]), np.repeat([1, -1], 20))
    assert np.abs(detector.coef_).max() < 1e-15
    assert np.abs(detector.log_ratio_).max() < 1e-15
    assert np.all(detector.predict(X) == 1)
    assert detector.explain_table() == []


def test_twins_of_uneven_samples_score_log_n_over_n_prime():
    """Each row three times, two of them known and the features centred: W = 0 again, and log(n/n') = log(1/2)."""
    X = np.random.default_rng(0).normal(size=(20, 4))
    X = np.vstack([X, -X])
    detector = LLRDetector(lambda1=50.0, sigma=10.0, n_neighbors=20).fit(
        np.vstack([X, X, X]), np.repeat([1, 1, -1], 40)
    )
    assert np.abs(detector.coef_).max() < 1e-15
    assert np.all(detector.log_ratio_ == np.log(0.5))
    assert np.all(detector.predict(X) == 1)


def test_weakly_coupled_the_score_falls_with_the_largest_entry():
    X = np.random.default_rng(0).normal(size=(20, 4))
    detector = LLRDetector(lambda1=1e-6, n_neighbors=3).fit(np.vstack([X, X]), np.repeat([1, -1], 20))
    order = np.argsort(np.abs(X).max(axis=1))
    assert np.all(np.diff(detector.log_ratio_[20:][order]) < 0)


# ---- scikit-learn's ways ----------------------------------------


def test_clone_pickle_and_pipeline():
    X, y, _ = pooled()
    detector = clone(LLRDetector(lambda1=0.2, fit_intercept=True))
    assert detector.get_params()["lambda1"] == 0.2
    detector.fit(X, y)
    again = pickle.loads(pickle.dumps(detector))
    new = np.random.default_rng(0).normal(size=(5, 5))
    assert np.array_equal(again.score_samples(new), detector.score_samples(new))
    assert again.solution_.certificate.gap == detector.solution_.certificate.gap

    scaled = make_pipeline(StandardScaler(), LLRDetector()).fit(10 * X + 3, y)
    np.testing.assert_allclose(
        scaled.score_samples(10 * X + 3), make_pipeline(StandardScaler(), LLRDetector()).fit(X, y).score_samples(X)
    )


def test_feature_names_come_from_data_frames():
    pandas = pytest.importorskip("pandas")
    X, y, _ = pooled()
    frame = pandas.DataFrame(X, columns=list("abcde"))
    detector = LLRDetector().fit(frame, y)
    assert detector.feature_names_in_.tolist() == list("abcde")
    assert {r.feature for e in detector.explain_table() for r in e.reasons} <= set("abcde")
    with pytest.raises(ValueError, match="feature names"):
        detector.score_samples(frame.rename(columns={"a": "z"}))


def test_unfitted_and_wrong_width(fitted):
    for method in ("score_samples", "predict", "explain", "local_coef", "join", "feature_ranking"):
        with pytest.raises(NotFittedError):
            getattr(LLRDetector(), method)(np.ones((1, 5)))
    with pytest.raises(ValueError, match="4 features"):
        fitted.predict(np.ones((1, 4)))


def test_intercept_is_a_constant_feature():
    X, y, _ = pooled()
    X = 0.1 * X
    detector = LLRDetector(fit_intercept=True, tol=1e-10).fit(X, y)
    assert np.all(detector.solution_.problem.X[:, -1] == 1.0)
    assert detector.coef_.shape == X.shape
    assert detector.intercept_.shape == (len(X),)
    assert np.any(detector.intercept_ != 0)
    assert np.array_equal(detector.score_samples(X), detector.log_ratio_)
    assert detector.explain(X[:3]).shape == (3, 6)


def test_constant_columns_and_one_test_row():
    X, y, _ = pooled()
    X = np.column_stack([X, np.zeros(len(X))])
    assert np.all(LLRDetector().fit(X, y).coef_[:, -1] == 0.0)
    one = LLRDetector(threshold=0.5).fit(np.vstack([X[y > 0], X[-1:]]), [1] * 60 + [-1])
    assert one.log_ratio_.shape == (61,)


def test_an_isolated_row_is_scored_and_said_so():
    X, y, _ = pooled()
    X[-1] = 1e4
    with pytest.warns(GraphWarning, match="underflow"):
        detector = LLRDetector().fit(X, y)
    assert np.argmin(detector.log_ratio_) == len(X) - 1
