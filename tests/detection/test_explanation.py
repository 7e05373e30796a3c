"""Explanations: contributions sum to the score, intervals are valid, and the dual gives the next feature."""

from __future__ import annotations

import json
from dataclasses import asdict

import numpy as np
import pytest
from sizes import thinned

from llr_cvx.datasets import make_synthetic
from llr_cvx.detection.estimator import LLRDetector
from llr_cvx.detection.explanation import MAX_SHARED_ROWS, explain_rows, groups
from llr_cvx.detection.features import Features, FeatureValue, describe
from llr_cvx.detection.ranking import selected_features, selection_distance
from llr_cvx.problem import Problem
from llr_cvx.solvers.exact import solve_exact
from llr_cvx.solvers.irls import solve_irls


def features(solution, names):
    """The columns of a problem, each a feature of its own."""
    X, y = solution.problem.X, solution.problem.y
    return Features(solution, describe(X, list(names), y > 0), np.arange(len(names)))


def fit(d=6, seed=0, **parameters):
    inlier, test, _ = make_synthetic(d, seed, 60, 30, 5)
    y = np.repeat([1, -1], [60, 35])
    return LLRDetector(contamination=0.15, **parameters).fit(np.vstack([inlier, test]), y)


@pytest.mark.parametrize("parameters", [{}, {"fit_intercept": True}, {"lambda1": 1.0, "lambda2": 0.1}])
def test_contributions_sum_to_the_score(parameters):
    detector = fit(**parameters)
    new = np.random.default_rng(1).normal(size=(30, 6))
    base = np.log(35 / 60)
    np.testing.assert_allclose(detector.explain().sum(axis=1) + base, detector.log_ratio_, rtol=0, atol=1e-10)
    np.testing.assert_allclose(detector.explain(new).sum(axis=1) + base, detector.score_samples(new), atol=1e-10)
    for e in detector.explain_table():
        assert sum(r.contribution for r in e.reasons) + base == pytest.approx(e.log_ratio, abs=1e-10)


