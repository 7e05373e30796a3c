"""Where a solver begins: points, their dual unknowns and epsilon; extrapolation along a path."""

from __future__ import annotations

import numpy as np
import pytest
from builders import random_problem

import llr_cvx as llr
from llr_cvx.benchmarks.measure import instance
from llr_cvx.problem import Problem
from llr_cvx.proofs.certificate import lower_bound
from llr_cvx.solvers import settings
from llr_cvx.solvers.smoothing import smoothed_objective
from llr_cvx.solvers.starts import (
    Start,
    _extrapolated,
    cold_start,
    start_from,
    start_near,
    typical_weight,
    warm_start,
)


def problem(lambda1: float = 0.1, lambda2: float = 1.0) -> Problem:
    return random_problem(0, 64, 5, lambda1, lambda2)


def gap(p: Problem, start: Start) -> float:
    bound = lower_bound(p, p.alpha(start.W), p.radii[:, None] * start.duals.u, start.W)
    return p.objective(start.W) - bound


def test_lengths_scale_with_the_data() -> None:
    p = problem()
    scaled = Problem(1e3 * p.X, p.y, p.edges, p.weights, 1e3 * p.lambda1, 1e6 * p.lambda2)
    assert typical_weight(scaled) == pytest.approx(1e-3 * typical_weight(p))
    assert cold_start(scaled).epsilon == pytest.approx(1e-3 * cold_start(p).epsilon)
    assert 0.01 < typical_weight(p) / np.median(np.abs(llr.solve_irls(p).W).max(axis=1)) < 10
    assert np.isfinite(typical_weight(Problem(np.zeros((2, 2)), [1, -1], [], [], 0.1, 1.0)))


@pytest.mark.parametrize("tiny", [5e-324, 2.2e-309, 1e-200, 1e-20])
@pytest.mark.parametrize("lambda2", [0.0, 1e-5, 1.0, 1e150])
def test_samples_next_to_nothing_set_no_length(tiny: float, lambda2: float) -> None:
    X = [[1.0, 0.0], [tiny, tiny], [0.0, tiny], [tiny, 0.0]]
    p = Problem(X, [1, -1, -1, 1], [[0, 1], [1, 2]], [1.0, 1.0], 0.1, lambda2)
    alone = Problem([[1.0, 0.0], [0.0, 0.0]], [1, -1], [], [], 0.1, lambda2)
    if lambda2 > 0:
        assert typical_weight(p) == typical_weight(alone)
        assert llr.solve_irls(p).status == llr.solve_fast(p).status == "optimal"
    first, last = (share * typical_weight(p) for share in (settings.FIRST_EPSILON, settings.LAST_EPSILON))
    assert np.finfo(float).tiny < last**2 < first**2 < np.inf


def test_a_cold_start_is_zero() -> None:
    p = problem()
    start = cold_start(p)
    assert not start.W.any()
    assert not start.duals.u.any()
    assert start.duals.u.shape == (len(p.edges), p.shape[1])
    assert start.known == ()
    assert not start.neighbour


def test_a_W_alone_gets_the_smoothed_directions_with_the_best_bound() -> None:
    s = llr.solve_irls(problem(0.3), tol=1e-9)
    start = warm_start(s.problem, s.W)
    first = cold_start(s.problem).epsilon
    tried = [start._replace(epsilon=first * 10.0**-k) for k in range(7)]
    assert any(start.epsilon == pytest.approx(t.epsilon) for t in tried)
    assert start.epsilon < first
    D = s.problem.incidence @ s.W
    for other in tried:
        u = D / np.sqrt((D**2).sum(axis=1) + other.epsilon**2)[:, None]
        assert gap(s.problem, start) <= gap(s.problem, start_near(s.problem, s.W, u)) * (1 + 1e-12)
    ((known, objective),) = start.known
    assert known is s.W
    assert objective == pytest.approx(s.objective, rel=1e-14)


def test_near_a_solution_smoothing_costs_about_as_much_as_the_gap() -> None:
    s = llr.solve_irls(problem(0.3), tol=1e-9)
    p = s.problem.with_lambdas(0.33)
    u = s.certificate.U / p.radii[:, None]
    start = start_near(p, s.W, u)
    cost = smoothed_objective(p, s.W, start.epsilon) - p.objective(s.W)
    assert 0.01 * gap(p, start) < cost <= settings.SETTLED * gap(p, start) * (1 + 1e-9)
    assert np.abs(start.duals.z).max() <= 1.0
    assert start_near(s.problem, s.W, s.certificate.U / s.problem.radii[:, None]).epsilon < start.epsilon


