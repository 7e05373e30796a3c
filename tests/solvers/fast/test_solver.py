"""The production solver: right and proved, whichever of its phases a problem goes through."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from builders import contradictions, proved, random_problem
from sizes import in_long, thinned

import llr_cvx as llr
from llr_cvx.benchmarks.measure import instance
from llr_cvx.instances.varied import varied_problem
from llr_cvx.oracles import solve_decoupled
from llr_cvx.problem import Problem
from llr_cvx.solution import ConvergenceWarning, Solution
from llr_cvx.solvers import settings
from llr_cvx.solvers.fast import solver
from llr_cvx.solvers.fast.solver import slow, splits
from llr_cvx.solvers.irls import Irls
from llr_cvx.solvers.run import Run, Step
from llr_cvx.solvers.starts import Duals, cold_start

PLANE = [(d, l1, l2) for d in (10, 50) for l1 in (0.001, 0.01, 0.1, 1.0, 10.0) for l2 in (0.01, 0.1, 1.0, 10.0)]


def small(d: int = 5, seed: int = 0, lambda1: float = 0.1, lambda2: float = 1.0) -> Problem:
    return random_problem(seed, 64, d, lambda1, lambda2)


def neighbours(N: int = 310, d: int = 10, lambda1: float = 0.15) -> tuple[Problem, list[Solution]]:
    p = instance(N, d, seed=0)
    return p.with_lambdas(lambda1), [llr.solve_fast(p.with_lambdas(l1)) for l1 in (lambda1 / 1.6, lambda1 / 1.25)]


def phases(s: Solution) -> list[str]:
    """The phases of a run, in order, each stretch once."""
    assert s.trace is not None
    names = s.trace.phase.tolist()
    return [name for k, name in enumerate(names) if k == 0 or names[k - 1] != name]


# ---- right and proved -------------------------------------------------------------------------------------


@pytest.mark.parametrize("cell", thinned(range(0, len(PLANE), 3), 4))
@pytest.mark.parametrize("tol", [1e-6, 1e-9])
def test_cells_of_the_plane_are_proved_and_their_trace_is_true(cell: int, tol: float) -> None:
    d, lambda1, lambda2 = PLANE[cell]
    steps: list[Step] = []
    s = llr.solve_fast(instance(150, d, cell % 5, lambda1, lambda2), tol, callback=steps.append)
    assert (s.solver, s.status) == ("FAST", "optimal")
    assert proved(s, tol)
    assert s.trace is not None
    assert s.trace.is_monotone()
    assert contradictions(s, steps) == []
    assert set(s.trace.phase) <= {"irls", "splitting", "rounding"}
    other = s.trace.phase != "irls"
    assert np.isnan(s.trace.smoothed_objective[other]).all()
    assert not s.trace.epsilon[other].any()


@pytest.mark.parametrize("lambda1", thinned([0.0, 0.01, 0.1, 0.5, 2.0, 20.0], 2))
@pytest.mark.parametrize("lambda2", [0.05, 1.0])
def test_objective_equals_that_of_irls_within_both_gaps(lambda1: float, lambda2: float) -> None:
    p = small(lambda1=lambda1, lambda2=lambda2)
    fast, irls = llr.solve_fast(p, tol=1e-8), llr.solve_irls(p, tol=1e-8)
    assert abs(fast.objective - irls.objective) <= max(fast.certificate.gap, irls.certificate.gap) * (1 + 1e-9)
    lower, upper = fast.certificate.score_bounds
    low, high = irls.certificate.score_bounds
    assert np.all(lower <= high)
    assert np.all(low <= upper)


def test_without_coupling_it_is_the_closed_form() -> None:
    p = small(lambda1=0.0, lambda2=0.7)
    s = llr.solve_fast(p, tol=1e-12)
    assert s.objective == pytest.approx(p.objective(solve_decoupled(p)), rel=1e-12)
    np.testing.assert_allclose(s.W, solve_decoupled(p), atol=1e-10)


def test_from_several_threads_graphs_and_lambdas_stay_apart() -> None:
    p = small()
    lambda1s = [0.01, 0.1, 1.0, 10.0]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda l1: llr.solve_fast(p.with_lambdas(l1), 1e-8).objective, lambda1s))
        exact = list(pool.map(lambda l1: llr.solve_exact(p.with_lambdas(l1)).objective, lambda1s))
    alone = [llr.solve_fast(p.with_lambdas(l1), tol=1e-8).objective for l1 in lambda1s]
    assert together == pytest.approx(alone, rel=2e-8)
    assert exact == pytest.approx(alone, rel=1e-7)


def test_a_tolerance_below_rounding_is_not_claimed_and_said_why() -> None:
    with pytest.warns(ConvergenceWarning, match="solve_fast stopped with status 'inaccurate'.*rounding"):
        s = llr.solve_fast(random_problem(0), tol=1e-18)
    assert s.status == "inaccurate"
    assert "tol 1e-18" in s.message
    assert s.certificate.relative_gap < 1e-12


# ---- the strategy -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("tol", [4e-7, 1e-9])
def test_cold_it_is_irls_and_for_many_samples_splitting_goes_on(tol: float, monkeypatch: pytest.MonkeyPatch) -> None:
    p = instance(310, 10, 0)
    few = llr.solve_fast(p, tol)
    assert set(phases(few)) <= {"irls", "rounding"}
    assert few.trace is not None
    assert few.trace.is_monotone()
    monkeypatch.setattr(settings, "DENSE", 300)
    many = llr.solve_fast(p, tol)
    assert phases(many)[:2] == ["irls", "splitting"]
    assert many.trace is not None
    assert many.trace.phase.tolist().index("splitting") <= 3
    assert few.status == many.status == "optimal"
    assert abs(many.objective - few.objective) <= many.certificate.gap + few.certificate.gap


def test_what_single_precision_reaches_is_left_to_splitting() -> None:
    s = llr.solve_fast(instance(310, 10, 0), 1e-6)
    assert phases(s) == ["irls", "splitting"]
    assert s.status == "optimal"


def test_where_all_is_fused_all_rows_are_equal() -> None:
    s = llr.solve_fast(instance(310, 10, 0, lambda1=10.0))
    assert phases(s) == ["irls", "rounding"]
    assert np.all(s.W == s.W[0])


def test_from_neighbours_it_splits_at_once_and_needs_no_newton_system(monkeypatch: pytest.MonkeyPatch) -> None:
    target, path = neighbours()
    monkeypatch.setattr(solver, "Irls", None)
    for W0 in (path, path[-1]):
        warm = llr.solve_fast(target, W0=W0)
        assert warm.status == "optimal"
        assert phases(warm) == ["splitting"]
        assert warm.n_iter <= 8


@pytest.mark.long
def test_with_a_small_lambda2_a_path_goes_on_by_irls_from_the_points_before(monkeypatch: pytest.MonkeyPatch) -> None:
    p, values = instance(150, 50, seed=0), [0.02, 0.025, 0.031, 0.039]
    path = llr.regularization_path(p, lambda2=values)
    assert [phases(s)[:1] for s in path] == [["irls"]] * 4
    assert not any("splitting" in phases(s) for s in path[1:])
    cold = [llr.solve_fast(p.with_lambdas(lambda2=value)) for value in values]
    assert sum(s.n_iter for s in path[2:]) < 0.75 * sum(s.n_iter for s in cold[2:])
    scaled = Problem(10.0 * p.X, p.y, p.edges, p.weights, 10.0 * p.lambda1)  # the same problem in other units
    again = llr.regularization_path(scaled, lambda2=[100.0 * value for value in values])
    assert [phases(s) for s in again] == [phases(s) for s in path]
    for name, value in [
        ("DENSE", 149),
        ("SMALL_LAMBDA2", 0.0),
    ]:  # many samples, a larger lambda2
        with monkeypatch.context() as patch:
            patch.setattr(settings, name, value)
            assert "splitting" in phases(llr.regularization_path(p, lambda2=values[:2])[1])


def test_from_neighbours_to_a_small_gap() -> None:
    target, path = neighbours()
    s = llr.solve_fast(target, tol=1e-9, W0=path)
    assert phases(s)[0] == "splitting"
    assert proved(s, 1e-9)


def test_a_W_alone_is_begun_with_irls() -> None:
    target, path = neighbours()
    s = llr.solve_fast(target, W0=path[-1].W)
    assert phases(s)[0] == "irls"
    assert s.status == "optimal"


@pytest.mark.parametrize(
    ("lambda1s", "lambda2", "target"),
    [((3.0, 4.0), 1.0, 5.0), ((0.05, 0.06), 0.0, 0.07), ((1e-9, 1e-8), 1.0, 1e-7)],
    ids=["nearly all edges fused", "no exclusive penalty", "hardly coupled"],
)
def test_elsewhere_neighbours_are_a_start_for_irls(lambda1s: tuple[float, ...], lambda2: float, target: float) -> None:
    p = instance(100, 5, seed=0)
    path = [llr.solve_fast(p.with_lambdas(l1, lambda2), 1e-8) for l1 in lambda1s]
    s = llr.solve_fast(p.with_lambdas(target, lambda2), W0=path)
    assert "splitting" not in phases(s)
    assert s.status == ("optimal" if lambda2 else "uncertified")


@pytest.mark.long
def test_more_samples_than_are_inverted() -> None:
    for tol in (1e-9, 1e-12):
        s = llr.solve_fast(instance(settings.DENSE + 100, 5, seed=0), tol)
        assert s.status == "optimal"
        assert "splitting" in phases(s)
        assert s.certificate.relative_gap <= tol


def test_many_samples_with_many_fused_edges_are_not_split(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "DENSE", 149)
    monkeypatch.setattr(solver, "Splitting", None)
    assert llr.solve_fast(instance(150, 5, 0, lambda1=10.0)).status == "optimal"


@pytest.mark.parametrize("dense", [700, 50])
def test_without_edges_there_is_nothing_to_split(dense: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "DENSE", dense)
    base = instance(100, 5, 0)
    for p in (
        Problem(base.X, base.y, [], [], 0.1, 1.0),
        Problem(base.X, base.y, base.edges, 0.0 * base.weights, 0.1, 1.0),
        base.with_lambdas(lambda1=0.0),
    ):
        s = llr.solve_fast(p, 1e-9)
        assert s.status == "optimal"
        assert "splitting" not in phases(s)
        assert s.objective == pytest.approx(p.objective(solve_decoupled(p)), rel=1e-9)


@pytest.mark.parametrize("dense", [in_long(700), 50])
def test_without_lambda2_it_is_irls_alone(dense: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "DENSE", dense)
    for tol in (1e-6, 1e-9):
        s = llr.solve_fast(instance(100, 3, 0, lambda1=1.0, lambda2=0.0), tol)
        assert s.status == "uncertified"
        assert s.certificate.bounded_relative_gap <= tol
        assert set(phases(s)) <= {"irls", "rounding"}


def test_splitting_keeps_what_has_hard_systems() -> None:
    """Few samples, but IRLS takes a third of a second where splitting takes a tenth."""
    s = llr.solve_fast(varied_problem(18), tol=1e-9)
    assert proved(s, 1e-9)
    phases = s.trace.phase.tolist()
    assert phases == ["irls"] * phases.index("splitting") + ["splitting"] * phases.count("splitting")


def test_hard_systems_hand_over_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the gap, one system of more than HARD_CG iterations is enough."""
    monkeypatch.setattr(settings, "HARD_CG", 0)
    s = llr.solve_fast(instance(150, 10, 0))
    assert s.status == "optimal"
    assert phases(s)[:2] == ["irls", "splitting"]
    assert s.trace is not None
    assert s.trace.phase.tolist().index("splitting") <= 2


