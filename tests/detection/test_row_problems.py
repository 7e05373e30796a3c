"""What is computed of J and D for a new row errs on the safe side, and a point outside its balls proves nothing."""

from __future__ import annotations

import math

import numpy as np
import pytest

from llr_cvx.detection.row_problems import Dual, RowProblems, feasible, proven_by_u, proven_by_v


def one_row(x, anchors, radii, lambda2=1.0):
    return RowProblems(np.array([x]), np.array([anchors]), np.array([radii]), np.array([lambda2]), np.ones(1))


def test_the_objective_covers_the_rounding_of_huge_terms_that_cancel():
    """The computed w.x is 0 and the true one 1e4: J must not be below the latter."""
    x, w = [1e22, 1.0, 1e22], np.array([[0.5, 1e4, -0.5]])
    rows = one_row(x, w.tolist(), [1.0], 1e-9)
    assert (w * rows.x).sum() == 0.0
    assert math.fsum((w * rows.x)[0]) == 1e4
    assert rows.objective(w)[0] >= 1e4


def test_a_lowered_score_stays_below_whatever_is_rounded():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 6)) * 10.0 ** rng.uniform(10, 100, size=(200, 1))
    w = rng.normal(size=(200, 6))
    w[:, 0] -= (w * x).sum(axis=1) / x[:, 0]  # w.x is nothing but rounding
    rows = RowProblems(x, w[:, None], np.zeros((200, 1)), np.full(200, 1e-300), np.ones(200))
    assert np.mean(rows.objective(w) > 1.0) > 0.9
    assert np.all(rows.objective(rows.lowered(w)) <= np.log(2.0) + 1e-14)
    assert np.all(np.abs((rows.lowered(w) - w) * x).sum(axis=1) <= 1e-14 * np.abs(w * x).sum(axis=1))


def test_a_distance_whose_square_underflows_counts():
    rows = one_row([1e200], [[0.0]], [5.0])
    assert rows.objective(np.array([[-1e-190]]))[0] == pytest.approx(5e-190)


@pytest.mark.parametrize("proven", [proven_by_u, proven_by_v])
def test_a_dual_point_outside_its_balls_proves_nothing(proven):
    rows = one_row([2.0], [[0.5], [0.0]], [0.3, 0.1])
    for u, good in (([0.29, 0.09], True), ([0.301, 0.09], False), ([0.29, 0.101], False)):
        U, alpha = np.array(u)[None, :, None], np.full(1, 0.5)
        assert np.isfinite(proven(rows, Dual(alpha, U, alpha[:, None] * rows.x + U.sum(axis=1)))[0]) == good


def test_a_v_that_belongs_to_another_u_is_paid_for():
    """By u, the penalty covers the difference; by v, the ball of the strongest anchor must have room for it."""
    rows = one_row([2.0], [[0.5], [0.0]], [0.3, 0.1])
    alpha, U = np.full(1, 0.25), np.array([[[-0.2], [0.0]]])
    for v, room in ((0.3, True), (0.35, True), (0.21, True), (0.19, False), (0.45, False)):
        dual = Dual(alpha, U, np.array([[v]]))
        H = -0.25 * np.log(0.25) - 0.75 * np.log(0.75)
        assert proven_by_u(rows, dual)[0] <= H + 0.1 - 0.3**2 / 4 + 1e-15
        by_v = proven_by_v(rows, dual)[0]
        assert by_v == pytest.approx(H - 0.5 * (v - 0.5) - v**2 / 4, abs=1e-14) if room else by_v == -np.inf


def test_a_feasible_point_is_inside_and_keeps_to_its_level():
    rng = np.random.default_rng(1)
    rows = RowProblems(*(rng.normal(size=s) for s in ((50, 4), (50, 3, 4))), rng.random((50, 3)), *np.ones((2, 50)))
    u, level = rng.normal(size=(50, 3, 4)), 0.1 * rng.random(50)
    dual = feasible(rows, rng.random(50), u, level)
    assert np.all(np.linalg.norm(dual.u, axis=2) < rows.radii)
    assert np.all(np.abs(dual.v) <= level[:, None])
    np.testing.assert_allclose(dual.v, dual.alpha[:, None] * rows.x + dual.u.sum(axis=1), atol=1e-14)
    assert np.isfinite(proven_by_v(rows, dual)).all()