@pytest.mark.parametrize(("lambda1", "lambda2"), thinned([(0.01, 1.0), (0.1, 1.0), (1.0, 0.1), (0.3, 0.01)], 3))
def test_intervals_contain_the_exact_solvers_scores(lambda1, lambda2):
    for seed in range(3):
        inlier, test, _ = make_synthetic(4, seed, 30, 12, 3)
        p = Problem.from_samples(inlier, test, lambda1, lambda2)
        exact = solve_exact(p, tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
        for tol in (1e-2, 1e-4, 1e-8):
            fast = solve_irls(p, tol=tol)
            low, high = (np.log(15 / 30) + end for end in fast.certificate.score_bounds)
            slack = np.sqrt(8.0 * max(exact.certificate.gap, 0.0)) + 1e-9  # the exact solver has an error too
            assert np.all(low - slack <= exact.log_ratio)
            assert np.all(exact.log_ratio <= high + slack)
            table = explain_rows(features(fast, "abcd"), np.arange(45), offset=-1.0)
            assert all(np.allclose(e.interval, (low[e.row], high[e.row]), rtol=0, atol=1e-13) for e in table)


def test_table_is_ranked_and_complete():
    detector = fit()
    table = detector.explain_table()
    y = detector.solution_.problem.y
    expected = np.flatnonzero((detector.log_ratio_ < detector.offset_) & (y < 0))
    assert sorted(e.row for e in table) == expected.tolist()
    assert [e.rank for e in table] == list(range(1, len(table) + 1))
    assert [e.log_ratio for e in table] == sorted(e.log_ratio for e in table)
    for e in table:
        assert e.ratio == pytest.approx(np.exp(e.log_ratio))
        assert e.interval[0] <= e.log_ratio <= e.interval[1]
        assert e.certain == (e.interval[1] < detector.offset_)
        pushes = [r.contribution for r in e.reasons]
        assert pushes == sorted(pushes)
        for r in e.reasons:
            assert r.contribution == pytest.approx(detector.coef_[e.row, r.column] * r.value)
            low, high = np.quantile(detector.solution_.problem.X[y > 0, r.column], [0.05, 0.95])
            assert r.typical == (low, high)
            assert r.position == ("below" if r.value < low else "above" if r.value > high else "within")


def test_asked_rows_names_and_units():
    detector = fit()
    shown = 100.0 * detector.solution_.problem.X
    table = detector.explain_table(rows=[3, 94], values=shown)
    assert {e.row for e in table} == {3, 94}
    for e in table:
        for r in e.reasons:
            assert r.feature == f"x{r.column}"
            assert r.value == shown[e.row, r.column]
    with pytest.raises(ValueError, match="values has shape"):
        detector.explain_table(values=shown[:5])
    frame = pytest.importorskip("pandas").DataFrame(shown, columns=list("abcdef"))
    for named, e in zip(detector.explain_table(rows=[3, 94], values=frame), table, strict=True):
        assert [(r.feature, r.value) for r in named.reasons] == [("abcdef"[r.column], r.value) for r in e.reasons]


def test_columns_to_show_are_found_by_name():
    pd = pytest.importorskip("pandas")
    inlier, test, _ = make_synthetic(4, 0, 60, 30, 5)
    frame = pd.DataFrame(np.vstack([inlier, test]), columns=list("abcd"))
    detector = LLRDetector(contamination=0.15).fit(frame, np.repeat([1, -1], [60, 35]))
    table = detector.explain_table(values=frame)
    assert table == detector.explain_table() == detector.explain_table(values=frame[list("dcba")].assign(e=1.0))
    for wrong in (frame[["a", "b"]], frame[:5], pd.DataFrame(frame.to_numpy())):
        with pytest.raises(ValueError, match="values must have the 95 rows and the columns that fit was given"):
            detector.explain_table(values=wrong)


def test_next_feature_without_coupling_is_the_second_largest_entry():
    """With lambda1 = 0, v_i is parallel to x_i: the distance is that of the entries themselves,
    and a feature enlarged by just more than 1/(1 - distance) takes over.
    """
    X = np.random.default_rng(3).normal(size=(6, 5))

    def explained(X):
        p = Problem(X, [1, 1, 1, -1, -1, -1], [], [], lambda1=0.0, lambda2=0.5)
        return explain_rows(features(solve_irls(p, tol=1e-7), "abcde"), np.arange(6), offset=0.0)

    for e in explained(X):
        size = np.sort(np.abs(X[e.row]))
        assert e.next_feature.distance == pytest.approx(1.0 - size[-2] / size[-1], abs=1e-3)
        (reason,) = e.reasons
        assert abs(reason.value) == size[-1]
        for factor, winner in ((0.98, reason.column), (1.02, e.next_feature.column)):
            larger = X.copy()
            larger[e.row, e.next_feature.column] *= factor / (1.0 - e.next_feature.distance)
            again = next(other for other in explained(larger) if other.row == e.row)
            assert [r.column for r in again.reasons] == [winner]


def test_selected_features_attain_the_dual_maximum():
    detector = fit(tol=1e-10)
    distance = selection_distance(detector.join().V)
    selected = selected_features(detector.solution_.problem.X, detector.coef_)
    assert selected.any()
    assert not selected.all()
    assert distance[selected].max() < 1e-3
    assert np.all((distance >= 0) & (distance <= 1))
    for e in detector.explain_table():
        free = np.where(selected[e.row], np.inf, distance[e.row])
        assert e.next_feature.column == np.argmin(free)
        assert e.next_feature.distance == free.min()


def test_no_weights_no_reasons():
    p = Problem(np.zeros((3, 2)), [1, 1, -1], [], [], lambda1=0.0, lambda2=1.0)
    (e,) = explain_rows(features(solve_irls(p), "ab"), np.array([2]), offset=0.0)
    assert e.reasons == ()
    assert e.next_feature is None
    assert "no feature selected" in str(e)


def test_groups_are_the_fused_rows():
    detector = fit(lambda1=2.0, lambda2=0.1, tol=1e-10)
    exact, loose = groups(detector.solution_, 0.0), groups(detector.solution_, 1e-3)
    assert len(np.unique(exact)) < len(exact)  # something fused
    assert len(np.unique(loose)) <= len(np.unique(exact))
    table = detector.explain_table(rows=np.flatnonzero(detector.solution_.problem.y < 0))
    asked = [e.row for e in table]
    assert max(e.group_size for e in table) > 1
    for e in table:
        others = [row for row in asked if loose[row] == loose[e.row] and row != e.row]
        assert e.group_size == 1 + len(others)
        assert list(e.shares_with) == others[:MAX_SHARED_ROWS]


def test_negligible_weights_of_a_conic_solver_are_not_reasons():
    p = Problem.from_samples(*make_synthetic(6, 0, 30, 12, 3)[:2])
    exact, fast = solve_exact(p), solve_irls(p, tol=1e-10)
    assert np.all(exact.W != 0)
    assert np.array_equal(selected_features(p.X, exact.W), selected_features(p.X, fast.W))


def test_json():
    table = fit().explain_table()
    again = json.loads(json.dumps([asdict(e) for e in table], allow_nan=False))
    assert again[0]["reasons"][0]["feature"] == table[0].reasons[0].feature
    assert "contributes" in str(table[0])


@pytest.mark.parametrize(("value", "position"), [(1600.0, "above"), (1400.0, "below"), (1500.0, "within")])
def test_the_place_is_that_in_the_range_compared_with(value, position):
    reason = FeatureValue("speed", 0, value, (1445.0, 1554.0), contribution=-0.5)
    assert str(reason) == (
        f"speed = {value:.4g}, {position} the inliers' 5 % to 95 % range (1445 to 1554), contributes -0.5"
    )


def test_a_missing_value_has_a_share_but_no_range():
    order = np.array([1.0, 2.0, np.nan, 4.0, np.nan])
    (column,) = describe(order[:, None], ["speed"], np.arange(5) < 4)
    gone, there = column.of(4, column=0, distance=0.5), column.of(3, column=0, contribution=-1.0)
    assert str(gone) == "speed = missing, seen in 25 % of the inliers, 50 % short of selection"
    assert (gone.typical, gone.position, gone.rank) == (None, "within", gone.place)
    assert there.typical == tuple(np.quantile([1.0, 2.0, 4.0], [0.05, 0.95]))
    assert (there.position, there.rank) == ("above", "above 67 % of the inliers")


@pytest.mark.parametrize(("value", "shown"), [(0.123456, "0.1235"), (15945.2, "15945"), (2e9, "2e+09"), ("red", "red")])
def test_values_are_shown_as_people_write_them(value, shown):
    assert FeatureValue("amount", 0, value, None).shown == shown