def test_z_at_an_optimum_is_the_sign_on_the_support() -> None:
    s = llr.solve_fast(problem(0.3), tol=1e-12)
    duals = start_near(s.problem, s.W, s.certificate.U / s.problem.radii[:, None]).duals
    np.testing.assert_allclose(duals.z[s.support], np.sign(s.W[s.support]), atol=1e-5)
    assert np.abs(duals.z).max() <= 1.0


def test_from_a_solution_its_dual_point_is_kept() -> None:
    s = llr.solve_irls(problem(0.3), tol=1e-9)
    start = start_from(s.problem.with_lambdas(0.3), s)
    assert start.neighbour
    radii = s.problem.radii[:, None]
    np.testing.assert_allclose(radii * start.duals.u, s.certificate.U, atol=2e-3 * radii.max())
    assert not start_from(s.problem, s.W).neighbour
    there = start_from(s.problem.with_lambdas(0.6), s)
    on_sphere = np.linalg.norm(s.certificate.U, axis=1) > 0.999 * s.problem.radii
    norms = np.linalg.norm(there.duals.u, axis=1)
    np.testing.assert_allclose(norms[on_sphere], 1.0)  # the full length there too
    U = 2.0 * radii * there.duals.u
    np.testing.assert_allclose(U[~on_sphere], s.certificate.U[~on_sphere], atol=1e-12)  # and fused edges keep their U


def test_two_points_of_a_path_are_a_better_start_than_one() -> None:
    p = instance(310, 10, seed=0)
    first, second = (llr.solve_irls(p.with_lambdas(l1), tol=1e-8) for l1 in (0.05, 0.055))
    target = p.with_lambdas(0.0605)

    def first_gap(W0: object) -> float:
        return gap(target, start_from(target, W0))  # type: ignore[arg-type]

    assert first_gap([first, second]) < 0.8 * first_gap(second)
    assert first_gap([second]) == first_gap(second)
    assert first_gap([second, first, second]) == first_gap([first, second])  # the last two count
    # nothing to extrapolate: both lambdas changed, or none did
    assert first_gap([llr.solve_irls(p.with_lambdas(0.05, 2.0), tol=1e-8), second]) == first_gap(second)
    assert first_gap([second, second]) == first_gap(second)


def test_no_point_that_was_offered_is_lost() -> None:
    p = problem()
    path = [llr.solve_irls(p.with_lambdas(l1)) for l1 in (0.01, 0.1)]
    target = p.with_lambdas(0.3)
    start = start_from(target, path)
    assert len(start.known) == 2
    assert any(W is path[-1].W for W, _ in start.known)
    for W, objective in start.known:
        assert objective == target.objective(W)


def test_a_neighbour_worse_than_zero_is_not_begun_with() -> None:
    p = problem()
    far = llr.solve_irls(p.with_lambdas(0.001, 0.001))
    target = p.with_lambdas(10.0, 10.0)
    assert target.objective(far.W) > target.objective(np.zeros(p.shape))
    start = start_from(target, far)
    assert not start.W.any()
    assert start.neighbour
    assert not start_from(target, far.W).W.any()


def test_a_start_on_the_line_through_two_points_keeps_the_zeros_and_signs_of_the_last() -> None:
    p = problem()
    path = [llr.solve_irls(p.with_lambdas(l1), tol=1e-8) for l1 in (0.06, 0.05)]
    ((W, U),) = _extrapolated(p.with_lambdas(0.04), path)
    assert np.any(path[0].support & ~path[1].support)
    assert np.all((W == 0.0) | (np.sign(W) == np.sign(path[1].W)))
    h = np.log(0.04 / 0.05) / np.log(0.05 / 0.06)
    line = path[1].W + h * (path[1].W - path[0].W)
    np.testing.assert_allclose(W[W != 0], line[W != 0])
    U1, U0 = path[1].certificate.U, path[0].certificate.U
    np.testing.assert_allclose(U, U1 + h * (U1 - U0))
