"""What a certificate proves: primal, dual feasibility, gap and complementarity apart; and that lies are noticed."""

from __future__ import annotations

import warnings
from dataclasses import replace
from decimal import Decimal, localcontext

import numpy as np
import pytest
from builders import (
    GRID,
    is_dual_feasible,
    is_exactly_feasible,
    random_problem,
    slow_dual,
    slow_dual_vectors,
    slow_objective,
    solved,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from sizes import thinned

import llr_cvx as llr
from llr_cvx.instances import load_instance
from llr_cvx.instances.drill import hostile_problem
from llr_cvx.instances.generators import star
from llr_cvx.instances.recipes import RECIPES
from llr_cvx.oracles import solve_decoupled
from llr_cvx.proofs.ball_arithmetic import enclose
from llr_cvx.proofs.certificate import Certificate, certificate, dual_objective, entropy, feasible, score_interval

Case = tuple[int, int, int, float, float]
each_case = pytest.mark.parametrize("case", GRID, ids=lambda c: f"N{c[1]}-d{c[2]}-{c[3]}-{c[4]}")


def recheck(p: llr.Problem, W: np.ndarray, c: Certificate, tol: float) -> bool:
    """The whole proof once more, from its definition, with nothing taken from the package."""
    return (
        is_dual_feasible(p, c.alpha, c.U)
        and abs(slow_objective(p, W) - c.primal) <= 1e-12 * c.primal
        and abs(slow_dual(p, c.alpha, c.U) - c.dual) <= 1e-12 * c.primal
        and c.primal - c.dual <= tol * c.primal
    )


# ---- optimality of the exact solver's answers, one condition a test ---------------------------------------


@each_case
def test_primal_is_the_objective(case: Case) -> None:
    s = solved(case)
    assert s.certificate.primal == s.objective == pytest.approx(slow_objective(s.problem, s.W), rel=1e-13)


@each_case
def test_dual_point_is_feasible_and_worth_what_is_claimed(case: Case) -> None:
    s = solved(case)
    c = s.certificate
    assert is_dual_feasible(s.problem, c.alpha, c.U)
    assert c.dual == pytest.approx(slow_dual(s.problem, c.alpha, c.U), rel=1e-12)


@each_case
def test_gap_is_not_negative_and_small_with_the_solvers_own_dual(case: Case) -> None:
    c = solved(case).certificate
    assert -1e-9 <= c.gap
    assert c.relative_gap <= 1e-8
    assert c.relative_gap == c.gap / c.primal


@each_case
def test_complementarity_term_by_term(case: Case) -> None:
    """The gap is a sum of Fenchel-Young terms, none negative: so each one is at most the gap.

    Hence support only where |v| attains its maximum: |w_ik| (||v_i||_inf - |v_ik|) <= gap.
    """
    s = solved(case)
    p, W, alpha, U = s.problem, s.W, s.certificate.alpha, s.certificate.U
    v = slow_dual_vectors(p, alpha, U)
    v_max, w_sum = np.abs(v).max(axis=1), np.abs(W).sum(axis=1)
    D = W[p.edges[:, 0]] - W[p.edges[:, 1]]
    margin = p.y * (p.X * W).sum(axis=1)

    logistic = np.logaddexp(0, -margin) + alpha * margin - entropy(alpha)
    edges = p.lambda1 * p.weights * np.linalg.norm(D, axis=1) - (U * D).sum(axis=1)
    size = (2 * p.lambda2 * w_sum - v_max) ** 2 / (4 * p.lambda2)
    support = np.abs(W) * v_max[:, None] + W * v

    rounding = 1e-13 * s.objective
    for terms in (logistic, edges, size, support):
        assert terms.min() >= -rounding
        assert terms.max() <= s.certificate.gap + rounding
    total = logistic.sum() + edges.sum() + size.sum() + support.sum()
    assert total == pytest.approx(s.certificate.gap, abs=1e-11 * s.objective)


@each_case
def test_selected_features_are_those_that_attain_the_maximum(case: Case) -> None:
    s = solved(case)
    v = np.abs(slow_dual_vectors(s.problem, s.certificate.alpha, s.certificate.U))
    selected = np.abs(s.W) > 1e-2 * np.abs(s.W).max()
    assert selected.any()
    attained = (v / v.max(axis=1, keepdims=True))[selected]
    assert attained.min() >= 1 - 1e-4
    assert np.all(s.W[selected] * slow_dual_vectors(s.problem, s.certificate.alpha, s.certificate.U)[selected] < 0)


# ---- lies --------------------------------------------------------------------------------------------------


@each_case
def test_a_corrupted_W_is_rejected(case: Case) -> None:
    s = solved(case)
    p, c = s.problem, s.certificate
    rng = np.random.default_rng(case[0])
    assert recheck(p, s.W, c, 1e-8)
    largest = np.unravel_index(np.abs(s.W).argmax(), s.W.shape)
    zeroed, flipped = s.W.copy(), s.W.copy()
    zeroed[largest] = 0.0
    flipped[largest] *= -1
    noisy = s.W + 0.05 * np.abs(s.W).max() * rng.standard_normal(s.W.shape)
    for wrong in (zeroed, flipped, noisy, 0.9 * s.W, -s.W):
        assert not recheck(p, wrong, c, 1e-6)
        assert not certificate(p, wrong, c.alpha, c.U).proves(1e-6)


@each_case
def test_a_corrupted_dual_point_is_rejected(case: Case) -> None:
    s = solved(case)
    p, c = s.problem, s.certificate
    rng = np.random.default_rng(case[0])
    i, e = int(rng.integers(len(c.alpha))), int(p.weights.argmax())
    alpha = c.alpha.copy()
    alpha[i] = 1.0 - alpha[i] if abs(alpha[i] - 0.5) > 0.05 else 0.9
    U = c.U.copy()
    U[e] = p.radii[e] / np.sqrt(U.shape[1]) if np.linalg.norm(U[e]) < 0.5 * p.radii[e] else -U[e]
    changes = [{"alpha": alpha}]
    # An edge whose ball is small beside J cannot spoil the proof by more than that.
    if p.radii[e] > 1e-2:
        changes.append({"U": U})
    for change in changes:
        assert not recheck(p, s.W, replace(c, **change), 1e-8)
        point = {"alpha": c.alpha, "U": c.U} | change
        assert not certificate(p, s.W, **point).proves(1e-8)


def test_an_infeasible_dual_point_cannot_prove_too_much() -> None:
    """Outside its domain D exceeds J*: the certificate pulls the point back before it claims anything."""
    s = solved(GRID[7])
    p, c = s.problem, s.certificate
    outside = 1.5 * c.U
    assert not recheck(p, s.W, replace(c, U=outside), 1e-8)
    assert dual_objective(p, c.alpha, outside) > s.objective
    pulled = certificate(p, s.W, c.alpha, outside)
    assert is_dual_feasible(p, pulled.alpha, pulled.U)
    assert pulled.dual <= s.objective
    assert certificate(p, s.W, c.alpha - 0.6, c.U).alpha.min() == 0.0
    assert certificate(p, s.W, c.alpha + 0.6, c.U).alpha.max() == 1.0


@settings(max_examples=3 * settings.default.max_examples)
@given(
    seed=st.integers(0, 2**32 - 1),
    size=st.sampled_from([1e-6, 0.1, 1.0, 10.0, 1e6]),
    case=st.sampled_from(GRID[:12]),
)
def test_weak_duality_holds_for_every_point(seed: int, size: float, case: Case) -> None:
    p, best = solved(case).problem, solved(case).objective
    rng = np.random.default_rng(seed)
    W = size * rng.standard_normal(p.shape)
    alpha, U = rng.uniform(-0.2, 1.2, p.shape[0]), size * rng.standard_normal((len(p.edges), p.shape[1]))
    c = certificate(p, W, alpha, U)
    assert is_dual_feasible(p, c.alpha, c.U)
    assert c.dual <= best * (1 + 1e-12)
    assert c.gap >= 0.0


def test_feasible_keeps_points_that_are_feasible() -> None:
    p = random_problem(0)
    rng = np.random.default_rng(0)
    alpha = rng.random(p.shape[0])
    U = rng.standard_normal((len(p.edges), 3))
    U *= 0.9 * p.radii[:, None] / np.linalg.norm(U, axis=1, keepdims=True)
    kept = feasible(p, alpha, U)
    assert np.array_equal(kept[0], alpha)
    assert np.array_equal(kept[1], U)


def test_a_dual_point_of_the_wrong_shape_is_named() -> None:
    p = random_problem(0)
    W, alpha, U = np.zeros(p.shape), np.zeros(24), np.zeros((len(p.edges), 3))
    with pytest.raises(ValueError, match=r"alpha has shape \(23,\) but the problem needs \(24,\)"):
        certificate(p, W, alpha[1:], U)
    with pytest.raises(ValueError, match=r"U has shape \(\d+, 2\) but the problem needs \(\d+, 3\)"):
        certificate(p, W, alpha, U[:, 1:])
    with pytest.raises(ValueError, match=r"U has a non-finite value nan at row 0, column 0"):
        certificate(p, W, alpha, np.full_like(U, np.nan))


# ---- rounding is part of the proof -----------------------------------------------------------------------------


@pytest.mark.parametrize("d", [1, 3, 60])
def test_feasible_holds_in_exact_arithmetic_and_is_a_projection(d: int) -> None:
    """Radii from 0 to 1e300 and U_e on, just inside and far outside their balls."""
    rng = np.random.default_rng(d)
    E = 200
    weights = 10.0 ** rng.uniform(-150, 150, E) * (rng.random(E) < 0.9)
    p = llr.Problem(np.eye(E + 1, d), np.r_[-1, np.ones(E)], star(E + 1), weights, 10.0 ** rng.uniform(-150, 150), 1.0)
    directions = rng.standard_normal((E, d))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    U = directions * (p.radii * (1 + rng.choice([-1e-15, 0.0, 1e-16, 1e-12, 3.0], E)))[:, None]
    U[::7] = 10.0 ** rng.uniform(-320, 300, (len(U[::7]), d))
    alpha = np.full(E + 1, 0.5)
    assert not is_exactly_feasible(p, alpha, U)
    a, u = feasible(p, alpha, U)
    assert is_exactly_feasible(p, a, u)
    assert np.array_equal(feasible(p, a, u)[1], u)
    near = np.arange(E) % 7 > 0
    np.testing.assert_allclose(u[near], (directions * p.radii[:, None])[near], rtol=1e-13, atol=1e-289)


@pytest.mark.parametrize(("omega", "entry"), [(0.0, 1.5e-162), (1e-310, 1.5e-162), (0.0, 5e-324)])
def test_an_edge_of_radius_zero_proves_nothing_however_small_its_U(omega: float, entry: float) -> None:
    """The squares of U underflow; 39 such edges used to prove 1e-11 more than the optimum."""
    N = 40
    p = llr.Problem(np.full((N, 1), 1e-150), np.r_[-1, np.ones(N - 1)], star(N), np.full(N - 1, omega), 1.0, 1e-303)
    W = solve_decoupled(p.with_lambdas(0.0))
    c = llr.certify(p, W, p.alpha(W), np.full((N - 1, 1), -entry))
    assert not c.U.any()
    assert c.dual <= enclose(p, W, c.alpha, c.U).primal_high


def assert_proved(p: llr.Problem, W: np.ndarray, c: Certificate) -> None:
    proof = enclose(p, W, c.alpha, c.U)
    assert np.array_equal(proof.U, c.U)  # feasible in exact arithmetic, so the ball arithmetic moved nothing
    assert c.dual <= proof.dual_high
    assert c.dual <= proof.primal_high
    assert c.primal - c.rounding <= proof.primal_low <= proof.primal_high <= c.primal + c.rounding


@pytest.mark.parametrize("start", thinned(range(0, 160, 20), 8))
def test_no_rounding_error_lifts_the_dual_value_above_the_optimum(start: int) -> None:
    for seed in range(start, start + 20):
        p = hostile_problem(seed) if seed % 2 else random_problem(seed, N=20, d=1 + seed % 5, lambda2=0.1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", llr.solution.ConvergenceWarning)
            s = llr.solve_irls(p, tol=1e-13)
        assert_proved(p, s.W, s.certificate)


@pytest.mark.parametrize("name", thinned((name for name in RECIPES if RECIPES[name].stored), 5))
def test_no_rounding_error_lifts_the_dual_value_of_an_instance(name: str) -> None:
    instance = load_instance(name)
    c = instance.certificate
    assert_proved(instance.problem, instance.W, c)
    assert c.dual <= instance.upper
    assert c.relative_gap <= 1e-13


def test_terms_that_cancel_prove_only_what_their_rounding_leaves() -> None:
    """U = fl(alpha x) makes every computed v vanish; the true one is 1e-18, and with this lambda2 that is a lot."""
    X = np.random.default_rng(0).uniform(0.1, 1.0, (2, 5))[[0, 0]]
    p = llr.Problem(X, [1, -1], [[0, 1]], [1.0], lambda1=10.0, lambda2=1e-36)
    alpha = np.full(2, 1.0 / 3.0)
    U = alpha[:1, None] * X[:1]
    assert not p.dual_vectors(alpha, U).any()
    c = certificate(p, np.zeros(p.shape), alpha, U)
    proof = enclose(p, np.zeros(p.shape), alpha, U)
    assert np.array_equal(c.U, U)
    assert c.dual <= proof.dual_high < entropy(alpha).sum() - 0.1


def test_the_rounding_of_entropies_and_penalties_is_counted() -> None:
    """Half of all results are rounded upwards; a lower bound must not be. D of one sample is known to 50 digits."""
    rng = np.random.default_rng(0)
    for x in (0.0, 1.0):
        for a, lambda2 in rng.uniform(0.1, 0.9, size=(100, 2)).tolist():
            p = llr.Problem([[x], [0.0]], [1, -1], [], [], lambda1=1.0, lambda2=lambda2)
            c = certificate(p, np.zeros((2, 1)), [a, 0.0], np.empty((0, 1)))
            with localcontext() as context:
                context.prec = 50
                b = Decimal(a)
                D = -b * b.ln() - (1 - b) * (1 - b).ln() - (b * Decimal(x)) ** 2 / (4 * Decimal(lambda2))
            assert D - Decimal("1e-13") <= Decimal(c.dual) <= D


def test_a_tolerance_is_proved_only_with_room_for_rounding() -> None:
    c = solved(GRID[7]).certificate
    tight = replace(c, dual=c.primal * (1 - 1e-9))
    assert not tight.proves(1e-9)
    assert tight.proves(1.0001e-9)
    assert 0 < c.rounding < 1e-14 * c.primal
    assert not replace(c, rounding=1e-6 * c.primal).proves(1e-7)
    assert not replace(c, dual=c.primal * (1 + 1e-9)).proves(1e-6)  # a bound above J is a fault, not a proof


def test_the_rounding_of_scores_that_cancel_is_counted() -> None:
    """Margins near 0 as differences of numbers near 1e10."""
    rng = np.random.default_rng(0)
    for _ in range(50):
        p = llr.Problem(rng.standard_normal((4, 3)), [1, 1, -1, -1], [], [], 0.0, 1e-30)
        W = 1e10 * rng.standard_normal(p.shape)
        W[:, 2] = -(p.X[:, :2] * W[:, :2]).sum(axis=1) / p.X[:, 2]
        assert_proved(p, W, certificate(p, W, np.full(4, 0.5), np.zeros((0, 3))))


# ---- proven intervals of the scores ---------------------------------------------------------------------


@pytest.mark.parametrize("noise", [1e-6, 1e-3, 0.1, 1.0])
def test_score_bounds_hold_the_true_scores(noise: float) -> None:
    """With lambda1 = 0 the true scores are known exactly."""
    p = random_problem(3, N=40, d=4, lambda1=0.0)
    truth = p.scores(solve_decoupled(p))
    W = solve_decoupled(p) + noise * np.random.default_rng(0).standard_normal(p.shape)
    c = certificate(p, W, p.alpha(W), np.zeros((len(p.edges), 4)))
    low, high = c.score_bounds
    assert np.all(low <= truth)
    assert np.all(truth <= high)
    for z in (low, high):  # each end uses up the gap, no more and no less
        value = np.logaddexp(0, -p.y * z) + c.alpha * p.y * z - entropy(c.alpha)
        assert value == pytest.approx(np.full(40, c.gap), rel=1e-4, abs=1e-12)
    if noise <= 1e-3:
        assert np.all(high - low <= 40 * np.sqrt(c.gap))


@pytest.mark.parametrize("shift", [-0.3, -0.01, 0.01, 0.3])
def test_score_bounds_hold_where_one_sample_has_all_of_the_error(shift: float) -> None:
    """The gap then belongs to that sample alone, and the interval has little room to spare."""
    p = random_problem(3, N=12, d=1, lambda1=0.0, lambda2=0.01)
    optimal = solve_decoupled(p)
    truth = p.scores(optimal)
    for i in range(12):
        W = optimal.copy()
        W[i] += shift
        low, high = certificate(p, W, p.alpha(W), np.zeros((len(p.edges), 1))).score_bounds
        assert low[i] <= truth[i] <= high[i]
        assert high[i] - low[i] <= 60 * abs(p.scores(W)[i] - truth[i]) + 1e-6


@each_case
def test_score_bounds_of_a_rough_answer_hold_those_of_a_fine_one(case: Case) -> None:
    s = solved(case)
    p = s.problem
    rough = certificate(p, s.W + 0.01, s.certificate.alpha, 0.999 * s.certificate.U)
    (low, high), (fine_low, fine_high) = rough.score_bounds, s.certificate.score_bounds
    assert np.all(low <= fine_high)
    assert np.all(fine_low <= high)
    assert np.all(low <= p.scores(s.W) + 1e-9)
    assert np.all(p.scores(s.W) - 1e-9 <= high)


def test_score_bounds_leave_room_for_rounding_where_the_gap_is_zero() -> None:
    """With gap 0 the score is log((1 - alpha) / alpha) exactly, and no double."""
    c = solved(GRID[7]).certificate
    low, high = replace(c, dual=c.primal, rounding=0.0).score_bounds
    with localcontext() as context:
        context.prec = 50
        truth = [int(y) * ((1 - Decimal(a)) / Decimal(a)).ln() for a, y in zip(c.alpha, c.y, strict=True)]
        assert all(Decimal(a) < t < Decimal(b) for a, t, b in zip(low.tolist(), truth, high.tolist(), strict=True))


def test_score_interval_ends_where_the_excess_is_reached() -> None:
    alpha, excess = np.array([0.5, 0.01, 0.999, 1e-9]), 1e-3
    y = np.array([1.0, -1.0, 1.0, -1.0])
    for z in score_interval(alpha, y, excess):
        inside = np.isfinite(z)
        assert inside.sum() >= 3
        value = np.logaddexp(0, -y * z) + alpha * y * z - entropy(alpha)
        assert value[inside] == pytest.approx(np.full(inside.sum(), excess), rel=1e-6)


def test_score_interval_at_the_ends_of_alpha_is_one_sided() -> None:
    low, high = score_interval(np.array([0.0, 1.0]), np.array([1.0, 1.0]), 0.1)
    assert high[0] == np.inf
    assert low[1] == -np.inf
    # log(1 + exp(-z)) = 0.1
    assert low[0] == pytest.approx(-np.log(np.expm1(0.1)))
    assert high[1] == pytest.approx(np.log(np.expm1(0.1)))


def test_an_infinite_gap_bounds_nothing() -> None:
    low, high = score_interval(np.array([0.5]), np.array([1.0]), np.inf)
    assert (low[0], high[0]) == (-np.inf, np.inf)


def test_without_sparsity_the_proof_is_about_ten_times_larger_weights() -> None:
    p = llr.Problem([[1.0], [-1.0]], [1, -1], [[0, 1]], [1.0], lambda1=1.0, lambda2=0.0)
    none = np.zeros(2), np.zeros((1, 1))
    assert certificate(p, [[3.0], [0.5]], *none).radius == 30.0
    assert certificate(p, np.zeros((2, 1)), *none).radius == 10.0  # never near 0


def test_an_objective_that_overflows_in_the_sum_proves_nothing() -> None:
    """Each penalty is a double, their sum is none."""
    p = llr.Problem([[1.0], [-1.0]], [1, -1], [], [], lambda1=1.0, lambda2=1.0)
    with np.errstate(over="ignore"):
        c = certificate(p, [[1.2e154], [1.2e154]], np.zeros(2), np.empty((0, 1)))
    assert c.rounding == np.inf
    assert not c.proves(1.0)


def test_entropy_at_its_ends_and_middle() -> None:
    assert entropy(np.array([0.0, 1.0, 0.5])) == pytest.approx([0.0, 0.0, np.log(2)])


def test_a_certificate_reads_well() -> None:
    text = str(solved(GRID[7]).certificate)
    assert "J(W)" in text
    assert "proven J* >=" in text
    assert "relative" in text
    assert len(text.splitlines()) <= 4


def test_score_bounds_count_the_rounding_of_the_objective() -> None:
    y, alpha = np.array([1.0, -1.0]), np.array([0.5, 0.25])
    exact, rounded = (Certificate(1.0, 1.0, alpha, np.zeros((0, 1)), y, rounding=r).score_bounds for r in (0.0, 1e-3))
    assert np.all(rounded[0] < exact[0] - 0.01)
    assert np.all(rounded[1] > exact[1] + 0.01)
