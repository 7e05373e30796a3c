"""The Weber problem: agreement with a general solver, corner cases, and the claimed accuracy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from sizes import thinned

from llr_cvx.detection.weber import gaussian_weights, weber_points


def value(w, anchors, weights):
    return float(weights @ np.linalg.norm(anchors - w, axis=1))


def draw(kind, rng, M=300, K=5, d=8):
    P = rng.normal(size=(M, K, d))
    if kind == "sparse":
        P *= rng.random(P.shape) < 0.2
    elif kind == "nearly fused":
        P[:, 1] = P[:, 0] + 1e-11 * rng.normal(size=(M, d))
    elif kind == "fused":
        P = rng.integers(0, 2, size=P.shape).astype(float)
    elif kind == "collinear":
        P = rng.normal(size=(M, K, 1)) * rng.normal(size=(M, 1, d))
    elif kind == "plane":
        P = P[:, :, :2]
    elif kind == "line":
        P = P[:, :, :1]
    return P, np.exp(-rng.exponential(2.0, size=(M, K)))


KINDS = ["dense", "sparse", "nearly fused", "fused", "collinear", "plane", "line"]


@pytest.mark.parametrize("kind", thinned(KINDS, 3))
def test_claimed_gap_is_reached_and_true(kind):
    P, a = draw(kind, np.random.default_rng(0))
    found = weber_points(P, a)
    assert found.relative_gap.max() <= 1e-10
    for m in range(0, len(P), 30):
        mine = value(found.points[m], P[m], a[m])
        start = P[m].mean(axis=0)
        other = minimize(value, start, args=(P[m], a[m]), method="Nelder-Mead", options={"maxfev": 4000})
        assert mine <= other.fun * (1 + 1e-10)
        assert mine <= min(value(p, P[m], a[m]) for p in P[m]) * (1 + 1e-12)


def test_gradient_vanishes_away_from_anchors_and_subgradient_condition_holds_at_them():
    P, a = draw("dense", np.random.default_rng(1), M=200)
    found = weber_points(P, a)
    at_anchor = found.mixture.max(axis=1) == 1.0
    assert 0.1 < at_anchor.mean() < 0.9  # both kinds occur
    for m in range(len(P)):
        diff = found.points[m] - P[m]
        rho = np.linalg.norm(diff, axis=1)
        away = rho > 0
        force = (a[m, away, None] * diff[away] / rho[away, None]).sum(axis=0)
        allowed = a[m, ~away].sum() if at_anchor[m] else 1e-9
        assert np.linalg.norm(force) <= allowed * (1 + 1e-9)


def test_points_are_the_stated_mixtures_and_keep_exact_zeros():
    P, a = draw("sparse", np.random.default_rng(2))
    P[:, :, 3] = 0.0
    found = weber_points(P, a)
    np.testing.assert_allclose(np.einsum("mk,mkd->md", found.mixture, P), found.points, atol=1e-15)
    assert np.all(found.mixture >= 0)
    np.testing.assert_allclose(found.mixture.sum(axis=1), 1.0)
    assert np.all(found.points[:, 3] == 0.0)


def test_each_row_is_solved_on_its_own():
    P, a = draw("dense", np.random.default_rng(3), M=40)
    together = weber_points(P, a).points
    alone = np.vstack([weber_points(P[m : m + 1], a[m : m + 1]).points for m in range(40)])
    np.testing.assert_allclose(together, alone, atol=1e-13)


def test_weighted_median_on_a_line():
    P = np.array([[[0.0], [1.0], [10.0]]])
    assert weber_points(P, np.array([[1.0, 1.0, 1.0]])).points.item() == 1.0
    assert weber_points(P, np.array([[1.0, 1.0, 3.0]])).points.item() == 10.0


def test_one_anchor_equal_anchors_and_no_rows():
    P = np.ones((2, 3, 4))
    found = weber_points(P, np.ones((2, 3)))
    assert np.array_equal(found.points, np.ones((2, 4)))
    assert np.all(found.relative_gap == 0.0)
    assert np.array_equal(weber_points(P[:, :1], np.ones((2, 1))).points, np.ones((2, 4)))
    assert weber_points(P[:0], np.ones((0, 3))).points.shape == (0, 4)


def test_stopping_early_is_reported():
    P, a = draw("dense", np.random.default_rng(4))
    assert weber_points(P, a, max_iter=1).relative_gap.max() > 1e-6


def test_weights_of_a_near_row_are_the_gaussian_ones():
    rng = np.random.default_rng(5)
    x, neighbours, sigma = rng.normal(size=(6, 3)), rng.normal(size=(6, 4, 3)), 0.7
    plain = np.exp(-((x[:, None] - neighbours) ** 2).sum(axis=2) / (2 * sigma**2))
    weights = gaussian_weights(x, neighbours, sigma)
    np.testing.assert_allclose(weights, plain / plain.max(axis=1, keepdims=True), rtol=1e-12)


@pytest.mark.parametrize("far", [1e3, 1e8, 1e150, 1e300])
def test_a_very_far_row_still_has_weights(far):
    neighbours = np.array([[[0.0, 0.0], [1.0, 0.0], [-1.0, 0.5]]])
    weights = gaussian_weights(np.array([[far, 0.0]]), neighbours, sigma=1.0)
    assert np.array_equal(weights, [[0.0, 1.0, 0.0]])
    assert gaussian_weights(np.zeros((1, 2)), np.zeros((1, 3, 2)), sigma=1.0).tolist() == [[1.0, 1.0, 1.0]]
