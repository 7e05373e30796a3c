"""IRLS and nothing else: proved, monotone, its trace the true one, and honest where it stops early."""

from __future__ import annotations

import warnings
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from builders import contradictions, proved, random_problem
from scipy.optimize import brentq
from sizes import in_long, thinned

import llr_cvx as llr
from llr_cvx.benchmarks.measure import instance
from llr_cvx.instances.drill import hostile_problem
from llr_cvx.oracles import solve_decoupled
from llr_cvx.problem import Problem
from llr_cvx.proofs.certificate import certificate
from llr_cvx.solution import ConvergenceWarning, Solution
from llr_cvx.solvers import irls, settings
from llr_cvx.solvers.irls import Irls, plain_step, primal_dual_curvature
from llr_cvx.solvers.linear import newton_system
from llr_cvx.solvers.linear.newton_system import Level
from llr_cvx.solvers.run import Best, Step
from llr_cvx.solvers.smoothing import smoothed, smoothed_objective
from llr_cvx.solvers.starts import Duals, cold_start

LAMBDA1, LAMBDA2 = (0.001, 0.01, 0.1, 1.0, 10.0), (0.01, 0.1, 1.0, 10.0)
PLANE = [(d, l1, l2) for d in (10, 50) for l1 in LAMBDA1 for l2 in LAMBDA2]


def small(d: int = 5, seed: int = 0, lambda1: float = 0.1, lambda2: float = 1.0) -> Problem:
    return random_problem(seed, 64, d, lambda1, lambda2)


def watched(p: Problem, tol: float = 1e-9, **options: object) -> tuple[Solution, list[Step]]:
    steps: list[Step] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return llr.solve_irls(p, tol, callback=steps.append, **options), steps  # type: ignore[arg-type]


# ---- the default run ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cell", thinned(range(len(PLANE)), 12))
def test_the_plane_is_proved_by_monotone_irls_steps_alone(cell: int) -> None:
    """Every cell with a seed of its own, the two slowest with fewer samples."""
    d, lambda1, lambda2 = PLANE[cell]
    N = 100 if (d, lambda1) == (50, 1.0) and lambda2 < 1.0 else 310
    s, steps = watched(instance(N, d, seed=cell % 6, lambda1=lambda1, lambda2=lambda2))
    assert (s.solver, s.status) == ("IRLS", "optimal")
    assert s.certificate.relative_gap <= 1e-9
    assert proved(s, 1e-9)
    t = s.trace
    assert t is not None
    assert t.is_monotone(rtol=1e-12)
    assert set(t.phase[:-1]) == {"irls"}
    assert t.phase[-1] in ("irls", "rounding")
    assert contradictions(s, steps) == []
    assert s.objective == t.best[-1]


@pytest.mark.parametrize("seed", thinned(range(6), 3))
def test_the_paper_setting_from_several_seeds(seed: int) -> None:
    s = llr.solve_irls(instance(310, 10, seed=10 + seed), tol=1e-9)
    assert s.status == "optimal"
    assert s.trace is not None
    assert s.trace.is_monotone()


@pytest.mark.parametrize("lambda1", thinned([0.0, 0.01, 0.1, 0.5, 2.0, 20.0], 3))
@pytest.mark.parametrize("lambda2", [0.05, 1.0])
def test_objective_equals_the_exact_one_within_both_gaps(lambda1: float, lambda2: float) -> None:
    p = random_problem(0, 40, 5, lambda1, lambda2)
    fast, exact = llr.solve_irls(p, tol=1e-8), llr.solve_exact(p)
    allowed = abs(fast.certificate.gap) + abs(exact.certificate.gap) + 1e-12 * exact.objective
    assert abs(fast.objective - exact.objective) <= allowed
    lower, upper = fast.certificate.score_bounds
    scores = p.scores(exact.W)
    slack = exact.certificate.score_bounds[1] - exact.certificate.score_bounds[0]
    assert np.all(scores >= lower - slack)
    assert np.all(scores <= upper + slack)


