"""The common interface of the methods: sign, seed, independence of order, and what each must find."""

from dataclasses import replace

import numpy as np
import pytest

from llr_cvx import Problem, make_synthetic
from llr_cvx.experiments.methods import EXACT, METHODS, Property, logistic, lokdr, ratio, unsupervised
from llr_cvx.experiments.methods._base import solve_positive
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


@pytest.mark.parametrize("key", METHODS)
def test_higher_is_more_normal(easy, key):
    inliers, test, is_outlier = easy
    scores = METHODS[key].score(inliers, test, random_state=1)
    assert scores.shape == (70,)
    assert np.isfinite(scores).all()
    assert auc(scores, is_outlier) > 0.9


@pytest.mark.parametrize("key", METHODS)
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


@pytest.mark.parametrize("key", [k for k in METHODS if k not in ("l1lr", "klr", "ulsif", "rulsif", "kliep")])
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
    np.testing.assert_allclose(slow.importance, fast.importance, atol=5e-2)


def test_llr_becomes_the_max_norm_test():
    """lambda1 -> 0 without a constant: the same order of the test rows."""
    X_inlier, X_test, _ = make_synthetic(8, 1)
    weak = Protocol(lambda1=1e-9, tol=1e-10, intercept=False)
    scores = METHODS["llr"].score(X_inlier, X_test, protocol=weak)
    norms = METHODS["maxnorm"].score(X_inlier, X_test)
    order = np.argsort(norms, kind="stable")
    assert (np.diff(scores[order]) >= 0).all()  # scores are rounded: near ties count as ties
    assert len(np.unique(scores)) > 0.9 * len(scores)


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
    info = METHODS["l1lr"].run(inliers, test, protocol=Protocol(l1_lambda="fixed")).info
    assert info["lambda"] == pytest.approx(0.1 * logistic.l1_lambda_max(X, y, intercept=True))


def test_l1_lambda_by_cross_validation_is_from_the_grid(easy):
    inliers, test, _ = easy
    X, y = np.vstack([inliers, test]), np.repeat([1.0, -1.0], [120, 70])
    info = METHODS["l1lr"].run(inliers, test, protocol=Protocol(l1_lambda="cv")).info
    fraction = info["lambda"] / logistic.l1_lambda_max(X, y, intercept=True)
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
    for key in METHODS:
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


@pytest.mark.parametrize("key", METHODS)
def test_importance_is_given_by_those_that_select(easy, key):
    inliers, test, _ = easy
    importance = METHODS[key].run(inliers, test, random_state=1, protocol=Protocol(intercept=True)).importance
    assert (importance is not None) == (Property.SELECTS_FEATURES in METHODS[key].properties)
    if importance is not None:
        assert importance.shape == test.shape
        assert (importance >= 0).all()
        assert (importance[60:].argmax(axis=1) < 2).mean() > 0.8  # one of the two features that were shifted


def test_lokdr_finds_planted_features():
    """Two of twelve features are planted in every tenth test row; without any, little is chosen."""
    rng = np.random.default_rng(0)
    inliers, test = rng.normal(size=(200, 12)), rng.normal(size=(100, 12))
    planted = test.copy()
    planted[90:, 3] += 4.0
    planted[90:, 7] -= 4.0
    chosen = lokdr.select(inliers, planted)
    assert set(chosen[:2]) == {3, 7}
    assert len(chosen) <= 4
    outcome = METHODS["lokdr"].run(inliers, planted)
    assert auc(outcome.scores, np.arange(100) >= 90) > 0.95
    assert set(np.flatnonzero(outcome.importance[0])) == set(chosen)
    assert outcome.importance[0].argmax() == chosen[0]
    assert METHODS["lokdr"].run(inliers, test).info["selected"] <= 4


def test_lokdr_is_greedy_by_the_local_density_ratio():
    """The first feature against the criterion written out."""
    rng = np.random.default_rng(1)
    inliers, test = rng.normal(size=(40, 3)), rng.normal(size=(30, 3))
    test[-4:, 1] += 3.0

    def log_density(x, k, skip=None):
        total = 0.0
        for j, c in enumerate(inliers[:, k]):
            near = np.sort(np.abs(inliers[:, k] - c))[lokdr.WIDTH_NEIGHBORS]
            root = np.sqrt(((inliers[:, [k]] - inliers[:, k]) ** 2).mean())
            width = max(near, lokdr.MIN_WIDTH * root)
            total += 0.0 if j == skip else np.exp(-0.5 * ((x - c) / width) ** 2) / width
        return np.log(total)

    ratio = [
        np.mean([log_density(x, k, j) for j, x in enumerate(inliers[:, k])])
        - np.mean([log_density(x, k) for x in test[:, k]])
        for k in range(3)
    ]
    assert lokdr.select(inliers, test)[0] == int(np.argmax(ratio))


def test_equal_scores_are_ties_whatever_the_gap():
    """Among many duplicates fused rows have equal scores, and the AUC must not depend on their rounding errors."""
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 3, size=(30, 4)).astype(float)
    inliers, test = rows[rng.integers(30, size=120)], rows[rng.integers(30, size=60)]
    outlier = np.arange(60) % 4 == 0
    strong = Protocol(lambda1=1.0)
    scores = METHODS["llr"].score(inliers, test, protocol=strong)
    tight = METHODS["llr"].score(inliers, test, protocol=replace(strong, tol=1e-8))
    np.testing.assert_allclose(scores, tight, atol=2e-4)
    assert len(np.unique(scores)) < 30
    assert auc(scores, outlier) == auc(tight, outlier)


@pytest.mark.parametrize("scaling", ["standard", "symmetric"])
def test_scaling_over_the_whole_set(scaling):
    X = np.random.default_rng(0).normal(3, 50, size=(80, 4))
    X[:, 3] = 7.0
    with pytest.raises(ValueError, match="needs the whole set"):
        Protocol(scaling=f"whole-{scaling}").scale(X[:20], X[20:30])
    a, b = Protocol(scaling=f"whole-{scaling}").scale(X[:20], X[20:30], X)
    pooled = Protocol(scaling=scaling).scale(X[:50], X[50:])
    np.testing.assert_allclose(np.vstack([a, b]), np.vstack(pooled)[:30])
    c, d = Protocol(scaling=scaling).scale(X[:20], X[20:30], X)
    assert not np.allclose(np.vstack([a, b])[:, :3], np.vstack([c, d])[:, :3])


def test_number_of_outliers():
    sizes = {"class_size": 268, "test_inliers": 250}
    assert [Protocol(n_outliers=rule).outliers(**sizes) for rule in ("ten", "class", "test")] == [10, 27, 25]
    assert Protocol(n_outliers="ten").outliers(class_size=9, test_inliers=72) == 9


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


def test_systems_are_solved_or_refused():
    rng = np.random.default_rng(0)
    A, b = rng.normal(size=(9, 6)), rng.normal(size=6)
    M = A.T @ A
    np.testing.assert_allclose(M @ solve_positive(np.triu(M), b), b, rtol=1e-9)
    with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
        solve_positive(M - 100.0 * np.eye(6), b)
