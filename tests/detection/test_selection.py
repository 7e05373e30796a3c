"""Choosing lambda by held-out likelihood."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

from llr_cvx.datasets import make_synthetic
from llr_cvx.detection.estimator import LLRDetector
from llr_cvx.detection.likelihood import held_out_loss
from llr_cvx.detection.selection import LambdaCurve, LLRDetectorCV, lambda_curve


def pooled(seed=0, shift=True):
    inlier, test, _ = make_synthetic(3, seed, 40, 20, 12 if shift else 0)
    return np.vstack([inlier, test]), np.repeat([1.0, -1.0], [len(inlier), len(test)])


@pytest.fixture(scope="module")
def chosen():
    X, y = pooled()
    said = []
    detector = LLRDetectorCV(lambda1s=[0.001, 0.1, 1.0], lambda2s=[0.01, 1.0], cv=3).fit(X, y, progress=said.append)
    return detector, said


def test_the_curve_is_the_held_out_loss_of_independent_fits(chosen):
    from sklearn.model_selection import StratifiedKFold

    detector, _ = chosen
    X, y = pooled()
    train, left_out = list(StratifiedKFold(3, shuffle=True, random_state=0).split(X, y))[1]
    for i, lambda1 in enumerate([0.001, 0.1, 1.0]):
        single = LLRDetector(lambda1=lambda1, lambda2=1.0, new_rows="weber").fit(X[train], y[train])
        score = single.score_samples(X[left_out])
        shift = np.linspace(-5, 5, 20001)[:, None]
        grid = np.logaddexp(0.0, -y[left_out] * (score + shift)).mean(axis=1).min()
        assert detector.curve_.fold_loss[i, 1, 1] == pytest.approx(grid, abs=2e-3)
        assert held_out_loss(single.solution_, X[left_out], y[left_out], np.arange(3)) == pytest.approx(grid, abs=1e-6)


def test_a_curve_needs_no_fitted_detector(chosen):
    X, y = pooled()
    curve = lambda_curve(LLRDetector(), X, y, [0.001, 0.1, 1.0], [1.0], cv=3)
    assert np.array_equal(curve.fold_loss[:, 0], chosen[0].curve_.fold_loss[:, 1])


def test_the_grid_runs_where_joblib_says(chosen):
    from joblib import parallel_config

    X, y = pooled()
    with parallel_config("threading", n_jobs=2):
        again = LLRDetectorCV(lambda1s=[0.001, 0.1, 1.0], lambda2s=[0.01, 1.0], cv=3).fit(X, y)
    assert np.array_equal(again.curve_.fold_loss, chosen[0].curve_.fold_loss)


def test_the_best_is_refitted(chosen):
    detector, said = chosen
    curve = detector.curve_
    assert curve.loss.min() == curve.loss[np.isin([0.001, 0.1, 1.0], detector.lambda1_), :].min()
    assert (detector.lambda1_, detector.lambda2_) == curve.best
    X, y = pooled()
    same = LLRDetector(lambda1=detector.lambda1_, lambda2=detector.lambda2_).fit(X, y)
    assert np.array_equal(same.log_ratio_, detector.log_ratio_)
    assert len(said) == 3 * 2
    assert str(curve).count("\n") == 6


def test_no_coupling_and_no_penalty_overfit(chosen):
    curve = chosen[0].curve_
    assert curve.loss[0, 0] > curve.baseline
    assert curve.loss.min() < curve.baseline
    assert curve.informative


def test_samples_of_one_distribution_are_not_told_apart():
    X, y = pooled(seed=1, shift=False)
    curve = LLRDetectorCV(lambda1s=[0.1, 1.0], cv=3).fit(X, y).curve_
    assert not curve.informative


def test_one_standard_error_takes_the_strongest_coupling_that_is_not_worse():
    loss = np.array([[0.5, 0.6, 0.7], [0.41, 0.5, 0.59], [0.44, 0.51, 0.57], [0.6, 0.7, 0.8]])[:, None, :]
    curve = LambdaCurve(np.array([0.1, 0.2, 0.3, 0.4]), np.array([1.0]), loss, baseline=0.69)
    assert curve.best == (0.2, 1.0)
    assert curve.one_standard_error == (0.3, 1.0)
    assert curve.informative


def test_the_choice_is_put_into_words():
    loss = np.array([[0.5, 0.6, 0.7], [0.41, 0.5, 0.59], [0.44, 0.51, 0.57], [0.6, 0.7, 0.8]])[:, None, :]
    curve = LambdaCurve(np.array([0.1, 0.2, 0.3, 0.4]), np.array([1.0]), loss, baseline=0.69)
    assert curve.reason(*curve.best) == (
        "chosen lambda1 = 0.2, lambda2 = 1 out of 4 values of lambda1 from 0.1 to 0.4: the lowest loss on held-out "
        "rows over 3 folds, 0.5000 +- 0.0520 (W = 0 gives 0.6900)"
    )
    assert "0.3, lambda2 = 1 out of" in curve.reason(*curve.one_standard_error)
    assert "the strongest coupling whose loss" in curve.reason(*curve.one_standard_error)
    edge = LambdaCurve(curve.lambda1s[1:], np.array([1.0, 2.0]), np.repeat(loss[1:], 2, axis=1), baseline=0.69)
    assert "and 2 values of lambda2 from 1 to 2" in edge.reason(*edge.best)
    assert edge.reason(*edge.best).endswith("this is at the end of the grid, so values beyond it may be better")
    assert curve.as_dict()["loss"] == curve.loss.tolist()


def test_baseline_is_the_entropy_of_the_shares(chosen):
    share = 40 / 72
    assert chosen[0].curve_.baseline == pytest.approx(-share * np.log(share) - (1 - share) * np.log(1 - share))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [({"lambda1s": []}, "lambda1s"), ({"lambda2s": [-1.0]}, "lambda2s"), ({"cv": 33}, "smaller group has 32")],
)
def test_bad_grids_are_named(parameters, message):
    X, y = pooled()
    with pytest.raises(ValueError, match=message):
        LLRDetectorCV(**parameters).fit(X, y)


def test_clone_and_missing_y():
    assert clone(LLRDetectorCV(cv=4)).cv == 4
    with pytest.raises(ValueError, match="known inlier"):
        LLRDetectorCV().fit(np.ones((4, 2)))