def test_without_coupling_it_is_the_closed_form() -> None:
    p = small(lambda1=0.0, lambda2=0.7)
    s = llr.solve_irls(p, tol=1e-12)
    assert s.objective == pytest.approx(p.objective(solve_decoupled(p)), rel=1e-9)
    np.testing.assert_allclose(p.scores(s.W), p.scores(solve_decoupled(p)), atol=1e-9)


def test_trace_decreases_while_epsilon_shrinks() -> None:
    s, _ = watched(small(lambda1=0.3))
    t = s.trace
    assert t is not None
    columns = (t.objective, t.best, t.smoothed_objective, t.dual, t.epsilon, t.seconds)
    assert {len(column) for column in columns} == {s.n_iter}
    assert np.all(np.diff(t.epsilon) <= 0)
    assert t.epsilon[-2] < 1e-3 * t.epsilon[0]
    assert t.phase[-1] == "rounding"
    assert t.epsilon[-1] == 0.0
    assert np.isnan(t.smoothed_objective[-1])
    assert np.all(np.diff(t.best) <= 0)
    assert np.all(np.diff(t.dual) >= 0)
    assert np.all(t.objective[:-1] <= t.smoothed_objective[:-1])
    assert np.all(np.diff(t.seconds) >= 0)


def test_a_smaller_epsilon_waits_for_the_gap_or_for_so_many_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    def lengths() -> np.ndarray:
        s, _ = watched(small(lambda1=0.3))
        assert s.trace is not None
        return np.unique(s.trace.epsilon[:-1], return_counts=True)[1][1:]

    assert lengths().max() <= settings.MAX_HELD + 1
    monkeypatch.setattr(settings, "SETTLED", 0.0)  # never settled
    monkeypatch.setattr(settings, "MAX_HELD", 3)
    assert set(lengths()[:-1]) == {4}


# ---- the two steps ----------------------------------------------------------------------------------------------


def majoriser(p: Problem, at: np.ndarray, epsilon: float, W: np.ndarray) -> float:
    """Term by term: the quadratic of Algorithm 1 that touches J_epsilon at `at`, with Jaakkola and Jordan's bound."""
    total = 0.0
    for x, y, w0, w in zip(p.X, p.y, at, W, strict=True):
        m0, m = y * (x @ w0), y * (x @ w)
        bend = np.tanh(m0 / 2) / (4 * m0) if m0 else 0.125
        total += np.logaddexp(0.0, -m0) - (m - m0) / 2 + bend * (m**2 - m0**2)
        b0 = np.sqrt(w0**2 + epsilon**2)
        total += p.lambda2 * b0.sum() * ((w**2 + epsilon**2) / b0).sum()
    for (i, j), omega in zip(p.edges, p.weights, strict=True):
        a0 = np.sqrt(np.sum((at[i] - at[j]) ** 2) + epsilon**2)
        total += p.lambda1 * omega * ((np.sum((W[i] - W[j]) ** 2) + epsilon**2) / (2 * a0) + a0 / 2)
    return float(total)


def test_the_majoriser_of_these_tests_majorises_and_touches() -> None:
    p, rng = random_problem(0, 24, 3), np.random.default_rng(0)
    at, epsilon = 0.3 * rng.standard_normal(p.shape), 0.01
    assert majoriser(p, at, epsilon, at) == pytest.approx(smoothed_objective(p, at, epsilon), rel=1e-13)
    for size in (1e-3, 0.1, 3.0):
        W = at + size * rng.standard_normal(p.shape)
        assert smoothed_objective(p, W, epsilon) < majoriser(p, at, epsilon, W)


