"""solve_exact: Eq. (5) as CVXPY sees it, compiled once, and every way in which a conic solver can fail."""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from builders import GRID, fused_share, is_dual_feasible, random_problem, slow_dual, slow_objective, solved
from sizes import in_long, thinned

import llr_cvx as llr
from llr_cvx.instances.generators import chain
from llr_cvx.solution import STATUSES, SolverError


@pytest.mark.parametrize("case", [GRID[0], GRID[12], *(in_long((case,)) for case in GRID[4:12:4] + GRID[16::4])])
def test_the_model_is_equation_5(case: tuple[int, int, int, float, float]) -> None:
    """CVXPY's own value of the model at its own optimum equals Eq. (5), summed term by term."""
    p = random_problem(*case)
    model, W = llr.formulate(p)
    model.solve(solver="CLARABEL")
    assert model.value == pytest.approx(slow_objective(p, W.value), rel=1e-7)
    assert model.is_dcp(dpp=True)


def test_the_model_can_be_played_with() -> None:
    p = random_problem(0, N=20, d=3)
    model, W = llr.formulate(p)
    free = llr.solve_exact(p).objective
    constrained = cp.Problem(model.objective, [*model.constraints, W[0, 0] == 1.0])
    constrained.solve(solver="CLARABEL")
    assert W.value[0, 0] == pytest.approx(1.0, abs=1e-6)
    assert constrained.value > free + 1e-3


@pytest.mark.parametrize("case", [GRID[k] for k in (6, 7, 11, 13)])
def test_scs_agrees_with_clarabel(case: tuple[int, int, int, float, float]) -> None:
    a, b = solved(case), llr.solve_exact(random_problem(*case), solver="scs")
    assert b.solver == "SCS"
    assert b.status == "optimal"
    assert abs(a.objective - b.objective) <= a.certificate.gap + b.certificate.gap


def test_the_solution_reads_well() -> None:
    s = solved(GRID[7])
    assert s.objective == s.problem.objective(s.W)
    assert s.solver == "CLARABEL"
    assert s.n_iter > 3
    assert s.seconds > 0
    assert "CLARABEL said optimal; proven relative gap" in s.message
    assert str(s).startswith("CLARABEL: optimal (")
    assert np.array_equal(s.log_ratio, s.problem.log_ratio(s.W))
    assert s.status in STATUSES


