"""Splitting: the parts of a round against what defines them, and a few dozen rounds against cold solves."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit

import llr_cvx as llr
from llr_cvx.benchmarks import measure as bench
from llr_cvx.problem import Problem
from llr_cvx.solution import ConvergenceWarning
from llr_cvx.solvers.best import Best
from llr_cvx.solvers.fast import multipliers, phases, splitting
from llr_cvx.solvers.fast.samples import Samples, minimisers
from llr_cvx.solvers.fast.splitting import Pair, Rounds, applies, metric, split
from llr_cvx.solvers.fast.starts import start_from

BOTH = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def problem(d: int = 6, seed: int = 0, lambda1: float = 0.1) -> Problem:
    return bench.instance(60, d, seed, lambda1)


def neighbours(d: int = 10, N: int = 310, lambda1: float = 0.15) -> tuple[Problem, list[llr.Solution]]:
    p = bench.instance(N, d, seed=0)
    return p.with_lambdas(lambda1), [llr.solve_irls(p.with_lambdas(l1)) for l1 in (lambda1 / 1.6, lambda1 / 1.25)]


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
    both = minimisers(yX, 2.0, z, s, alpha, guess)
    assert both.l1[0] > 1e7 * both.l1[1] > 0.0
    for i in range(2):
        row = slice(i, i + 1)
        alone = minimisers(yX[row], 2.0, z[row], s[row], alpha[row], np.zeros(1, dtype))
        for together, single in zip(both, alone, strict=True):
            assert together[i] == pytest.approx(single[0], rel=1e-5)
    if dtype is np.float64:
        up, down = (minimisers(yX, 2.0, z, s, alpha + h, both.l1).sigma for h in (1e-7, -1e-7))
        assert both.slope == pytest.approx(1.0 - (up - down) / 2e-7, rel=1e-6)


@BOTH
@pytest.mark.parametrize("dense", [1000, 0])
def test_the_metric_inverts_the_laplacian_of_the_graph(
    dense: int, dtype: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(splitting, "DENSE", dense)
    monkeypatch.setattr(splitting, "INNER", 60)
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
    s = llr.solve_irls(p, 1e-13)
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
    optimum = llr.solve_irls(p, 1e-9).objective
    rounds = Rounds(p, *random_start(p), dtype)
    for _ in range(30):
        rounds.advance()
        W, alpha, U = rounds.offer()
        assert W.dtype == U.dtype == alpha.dtype == np.float64
        assert np.all(np.linalg.norm(U, axis=1) <= p.radii * (1 + 1e-14))
        assert np.all((alpha >= 0) & (alpha <= 1))
        assert llr.certify(p, W, alpha, U).dual <= optimum


@pytest.mark.parametrize("lambda1", [0.01, 0.1, 0.6])
def test_the_rounds_converge_from_anywhere(lambda1: float) -> None:
    p = problem(lambda1=lambda1)
    rounds = Rounds(p, *random_start(p), np.float64)
    for _ in range(1500):
        rounds.advance()
    W, alpha, U = rounds.offer()
    assert llr.certify(p, rounds.rounded()[0], alpha, U).relative_gap < 1e-6
    s = llr.solve_irls(p, 1e-9)
    assert p.scores(W) == pytest.approx(p.scores(s.W), abs=1e-2)


# ---- paths ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("d", "N"), [(10, 310), (5, 310), (8, 800)])
def test_from_two_solutions_nearby_the_rounds_prove_the_third(
    d: int, N: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    target, path = neighbours(d, N)
    start = start_from(target, path)
    assert start.splits
    cold = llr.solve_irls(target)
    with monkeypatch.context() as m:
        m.setattr(multipliers, "solve_system", None)  # not one linear system is needed
        warm = llr.solve_irls(target, W0=path)
    assert warm.status == "optimal"
    assert warm.n_iter * splitting.LOOK <= 40
    assert abs(warm.objective - cold.objective) <= warm.certificate.gap + cold.certificate.gap
    assert warm.trace is not None
    assert np.all(np.diff(warm.trace.objective) <= 0)
    assert np.all(np.diff(warm.trace.dual) >= 0)
    assert np.mean((warm.W != 0) == (llr.solve_irls(target, 1e-9).W != 0)) > 0.99


def test_where_it_does_not_pay_the_multipliers_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    target, path = neighbours()
    monkeypatch.setattr(splitting, "RISE", -1e9)
    monkeypatch.setattr(splitting, "PATIENCE", 8)
    monkeypatch.setattr(splitting, "BUDGET", 0)
    monkeypatch.setattr(phases, "reweight", None)  # nothing begins anew
    steps: list[float] = []
    s = llr.solve_irls(target, W0=path, callback=lambda step: steps.append(step.objective - step.dual))
    assert s.status == "optimal"
    assert 3 < len(steps) < 10  # the start, eight rounds in two steps, and the multipliers
    assert steps == sorted(steps, reverse=True)


def test_gamma_is_set_once_from_the_first_rounds() -> None:
    target, path = neighbours(lambda1=0.45)
    start = start_from(target, path)
    rounds = Rounds(target, start.W, target.radii[:, None] * start.duals.u)
    best = Best(target, start.W)
    best.primal(start.W, target.objective(start.W))
    seen = [rounds.gamma for _ in split(rounds, best, 1e-6)]
    assert seen[1] == seen[0] != seen[2] == seen[-1]


def test_a_path_to_a_gap_beyond_single_precision() -> None:
    for s in llr.regularization_path(problem(lambda1=0.1), np.geomspace(0.05, 0.5, 6), tol=1e-10):
        assert s.status == "optimal"
        assert start_from(s.problem, s).W.dtype == s.W.dtype == np.float64


def test_fused_edges_of_a_path_are_exactly_fused_and_zeros_exactly_zero() -> None:
    p = bench.instance(310, 10, seed=0)
    last = llr.regularization_path(p, [0.5, 0.56, 0.62])[-1]
    reference = llr.solve_irls(last.problem, 1e-10)
    fused = np.linalg.norm(reference.certificate.U, axis=1) < 0.9 * last.problem.radii
    i, j = last.problem.edges[fused].T
    assert fused.sum() > 300
    assert np.mean(last.clusters[i] == last.clusters[j]) > 0.98
    assert np.mean(last.support == reference.support) > 0.9


@pytest.mark.parametrize(
    ("lambda1s", "lambda2", "target"),
    [((3.0, 4.0), 1.0, 5.0), ((0.05, 0.06), 0.0, 0.07), ((1e-9, 1e-8), 1.0, 1e-7)],
    ids=["nearly all edges fused", "no exclusive penalty", "hardly coupled"],
)
def test_elsewhere_a_path_goes_on_without_splitting(
    lambda1s: tuple[float, float], lambda2: float, target: float
) -> None:
    p = bench.instance(100, 5, seed=0)
    path = [llr.solve_irls(p.with_lambdas(l1, lambda2), 1e-8) for l1 in lambda1s]
    here = p.with_lambdas(target, lambda2)
    assert not start_from(here, path).splits
    assert llr.solve_irls(here, W0=path).status == ("optimal" if lambda2 else "uncertified")


def test_it_applies_where_squares_can_be_computed() -> None:
    p = problem()
    assert applies(p)
    assert not applies(Problem(p.X, p.y, np.zeros((0, 2), dtype=int), [], 0.1, 1.0))
    assert not applies(Problem(p.X, p.y, p.edges, 0.0 * p.weights, 0.1, 1.0))
    assert not applies(p.with_lambdas(lambda1=0.0))
    assert not applies(Problem(1e20 * p.X, p.y, p.edges, p.weights, 0.1, 1.0))
    assert not applies(Problem(0.0 * p.X, p.y, p.edges, p.weights, 0.1, 1.0))


@pytest.mark.parametrize("dense", [1000, 0])
def test_samples_without_edges_and_edges_without_weight(dense: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(splitting, "DENSE", dense)
    base = problem()
    apart = ~np.any(base.edges == 7, axis=1)
    weights = np.where(np.any(base.edges == 9, axis=1), 0.0, base.weights)[apart]
    X = base.X.copy()
    X[3] = 0.0
    p = Problem(X, base.y, base.edges[apart], weights, 0.1, 1.0)
    path = llr.regularization_path(p, np.geomspace(0.05, 0.5, 8))
    assert start_from(path[4].problem, path[2:4]).splits
    for s in path:
        assert s.status == "optimal"
        assert s.objective == pytest.approx(llr.solve_irls(s.problem).objective, rel=2e-6)


@pytest.mark.parametrize("weight", [1e-20, 1e-25, 1e-40, 1e-200])
def test_edges_of_far_samples_do_not_fuse_them(weight: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights of samples ten widths away: single precision knows nothing that small."""
    base = bench.instance(150, 5, seed=0)
    far = np.isin(base.edges, [3, 50, 140]).any(axis=1)
    p = Problem(base.X, base.y, base.edges, np.where(far, weight, base.weights), 0.1, 1.0)
    first = [llr.solve_irls(p.with_lambdas(l1)) for l1 in (0.1, 0.12)]
    monkeypatch.setattr(multipliers, "solve_system", None)  # not one linear system is needed
    s = llr.solve_irls(p.with_lambdas(0.144), W0=first)
    assert s.status == "optimal"
    assert np.all(np.diff(np.sort(s.clusters[[3, 50, 140]])) > 0)


