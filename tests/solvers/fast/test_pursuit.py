"""Newton's method that keeps the zeros of a nearby solution, and the balancing of dual points."""

from __future__ import annotations

import numpy as np
import pytest

import llr_cvx as llr
from llr_cvx.benchmarks import measure as bench
from llr_cvx.problem import Problem
from llr_cvx.proofs.certificate import dual_objective
from llr_cvx.solvers.best import Best
from llr_cvx.solvers.fast import phases, pursuit
from llr_cvx.solvers.fast.balance import balanced
from llr_cvx.solvers.fast.pursuit import Point, dual_step, evaluate, newton, pursue, signs
from llr_cvx.solvers.fast.starts import start_from
from llr_cvx.solvers.irls import Step

LAMBDAS = (0.2, 0.22, 0.24)


def problem(d: int = 8, seed: int = 0, lambda1: float = 0.05) -> Problem:
    X_inlier, X_test, _ = llr.make_synthetic(d, seed, n_inlier=30, n_test_inlier=15, n_outlier=3)
    return Problem.from_samples(X_inlier, X_test, lambda1)


def sparse_W(p: Problem, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    W = rng.normal(size=p.shape) * (rng.random(p.shape) < 0.4)
    W[1] = 0.0
    return W


def neighbours(d: int = 50) -> tuple[Problem, list[llr.Solution]]:
    p = bench.instance(310, d, seed=0)
    return p.with_lambdas(LAMBDAS[2]), [llr.solve_irls(p.with_lambdas(l1), 1e-8) for l1 in LAMBDAS[:2]]


def test_F_is_J_with_smoothed_edges_and_v_its_slope_without_the_exclusive_penalty() -> None:
    p, W = problem(), sparse_W(problem())
    at = evaluate(p, W, 0.1)
    lengths = np.linalg.norm(p.incidence @ W, axis=1)
    assert at.objective == pytest.approx(p.objective(W), rel=1e-13)
    assert at.value - at.objective == pytest.approx(p.radii @ (np.hypot(lengths, 0.1) - lengths), rel=1e-9)
    free = p.with_lambdas(lambda2=0.0)
    direction = np.random.default_rng(1).normal(size=p.shape)
    h = 1e-6
    rise = evaluate(free, W + h * direction, 0.1).value - evaluate(free, W - h * direction, 0.1).value
    assert np.vdot(at.v, direction) == pytest.approx(rise / (2 * h), rel=1e-6)
    assert at.level == pytest.approx(2 * p.lambda2 * np.abs(W).sum(axis=1))


def test_a_zero_is_freed_where_its_slope_exceeds_the_level_and_of_a_zero_row_the_steepest() -> None:
    W = np.array([[1.0, 0.0, 0.0, -2.0], [0.0, 0.0, 0.0, 0.0]])
    v = np.array([[-9.0, 6.1, -5.9, 9.0], [0.5, -0.7, 0.1, 0.0]])
    empty = np.zeros(0)
    at = Point(W, 0.1, empty, empty, empty, v, level=np.array([6.0, 0.0]), value=0.0, objective=0.0)
    assert signs(at).tolist() == [[1.0, -1.0, 0.0, -1.0], [0.0, 1.0, 0.0, 0.0]]


@pytest.mark.parametrize("seed", range(5))
def test_a_step_never_raises_F_nor_moves_a_weight_across_zero_or_one_that_is_held(seed: int) -> None:
    p = problem(seed=seed)
    at = evaluate(p, 0.1 * sparse_W(p, seed), 0.01)
    u = at.d_hat
    for _ in range(6):
        sign = signs(at)
        after, u, _ = newton(p, at, u)
        assert after.value <= at.value
        assert np.all(after.W[sign == 0.0] == 0.0)
        assert np.all(after.W * sign >= 0.0)
        assert np.all(np.linalg.norm(u, axis=1) <= 1.0 + 1e-12)
        at = after


def test_without_kinks_in_the_way_a_step_is_that_of_newton(monkeypatch: pytest.MonkeyPatch) -> None:
    """Against a dense matrix: the Hessian of F on the weights that are free, where u is d_hat."""
    monkeypatch.setattr(pursuit, "RTOL", 1e-10)
    p = problem(d=3)
    s = llr.solve_irls(p, 1e-10)
    at = evaluate(p, s.W, 1e-2)
    sign = signs(at)
    free = np.flatnonzero(sign)

    def gradient(w: np.ndarray) -> np.ndarray:
        W = np.zeros(p.shape)
        W.flat[free] = w
        level = 2 * p.lambda2 * (sign * W).sum(axis=1, keepdims=True)
        return np.asarray((evaluate(p, W, 1e-2).v + level * sign).flat[free])

    w, h = s.W.flat[free], 1e-6
    H = np.column_stack([(gradient(w + h * e) - gradient(w - h * e)) / (2 * h) for e in np.eye(len(free))])
    expected = w - np.linalg.solve(H, gradient(w))
    expected = np.where(expected * sign.flat[free] > 0, expected, 0.0)
    after, _, _ = newton(p, at, at.d_hat)
    assert after.W.flat[free] == pytest.approx(expected, abs=1e-5 * np.abs(w).max())


def test_the_dual_step_is_the_linearised_u_a_equals_d() -> None:
    p = problem()
    W, dW = sparse_W(p), 1e-6 * np.random.default_rng(2).normal(size=p.shape)
    at = evaluate(p, W, 0.5)
    after = evaluate(p, W + dW, 0.5)
    assert dual_step(p, at, at.d_hat, dW) == pytest.approx(after.d_hat, abs=1e-10)


def test_from_two_solutions_nearby_a_few_systems_prove_the_third() -> None:
    target, path = neighbours()
    start = start_from(target, path)
    assert start.near
    best = Best(target, start.W)
    best.primal(start.W, target.objective(start.W))
    best.bound(target.alpha(start.W), target.radii[:, None] * start.duals.u)
    assert best.relative_gap > 1e-3
    steps = [best.relative_gap for _ in pursue(target, start, best, 1e-6)]
    assert steps[0] < 5e-5  # 1e-4 without balancing
    assert len(steps) <= 4
    assert steps[-1] <= 1e-6
    cold = llr.solve_irls(target)
    assert cold.n_iter > 2 * len(steps)
    warm = llr.solve_irls(target, W0=path)
    assert warm.n_iter == len(steps)
    assert warm.status == "optimal"
    assert abs(warm.objective - cold.objective) <= warm.certificate.gap + cold.certificate.gap
    assert np.mean((warm.W != 0) == (llr.solve_irls(target, 1e-9).W != 0)) > 0.99


@pytest.mark.parametrize("name", ["PROGRESS", "HARD"])
def test_where_it_does_not_pay_splitting_goes_on(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    target, path = neighbours()
    monkeypatch.setattr(pursuit, name, 0)
    goes_on: list[float] = []
    original = phases.split
    monkeypatch.setattr(phases, "split", lambda *a: (goes_on.append(a[1].relative_gap), original(*a))[1])
    seen: list[Step] = []
    s = llr.solve_irls(target, W0=path, callback=seen.append)
    assert s.status == "optimal"
    gaps = [(step.objective - step.dual) / step.objective for step in seen]
    assert gaps[0] > 1e-6 >= gaps[-1]
    assert len(goes_on) == 1
    assert gaps == sorted(gaps, reverse=True)


@pytest.mark.parametrize(
    ("lambda1s", "lambda2", "target"),
    [((0.9, 1.0), 1.0, 1.1), ((0.05, 0.06), 0.0, 0.07)],
    ids=["many fused edges", "no exclusive penalty"],
)
def test_zeros_are_kept_only_where_few_edges_are_fused(
    lambda1s: tuple[float, float], lambda2: float, target: float
) -> None:
    p = bench.instance(100, 5, seed=0)
    path = [llr.solve_irls(p.with_lambdas(l1, lambda2), 1e-8) for l1 in lambda1s]
    assert not start_from(p.with_lambdas(target, lambda2), path).near


@pytest.mark.parametrize("lambda1", [0.01, 5.0])
def test_zeros_of_a_solution_far_away_are_not_kept(lambda1: float) -> None:
    target, path = neighbours()
    far = target.with_lambdas(lambda1)
    assert not start_from(far, path).near
    assert llr.solve_irls(far, W0=path).status == "optimal"


def test_edges_that_fuse_are_exactly_fused_and_the_trace_is_monotone() -> None:
    p = bench.instance(310, 50, seed=1)
    path = llr.regularization_path(p, [0.019, 0.027, 0.037])
    last = path[-1]
    assert start_from(last.problem, path[:2]).near
    reference = llr.solve_irls(last.problem, 1e-10)
    assert last.clusters.max() < 309
    assert np.array_equal(last.clusters, reference.clusters)
    for s in path:
        assert s.trace is not None
        assert np.all(np.diff(s.trace.objective) <= 1e-12 * s.objective)
        assert np.all(np.diff(s.trace.dual) >= 0)


def test_balancing_never_leaves_a_ball_and_never_lowers_the_bound() -> None:
    for seed in range(5):
        p = problem(seed=seed, lambda1=0.3)
        rng = np.random.default_rng(seed)
        W = sparse_W(p, seed)
        U = rng.normal(size=(len(p.edges), p.shape[1]))
        U *= (p.radii * rng.random(len(U)) / np.linalg.norm(U, axis=1))[:, None]
        given = U.copy()
        alpha = p.alpha(W)
        better = balanced(p, W, alpha, U)
        assert np.array_equal(U, given)
        assert np.all(np.linalg.norm(better, axis=1) <= p.radii * (1 + 1e-14))
        assert dual_objective(p, alpha, better) >= dual_objective(p, alpha, U)
        s = llr.solve_irls(p, 1e-9)  # nothing to gain there, and levels that are too low push the wrong way
        alpha, U = s.certificate.alpha, s.certificate.U
        assert dual_objective(p, alpha, balanced(p, 0.5 * s.W, alpha, U)) >= dual_objective(p, alpha, U)


def test_balancing_recovers_most_of_what_a_few_wrong_multipliers_cost() -> None:
    p = bench.instance(310, 10, seed=0, lambda1=1.0)
    s = llr.solve_irls(p, 1e-9)
    U = s.certificate.U.copy()
    inside = np.flatnonzero(np.linalg.norm(U, axis=1) < 0.5 * p.radii)[:5]
    U[inside, 0] += 0.3 * p.radii[inside]
    lost = s.objective - dual_objective(p, s.certificate.alpha, U)
    left = s.objective - dual_objective(p, s.certificate.alpha, balanced(p, s.W, s.certificate.alpha, U))
    assert len(inside) == 5
    assert lost > 1e-4 * s.objective
    assert left < 0.5 * lost
