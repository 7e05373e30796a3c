"""The common interface of the methods: sign, seed, independence of order, and what each must find."""

from dataclasses import replace

import numpy as np
import pytest

from llr_cvx import Problem, make_synthetic
from llr_cvx.experiments.methods import EXACT, METHODS, RUNNABLE, logistic, ratio, unsupervised
from llr_cvx.experiments.methods.localized import llr_problem
from llr_cvx.experiments.protocol import Protocol, median_distance
from llr_cvx.experiments.trials import auc


@pytest.fixture(scope="module")
def easy():
    """Outliers that every method can find: far away in both directions of the paper's shift."""
    rng = np.random.default_rng(3)
    inliers, test = rng.normal(size=(120, 5)), rng.normal(size=(70, 5))
    test[60:, :2] += np.array([6.0, -5.0])
    return inliers, test, np.arange(70) >= 60


@pytest.mark.parametrize("key", RUNNABLE)
def test_higher_is_more_normal(easy, key):
    inliers, test, is_outlier = easy
    scores = METHODS[key].score(inliers, test, random_state=1)
    assert scores.shape == (70,)
    assert np.isfinite(scores).all()
    assert auc(scores, is_outlier) > 0.9


@pytest.mark.parametrize("key", RUNNABLE)
def test_same_seed_same_scores_and_the_global_state_is_left_alone(easy, key):
    inliers, test, _ = easy
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    first = METHODS[key].score(inliers, test, random_state=5)
    np.random.seed(12345)  # noqa: NPY002
    second = METHODS[key].score(inliers, test, random_state=5)
    np.testing.assert_array_equal(first, second)
    np.random.seed(12345)  # noqa: NPY002
    expected = np.random.get_state()[1].copy()  # noqa: NPY002
    METHODS[key].score(inliers, test, random_state=5)
    np.testing.assert_array_equal(np.random.get_state()[1], expected)  # noqa: NPY002
    assert before.shape == expected.shape


@pytest.mark.parametrize("key", [k for k in RUNNABLE if k not in ("l1lr", "klr", "ulsif", "rulsif", "kliep")])
def test_order_of_the_test_rows_does_not_matter(easy, key):
    """For the methods without random folds or centres."""
    inliers, test, _ = easy
    order = np.random.default_rng(0).permutation(len(test))
    straight = METHODS[key].score(inliers, test)
    np.testing.assert_allclose(METHODS[key].score(inliers, test[order]), straight[order], atol=2e-3)


def test_llr_records_a_proven_gap(easy):
    inliers, test, _ = easy
    outcome = METHODS["llr"].run(inliers, test, protocol=Protocol(tol=1e-4))
    assert 0 <= outcome.info["gap"] + 1e-12 <= 1e-4 + 1e-12
    assert "failed" not in outcome.info


def test_exact_llr_agrees():
    X_inlier, X_test, _ = make_synthetic(3, 0, n_inlier=40, n_test_inlier=20, n_outlier=4)
    tight = Protocol(tol=1e-6)
    fast, slow = METHODS["llr"].run(X_inlier, X_test, protocol=tight), EXACT.run(X_inlier, X_test, protocol=tight)
    assert slow.info["objective"] == pytest.approx(fast.info["objective"], rel=1e-6)
    np.testing.assert_allclose(slow.scores, fast.scores, atol=5e-3)


def test_llr_becomes_the_max_norm_test():
    """lambda1 -> 0 without a constant: the same order of the test rows."""
    X_inlier, X_test, _ = make_synthetic(8, 1)
    weak = Protocol(lambda1=1e-9, tol=1e-10, intercept=False)
    scores = METHODS["llr"].score(X_inlier, X_test, protocol=weak)
    norms = METHODS["maxnorm"].score(X_inlier, X_test)
    np.testing.assert_array_equal(np.argsort(scores), np.argsort(norms))


def test_with_a_constant_and_features_up_to_1_the_limit_tells_nothing():
    """lambda1 -> 0: the constant is the largest feature of every row, so all scores are equal."""
    X_inlier, X_test = Protocol(scaling="minmax").scale(*make_synthetic(8, 1)[:2])
    weak = Protocol(lambda1=1e-9, tol=1e-10, intercept=True)
    assert np.ptp(METHODS["llr"].score(X_inlier, X_test, protocol=weak)) < 1e-4
    assert np.ptp(METHODS["llr"].score(X_inlier, X_test, protocol=replace(weak, intercept=False))) > 0.1


def test_protocol_reaches_the_problem():
    X_inlier, X_test, _ = make_synthetic(4, 0)
    pooled = np.vstack([X_inlier, X_test])
    plain = llr_problem(X_inlier, X_test, Protocol(intercept=False))
    default = Problem.from_samples(X_inlier, X_test)
    np.testing.assert_array_equal(plain.weights, default.weights)
    assert plain.shape == (310, 4)
    other = llr_problem(X_inlier, X_test, Protocol(sigma="pairwise", n_neighbors=7, intercept=True))
    assert other.sigma == median_distance(pooled)
    assert other.n_neighbors == 7
    assert other.shape == (310, 5)
    assert (other.X[:, -1] == 1).all()


