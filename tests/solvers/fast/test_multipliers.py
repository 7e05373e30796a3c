"""The method of multipliers: formulas against finite differences and brute force, and what each step proves."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from builders import random_problem
from scipy.optimize import minimize

import llr_cvx as llr
from llr_cvx.problem import Problem
from llr_cvx.proofs.certificate import dual_objective
from llr_cvx.solution import ConvergenceWarning
from llr_cvx.solvers.best import Best
from llr_cvx.solvers.exact import solve_exact
from llr_cvx.solvers.fast import multipliers as mm
from llr_cvx.solvers.fast.starts import cold_start, multipliers, typical_weight
from llr_cvx.solvers.linear.cg import conjugate_gradients
from llr_cvx.solvers.linear.newton_system import PATIENCE, Curvature, solve_system
from llr_cvx.solvers.linear.preconditioner import rank_two_inverse
from llr_cvx.solvers.smoothing import smoothed


def point(problem: Problem, seed: int = 0) -> tuple[np.ndarray, mm.Multipliers]:
    """A W and multipliers in general position."""
    rng = np.random.default_rng(seed)
    u = rng.standard_normal((len(problem.edges), problem.shape[1]))
    u /= 1.2 * np.linalg.norm(u, axis=1).max()
    length = typical_weight(problem)
    zeta = length * rng.standard_normal(problem.shape)
    return length * rng.standard_normal(problem.shape), mm.Multipliers(u, zeta, 0.3 * length, 0.3)


def evaluate(problem: Problem, W: np.ndarray, m: mm.Multipliers) -> mm.Lagrangian:
    return mm.evaluate(problem, W, problem.incidence @ W, m)


@pytest.mark.parametrize("lambda2", [0.0, 0.5])
def test_the_gradient_is_the_derivative(lambda2: float) -> None:
    p = random_problem(0, lambda1=0.2, lambda2=lambda2)
    W, m = point(p)
    direction = np.random.default_rng(1).standard_normal(p.shape)
    h = 1e-6 * typical_weight(p)
    up, down = (evaluate(p, W + s * h * direction, m).value for s in (1.0, -1.0))
    assert np.vdot(evaluate(p, W, m).gradient, direction) == pytest.approx((up - down) / (2 * h), rel=1e-6)


def test_the_curvature_is_the_derivative_of_the_gradient() -> None:
    p = random_problem(0, lambda1=0.2, lambda2=0.5)
    W, m = point(p)
    at = evaluate(p, W, m)
    direction = np.random.default_rng(2).standard_normal(p.shape)
    h = 1e-7 * typical_weight(p)
    up, down = (evaluate(p, W + s * h * direction, m).gradient for s in (1.0, -1.0))
    image = (up - down) / (2 * h)
    # Solving the system with the image gives the direction back; the damping is taken out, it is not part of L.
    H = mm.curvature(p, at, m.tau, m.t)
    H.Q[:] -= (
        mm.DAMPING
        * (np.abs(at.gradient).max(axis=1) / np.maximum(m.t * np.abs(at.zeta).max(axis=1), m.tau))[:, None]
    )
    back, _ = solve_system(p, H, image, 1e-10)
    np.testing.assert_allclose(np.vdot(back, image), np.vdot(direction, image), rtol=1e-5)


@pytest.mark.parametrize("d", [2, 12])
def test_a_coarse_level_makes_stiff_systems_easy(d: int) -> None:
    """Stiff groups of one to eight samples in a soft chain: block Jacobi needs many iterations, the level few."""
    rng = np.random.default_rng(0)
    group = np.repeat(np.arange(13), [5, 5, 3, 7, 1, 1, 8, 2, 6, 4, 5, 5, 8])
    N = len(group)
    inner = [(i, j) for i in range(N) for j in range(i + 1, N) if group[i] == group[j]]
    edges = inner + [(i, i + 1) for i in range(N - 1) if group[i] != group[i + 1]]
    p = Problem(rng.standard_normal((N, d)), np.resize([1.0, -1.0], N), edges, np.ones(len(edges)), 1.0, 1.0)
    c = np.where(np.arange(len(edges)) < len(inner), 1e4, 1.0)
    H = Curvature(
        c=c,
        u=(zero := np.zeros((len(edges), d))),
        d=zero,
        s=np.full(N, 0.2),
        sigma=rng.standard_normal((N, d)),
        Q=np.full((N, d), 0.1),
    )
    B = p.incidence.toarray()
    dense = np.kron(B.T @ (c[:, None] * B), np.eye(d)) + np.diag(H.Q.ravel())
    for i in range(N):
        block = slice(i * d, (i + 1) * d)
        dense[block, block] += 0.2 * np.outer(p.X[i], p.X[i]) + np.outer(H.sigma[i], H.sigma[i])
    rhs = rng.standard_normal((N, d))
    expected = np.linalg.solve(dense, rhs.ravel()).reshape(N, d)
    counts = {}
    for stiff in (False, True):
        x, counts[stiff] = solve_system(p, H, rhs, 1e-10, stiff)
        np.testing.assert_allclose(x, expected, rtol=1e-6, atol=1e-8)
    x = np.sqrt(H.s)[:, None] * p.X
    jacobi = rank_two_inverse(H.Q + p.graph.degrees(c)[:, None], x, H.sigma)
    _, plain = conjugate_gradients(lambda P: (dense @ P.ravel()).reshape(N, d), jacobi, rhs, 1e-10, 5000)
    assert counts[True] < 0.5 * plain
    assert counts[False] <= counts[True] + PATIENCE


@pytest.mark.parametrize("t", [1e-3, 0.1, 1.0, 30.0])
def test_shrinking_solves_its_problem(t: float) -> None:
    p = np.random.default_rng(3).standard_normal((6, 4))
    p[0] = 0.0
    p[1, 1:] = 0.0
    for row, w in zip(p, mm.shrunk(p, t), strict=True):
        # w = a - b with a, b >= 0 makes the problem smooth
        answer = minimize(
            lambda ab, row=row: 0.5 * ab.sum() ** 2 + ((ab[:4] - ab[4:] - row) ** 2).sum() / (2 * t),
            np.full(8, 0.1),
            bounds=[(0, None)] * 8,
            options={"ftol": 1e-15, "gtol": 1e-12, "maxiter": 10_000},
        )
        value = 0.5 * np.abs(w).sum() ** 2 + ((w - row) ** 2).sum() / (2 * t)
        assert value <= answer.fun * (1 + 1e-9) + 1e-12


def test_every_step_proves_a_bound_and_ends_at_the_optimum() -> None:
    p = random_problem(0, lambda1=0.3, lambda2=0.5)
    start = cold_start(p)
    at = smoothed(p, start.W, start.epsilon)
    best = Best(p, start.W)
    best.primal(start.W, at.objective)
    gaps = []
    for point_ in mm.multiply(p, start.W, multipliers(p, start.duals, at.S, 0.5), best, 1e-9):
        assert np.linalg.norm(point_.u, axis=1).max() <= 1 + 1e-15
        assert point_.dual == pytest.approx(dual_objective(p, point_.alpha, p.radii[:, None] * point_.u), rel=1e-12)
        gaps.append(best.relative_gap)
    assert gaps == sorted(gaps, reverse=True)
    assert gaps[-1] <= 1e-9
    exact = solve_exact(p)
    assert best.objective <= exact.objective * (1 + 1e-8)
    assert best.dual <= exact.objective * (1 + 1e-12)


def test_lengths_stop_shrinking_while_the_gap_still_falls(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorter ones would only magnify the rounding of d_e in u_e = q_e / tau."""
    lengths: list[float] = []

    def watched(problem, at, m, rtol):  # type: ignore[no-untyped-def]
        lengths.append(m.t)
        return newton(problem, at, m, rtol)

    newton = mm.newton
    monkeypatch.setattr(mm, "newton", watched)
    monkeypatch.setattr(mm, "SHORTEST", 0.05)
    s = llr.solve_irls(random_problem(3, N=40, d=4, lambda1=0.3, lambda2=0.5), tol=1e-8)
    assert s.status == "optimal"
    assert max(lengths) > 0.05
    assert min(lengths) >= 0.05 * mm.SHRINK_TAU