@pytest.mark.parametrize("cg_iterations", [1, in_long(2), in_long(None)])
@pytest.mark.parametrize(("seed", "lambda1", "lambda2"), [(0, 0.1, 1.0), (1, 1.0, 0.1), (2, 0.01, 0.01)])
def test_plain_steps_alone_obey_lemma_2_however_early_their_system_stops(
    cg_iterations: int | None, seed: int, lambda1: float, lambda2: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(irls, "line_search", lambda *_: None)
    if cg_iterations:
        first = newton_system.stages
        monkeypatch.setattr(newton_system, "stages", lambda *of: [(Level.JACOBI, cg_iterations, next(first(*of))[2])])
    p = random_problem(seed, 24, 3, lambda1, lambda2)
    s, steps = watched(p, max_iter=40)
    assert s.trace is not None
    assert s.trace.is_monotone(rtol=1e-12)
    assert contradictions(s, steps) == []
    moved = 0
    for old, new in pairwise(steps):
        if new.phase == "irls":
            before = smoothed_objective(p, old.W, new.epsilon)  # epsilon shrinks before the step
            after = majoriser(p, old.W, new.epsilon, new.W)
            assert after <= before * (1 + 1e-13)
            assert new.smoothed_objective <= after * (1 + 1e-13)
            moved += after < before * (1 - 1e-10)
    assert moved >= 15


def test_a_primal_dual_step_without_sufficient_decrease_gives_way_to_the_plain_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Steps in random directions are refused, and what is done instead is the plain step."""
    p, honest, plain, rng = small(), irls.solve_system, [], np.random.default_rng(0)

    def astray(problem, H, rhs, rtol, level):  # type: ignore[no-untyped-def]
        x, n, level = honest(problem, H, rhs, rtol, level)
        return (x if not H.u.any() and not H.d.any() else rng.standard_normal(x.shape)), n, level

    def counted(*args):  # type: ignore[no-untyped-def]
        plain.append(plain_step(*args))
        return plain[-1]

    monkeypatch.setattr(irls, "solve_system", astray)
    monkeypatch.setattr(irls, "plain_step", counted)
    s, steps = watched(p, max_iter=25)
    assert s.trace is not None
    assert s.trace.is_monotone(rtol=1e-12)
    assert len(plain) >= 20
    values = [step.smoothed_objective for step in steps if step.phase == "irls"]
    assert values[-1] < 0.99 * values[0]
    assert contradictions(s, steps) == []


def test_primal_dual_steps_are_what_makes_it_fast(monkeypatch: pytest.MonkeyPatch) -> None:
    p = small(lambda1=0.3)
    fast, _ = watched(p)
    monkeypatch.setattr(irls, "line_search", lambda *_: None)
    slow, _ = watched(p, max_iter=2 * fast.n_iter)
    assert fast.status == "optimal"
    assert slow.certificate.relative_gap > 100 * fast.certificate.relative_gap


def test_the_line_search_takes_the_longest_step_with_a_sufficient_decrease() -> None:
    p, rng = small(), np.random.default_rng(1)
    at = smoothed(p, 0.1 * rng.standard_normal(p.shape), 0.01)
    assert irls.line_search(p, at, at.gradient) is None  # uphill
    for size in (1e-3, 1.0, 10.0):
        direction = -size * at.gradient
        found = irls.line_search(p, at, direction)
        lengths = 0.5 ** np.arange(7)
        slope = np.vdot(at.gradient, direction)
        values = np.array([smoothed_objective(p, at.W + t * direction, 0.01) for t in lengths])
        good = np.flatnonzero(values <= at.value + 1e-4 * lengths * slope)
        if good.size:
            assert found is not None
            np.testing.assert_allclose(found.W, at.W + lengths[good[0]] * direction)
        else:
            assert found is None


def test_a_decrease_that_is_not_sufficient_is_not_taken() -> None:
    """A step almost to where J_epsilon is as high as before: half of it is taken instead."""
    p = small()
    at = smoothed(p, 0.1 * np.random.default_rng(1).standard_normal(p.shape), 0.1)

    def rise(size: float) -> float:
        return smoothed_objective(p, at.W - size * at.gradient, 0.1) - at.value

    size = brentq(rise, 1e-2, 1e2, xtol=1e-12) * (1 - 1e-7)
    assert -1e-4 * size * np.vdot(at.gradient, at.gradient) < rise(size) < 0
    found = irls.line_search(p, at, -size * at.gradient)
    assert found is not None
    np.testing.assert_allclose(found.W, at.W - 0.5 * size * at.gradient)


def test_where_the_decrease_is_lost_in_rounding_a_step_may_not_raise_the_value() -> None:
    p, rng = small(), np.random.default_rng(1)
    at = smoothed(p, 0.1 * rng.standard_normal(p.shape), 0.01)
    across = rng.standard_normal(p.shape)
    across -= np.vdot(across, at.gradient) / np.vdot(at.gradient, at.gradient) * at.gradient
    assert smoothed_objective(p, at.W + across, 0.01) > at.value
    assert irls.line_search(p, at, across) is at
    assert irls.line_search(p, at, 0.0 * across) is not None


@pytest.mark.parametrize("lambda2", [0.01, 1.0])
def test_the_plain_step_minimises_the_majoriser(lambda2: float) -> None:
    p, rng = random_problem(0, 24, 3, 0.3, lambda2), np.random.default_rng(0)
    at = smoothed(p, 0.3 * rng.standard_normal(p.shape), 0.05)
    found = plain_step(p, at, 1e-12)
    assert found is not None
    least = majoriser(p, at.W, 0.05, found.W)
    assert least < at.value
    for _ in range(10):
        direction = rng.standard_normal(p.shape)
        up, down = (majoriser(p, at.W, 0.05, found.W + h * direction) for h in (1e-3, -1e-3))
        assert abs(up - down) < 1e-6 * (up + down - 2 * least)
        assert min(up, down) > least


def test_a_plain_step_that_would_raise_the_value_is_not_made(monkeypatch: pytest.MonkeyPatch) -> None:
    p = small()
    at = smoothed(p, 0.1 * np.random.default_rng(1).standard_normal(p.shape), 0.01)
    monkeypatch.setattr(irls, "solve_system", lambda *_: (at.gradient, 1, Level.JACOBI))
    assert plain_step(p, at, 1e-3) is None


def test_the_matrix_of_a_primal_dual_step_is_the_one_of_its_definition_and_never_indefinite() -> None:
    p, rng = random_problem(0, 12, 3, lambda1=0.3), np.random.default_rng(0)
    at = smoothed(p, 0.2 * rng.standard_normal(p.shape), 0.01)
    u = rng.standard_normal((len(p.edges), 3))
    u /= np.linalg.norm(u, axis=1, keepdims=True)
    z = rng.uniform(-1, 1, p.shape)
    H = primal_dual_curvature(p, at, Duals(u, z))
    for e, (a, c) in enumerate(zip(at.a, H.c, strict=True)):
        d = at.W[p.edges[e, 0]] - at.W[p.edges[e, 1]]
        wanted = p.radii[e] / a * (np.eye(3) - (np.outer(u[e], d) + np.outer(d, u[e])) / (2 * a))
        found = c * (np.eye(3) - (np.outer(H.u[e], H.d[e]) + np.outer(H.d[e], H.u[e])) / 2)
        np.testing.assert_allclose(found, wanted, atol=1e-13)
        assert np.linalg.eigvalsh(found).min() >= -1e-12
    for i in range(12):
        b = np.sqrt(at.W[i] ** 2 + 0.01**2)
        wanted = 2 * np.outer(at.W[i] / b, at.W[i] / b) + np.diag(2 * b.sum() * (1 - z[i] * at.W[i] / b) / b)
        np.testing.assert_allclose(np.outer(H.sigma[i], H.sigma[i]) + np.diag(H.Q[i]), wanted, atol=1e-13)
        assert H.Q[i].min() >= 0
        m = p.y[i] * (p.X[i] @ at.W[i])
        assert H.s[i] == pytest.approx(np.exp(-m) / (1 + np.exp(-m)) ** 2)


def test_with_its_own_directions_the_primal_dual_matrix_is_the_hessian() -> None:
    """u = d / a and z = w / b: then the step is Newton's."""
    p, rng = random_problem(0, 12, 3, lambda1=0.3), np.random.default_rng(0)
    at = smoothed(p, 0.2 * rng.standard_normal(p.shape), 0.1)
    H = primal_dual_curvature(p, at, Duals(at.d_hat, at.w_hat))
    direction, h = rng.standard_normal(p.shape), 1e-6
    up, down = (smoothed(p, at.W + sign * h * direction, 0.1).gradient for sign in (1, -1))
    found = newton_system._operator(p, H)(direction)
    np.testing.assert_allclose(found, (up - down) / (2 * h), rtol=1e-5, atol=1e-6)


def test_the_gradient_is_the_slope_of_the_smoothed_objective() -> None:
    p, rng = random_problem(0, 12, 3), np.random.default_rng(2)
    W, direction, h = 0.2 * rng.standard_normal(p.shape), rng.standard_normal(p.shape), 1e-6
    slope = (smoothed_objective(p, W + h * direction, 0.1) - smoothed_objective(p, W - h * direction, 0.1)) / (2 * h)
    assert slope == pytest.approx(float(np.vdot(smoothed(p, W, 0.1).gradient, direction)), rel=1e-6)


def test_duals_stay_in_their_balls_and_every_bound_is_below_the_optimum() -> None:
    p = small(lambda1=0.3)
    optimum = llr.solve_irls(p, tol=1e-10).objective
    run = irls.begin(p, 1e-10, None, 300, None, None, False)
    method = Irls(p, run.start, run.best)
    for _ in range(15):
        method.step()
        assert np.linalg.norm(method.duals.u, axis=1).max() <= 1 + 1e-12
        assert np.abs(method.duals.z).max() <= 1
        assert run.best.bound(method.at.alpha, method.U) <= optimum * (1 + 1e-12)


# ---- rounding to exact zeros and rows -----------------------------------------------------------------------------


@pytest.mark.parametrize(("seed", "lambda1"), [(0, 0.1), (1, 1.0), (2, 10.0)])
def test_the_last_step_gives_exact_zeros_and_rows_and_does_not_raise_J(seed: int, lambda1: float) -> None:
    s, steps = watched(instance(100, 10, seed, lambda1))
    before, last = steps[-2], steps[-1]
    assert last.phase == "rounding"
    assert s.problem.objective(last.W) <= before.best
    assert np.array_equal(s.W, last.W)
    assert np.count_nonzero(before.W == 0.0) == 0
    assert np.mean(s.W == 0.0) > 0.1
    i, j = s.problem.edges.T
    together = np.all(s.W[i] == s.W[j], axis=1)
    assert together.mean() > (0.0 if lambda1 < 1 else 0.3)
    assert np.array_equal(s.support, s.W != 0.0)
    assert np.all(s.clusters[i[together]] == s.clusters[j[together]])


def test_rounding_that_would_raise_J_is_not_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "ZERO_WEIGHT", 1e6)
    s, steps = watched(small(), tol=1e-6)
    assert s.status == "optimal"
    assert steps[-1].phase == "irls"
    assert s.objective == min(step.objective for step in steps)