def test_l1_lambda_by_the_fixed_rule(easy):
    inliers, test, _ = easy
    X, y = np.vstack([inliers, test]), np.repeat([1.0, -1.0], [120, 70])
    info = METHODS["l1lr"].run(inliers, test, protocol=Protocol(l1_lambda="fixed", intercept=False)).info
    assert info["lambda"] == pytest.approx(0.1 * logistic.l1_lambda_max(X, y, intercept=False))


def test_l1_lambda_by_cross_validation_is_from_the_grid(easy):
    inliers, test, _ = easy
    X, y = np.vstack([inliers, test]), np.repeat([1.0, -1.0], [120, 70])
    info = METHODS["l1lr"].run(inliers, test, protocol=Protocol(l1_lambda="cv", intercept=False)).info
    fraction = info["lambda"] / logistic.l1_lambda_max(X, y, intercept=False)
    assert np.abs(logistic.L1_FRACTIONS - fraction).min() < 1e-12
    assert 0 < info["selected"] <= 5


def test_kde_width_is_the_best_of_its_candidates():
    """Against scikit-learn's own likelihood, leaving out one row at a time."""
    from sklearn.neighbors import KernelDensity

    X = np.random.default_rng(0).normal(size=(25, 2))
    widths = unsupervised.KDE_WIDTHS * median_distance(X)

    def likelihood(width):
        density = KernelDensity(bandwidth=width)
        return sum(density.fit(np.delete(X, i, axis=0)).score(X[i : i + 1]) for i in range(len(X)))

    assert unsupervised.kde_width(X) == max(widths, key=likelihood)


def test_duplicates_give_finite_scores():
    """Few distinct rows, as in Flare solar: median distances are 0 for many pairs."""
    rng = np.random.default_rng(0)
    inliers = rng.integers(0, 2, size=(80, 3)).astype(float)
    test = np.vstack([rng.integers(0, 2, size=(30, 3)), np.full((5, 3), 4)]).astype(float)
    for key in RUNNABLE:
        with np.errstate(all="raise", under="ignore"):
            assert np.isfinite(_quiet(key, inliers, test)).all(), key


def _quiet(key, inliers, test):
    import warnings

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Duplicate values")  # LOF says so, rightly
        return METHODS[key].score(inliers, test)


def test_constant_features_are_harmless():
    X_inlier, X_test, is_outlier = make_synthetic(3, 0, n_inlier=60, n_test_inlier=30, n_outlier=5)
    X_inlier, X_test = (np.column_stack([X, np.full(len(X), 7.0)]) for X in (X_inlier, X_test))
    a, b = Protocol(scaling="standard").scale(X_inlier, X_test)
    assert (a[:, -1] == 0).all()
    assert np.isfinite(a).all()
    assert auc(METHODS["llr"].score(a, b), is_outlier) > 0.5


@pytest.mark.parametrize("scaling", ["minmax", "symmetric", "standard", "none"])
def test_scaling(scaling):
    X_inlier, X_test, _ = make_synthetic(4, 0)
    a, b = Protocol(scaling=scaling).scale(X_inlier * 50 + 3, X_test * 50 + 3)
    pooled = np.vstack([a, b])
    if scaling == "standard":
        np.testing.assert_allclose((pooled.mean(axis=0), pooled.std(axis=0)), ([0] * 4, [1] * 4), atol=1e-12)
    elif scaling != "none":
        low = 0.0 if scaling == "minmax" else -1.0
        np.testing.assert_allclose((pooled.min(axis=0), pooled.max(axis=0)), ([low] * 4, [1] * 4), atol=1e-12)
    else:
        np.testing.assert_array_equal(a, X_inlier * 50 + 3)


def test_a_method_that_is_not_run_says_why():
    with pytest.raises(NotImplementedError, match="no outlier is labelled"):
        METHODS["lokdr"].score(np.zeros((3, 2)), np.zeros((3, 2)))
    assert "lokdr" not in RUNNABLE


def test_bad_input_is_refused():
    with pytest.raises(ValueError, match="3 columns but X_test has 2"):
        METHODS["kde"].score(np.zeros((4, 3)), np.zeros((4, 2)))
    with pytest.raises(ValueError, match="scaling must be one of none, minmax"):
        Protocol(scaling="zscore")


def test_kliep_rejects_widths_out_of_reach():
    """A width at which a row is out of reach of every centre has likelihood minus infinity, not nan."""
    fold = np.array([0, 1, 2, 3, 4])
    A = np.eye(5)[:, :3]
    assert ratio._kliep_likelihood(A, np.ones((4, 3)), fold) == -np.inf