def test_what_slow_means(monkeypatch: pytest.MonkeyPatch) -> None:
    p = small()
    run = Run(p, p, 1e-9, cold_start(p))
    irls = Irls(p, run.start, run.best)
    cases = [
        (100, 1e-9, 0, 1.0, False),
        (100, 1e-9, settings.HARD_CG + 1, 1.0, True),
        (100, 1e-9, settings.HARD_CG, 0.5 * settings.HANDOVER, False),
        (10, 1e-9, 0, 0.5 * settings.HANDOVER, True),
        (10, 1e-9, 0, 2.0 * settings.HANDOVER, False),
        (100, settings.SINGLE_PRECISION_GAP, 0, 0.5 * settings.HANDOVER, True),
        (100, settings.SINGLE_PRECISION_GAP, 0, 2.0 * settings.HANDOVER, False),
    ]
    for dense, run.tol, n_cg, gap, wanted in cases:
        monkeypatch.setattr(settings, "DENSE", dense)
        irls.n_cg, run.best.objective, run.best.dual = n_cg, 1.0, 1.0 - gap
        assert slow(irls, run) is wanted
    irls.n_cg = 0


def test_splitting_is_for_problems_with_few_fused_edges(monkeypatch: pytest.MonkeyPatch) -> None:
    s = llr.solve_fast(instance(150, 5, 0, 0.3), tol=1e-12)
    p, (i, j) = s.problem, s.problem.edges.T
    share = np.all(s.W[i] == s.W[j], axis=1).mean()
    assert 0.1 < share < 0.9
    optimal, apart = (Duals(u, 0.0 * s.W) for u in (s.certificate.U / p.radii[:, None], np.eye(5)[[0] * len(i)]))
    for duals, most, wanted in [(optimal, share + 0.03, True), (optimal, share - 0.03, False), (apart, 0.0, True)]:
        monkeypatch.setattr(settings, "MAX_FUSED", most)
        assert splits(p, duals) == wanted
    monkeypatch.setattr(settings, "MAX_FUSED", 0.0)
    one = Problem(p.X, p.y, p.edges, np.arange(len(i)) == 0, p.lambda1, p.lambda2)  # edges of weight 0 never fuse
    assert splits(one, Duals(np.eye(5)[0] * (np.arange(len(i)) == 0)[:, None], s.W))
    assert not splits(Problem(p.X, p.y, [], [], 1.0, 1.0), Duals(np.zeros((0, 5)), s.W))