@pytest.mark.parametrize("fault", [-1.0, 30.0])
def test_a_broken_newton_step_is_not_taken(fault: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """L never rises, whatever the linear system gives; and nothing is claimed that is not proved."""
    p = random_problem(0, lambda1=0.3, lambda2=0.5)
    values: list[float] = []

    def broken(*arguments):  # type: ignore[no-untyped-def]
        step, n_cg = solve_system(*arguments)
        return fault * step, n_cg

    def watched(problem, at, m, rtol):  # type: ignore[no-untyped-def]
        after = newton(problem, at, m, rtol)
        values.append(after.value - at.value)
        return after

    newton = mm.newton
    monkeypatch.setattr(mm, "newton", watched)
    llr.solve_irls(p, tol=1e-7)
    assert max(values) < 0
    values.clear()
    monkeypatch.setattr(mm, "solve_system", broken)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        s = llr.solve_irls(p, tol=1e-7)
    assert (s.status == "optimal") == s.certificate.proves(1e-7)
    assert max(values) <= 1e-12 * s.objective
    assert len(values) > 15  # what it costs: no step of the right length is left


def test_weights_that_nearly_vanish_do_not_break_a_path() -> None:
    """lambda1 omega of 1e-310 has no finite inverse."""
    p = random_problem(0)
    weights = p.weights.copy()
    weights[:3] = 1e-310
    tiny = Problem(p.X, p.y, p.edges, weights, 0.1, 1.0)
    assert [s.status for s in llr.regularization_path(tiny, [0.1, 0.2])] == ["optimal"] * 2


def test_equal_rows_without_penalty_keep_small_weights() -> None:
    x = [1.3, 0.1, 1.39, 0.87, 1.56]
    p = Problem(np.tile(x, (3, 1)), [1, -1, 1], [[0, 1], [0, 2], [1, 2]], [0.3, 0.9, 0.5], 0.1, 0.0)
    s = llr.solve_irls(p, tol=1e-9)
    assert s.status == "uncertified"
    assert s.certificate.bounded_relative_gap <= 1e-9
    assert np.abs(s.W).max() < 10


def test_a_callback_cannot_change_what_is_solved() -> None:
    with pytest.raises(ValueError, match="read-only"):
        llr.solve_irls(random_problem(0), callback=lambda step: step.W.fill(0.0))
