"""Feature maps learned from the known inliers."""

from __future__ import annotations

import numpy as np
import pytest
from sizes import in_long
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, RobustScaler, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import llr_cvx as llr
from llr_cvx.detection.scalers import ConditionalScaler, InlierScaler


@parametrize_with_checks([InlierScaler(), InlierScaler("robust"), InlierScaler("minmax"), ConditionalScaler()])
def test_estimator_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize(
    ("method", "same"), [("standard", StandardScaler()), ("robust", RobustScaler()), ("minmax", MinMaxScaler())]
)
def test_inliers_alone_set_the_scale(method, same):
    rng = np.random.default_rng(0)
    X, y = rng.normal(3, 2, size=(50, 3)), np.repeat([1, -1], [30, 20])
    X[30:] *= 100
    X[:30, 1] = 0.3
    X[:15, 1] = 0.1 + 0.2  # constant among the inliers, but for rounding
    assert np.ptp(X[:30, 1]) > 0.0
    found = InlierScaler(method).fit(X, y).transform(X)
    np.testing.assert_allclose(found[:, [0, 2]], same.fit(X[:30]).transform(X)[:, [0, 2]])
    assert np.abs(found[:30, 1]).max() < 1e-12
    assert np.all(np.isfinite(found))


def test_a_row_has_the_same_residuals_alone_and_in_a_batch():
    """To the last bit: scores of new rows must not depend on how they are cut into batches."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(203, 37)) @ rng.normal(size=(37, 37))  # correlated, or there would be nothing to add up
    scaler = ConditionalScaler().fit(X)
    whole = scaler.transform(X)
    for step in (1, 2, 50):
        parts = [scaler.transform(X[start : start + step]) for start in range(0, len(X), step)]
        assert np.array_equal(np.vstack(parts), whole)


@pytest.mark.parametrize(
    "scaler", [InlierScaler(), InlierScaler("robust"), InlierScaler("minmax"), ConditionalScaler()]
)
def test_a_table_is_scaled_as_the_array_of_its_values(scaler):
    """To the last bit, however the values lie in memory: solvers that stop at a gap show every bit of difference."""
    X = np.random.default_rng(0).normal(3, 2, size=(203, 7)) ** 3
    for rows in (np.asfortranarray(X), np.hstack([X, X])[:, :7], pandas_frame(X)):
        assert np.array_equal(scaler.fit(X).transform(X), scaler.fit(rows).transform(rows))


def pandas_frame(X):
    pandas = pytest.importorskip("pandas")
    return pandas.DataFrame({f"x{k}": column for k, column in enumerate(X.T)})


def test_names_survive_a_pipeline():
    pandas = pytest.importorskip("pandas")
    X = pandas.DataFrame(np.random.default_rng(0).normal(size=(40, 2)), columns=["length", "width"])
    y = np.repeat([1, -1], [30, 10])
    for scaler in (InlierScaler(), ConditionalScaler()):
        pipeline = make_pipeline(scaler, llr.LLRDetector()).set_output(transform="pandas").fit(X, y)
        assert scaler.get_feature_names_out().tolist() == ["length", "width"]
        assert pipeline[-1].feature_names_in_.tolist() == ["length", "width"]
        inside = llr.LLRDetector(scaler=scaler).fit(X, y)
        np.testing.assert_allclose(inside.log_ratio_, pipeline[-1].log_ratio_, atol=1e-3)
        np.testing.assert_allclose(inside.score_samples(X[:3] + 1), pipeline.score_samples(X[:3] + 1), atol=1e-3)


def test_conditional_residuals_are_those_of_regressions():
    """Without shrinkage (n >> d): feature k less its least-squares prediction from the others, over its spread."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(20000, 4)) @ rng.normal(size=(4, 4)) + 5.0
    found = ConditionalScaler().fit(X).transform(X)
    for k in range(4):
        others = np.column_stack([np.delete(X, k, axis=1), np.ones(len(X))])
        residual = X[:, k] - others @ np.linalg.lstsq(others, X[:, k], rcond=None)[0]
        np.testing.assert_allclose(found[:, k], residual / residual.std(), atol=0.1)


