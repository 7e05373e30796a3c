"""What iterative solvers share: limits, callbacks, starts; and no fault of any phase passes for a proof."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cache, partial

import numpy as np
import pytest
from builders import contradictions, proved, random_problem
from scipy.optimize import brentq
from sizes import in_long
from threadpoolctl import threadpool_info, threadpool_limits

import llr_cvx as llr
from llr_cvx.benchmarks.measure import instance
from llr_cvx.problem import Problem
from llr_cvx.proofs.certificate import Certificate, certificate, lower_bound
from llr_cvx.solution import ConvergenceWarning, Solution
from llr_cvx.solvers import irls, settings
from llr_cvx.solvers.irls import Irls
from llr_cvx.solvers.run import Best, Iterate, Run, Step, capped
from llr_cvx.solvers.smoothing import smoothed, smoothed_objective
from llr_cvx.solvers.starts import cold_start
from llr_cvx.verdicts import dual_search

SOLVERS = [llr.solve_irls, llr.solve_fast]
both = pytest.mark.parametrize("solve", SOLVERS)
Solver = Callable[..., Solution]


def small(d: int = 5, seed: int = 0, lambda1: float = 0.1, lambda2: float = 1.0) -> Problem:
    return random_problem(seed, 64, d, lambda1, lambda2)


# ---- limits ---------------------------------------------------------------------------------------------------


@both
@pytest.mark.parametrize("max_iter", [1, 2, 3, 5])
def test_iteration_limit_is_a_status_and_a_warning_and_gives_the_best_W(solve: Solver, max_iter: int) -> None:
    p, steps = small(), list[Step]()
    with pytest.warns(ConvergenceWarning, match=r"stopped with status 'iteration_limit'.*relative gap .*tol 1e-09"):
        s = solve(p, tol=1e-9, max_iter=max_iter, callback=steps.append)
    assert s.status == "iteration_limit"
    assert max_iter <= s.n_iter <= max_iter + 1  # rounding comes after the last
    assert s.certificate.relative_gap > 1e-9
    assert s.objective == pytest.approx(min(p.objective(step.W) for step in steps), rel=1e-14)
    assert contradictions(s, steps) == []


@both
def test_time_limit_is_a_status_and_a_warning(solve: Solver) -> None:
    with pytest.warns(ConvergenceWarning, match=f"{solve.__name__} stopped with status 'time_limit'"):
        s = solve(small(), tol=1e-12, time_limit=1e-9)
    assert s.status == "time_limit"
    assert s.n_iter <= 2
    assert np.isfinite(s.W).all()


@both
def test_a_warning_points_to_the_caller(solve: Solver) -> None:
    with pytest.warns(ConvergenceWarning) as caught:
        solve(small(), tol=1e-9, max_iter=2)
    assert [w.filename for w in caught] == [__file__]


@both
def test_no_warning_where_the_gap_is_proved_at_the_last_iteration_allowed(solve: Solver) -> None:
    s = solve(small(), tol=1e-6)
    again = solve(small(), tol=1e-6, max_iter=s.n_iter)
    assert (again.status, again.n_iter) == ("optimal", s.n_iter)


# ---- callbacks ------------------------------------------------------------------------------------------------


@both
def test_a_callback_sees_what_the_trace_says(solve: Solver) -> None:
    steps: list[Step] = []
    s = solve(small(), callback=steps.append)
    t = s.trace
    assert t is not None
    assert [step.iteration for step in steps] == list(range(1, s.n_iter + 1))
    for name in ("phase", "objective", "best", "smoothed_objective", "dual", "epsilon", "seconds"):
        column = np.array([getattr(step, name) for step in steps])
        assert np.array_equal(getattr(t, name), column, equal_nan=name != "phase")
    assert contradictions(s, steps) == []
    with pytest.raises(ValueError, match="read-only"):
        steps[0].W[0, 0] = 1.0


@both
def test_iterates_given_to_a_callback_are_not_overwritten_later(solve: Solver) -> None:
    kept: list[tuple[np.ndarray, np.ndarray]] = []
    solve(small(), tol=1e-9, callback=lambda step: kept.append((step.W, step.W.copy())))
    assert all(np.array_equal(given, then) for given, then in kept)


@both
def test_progress_is_one_line_per_iteration_on_standard_error(
    solve: Solver, capsys: pytest.CaptureFixture[str]
) -> None:
    s = solve(small(), progress=True)
    captured = capsys.readouterr()
    assert captured.out == ""
    lines = captured.err.splitlines()
    assert len(lines) == s.n_iter
    assert s.trace is not None
    for k, (line, phase) in enumerate(zip(lines, s.trace.phase, strict=True), 1):
        assert line.split()[:2] == [str(k), phase]
        assert " gap " in line
        assert ("epsilon" in line) == (phase == "irls")
    solve(small())
    assert capsys.readouterr().err == ""


@both
def test_what_a_callback_raises_ends_the_run(solve: Solver) -> None:
    def stop(step: Step) -> None:
        raise KeyError("enough")

    with pytest.raises(KeyError, match="enough"):
        solve(small(), callback=stop)


# ---- starts -----------------------------------------------------------------------------------------------------


@both
def test_warm_starts_reach_the_same_optimum(solve: Solver) -> None:
    p = instance(150, 10, seed=0)
    cold = solve(p, tol=1e-8)
    before, near = solve(p.with_lambdas(0.09), tol=1e-8), solve(p.with_lambdas(0.101), tol=1e-8)
    for start in (near, near.W, near.W.tolist(), [near], [before, near], (before, near)):
        warm, steps = watched(solve, p, 1e-8, W0=start)
        assert warm.status == "optimal"
        assert warm.objective == pytest.approx(cold.objective, rel=2e-8)
        assert warm.trace is not None
        assert warm.trace.is_monotone()
        assert contradictions(warm, steps) == []
    wide = instance(150, 50, seed=0)
    assert solve(wide, tol=1e-8, W0=solve(wide.with_lambdas(0.101), tol=1e-8)).n_iter < solve(wide, tol=1e-8).n_iter


@both
def test_where_all_is_fused_a_larger_lambda1_needs_no_step(solve: Solver) -> None:
    """W stays, and so does U: the proof is the old one."""
    s = solve(small(lambda1=10.0), tol=1e-8)
    assert np.all(s.W == s.W[0])
    again = solve(s.problem.with_lambdas(lambda1=25.0), tol=1e-8, W0=s)
    assert again.status == "optimal"
    assert again.n_iter <= 2  # the start itself, and its rounding
    np.testing.assert_allclose(again.W, s.W, rtol=1e-13)


@both
def test_a_start_worse_than_zero_is_ignored(solve: Solver) -> None:
    p, cold = small(), solve(small())
    for size in (1e3, 1e154, 1e308):
        W0 = np.full(p.shape, size)
        W0[0] *= -1.0
        s = solve(p, W0=W0)
        assert s.status == "optimal"
        assert s.n_iter == cold.n_iter
        assert np.array_equal(s.W, cold.W)
    assert p.objective(W0) == np.inf


@both
def test_a_limit_never_gives_less_than_the_start(solve: Solver) -> None:
    p = small()
    first, last = (solve(p.with_lambdas(l1)) for l1 in (0.01, 0.1))
    target = p.with_lambdas(0.12)
    for W0 in (last.W, last, [first, last]):
        with pytest.warns(ConvergenceWarning):
            s = solve(target, tol=1e-12, W0=W0, max_iter=1)
        assert s.objective <= target.objective(last.W)


@both
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tol": 0.0}, "tol"),
        ({"tol": float("nan")}, "tol"),
        ({"max_iter": 0}, "max_iter"),
        ({"time_limit": -1.0}, "time_limit"),
        ({"W0": np.zeros((2, 2))}, "W0 has shape"),
        ({"W0": np.full((64, 5), np.nan)}, "W0 has a non-finite"),
        ({"W0": []}, r"W0 must be a matrix of shape \(64, 5\), a Solution or a list of them, got \[\]"),
        ({"W0": "abc"}, "a Solution or a list of them, got 'abc'"),
        ({"W0": [np.zeros((64, 5))] * 2}, "W0 must be a matrix"),
    ],
)
def test_bad_options_are_named(solve: Solver, options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        solve(small(), **options)


@both
def test_what_is_no_problem_and_no_solution_is_named(solve: Solver) -> None:
    with pytest.raises(TypeError, match=r"problem must be a Problem, got str: see Problem\.from_samples"):
        solve("p")
    with pytest.raises(ValueError, match="of something else: 'x'; give solutions only"):
        solve(small(), W0=[solve(small()), "x"])


@both
def test_a_solution_of_another_graph_is_refused_as_start(solve: Solver) -> None:
    other = random_problem(0, 64, 5, n_neighbors=3)
    with pytest.raises(ValueError, match="another graph"):
        solve(small(), W0=solve(other))
    with pytest.raises(ValueError, match="another graph"):
        solve(small(), W0=[solve(other), solve(small())])
    assert solve(small(), W0=solve(other).W).status == "optimal"


# ---- the record, by hand -----------------------------------------------------------------------------------------


def test_the_best_points_are_kept_whoever_found_them() -> None:
    p, rng = small(), np.random.default_rng(0)
    best = Best(p, np.zeros(p.shape))
    assert (best.objective, best.dual) == (np.inf, 0.0)
    s = llr.solve_irls(p)
    best.primal(s.W, s.objective)
    best.primal(s.W + 1.0, p.objective(s.W + 1.0))
    best.primal(s.W + 2.0, np.nan)
    assert best.W is s.W
    alpha, U = s.certificate.alpha, s.certificate.U
    assert best.bound(alpha, U) == pytest.approx(s.certificate.dual, rel=1e-12)
    worse = best.bound(rng.random(len(alpha)), 0.1 * U)
    assert worse < best.dual == lower_bound(p, alpha, U, s.W)
    assert best.bound(alpha, np.nan * U) != best.dual
    assert best.U is U
    assert best.relative_gap == pytest.approx(s.certificate.relative_gap, rel=1e-3)
    proof = certificate(p, best.W, best.alpha, best.U)
    assert proof.proves(best.relative_gap)  # it leaves room for the rounding that a proof is charged
    assert not proof.proves(1.0 - best.dual / best.objective)


def test_without_lambda2_a_larger_W_weakens_the_bound_that_is_known() -> None:
    """D_R holds among W with ||w_i||_1 <= R, and R grows with the best W."""
    p, rng = small(lambda2=0.0), np.random.default_rng(0)
    W, large = np.zeros(p.shape), np.ones(p.shape)
    best = Best(p, W, objective=2.0)
    alpha, U = p.alpha(W), 0.1 * p.radii[:, None] * rng.standard_normal((len(p.edges), p.shape[1]))
    best.alpha, best.U, best.dual = alpha, U, lower_bound(p, alpha, U, W)
    best.primal(large, 1.0)
    assert best.dual == lower_bound(p, alpha, U, large) < lower_bound(p, alpha, U, W)


def test_a_run_follows_a_method_until_it_is_done_over_or_enough() -> None:
    class Counting:
        name, done, steps = "counting", False, 0

        def step(self) -> Iterate:
            self.steps += 1
            self.done = self.steps >= 7
            return Iterate(np.zeros(p.shape), p.objective(np.zeros(p.shape)))

    p = small()
    for max_iter, enough, wanted in ((300, 99, 7), (5, 99, 5), (300, 3, 3)):
        run, method = Run(p, p, 1e-6, cold_start(p), max_iter), Counting()
        run.follow(method, lambda m=method, n=enough: m.steps >= n)
        assert method.steps == len(run.rows) == wanted
        assert {row[0] for row in run.rows} == {"counting"}
        with pytest.warns(ConvergenceWarning):
            s = run.solution("NONE", "it only counts")
        assert s.status == ("iteration_limit" if max_iter == 5 else "inaccurate")
        assert ("it only counts" in s.message) == (s.status == "inaccurate")


@pytest.mark.parametrize("lambda1", [1e9, 1e12, 1e60, 1e150])
@both
def test_radii_that_no_dual_point_needs_are_cut_down_and_the_proof_is_for_the_problem_asked(
    solve: Solver, lambda1: float
) -> None:
    p = small(lambda1=lambda1)
    s = solve(p, tol=1e-8)
    assert s.problem is p
    assert s.status == "optimal"
    assert np.all(s.W == s.W[0])
    assert certificate(p, s.W, s.certificate.alpha, s.certificate.U).proves(1e-8)
    assert s.objective == pytest.approx(solve(p.with_lambdas(1e4), tol=1e-8).objective, rel=1e-8)
    assert capped(small(lambda1=10.0)).lambda1 == 10.0
    wide = capped(p)
    assert wide.radii.max() < p.radii.max()
    assert wide.radii.max() == pytest.approx(settings.LARGEST_RADIUS * 5**0.5 * np.linalg.norm(p.X, axis=1).sum())


@pytest.mark.parametrize("max_iter", [5, 10, 20, 300])
@both
def test_with_radii_cut_down_every_J_told_and_the_W_returned_are_those_of_the_problem_asked(
    solve: Solver, max_iter: int
) -> None:
    p, steps = small(lambda1=1e150), list[Step]()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        s = solve(p, tol=1e-9, max_iter=max_iter, callback=steps.append)
    assert [step.objective for step in steps] == pytest.approx([p.objective(step.W) for step in steps], rel=1e-12)
    assert s.objective == pytest.approx(min(p.objective(step.W) for step in steps), rel=1e-12)
    assert s.trace is not None
    assert s.trace.best[-1] == pytest.approx(s.objective, rel=1e-12)
    assert s.objective <= p.objective(np.zeros(p.shape))


def test_a_verdict_names_the_best_W_for_the_problem_asked_where_radii_are_cut_down(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(dual_search, "SEARCH_ITERATIONS", 10)  # too few to fuse all rows exactly
    p = small(lambda1=1e150)
    v = llr.verify(p, np.full(p.shape, 1e-3))
    assert v.reference <= min(v.objective, p.objective(np.zeros(p.shape)))


# ---- faults: nothing wrong passes for a proof --------------------------------------------------------------------

TOL = 1e-10
PHASES = ["irls", "splitting", "rounding"]

Fault = Callable[[Run, Iterate], Iterate]


def disturbed(run: Run, at: Iterate) -> np.ndarray:
    return np.asarray(at.W + 0.1 * np.random.default_rng(0).standard_normal(at.W.shape))


def random_W_under_the_old_values(run: Run, at: Iterate) -> Iterate:
    return at._replace(W=disturbed(run, at))


def ten_times_too_long_under_the_old_values(run: Run, at: Iterate) -> Iterate:
    return at._replace(W=at.W + 9.0 * (at.W - run.start.W))


def J_too_low(run: Run, at: Iterate) -> Iterate:
    return at._replace(objective=0.99 * at.objective)


def J_a_little_too_low(run: Run, at: Iterate) -> Iterate:
    return at._replace(objective=at.objective * (1.0 - 1e-8))


def J_as_low_as_the_bound(run: Run, at: Iterate) -> Iterate:
    return Iterate(disturbed(run, at), run.best.dual, at.smoothed_objective, at.epsilon)


def J_below_the_bound(run: Run, at: Iterate) -> Iterate:
    return Iterate(disturbed(run, at), 0.5 * run.best.dual, at.smoothed_objective, at.epsilon)


def J_negative(run: Run, at: Iterate) -> Iterate:
    return at._replace(objective=-1.0)


def claim(run: Run, alpha: np.ndarray, U: np.ndarray, dual: float) -> None:
    run.best.alpha, run.best.U, run.best.dual = alpha, U, dual


def U_outside_its_balls(run: Run, at: Iterate) -> Iterate:
    alpha, U = run.problem.alpha(at.W), 1.5 * run.best.U
    claim(run, alpha, U, max(lower_bound(run.problem, alpha, U, at.W), run.best.objective))
    return at


def dual_of_another_problem(run: Run, at: Iterate) -> Iterate:
    c = llr.solve_irls(run.problem.with_lambdas(lambda2=30 * run.problem.lambda2), tol=1e-8).certificate
    claim(run, c.alpha, c.U, c.dual)
    return at


@cache
def proof_for_a_larger_lambda1(p: Problem) -> Certificate:
    return llr.solve_irls(p.with_lambdas(lambda1=30 * p.lambda1), tol=1e-8).certificate


def infeasible_dual_that_would_prove_a_wrong_W(run: Run, at: Iterate) -> Iterate:
    """On the way to the dual point of a larger lambda1, where D equals J of a W that is not optimal."""
    p, W = run.problem, 1.01 * run.best.W
    c = proof_for_a_larger_lambda1(p)
    target = p.objective(W) * (1.0 - 0.5 * TOL)

    def point(t: float) -> tuple[np.ndarray, np.ndarray]:
        return (1 - t) * run.best.alpha + t * c.alpha, (1 - t) * run.best.U + t * c.U

    def missing(t: float) -> float:
        return target - lower_bound(p, *point(t), W)

    if not missing(1.0) < 0 < missing(0.0):
        return at
    alpha, U = point(float(brentq(missing, 0.0, 1.0, xtol=1e-15)))
    claim(run, alpha, U, target)
    run.best.W, run.best.objective = W, p.objective(W)
    return at


def stale_dual_under_a_new_value(run: Run, at: Iterate) -> Iterate:
    claim(run, run.best.alpha, 0.9 * run.best.U, run.best.objective)
    return at


def alpha_outside_its_interval(run: Run, at: Iterate) -> Iterate:
    claim(run, run.best.alpha + 1.0, run.best.U, run.best.objective * (1 + 1e-3))
    return at


FAULTS: list[Fault] = [
    random_W_under_the_old_values,
    ten_times_too_long_under_the_old_values,
    J_too_low,
    J_a_little_too_low,
    J_as_low_as_the_bound,
    J_below_the_bound,
    J_negative,
    U_outside_its_balls,
    dual_of_another_problem,
    infeasible_dual_that_would_prove_a_wrong_W,
    stale_dual_under_a_new_value,
    alpha_outside_its_interval,
]


def watched(solve: Solver, p: Problem, tol: float, **options: object) -> tuple[Solution, list[Step]]:
    steps: list[Step] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return solve(p, tol, callback=steps.append, **options), steps


def inject(phase: str, fault: Fault, monkeypatch: pytest.MonkeyPatch, entry: int = -1) -> list[Iterate]:
    """Spoil the entries of a phase, or only one of them, on their way into the record."""
    honest, spoiled = Run.record, list[Iterate]()

    def record(run: Run, name: str, at: Iterate) -> None:
        if name == phase and (entry < 0 or sum(row[0] == phase for row in run.rows) == entry):
            with monkeypatch.context() as m:
                m.setattr(Run, "record", honest)  # a fault may solve another problem
                at = fault(run, at)
            spoiled.append(at)
        honest(run, name, at)

    monkeypatch.setattr(Run, "record", record)
    return spoiled


@cache
def faulty_problem(phase: str) -> tuple[Problem, list[Solver]]:
    """Small problems on which these solvers go through the phase."""
    if phase == "rounding":
        return small(lambda1=0.1), SOLVERS
    p = instance(60, 5, 1, 0.1, 0.1)
    if phase == "irls":
        return p, SOLVERS
    neighbour = llr.solve_fast(p.with_lambdas(lambda1=0.09))
    return p, [partial(llr.solve_fast, W0=neighbour)]


@cache
def proof_of_the_optimum(phase: str) -> Certificate:
    return llr.solve_fast(faulty_problem(phase)[0], 1e-12).certificate


@pytest.mark.parametrize("phase", PHASES)
def test_the_problems_for_faults_go_through_their_phase_and_are_solved_without(phase: str) -> None:
    p, solvers = faulty_problem(phase)
    for solve in solvers:
        s, steps = watched(solve, p, TOL)
        assert phase in {step.phase for step in steps}
        assert s.status == "optimal"
        assert s.trace is not None
        assert s.trace.is_monotone()
        assert contradictions(s, steps) == []
        assert proved(s, TOL)


@pytest.mark.parametrize("every", [in_long(True), False], ids=["every entry", "one entry"])
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
@pytest.mark.parametrize("phase", PHASES)
def test_every_fault_of_every_phase_is_seen_and_proves_nothing(
    phase: str, fault: Fault, every: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    p, solvers = faulty_problem(phase)
    optimum = proof_of_the_optimum(phase)
    for solve in solvers:
        with monkeypatch.context() as m:
            spoiled = inject(phase, fault, m, entry=-1 if every else {"irls": 5}.get(phase, 0))
            s, steps = watched(solve, p, TOL, max_iter=60)
        assert spoiled
        assert s.objective == p.objective(s.W)
        assert s.certificate.dual <= optimum.primal
        if s.status == "optimal":
            assert proved(s, TOL)
            assert s.objective <= optimum.primal * (1 + 2 * TOL)
        assert s.trace is not None
        seen = [not s.trace.is_monotone(), bool(contradictions(s, steps)), s.status != "optimal"]
        assert any(seen)


@cache
def solved_without_lambda2(solve: Solver) -> Solution:
    rng = np.random.default_rng(3)
    X, y = rng.standard_normal((40, 2)), np.where(rng.random(40) < 0.5, 1.0, -1.0)
    return solve(Problem(X, y, [(i, i + 1) for i in range(39)], np.ones(39), lambda1=3.0, lambda2=0.0))


@pytest.mark.parametrize("phase", ["irls", "rounding"])
@pytest.mark.parametrize("fault", [J_as_low_as_the_bound, J_negative, stale_dual_under_a_new_value])
def test_without_lambda2_a_fault_does_not_pass_for_a_bounded_proof(
    phase: str, fault: Fault, monkeypatch: pytest.MonkeyPatch
) -> None:
    for solve in SOLVERS:
        honest = solved_without_lambda2(solve)
        p = honest.problem
        assert honest.status == "uncertified"
        with monkeypatch.context() as m:
            inject(phase, fault, m)
            s, _ = watched(solve, p, 1e-6)
        assert s.status != "optimal"
        assert s.status != "uncertified" or s.objective <= honest.objective * (1 + 2e-6)


@pytest.mark.parametrize("fault", ["random", "wrong sign", "too long"])
@both
def test_a_broken_irls_step_with_true_values_is_not_monotone(
    solve: Solver, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(0)

    def broken(problem, at, dW):  # type: ignore[no-untyped-def]
        factor = {"random": rng.standard_normal(dW.shape), "wrong sign": -1.0, "too long": 10.0}[fault]
        return smoothed(problem, at.W + factor * dW, at.epsilon)

    monkeypatch.setattr(irls, "line_search", broken)
    s, steps = watched(solve, small(), 1e-9, max_iter=8)
    assert s.trace is not None
    assert not s.trace.is_monotone()
    assert contradictions(s, steps) == []  # it does not hide what it did
    assert s.status != "optimal" or proved(s, 1e-9)


@both
def test_a_raised_value_under_the_true_W_is_a_contradiction(solve: Solver, monkeypatch: pytest.MonkeyPatch) -> None:
    inject("irls", lambda _, at: at._replace(smoothed_objective=0.999 * at.smoothed_objective), monkeypatch)
    s, steps = watched(solve, small(), 1e-9)
    assert contradictions(s, steps) == ["smoothed_objective"]


def test_irls_with_an_objective_of_its_own_is_not_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    """J too low inside the method, where it is offered to the best points."""

    def step(self: Irls) -> Iterate:
        at = honest(self)
        self.best.primal(at.W, 0.9 * self.best.dual)
        return at

    honest = Irls.step
    monkeypatch.setattr(Irls, "step", step)
    for solve in SOLVERS:
        s, _ = watched(solve, small(), 1e-6)
        assert s.status == "inaccurate"
        assert not proved(s, 1e-6)


def test_a_true_trace_has_the_smoothed_objective_of_its_own_epsilon() -> None:
    p = small()
    _, steps = watched(llr.solve_irls, p, 1e-9)
    for step in steps[:-1]:
        assert step.smoothed_objective == pytest.approx(smoothed_objective(p, step.W, step.epsilon), rel=1e-13)
        assert smoothed_objective(p, step.W, 2 * step.epsilon) > step.smoothed_objective


@pytest.mark.parametrize("solve", SOLVERS)
def test_blas_has_one_thread_while_a_solver_runs_and_its_own_number_afterwards(solve: Solver) -> None:
    def threads() -> list[int]:
        return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]

    seen: list[list[int]] = []
    with threadpool_limits(2, user_api="blas"):
        before = threads()
        solve(small(), 1e-6, callback=lambda _: seen.append(threads()))
        assert threads() == before
    assert 2 in before
    assert len(seen) > 3
    assert {number for numbers in seen for number in numbers} == {1}