def test_other_lambdas_do_not_compile_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The canonical form is made by the first solve, and only filled with numbers by the following ones."""
    compiled = []
    original = cp.reductions.solvers.solving_chain.SolvingChain.apply

    def counted(self: Any, problem: Any, *args: Any, **kwargs: Any) -> Any:
        compiled.append(problem)
        return original(self, problem, *args, **kwargs)

    monkeypatch.setattr(cp.reductions.solvers.solving_chain.SolvingChain, "apply", counted)
    p = random_problem(0, N=20, d=3)
    llr.solve_exact(p)
    assert len(compiled) >= 1
    once = len(compiled)
    for lambda1, lambda2 in ((0.5, 1.0), (0.01, 0.1), (0.0, 2.0), (3.0, 0.0)):
        q = p.with_lambdas(lambda1, lambda2)
        s = llr.solve_exact(q)
        fresh = llr.solve_exact(llr.Problem(q.X, q.y, q.edges, q.weights, lambda1, lambda2))
        assert s.objective == pytest.approx(fresh.objective, rel=1e-7)
        assert len(compiled) > once  # the fresh problem is compiled, so the counter works
        compiled[:] = compiled[:once]
    llr.solve_exact(p.with_lambdas(0.7, 0.2))
    assert len(compiled) == once


def test_lambda1_zero_and_lambda2_zero_alternate_on_one_model() -> None:
    p = random_problem(0, N=20, d=2, lambda1=0.0)
    first = llr.solve_exact(p).objective
    llr.solve_exact(p.with_lambdas(1.0, 0.0))
    assert llr.solve_exact(p).objective == pytest.approx(first, rel=1e-9)


@pytest.mark.parametrize(
    ("N", "d", "K"), [(2, 1, 1), (2, 3, 1), (3, 1, 2), (8, 1, 7)], ids=["N=2,d=1", "N=2", "d=1", "complete"]
)
def test_the_smallest_problems(N: int, d: int, K: int) -> None:
    X = np.random.default_rng(N + d).standard_normal((N, d))
    p = llr.Problem.from_samples(X[:1], X[1:], n_neighbors=K)
    assert llr.solve_exact(p).status == "optimal"


def test_no_edges_at_all() -> None:
    p = llr.Problem([[1.0, 0.5], [2.0, -1.0]], [1, -1], [], [], lambda1=1.0, lambda2=1.0)
    assert llr.solve_exact(p).certificate.relative_gap <= 1e-8


def test_duplicates_with_equal_and_opposite_labels() -> None:
    X = np.random.default_rng(0).standard_normal((8, 2))
    p = llr.Problem.from_samples(np.vstack([X, X]), X, n_neighbors=3)
    s = llr.solve_exact(p)
    assert s.status == "optimal"
    assert s.W[:8] == pytest.approx(s.W[8:16], abs=1e-4)


def test_constant_columns_solve() -> None:
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.standard_normal((20, 2)), np.ones(20)])
    assert llr.solve_exact(llr.Problem.from_samples(X[:12], X[12:])).status == "optimal"


@pytest.mark.parametrize("c", thinned([1e-8, 1e-6, 1e-4, 1e4, 1e6, 1e8], 5))
@pytest.mark.parametrize("as_given", [True, False], ids=["lambdas kept", "lambdas scaled along"])
def test_badly_scaled_features_never_give_a_wrong_optimal(c: float, as_given: bool) -> None:
    p = random_problem(0, N=20, d=3)
    lambdas = (p.lambda1, p.lambda2) if as_given else (c * p.lambda1, c * c * p.lambda2)
    q = llr.Problem(c * p.X, p.y, p.edges, p.weights, *lambdas)
    try:
        s = llr.solve_exact(q)
    except SolverError:
        return
    dual_point = s.certificate.alpha, s.certificate.U
    assert is_dual_feasible(q, *dual_point)
    proved = slow_objective(q, s.W) - slow_dual(q, *dual_point) <= 1.0001e-6 * slow_objective(q, s.W)
    assert s.status == ("optimal" if proved else "inaccurate")
    fast = llr.solve_fast(q)  # the way out that docs/limits.md names
    assert fast.status == "optimal"
    assert is_dual_feasible(q, fast.certificate.alpha, fast.certificate.U)
    assert slow_objective(q, fast.W) - slow_dual(q, fast.certificate.alpha, fast.certificate.U) <= 1e-6 * fast.objective


# ---- solvers that fail ----------------------------------------------------------------------------------


def test_stopping_early_is_inaccurate_with_the_gap_reached() -> None:
    s = llr.solve_exact(random_problem(7), max_iter=3)
    assert s.status == "inaccurate"
    assert s.certificate.relative_gap > 1e-6
    assert "CLARABEL said user_limit" in s.message or "CLARABEL said optimal_inaccurate" in s.message
    assert f"proven relative gap {s.certificate.relative_gap:.2e}, tol 1e-06" in s.message


def test_a_tolerance_that_cannot_be_proved_is_not_claimed() -> None:
    s = llr.solve_exact(random_problem(7), tol=1e-16)
    assert s.status == "inaccurate"


@pytest.mark.parametrize(
    ("tol", "error"), [(0.0, ValueError), (-1.0, ValueError), (np.nan, ValueError), ("x", TypeError)]
)
def test_a_bad_tolerance_is_named(tol: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="tol must be a"):
        llr.solve_exact(random_problem(7), tol=tol)


def test_unknown_solvers_are_named_with_those_installed() -> None:
    with pytest.raises(ValueError, match=r"solver 'FOO' is not installed: choose one of .*CLARABEL"):
        llr.solve_exact(random_problem(7), solver="FOO")
    with pytest.raises(TypeError, match="solver must be the name of a conic solver, got None"):
        llr.solve_exact(random_problem(7), solver=None)


def test_a_solver_for_other_cones_is_a_clear_error() -> None:
    with pytest.raises(SolverError, match="OSQP failed"):
        llr.solve_exact(random_problem(7), solver="OSQP")


def test_an_unknown_option_is_a_clear_error() -> None:
    with pytest.raises(SolverError, match=r"CLARABEL failed: .*no_such_option"):
        llr.solve_exact(random_problem(7), no_such_option=1)


class Panic(BaseException):
    """What a panic in a compiled solver looks like: not an Exception."""


@pytest.mark.parametrize(
    "error", [cp.SolverError("Solver 'CLARABEL' failed."), Panic("index out of bounds"), ValueError("x")]
)
def test_a_solver_that_raises_is_a_solver_error(error: BaseException, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: cp.Problem, **_options: Any) -> None:
        raise error

    p = random_problem(7)
    llr.solve_exact(p)  # an earlier answer must not be mistaken for this one
    monkeypatch.setattr(cp.Problem, "solve", fail)
    with pytest.raises(SolverError, match=f"CLARABEL failed: {type(error).__name__}: "):
        llr.solve_exact(p)


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(), MemoryError()])
def test_what_is_not_the_solvers_fault_passes(error: BaseException, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: cp.Problem, **_options: Any) -> None:
        raise error

    monkeypatch.setattr(cp.Problem, "solve", fail)
    with pytest.raises(type(error)):
        llr.solve_exact(random_problem(7))


def pretend(monkeypatch: pytest.MonkeyPatch, W: np.ndarray | None, then: BaseException | None = None) -> None:
    """A solver that claims to be optimal with this W."""

    honest = cp.Problem.solve

    def claim(self: cp.Problem, **options: Any) -> None:
        if "W" not in self.var_dict:  # the search for a dual point, not the solver that pretends
            honest(self, **options)
            return
        if W is not None:
            self.var_dict["W"].save_value(W)  # as CVXPY stores what a solver returns: without checks
        self._status = "optimal"
        if then is not None:
            raise then

    monkeypatch.setattr(cp.Problem, "solve", claim)


def test_a_solver_that_panics_after_giving_W_is_judged_by_the_certificate(monkeypatch: pytest.MonkeyPatch) -> None:
    good = solved(GRID[7]).W
    pretend(monkeypatch, good, then=Panic("at the very end"))
    s = llr.solve_exact(random_problem(*GRID[7]))
    assert s.status == "optimal"
    assert "CLARABEL said Panic: at the very end" in s.message
    pretend(monkeypatch, good + 0.1, then=Panic("at the very end"))
    assert llr.solve_exact(random_problem(*GRID[7])).status == "inaccurate"


def test_a_solver_that_lies_is_not_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, np.zeros((24, 3)))
    s = llr.solve_exact(random_problem(*GRID[7]))
    assert s.status == "inaccurate"
    assert s.objective == pytest.approx(24 * np.log(2))
    assert "CLARABEL said optimal" in s.message


@pytest.mark.parametrize("W", [None, np.full((24, 3), np.nan)], ids=["none", "nan"])
def test_a_solver_without_a_finite_W_is_a_clear_error(W: np.ndarray | None, monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, W)
    with pytest.raises(SolverError, match=r"CLARABEL returned no finite W \(optimal\); try another solver"):
        llr.solve_exact(random_problem(7))


def test_lambda2_zero_is_uncertified_and_says_why() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 2))
    p = llr.Problem.from_samples(X[:20], X[20:], lambda1=10.0, lambda2=0.0, sigma=10.0)
    s = llr.solve_exact(p)
    assert s.status == "uncertified"
    c = s.certificate
    assert c.dual == 0.0
    assert c.bounded_relative_gap <= 1e-4
    assert "lambda2 = 0" in str(c)


def test_support_and_clusters_read_exact_zeros_and_exact_ties() -> None:
    p = llr.Problem(np.eye(4), [1, 1, -1, -1], [[0, 1], [1, 2], [2, 3]], [1.0, 1.0, 0.0])
    W = np.array([[1.0, 0, 0, 0], [1.0, 0, 0, 0], [0, 0, 2.0, 0], [0, 0, 2.0, 0]])
    s = llr.solve_exact(p)
    s = type(s)(p, W, p.objective(W), s.status, s.message, s.certificate, s.solver, s.seconds)
    assert np.array_equal(s.support, W != 0)
    # rows 2 and 3 are equal, but the edge between them has no weight
    assert s.clusters[0] == s.clusters[1]
    assert len(set(s.clusters.tolist())) == 3


@pytest.mark.long
def test_the_grid_reaches_from_no_fused_edge_to_all() -> None:
    shares = [fused_share(s.problem, s.W) for s in map(solved, GRID)]
    assert min(shares) == 0.0
    assert max(shares) == 1.0
    assert sum(0.1 < share < 0.9 for share in shares) >= 6


def test_without_the_exclusive_penalty_a_poor_solve_is_not_called_proved_among_bounded_W() -> None:
    rng = np.random.default_rng(0)
    p = llr.Problem(rng.standard_normal((12, 2)), np.tile([1.0, -1.0], 6), chain(12), np.ones(11), 1.0, 0.0)
    assert llr.solve_exact(p).status == "uncertified"
    poor = llr.solve_exact(p, tol=1e-12, max_iter=4)
    assert poor.certificate.bounded_relative_gap > 1e-12
    assert poor.status == "inaccurate"