@pytest.mark.parametrize("unrelated", [0, 5, 20])
def test_a_strong_correlation_counts_among_unrelated_features(unrelated):
    """A break of 20 standard deviations is far out, in units of what inliers show, not shrunk away."""
    rng = np.random.default_rng(0)
    a = rng.normal(size=133)
    X = np.column_stack([a, a + 0.05 * rng.normal(size=133), rng.normal(size=(133, unrelated))])
    scaler = ConditionalScaler().fit(X)
    assert np.abs(scaler.transform([[0.6, -0.6, *np.zeros(unrelated)]])[0, :2]).min() > 15
    assert scaler.transform(X).std(axis=0) == pytest.approx(1.0, abs=0.2)
    assert scaler.shrinkage_ == ConditionalScaler().fit(X[::-1]).shrinkage_
    alone = ConditionalScaler().fit(rng.normal(size=(60, 20)))
    assert alone.shrinkage_ > 0.5  # nothing to be found


def test_a_row_is_mapped_alike_in_every_batch():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(57, 13))
    scaler = ConditionalScaler().fit(X)
    whole = scaler.transform(X)
    assert all(np.array_equal(scaler.transform(X[i : i + 1])[0], whole[i]) for i in range(57))


def test_degenerate_inliers():
    X = np.column_stack([np.ones(10), np.arange(10.0), np.arange(10.0)])  # constant, and twice the same
    found = ConditionalScaler().fit(X).transform([[2.0, 3.0, 3.0], [1.0, 3.0, 8.0]])
    assert np.isfinite(found).all()
    assert found[0, 0] == 1.0
    assert np.abs(found[1, 1:]).min() > np.abs(found[0, 1:]).max()
    with pytest.raises(ValueError, match="at least 2 known inliers"):
        ConditionalScaler().fit(X, [1] + 9 * [-1])
    with pytest.raises(ValueError, match="no row as a known inlier"):
        InlierScaler().fit(X, -np.ones(10))
    with pytest.raises(ValueError, match='method must be "standard", "robust" or "minmax"'):
        InlierScaler("z").fit(X)
    with pytest.raises(ValueError, match="one label per row"):
        InlierScaler().fit(X, [1, 1])


@pytest.mark.parametrize("d", [10, in_long(30), in_long(100)])
def test_broken_correlations_are_ranked_first(d):
    """Pairs of features with correlation 0.95; outliers break one pair, with values as usual as any.

    AUROC of |residual|, and of |contribution| in the fitted model, for telling the two features from the others.
    """
    rng = np.random.default_rng(d)

    def pairs(n):
        common = np.repeat(rng.normal(size=(n, d // 2)), 2, axis=1)
        return np.sqrt(0.95) * common + np.sqrt(0.05) * rng.normal(size=(n, d))

    inliers, test = pairs(300), pairs(40)
    planted = np.zeros((20, d), dtype=bool)
    for i in range(20):
        k = 2 * rng.integers(d // 2)
        test[i, k : k + 2] = rng.choice([-1, 1]) * rng.uniform(0.8, 1.6) * np.array([1, -1])
        planted[i, k : k + 2] = True
    X, y = np.vstack([inliers, test]), np.repeat([1, -1], [300, 40])
    auroc = {}
    for name, scaler in (("standard", InlierScaler()), ("conditional", ConditionalScaler())):
        detector = llr.LLRDetector(scaler=scaler, tol=1e-5).fit(X, y)
        contributions, values = np.abs(detector.explain())[300:320], np.abs(scaler.fit(X, y).transform(test[:20]))
        full = -np.argsort(detector.feature_ranking()[300:320], axis=1)
        auroc[name] = [
            np.mean([roc_auc_score(*pair) for pair in zip(planted, ranking, strict=True)])
            for ranking in (contributions, values, full)
        ]
    assert auroc["conditional"][1] >= 0.95
    assert auroc["conditional"][0] >= 0.85
    assert auroc["conditional"][2] >= 0.85
    assert min(auroc["standard"][2], auroc["conditional"][2]) >= auroc["standard"][1]  # |z| of the row itself
    assert auroc["standard"][0] < auroc["conditional"][0]
    assert auroc["standard"][1] < 0.9  # no value is unusual by itself
