"""Splitting: the parts of a round against what defines them, and rounds against solutions known otherwise."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.special import expit
from sizes import in_long

import llr_cvx as llr
from llr_cvx.benchmarks.measure import instance
from llr_cvx.problem import Problem
from llr_cvx.proofs.certificate import certificate
from llr_cvx.solvers import settings
from llr_cvx.solvers.fast import splitting
from llr_cvx.solvers.fast.splitting import Pair, Rounds, Samples, Splitting, applies, metric, minimisers
from llr_cvx.solvers.run import Best
from llr_cvx.solvers.starts import start_from

BOTH = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def problem(d: int = 6, seed: int = 0, lambda1: float = 0.1) -> Problem:
    return instance(60, d, seed, lambda1)


def random_start(p: Problem, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    U = rng.normal(size=(len(p.edges), p.shape[1]))
    return rng.normal(size=p.shape), U * (p.radii / np.linalg.norm(U, axis=1))[:, None]


# ---- the parts of a round ---------------------------------------------------------------------------------


@pytest.mark.parametrize("stiffness", [1e-3, 0.3, 30.0])
def test_samples_are_minimised_one_by_one(stiffness: float) -> None:
    """alpha y x - z - s w = 2 lambda2 ||w||_1 sign(w), and no larger than that off the support."""
    p = problem()
    rng = np.random.default_rng(1)
    z, s = rng.normal(size=p.shape), stiffness * (0.5 + rng.random((len(p.y), 1)))
    samples = Samples(p, np.zeros(p.shape), np.float64)
    for _ in range(200):  # alpha takes one step a round
        samples.minimise(z, s)
    W = samples.W
    assert samples.alpha == pytest.approx(expit(-p.y * (p.X * W).sum(axis=1)), abs=1e-10)
    slope = samples.alpha[:, None] * p.y[:, None] * p.X - z - s * W
    level = 2.0 * p.lambda2 * np.abs(W).sum(axis=1, keepdims=True) + np.zeros_like(W)
    on = W != 0.0
    assert on.any()
    assert not on.all()
    assert slope[on] == pytest.approx((level * np.sign(W))[on], abs=1e-9)
    assert np.all(np.abs(slope[~on]) <= level[~on] + 1e-9)


@BOTH
def test_each_sample_is_minimised_as_if_it_were_alone(dtype: type) -> None:
    """Rows whose weights differ by eight orders of magnitude, from a poor guess; the slope by differences."""
    yX = np.array([[1e-4, 3e-4, -2e-4], [1.0, 2.0, -3.0]], dtype)
    z = np.array([[-1e4, 2e3, -7e3], [1e-4, -2e-4, 1e-4]], dtype)
    s, alpha, guess = np.full((2, 1), 2.0, dtype), np.array([0.4, 1e-4], dtype), np.ones(2, dtype)
    both = _, l1, _, slope = minimisers(yX, 2.0, z, s, alpha, guess)
    assert l1[0] > 1e7 * l1[1] > 0.0
    for i in range(2):
        row = slice(i, i + 1)
        alone = minimisers(yX[row], 2.0, z[row], s[row], alpha[row], np.zeros(1, dtype))
        for together, single in zip(both, alone, strict=True):
            assert together[i] == pytest.approx(single[0], rel=1e-5)
    if dtype is np.float64:
        up, down = (minimisers(yX, 2.0, z, s, alpha + h, l1)[2] for h in (1e-7, -1e-7))
        assert slope == pytest.approx(1.0 - (up - down) / 2e-7, rel=1e-6)


@BOTH
@pytest.mark.parametrize("dense", [1000, 0])
def test_the_metric_inverts_the_laplacian_of_the_graph(
    dense: int, dtype: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settings, "DENSE", dense)
    monkeypatch.setattr(settings, "INNER_CG", 60)
    p = problem(lambda1=0.7)
    M = metric(p, dtype)
    B = p.incidence.toarray()
    matrix = B.T @ np.diag(p.weights) @ B + np.diag(M.rho[:, 0])
    rhs = np.random.default_rng(0).normal(size=p.shape).astype(dtype)
    phi = M.solve(rhs, np.zeros_like(rhs))
    assert phi.dtype == dtype
    assert phi == pytest.approx(np.linalg.solve(matrix, rhs), rel=1e-3, abs=1e-5)
    assert M.flow.toarray() == pytest.approx(np.diag(p.weights) @ B, rel=1e-6)
    assert metric(p.with_lambdas(0.2), dtype) is M
    assert metric(problem(seed=1), dtype) is not M


@pytest.mark.parametrize("lambda1", [0.02, 0.2, 0.5])
def test_an_optimum_stays_where_it_is(lambda1: float) -> None:
    p = problem(lambda1=lambda1)
    s = llr.solve_fast(p, 1e-13)
    rounds = Rounds(p, s.W, s.certificate.U, np.float64)
    guess = rounds.phi
    for _ in range(5):
        rounds.advance()
    assert guess == pytest.approx(rounds.phi, abs=1e-4 * np.abs(guess).max())
    assert rounds.U == pytest.approx(s.certificate.U, abs=1e-5)
    assert rounds.samples.W == pytest.approx(s.W, abs=1e-5)
    assert np.all(rounds.fused[np.linalg.norm(s.certificate.U, axis=1) < 0.99 * p.radii])


@BOTH
def test_a_new_gamma_leaves_the_pair_where_it_is(dtype: type) -> None:
    p = problem()
    rounds = Rounds(p, *random_start(p), dtype)
    before = rounds.pair()
    for _ in range(3):
        rounds.advance()
    for _ in range(30):  # alpha takes one step a round
        rounds.find()
    here, gamma = rounds.pair(), rounds.gamma
    rounds.retune(before)
    assert rounds.gamma != pytest.approx(gamma, rel=0.05)
    for old, new in zip(here, rounds.pair(), strict=True):
        assert new == pytest.approx(old, abs=1e-4 * float(np.abs(old).max()))


def test_gamma_makes_both_sides_of_a_pair_equally_long() -> None:
    p = problem()
    rounds = Rounds(p, *random_start(p), np.float64)
    D, W = random_start(p, 1)[1], random_start(p, 2)[0]
    pair = Pair(3.0 * p.radii[:, None] * D, 3.0 * rounds.rho * W, D, W)
    assert rounds.balance(pair) == pytest.approx(3.0)
    assert rounds.balance(Pair(*(0.0 * part for part in pair))) == rounds.gamma


@BOTH
def test_every_offer_is_feasible_and_proves_a_bound(dtype: type) -> None:
    p = problem(lambda1=0.4)
    optimum = llr.solve_fast(p, 1e-9).objective
    rounds = Rounds(p, *random_start(p), dtype)
    for _ in range(30):
        rounds.advance()
        W, alpha, U = rounds.offer()
        assert W.dtype == U.dtype == alpha.dtype == np.float64
        assert np.all(np.linalg.norm(U, axis=1) <= p.radii * (1 + 1e-14))
        assert np.all((alpha >= 0) & (alpha <= 1))
        assert certificate(p, W, alpha, U).dual <= optimum


@pytest.mark.parametrize("lambda1", [in_long(0.01), 0.1, in_long(0.6)])
def test_with_exact_samples_the_rounds_converge_from_anywhere(lambda1: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "COARSE_ALPHA", 1e-7)
    p = problem(lambda1=lambda1)
    s = llr.solve_fast(p, 1e-9)
    rounds = Rounds(p, *random_start(p), np.float64)
    errors = []
    for _ in range(3):
        for _ in range(250):
            rounds.advance()
        W, alpha, U = rounds.offer()
        errors.append(1.0 - certificate(p, W, alpha, U).dual / s.objective)
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < 5e-6
    assert p.scores(W) == pytest.approx(p.scores(s.W), abs=2e-2)


@pytest.mark.parametrize("seed", range(3))
def test_from_a_bad_start_one_step_for_alpha_may_swing_and_the_phase_ends_or_proves(seed: int) -> None:
    """Newton steps over the kinks of the samples can swing for ever; that is noticed as slow progress."""
    p = problem(lambda1=0.1)
    optimum = llr.solve_fast(p, 1e-9).objective
    W, U = random_start(p, seed)
    best = Best(p, W)
    best.primal(W, p.objective(W))
    method = Splitting(Rounds(p, W, U), best, 1e-7, 30)
    for _ in range(100):
        if not method.done:
            method.step()
    assert method.done
    assert best.dual <= optimum * (1 + 1e-12)
    assert best.objective >= optimum * (1 - 1e-9)
    assert best.relative_gap < 1e-2


# ---- the phase ----------------------------------------------------------------------------------------------


def near(p: Problem, tol: float = 1e-6, factors: tuple[float, ...] = (1.6, 1.25)) -> Splitting:
    """The phase, begun at solutions for smaller lambda1."""
    start = start_from(p, [llr.solve_fast(p.with_lambdas(p.lambda1 / factor)) for factor in factors])
    best = Best(p, start.W)
    best.primal(start.W, p.objective(start.W))
    return Splitting(Rounds(p, start.W, p.radii[:, None] * start.duals.u), best, tol, 30)


def follow(method: Splitting, limit: int = 100) -> list[float]:
    """Relative gaps after each step."""
    gaps = []
    while not method.done and len(gaps) < limit:
        at = method.step()
        assert at.objective == method.rounds.problem.objective(at.W)
        assert np.isnan(at.smoothed_objective)
        gaps.append(method.best.relative_gap)
    return gaps


@pytest.mark.parametrize(("d", "N"), [(10, 310), *map(in_long, ((5, 310), (8, 800)))])
def test_from_two_solutions_nearby_a_few_rounds_prove_the_third(d: int, N: int) -> None:
    method = near(instance(N, d, 0, lambda1=0.15))
    gaps = follow(method)
    assert gaps == sorted(gaps, reverse=True)
    assert gaps[-1] <= 1e-6
    assert method.k <= 60
    assert not method.failed
    p, best = method.rounds.problem, method.best
    assert certificate(p, best.W, best.alpha, best.U).relative_gap <= 1e-6
    assert np.mean((best.W != 0) == (llr.solve_fast(p, 1e-9).W != 0)) > 0.99


def test_W_is_rounded_to_clusters_and_has_exact_zeros() -> None:
    method = near(instance(310, 10, 0, lambda1=0.7))
    follow(method)
    exact = llr.solve_fast(method.rounds.problem, 1e-10)
    i, j = exact.problem.edges.T
    fused = np.all(exact.W[i] == exact.W[j], axis=1)
    W = method.best.W
    assert fused.sum() > 500
    assert np.mean(np.all(W[i] == W[j], axis=1) == fused) > 0.95
    assert np.mean((W != 0) == exact.support) > 0.9


def test_where_it_does_not_pay_it_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "MAX_ROUNDS_LEFT", (0, 0))
    method = near(instance(150, 10, 0, lambda1=0.5), tol=1e-12)
    gaps = follow(method)
    assert method.done
    assert not method.failed
    assert gaps[-1] > 1e-12
    assert method.k == settings.MAX_BLIND


def test_gamma_is_set_once_from_the_first_rounds() -> None:
    method = near(instance(310, 10, 0, lambda1=0.45))
    seen = [method.rounds.gamma]
    for _ in range(20):
        method._advance()
        seen.append(method.rounds.gamma)
    assert len(set(seen)) == 2
    assert seen.index(seen[-1]) == settings.TUNING_ROUNDS[1]


def test_a_start_is_taken_for_an_optimum() -> None:
    """V_i - alpha_i y_i x_i, which is v_i at an optimum, is no larger than 2 lambda2 ||w_i||_1."""
    p = instance(150, 20, 0, lambda1=0.05)
    W, U = random_start(p)
    W *= 0.01
    rounds = Rounds(p, W, U, np.float64)
    V = rounds.z_row + rounds.gamma * rounds.rho * W
    v = V - (p.alpha(W) * p.y)[:, None] * p.X
    level = 2.0 * p.lambda2 * np.abs(W).sum(axis=1, keepdims=True)
    assert np.any(np.abs(p.dual_vectors(p.alpha(W), U)) > level)
    assert np.all(np.abs(v) <= level + 1e-12)


@pytest.mark.parametrize("relax", [np.nan, 1e30])
def test_numbers_that_overflow_end_it_and_leave_the_best_points(relax: float, monkeypatch: pytest.MonkeyPatch) -> None:
    method = near(instance(60, 6, 0))
    W, objective, dual = method.best.W, method.best.objective, method.best.dual
    monkeypatch.setattr(settings, "RELAX", relax)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        follow(method, limit=3)
    assert method.done
    assert method.failed
    assert method.best.W is W
    assert (method.best.objective, method.best.dual) == (objective, dual)


def test_the_wrong_way_gains_nothing_and_proves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    method = near(instance(60, 6, 0))
    optimum = llr.solve_fast(method.rounds.problem, 1e-9).objective
    monkeypatch.setattr(settings, "RELAX", -0.5)
    follow(method)
    assert method.done
    assert method.best.relative_gap > 1e-6
    assert method.best.dual <= optimum <= method.best.objective * (1 + 1e-9)


@pytest.mark.parametrize("weight", [1e-20, 1e-25, 1e-40, 1e-200])
def test_edges_of_far_samples_do_not_fuse_them(weight: float) -> None:
    """Weights of samples ten widths away: single precision knows nothing that small."""
    base = instance(150, 5, seed=0)
    far = np.isin(base.edges, [3, 50, 140]).any(axis=1)
    p = Problem(base.X, base.y, base.edges, np.where(far, weight, base.weights), 0.144, 1.0)
    method = near(p)
    follow(method)
    assert method.best.relative_gap <= 1e-6
    for i in (3, 50, 140):
        assert np.sum(np.all(method.W == method.W[i], axis=1)) == 1


@pytest.mark.parametrize("dense", [1000, 0])
def test_samples_without_edges_and_edges_without_weight(dense: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "DENSE", dense)
    base = problem()
    apart = ~np.any(base.edges == 7, axis=1)
    weights = np.where(np.any(base.edges == 9, axis=1), 0.0, base.weights)[apart]
    X = base.X.copy()
    X[3] = 0.0
    p = Problem(X, base.y, base.edges[apart], weights, 0.1, 1.0)
    method = near(p)
    follow(method)
    assert method.best.relative_gap <= 1e-6
    assert method.best.objective == pytest.approx(llr.solve_irls(p, 1e-9).objective, rel=2e-6)


def test_it_applies_where_squares_can_be_computed() -> None:
    p = problem()
    assert applies(p)
    assert not applies(Problem(p.X, p.y, np.zeros((0, 2), dtype=int), [], 0.1, 1.0))
    assert not applies(Problem(p.X, p.y, p.edges, 0.0 * p.weights, 0.1, 1.0))
    assert not applies(p.with_lambdas(lambda1=0.0))
    assert not applies(p.with_lambdas(lambda2=0.0))
    assert not applies(Problem(1e20 * p.X, p.y, p.edges, p.weights, 0.1, 1.0))
    assert not applies(Problem(0.0 * p.X, p.y, p.edges, p.weights, 0.1, 1.0))


def test_a_metric_lives_no_longer_than_its_graph() -> None:
    p = problem(seed=5)
    metric(p, np.float32)
    assert p.graph in splitting._METRICS
    before = len(splitting._METRICS)
    del p
    assert len(splitting._METRICS) < before