def test_weights_and_rows_are_rounded_by_their_length_and_by_whether_it_falls_with_epsilon() -> None:
    p = Problem(np.eye(4), [1, 1, -1, -1], [[2, 3]], [1.0], lambda1=0.1, lambda2=1.0)
    start = cold_start(p)
    method = Irls(p, start, Best(p, start.W))
    W = np.diag([0.9 * settings.ZERO_WEIGHT, 1.1 * settings.ZERO_WEIGHT, 0.9 * settings.SHORT_WEIGHT, 1e6])
    W[2:, 3] = 1e6, 1e6 + 0.5 * settings.EQUAL_ROWS
    W[3, 2] = W[2, 2]
    method.at = smoothed(p, W, 1.0)
    method.W_before = W.copy()  # nothing has moved since epsilon shrank: only the shortest weight is zero
    assert np.array_equal(method.rounded()[:2], np.diag([0.0, W[1, 1], 0.0, 0.0])[:2])
    assert method.rounded()[2, 2] == W[2, 2]
    assert np.array_equal(method.rounded()[2], method.rounded()[3])
    method.W_before = W / (0.9 * settings.SHRINKS)  # all have fallen: those that are short are zero
    assert np.array_equal(method.rounded() == 0.0, W < 1e6)


@pytest.mark.long
def test_supports_and_clusters_of_a_gap_of_1e_9_are_those_of_the_optimum() -> None:
    cells = [(d, l1, l2) for d in (5, 20) for l1 in (0.01, 0.1, 1.0) for l2 in (0.03, 0.3)]
    same = 0
    for d, lambda1, lambda2 in cells:
        p = instance(100, d, 3, lambda1, lambda2)
        s, exact = llr.solve_irls(p, 1e-9), llr.solve_fast(p, 1e-12)
        same += np.array_equal(s.support, exact.support) and np.array_equal(s.clusters, exact.clusters)
    assert same >= len(cells) - 1