def test_numbers_that_overflow_lead_to_a_new_beginning() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    X *= 9e5 / np.abs(X).max()
    y = np.where(np.arange(300) % 2, 1, -1)
    p = Problem(X, y, [[0, 1]], [1.1e-6], 1.1e-6, 1.0)
    assert applies(p)
    for s in llr.regularization_path(p, lambda2=[1e-5, 1e-3, 1e-1, 10.0]):
        assert s.status == "optimal"


def test_limits_hold_while_it_splits_and_give_what_was_found() -> None:
    target, path = neighbours()
    with pytest.warns(ConvergenceWarning, match="iteration_limit"):
        s = llr.solve_irls(target, W0=path, max_iter=2)
    assert s.n_iter == 2
    start = start_from(target, path)
    assert s.certificate.dual > llr.certify(target, start.W, target.alpha(start.W), path[-1].certificate.U).dual
    with pytest.warns(ConvergenceWarning, match="iteration_limit"):
        s = llr.solve_irls(target, W0=path, max_iter=4)  # the start and 12 rounds
    assert s.certificate.relative_gap < 1e-4
    with pytest.warns(ConvergenceWarning, match="time_limit"):
        s = llr.solve_irls(target, W0=path, time_limit=1e-9)
    assert s.n_iter == 1
    assert s.objective <= min(target.objective(before.W) for before in path)