# ---- where a phase fails ------------------------------------------------------------------------------------


@pytest.mark.parametrize("relax", [-0.5, np.nan])
@pytest.mark.parametrize("warm", [True, False])
def test_where_splitting_fails_irls_goes_on(relax: float, warm: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    target, path = neighbours(150, lambda1=0.3)
    monkeypatch.setattr(settings, "RELAX", relax)  # the wrong way, or nowhere
    monkeypatch.setattr(settings, "DENSE", 149)
    steps: list[Step] = []
    s = llr.solve_fast(target, 1e-8, W0=path if warm else None, callback=steps.append)
    assert s.status == "optimal"
    assert "splitting" in phases(s)
    assert phases(s)[-1] != "splitting"
    assert "irls" in phases(s)[1:]
    assert s.trace is not None
    assert s.trace.is_monotone()
    assert contradictions(s, steps) == []


def test_where_it_does_not_pay_irls_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    target, path = neighbours(150, lambda1=0.5)
    monkeypatch.setattr(settings, "MAX_ROUNDS_LEFT", (0, 0))
    monkeypatch.setattr(settings, "MAX_BLIND", 4)
    s = llr.solve_fast(target, 1e-8, W0=path)
    assert s.status == "optimal"
    assert phases(s)[0] == "splitting"
    assert "irls" in phases(s)


def test_numbers_that_overflow_lead_to_a_new_beginning() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    X *= 9e5 / np.abs(X).max()
    y = np.where(np.arange(300) % 2, 1, -1)
    p = Problem(X, y, [[0, 1]], [1.1e-6], 1.1e-6, 1.0)
    for s in llr.regularization_path(p, lambda2=[1e-5, 1e-3, 1e-1, 10.0]):
        assert s.status == "optimal"


def test_limits_hold_while_it_splits_and_give_what_was_found() -> None:
    target, path = neighbours(lambda1=0.45)
    gaps = []
    for max_iter in (1, 2, 6):
        with pytest.warns(ConvergenceWarning, match="iteration_limit"):
            s = llr.solve_fast(target, W0=path, max_iter=max_iter)
        assert s.n_iter == max_iter
        assert phases(s) == ["splitting"]
        gaps.append(s.certificate.relative_gap)
    assert gaps == sorted(gaps, reverse=True)
    with pytest.warns(ConvergenceWarning, match="time_limit"):
        s = llr.solve_fast(target, W0=path, time_limit=1e-9)
    assert s.n_iter == 1
    assert s.objective <= min(target.objective(before.W) for before in path)
    assert llr.solve_fast(target, tol=2.0, W0=path).n_iter == 1  # asked for nothing, it still has an iterate


def test_nothing_more_is_tried_after_a_limit() -> None:
    p = instance(150, 10, 0, lambda1=10.0)
    for max_iter in (2, 3):
        with pytest.warns(ConvergenceWarning, match="iteration_limit"):
            s = llr.solve_fast(p, tol=1e-9, max_iter=max_iter)
        assert s.n_iter == max_iter
        assert phases(s) == ["irls"]


def test_a_neighbour_that_is_worse_than_nothing_is_no_harm() -> None:
    target, _ = neighbours()
    far = llr.solve_fast(target.with_lambdas(0.01))
    here = target.with_lambdas(0.7)
    assert here.objective(far.W) > here.objective(np.zeros(here.shape))
    assert llr.solve_fast(here, W0=far).status == "optimal"