@pytest.mark.long
def test_small_weights_are_told_from_zeros_by_steps_with_a_smaller_epsilon(monkeypatch: pytest.MonkeyPatch) -> None:
    X_inlier, X_test, _ = llr.make_synthetic(50, random_state=1)
    p = Problem.from_samples(X_inlier, X_test, lambda1=1.0, lambda2=0.1)
    exact = llr.solve_fast(p, 1e-12).support
    s, steps = watched(p)
    assert np.array_equal(s.support, exact)
    proved = next(k for k, step in enumerate(steps) if step.best - step.dual <= 1e-9 * step.best)
    last = [step.phase for step in steps[proved + 1 :]]
    assert "irls" in last[:-1]
    assert len(last) <= settings.MAX_STEPS_TO_ROUND + 1
    assert s.trace.is_monotone()
    limited, _ = watched(p, max_iter=proved + 1)  # a limit leaves no steps for that
    assert limited.status == "optimal"
    assert limited.n_iter <= proved + 2
    monkeypatch.setattr(settings, "MAX_STEPS_TO_ROUND", 0)
    assert not np.array_equal(llr.solve_irls(p, 1e-9).support, exact)


@pytest.mark.parametrize("seed", range(3))
def test_a_proof_by_rounding_saves_steps_with_smaller_epsilon(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    p = Problem.from_samples(*llr.make_synthetic(6, seed, 40, 18, 2)[:2], 1.0, 0.1)
    steps = llr.solve_irls(p, 1e-12).n_iter
    monkeypatch.setattr(Irls, "_rounding", lambda _: None)
    assert steps <= llr.solve_irls(p, 1e-12).n_iter - 4


def test_a_later_rounding_is_kept_only_if_J_is_no_higher(monkeypatch: pytest.MonkeyPatch) -> None:
    p = hostile_problem(154)
    s = llr.solve_irls(p, 1e-8)
    assert np.array_equal(s.support, llr.solve_irls(p, 1e-12).support)
    monkeypatch.setattr(settings, "MAX_STEPS_TO_ROUND", 0)
    assert s.objective <= llr.solve_irls(p, 1e-8).objective * (1 + 1e-14)


def test_supports_and_clusters_that_are_proved_are_exact() -> None:
    s = llr.solve_irls(instance(310, 10, 0, lambda1=1.0, lambda2=0.1), tol=1e-11)
    p = s.problem
    G = s.certificate.gap + 1e-12 * s.objective
    v = p.dual_vectors(s.certificate.alpha, s.certificate.U)
    M = np.abs(v).max(axis=1, keepdims=True)
    # every optimum has |w_ik| <= G / (M_i - |v_ik|): what is proved to vanish is exactly zero here
    proved_zero = G < 1e-6 * (M - np.abs(v)) * np.abs(s.W).max()
    assert proved_zero.any()
    assert np.all(s.W[proved_zero] == 0.0)
    slack = p.radii - np.linalg.norm(s.certificate.U, axis=1)
    proved_fused = G < 1e-6 * slack * np.abs(s.W).max()
    i, j = p.edges[proved_fused].T
    assert len(i) > 100
    assert np.array_equal(s.W[i], s.W[j])
    assert np.array_equal(s.clusters[i], s.clusters[j])


# ---- where it ends without a proof ---------------------------------------------------------------------------------


def test_a_tolerance_below_rounding_is_not_claimed_and_epsilon_says_why() -> None:
    with pytest.warns(ConvergenceWarning, match="solve_irls stopped with status 'inaccurate'.*epsilon"):
        s = llr.solve_irls(random_problem(0), tol=1e-18)
    assert s.status == "inaccurate"
    assert "tol 1e-18" in s.message
    assert "epsilon = " in s.message
    assert "lost in rounding" in s.message
    assert s.certificate.relative_gap < 1e-11
    assert s.trace is not None
    assert s.trace.is_monotone()


def test_an_underflowing_penalty_does_not_fake_a_proof() -> None:
    X = np.array([[-0.5], [-0.4], [-2.4], [1.8], [1.1]])
    p = Problem(X, [1, 1, 1, -1, -1], [(i, i + 1) for i in range(4)], np.ones(4), 5.0, 3.3e-260)
    s, _ = watched(p, 1e-6)
    assert s.certificate.dual <= p.objective(1.3 * s.W)
    assert s.status != "optimal" or s.objective <= p.objective(1.3 * s.W) * (1 + 1e-6)


def test_a_gap_that_is_negative_beyond_rounding_proves_nothing() -> None:
    c = llr.solve_irls(small()).certificate
    assert c.proves(1e-6)
    assert not replace(c, dual=c.primal * (1 + 1e-9)).proves(1e-6)


@pytest.mark.parametrize("seed", range(5))
def test_a_run_that_reaches_tol_leaves_room_for_the_rounding_of_its_proof(seed: int) -> None:
    """The tolerance is the very gap at which an earlier run stopped."""
    p = small(seed=seed)
    s = llr.solve_irls(p, tol=1e-7)
    assert s.trace is not None
    gap = (s.objective - s.trace.dual[-1]) / s.objective
    assert 0 < gap < s.certificate.relative_gap
    assert llr.solve_irls(p, tol=gap).status == "optimal"


# ---- degenerate data ------------------------------------------------------------------------------------------


def complete(n: int) -> list[tuple[int, int]]:
    return [(i, j) for i in range(n) for j in range(i + 1, n)]


def degenerate() -> dict[str, Problem]:
    rng = np.random.default_rng(7)
    X = rng.standard_normal((12, 3))
    y = np.where(np.arange(12) < 7, 1.0, -1.0)
    ring = [(i, i + 1) for i in range(11)]
    twins, labels = np.vstack([X, X]), np.r_[y, y]
    pairs = [(i, i + 12) for i in range(12)]
    zero_rows = X.copy()
    zero_rows[[2, 9]] = 0.0
    one = np.ones
    return {
        "duplicates, equal labels": Problem(twins, labels, pairs + ring, one(23), 0.2, 0.5),
        "duplicates, opposite labels": Problem(twins, np.r_[y, -y], pairs + ring, one(23), 0.2, 0.5),
        "opposite twins, all fused": Problem(twins, np.r_[y, -y], pairs, one(12), 50.0, 0.5),
        "zero rows": Problem(zero_rows, y, ring, one(11), 0.2, 0.5),
        "isolated samples": Problem(X, y, ring[:4], one(4), 0.2, 0.5),
        "disconnected": Problem(X, y, ring[:5] + ring[6:], one(10), 0.5, 0.1),
        "star": Problem(X, y, [(0, j) for j in range(1, 12)], one(11), 0.3, 0.2),
        "complete": Problem(X, y, complete(12), one(66), 0.05, 0.2),
        "two samples": Problem(X[[0, 11]], [1, -1], [[0, 1]], [1.0], 0.3, 0.1),
        "one feature": Problem(X[:, :1], y, ring, one(11), 0.2, 0.5),
        "constant column": Problem(np.column_stack([X, one(12)]), y, ring, one(11), 0.2, 0.5),
        "equal columns": Problem(np.column_stack([X, X]), y, ring, one(11), 0.2, 0.5),
        "features x 1e6": Problem(1e6 * X, y, ring, one(11), 0.2e6, 0.5e12),
        "features x 1e-6": Problem(1e-6 * X, y, ring, one(11), 0.2e-6, 0.5e-12),
        "features x 1e6, lambdas kept": Problem(1e6 * X, y, ring, one(11), 0.2, 0.5),
        "features x 1e-6, lambdas kept": Problem(1e-6 * X, y, ring, one(11), 0.2, 0.5),
        "no edges": Problem(X, y, [], [], 0.2, 0.5),
        "zero weights": Problem(X, y, ring, np.zeros(11), 0.2, 0.5),
        "weights over ten orders": Problem(X, y, ring, np.logspace(-10, 0, 11), 0.2, 0.5),
        "all zero": Problem(np.zeros((4, 2)), [1, 1, -1, -1], complete(4), one(6), 0.2, 0.5),
    }


@pytest.mark.parametrize("solve", [in_long(llr.solve_irls), llr.solve_fast])
@pytest.mark.parametrize("name", list(degenerate()))
def test_degenerate_data(name: str, solve) -> None:  # type: ignore[no-untyped-def]
    p = degenerate()[name]
    s = solve(p, tol=1e-8)
    assert s.status == "optimal"
    c = certificate(p, s.W, s.certificate.alpha, s.certificate.U)
    assert -1e-12 * c.primal <= c.gap <= 1e-8 * c.primal
    assert s.trace is not None
    assert s.trace.is_monotone()


@pytest.mark.parametrize("solve", [llr.solve_irls, llr.solve_fast])
def test_opposite_twins_that_fuse_have_no_weights_at_all(solve) -> None:  # type: ignore[no-untyped-def]
    s = solve(degenerate()["opposite twins, all fused"], tol=1e-9)
    assert np.all(s.W == 0.0)


@pytest.mark.parametrize("solve", [llr.solve_irls, llr.solve_fast])
def test_scaling_law(solve) -> None:  # type: ignore[no-untyped-def]
    problems = degenerate()
    base = solve(problems["features x 1e6"], tol=1e-9)
    tiny = solve(problems["features x 1e-6"], tol=1e-9)
    assert base.objective == pytest.approx(tiny.objective, rel=1e-8)


# ---- lambda2 = 0 ----------------------------------------------------------------------------------------------


def overlapping() -> Problem:
    rng = np.random.default_rng(3)
    X = rng.standard_normal((40, 2))
    y = np.where(rng.random(40) < 0.5, 1.0, -1.0)
    return Problem(X, y, [(i, i + 1) for i in range(39)], np.ones(39), lambda1=3.0, lambda2=0.0)


@pytest.mark.parametrize("solve", [llr.solve_irls, llr.solve_fast])
def test_without_the_exclusive_penalty_overlapping_data_is_solved_and_said_to_be_uncertified(
    solve,  # type: ignore[no-untyped-def]
) -> None:
    p = overlapping()
    s = solve(p, tol=1e-6)
    assert s.status == "uncertified"
    assert s.certificate.bounded_relative_gap <= 1e-6
    exact = llr.solve_exact(p)
    assert s.objective <= exact.objective * (1 + 1e-6)
    assert "lambda2 = 0" in str(s.certificate)
    assert "proved only among W with ||w_i||_1 <=" in s.message


def test_without_the_exclusive_penalty_separable_data_is_refused() -> None:
    p = overlapping()
    separable = Problem(p.X, np.sign(p.X[:, 0]), p.edges, p.weights, lambda1=3.0, lambda2=0.0)
    for solve in (llr.solve_irls, llr.solve_fast, llr.solve_exact):
        with pytest.raises(ValueError, match=r"lambda2 = 0 and the 40 connected sample.*separable"):
            solve(separable)


def test_the_steps_do_not_depend_on_what_other_methods_have_found() -> None:
    """With a neighbour's points at hand, a cold start once took every system for one without progress."""
    p = small()
    s = llr.solve_irls(p, tol=1e-6)
    known, fresh = Best(p, s.W), Best(p, s.W)
    known.primal(s.W, s.objective)
    known.bound(s.certificate.alpha, s.certificate.U)
    one, two = (Irls(p, cold_start(p), best) for best in (known, fresh))
    for _ in range(10):
        assert np.array_equal(one.step().W, two.step().W)
        assert (one.rtol, one.n_cg) == (two.rtol, two.n_cg)
    assert known.objective < one.J