def test_one_solution_is_a_start_too_and_so_is_one_that_is_worse_than_nothing() -> None:
    target, path = neighbours()
    assert llr.solve_irls(target, W0=path[-1]).status == "optimal"
    far = llr.solve_irls(target.with_lambdas(0.01))
    here = target.with_lambdas(0.7)
    assert here.objective(far.W) > here.objective(np.zeros(here.shape))
    assert llr.solve_irls(here, W0=far).status == "optimal"


@pytest.mark.parametrize("relax", [-0.5, np.nan])
def test_where_a_neighbour_is_no_help_everything_begins_anew(relax: float, monkeypatch: pytest.MonkeyPatch) -> None:
    target, path = neighbours()
    monkeypatch.setattr(splitting, "RELAX", relax)  # the wrong way
    s = llr.solve_irls(target, W0=path)
    assert s.status == "optimal"
    assert s.trace is not None
    assert s.trace.is_monotone()
    assert np.all(np.diff(s.trace.dual) >= 0)
    assert s.n_iter > llr.solve_irls(target).n_iter


def test_many_samples_are_split_after_irls_and_few_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    p = bench.instance(800, 5, seed=0)
    exact = llr.solve_irls(p, 1e-9)
    with monkeypatch.context() as m:
        m.setattr(multipliers, "solve_system", None)  # not one linear system is needed after IRLS
        s = llr.solve_irls(p)
        assert s.status == "optimal"
        with pytest.raises(TypeError, match="not callable"):
            llr.solve_irls(bench.instance(300, 5, seed=0))
    assert exact.status == "optimal"
    assert abs(s.objective - exact.objective) <= s.certificate.gap + exact.certificate.gap
    assert s.trace is not None
    assert s.trace.is_monotone()
    assert s.trace.epsilon[0] > 0.0 == s.trace.epsilon[-1]


def test_many_samples_that_splitting_fails_on_are_left_to_the_multipliers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(splitting, "RELAX", np.nan)
    assert llr.solve_irls(bench.instance(800, 5, seed=0)).status == "optimal"


def test_many_samples_with_many_fused_edges_are_left_to_the_multipliers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(phases, "split", None)
    assert llr.solve_irls(bench.instance(800, 5, seed=0, lambda1=2.0)).status == "optimal"


def test_W_is_looked_at_only_where_it_may_decide(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[float] = []

    def look(rounds: Rounds, best: Best) -> None:
        looks.append(best.relative_gap)
        original(rounds, best)

    original = splitting._look
    monkeypatch.setattr(splitting, "_look", look)
    target, path = neighbours()
    s = llr.solve_irls(target, W0=path)
    assert s.status == "optimal"
    assert 1 <= len(looks) <= 2 < s.n_iter


def test_a_start_is_taken_for_an_optimum() -> None:
    """V_i - alpha_i y_i x_i, which is v_i at an optimum, is no larger than 2 lambda2 ||w_i||_1; it saves rounds."""
    target, path = neighbours(d=50, lambda1=0.05)
    start = start_from(target, path)
    rounds = Rounds(target, start.W, target.radii[:, None] * start.duals.u, np.float64)
    V = rounds.z_row + rounds.gamma * rounds.rho * start.W
    v = V - (target.alpha(start.W) * target.y)[:, None] * target.X
    level = 2.0 * target.lambda2 * np.abs(start.W).sum(axis=1, keepdims=True)
    assert np.all(np.abs(v) <= level + 1e-12)
    best = Best(target, start.W)
    best.primal(start.W, target.objective(start.W))
    single = Rounds(target, start.W, target.radii[:, None] * start.duals.u)
    assert len(list(split(single, best, 1e-6))) <= 6
