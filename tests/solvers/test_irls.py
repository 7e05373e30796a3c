"""The fast solver: right, proved, monotone, and honest when it stops early."""

from __future__ import annotations

import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

import llr_cvx as llr
from llr_cvx.oracles import solve_decoupled
from llr_cvx.problem import Problem
from llr_cvx.proofs.certificate import certificate
from llr_cvx.solution import ConvergenceWarning, Trace
from llr_cvx.solvers import irls
from llr_cvx.solvers.fast import phases

LAMBDA1, LAMBDA2 = (0.001, 0.01, 0.1, 1.0, 10.0), (0.01, 0.1, 1.0, 10.0)


def small(d: int = 5, seed: int = 0, **lambdas: float) -> Problem:
    X_inlier, X_test, _ = llr.make_synthetic(d, seed, n_inlier=40, n_test_inlier=20, n_outlier=4)
    return Problem.from_samples(X_inlier, X_test, **lambdas)


def paper(d: int, seed: int = 0, **lambdas: float) -> Problem:
    X_inlier, X_test, _ = llr.make_synthetic(d, seed)
    return Problem.from_samples(X_inlier, X_test, **lambdas)


@pytest.mark.parametrize("lambda1", LAMBDA1)
@pytest.mark.parametrize("lambda2", LAMBDA2)
@pytest.mark.parametrize("d", [10, 50])
def test_whole_plane_to_rounding_error_in_the_paper_setting(d: int, lambda1: float, lambda2: float) -> None:
    """`llr-cvx bench --part plane` does it for 1e-12."""
    s = llr.solve_irls(paper(d, lambda1=lambda1, lambda2=lambda2), tol=1e-11)
    assert s.status == "optimal"
    assert s.certificate.relative_gap <= 1e-11
    assert s.trace is not None
    assert s.trace.is_monotone()


@pytest.mark.parametrize("lambda1", [0.0, 0.01, 0.1, 0.5, 2.0, 20.0])
@pytest.mark.parametrize("lambda2", [0.05, 1.0])
def test_objective_equals_the_exact_one_within_both_gaps(lambda1: float, lambda2: float) -> None:
    p = small(lambda1=lambda1, lambda2=lambda2)
    fast, exact = llr.solve_irls(p, tol=1e-8), llr.solve_exact(p)
    allowed = abs(fast.certificate.gap) + abs(exact.certificate.gap) + 1e-12 * exact.objective
    assert abs(fast.objective - exact.objective) <= allowed
    lower, upper = fast.certificate.score_bounds
    scores = p.scores(exact.W)
    slack = exact.certificate.score_bounds[1] - exact.certificate.score_bounds[0]
    assert np.all(scores >= lower - slack)
    assert np.all(scores <= upper + slack)


def test_supports_and_clusters_are_exact() -> None:
    s = llr.solve_irls(paper(10, lambda1=1.0, lambda2=0.1), tol=1e-9)
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
    assert 1 < s.clusters.max() + 1 < p.shape[0]
    assert np.array_equal(s.support, s.W != 0.0)


def test_everything_fused_is_one_cluster() -> None:
    s = llr.solve_irls(paper(10, lambda1=10.0, lambda2=0.1), tol=1e-9)
    assert np.all(s.clusters == 0)
    assert np.all(s.W == s.W[0])


def test_without_coupling_it_is_the_closed_form() -> None:
    p = small(lambda1=0.0, lambda2=0.7)
    s = llr.solve_irls(p, tol=1e-10)
    assert s.objective == pytest.approx(p.objective(solve_decoupled(p)), rel=1e-9)
    np.testing.assert_allclose(p.scores(s.W), p.scores(solve_decoupled(p)), atol=1e-9)


# ---- traces, limits, warm starts ------------------------------------------------------------------------------


def test_trace_decreases_while_epsilon_shrinks() -> None:
    s = llr.solve_irls(small(lambda1=0.3), tol=1e-9)
    t = s.trace
    assert t is not None
    assert t.is_monotone()
    assert (
        len(t.objective) == len(t.smoothed_objective) == len(t.dual) == len(t.epsilon) == len(t.seconds) == s.n_iter
    )
    assert np.all(np.diff(t.epsilon) <= 0)
    assert t.epsilon[-1] < t.epsilon[0]
    assert np.all(np.diff(t.dual) >= 0)
    assert np.all(t.objective <= t.smoothed_objective)
    assert np.all(np.diff(t.seconds) >= 0)


@pytest.mark.parametrize("fault", ["wrong sign", "too long"])
def test_a_broken_step_is_seen_by_the_monotonicity_check(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(problem, at, dW):  # type: ignore[no-untyped-def]
        W = at.W + (-1.0 if fault == "wrong sign" else 30.0) * dW
        return phases.smoothed(problem, W, at.epsilon)

    monkeypatch.setattr(phases, "line_search", broken)
    with pytest.warns(ConvergenceWarning):
        s = llr.solve_irls(small(), tol=1e-9, max_iter=6)
    assert s.trace is not None
    assert not s.trace.is_monotone()


def test_a_rise_is_found_however_small_beyond_rounding() -> None:
    def trace(values: list[float]) -> Trace:
        column = np.array(values)
        return Trace(column, column, column, column, column)

    assert trace([3.0, 2.0, 2.0 * (1 + 1e-13), 1.0]).is_monotone()
    assert not trace([3.0, 2.0, 2.0 * (1 + 1e-11), 1.0]).is_monotone()
    assert not trace([3.0, np.nan, 1.0]).is_monotone()


def test_iteration_limit_is_a_status_and_a_warning() -> None:
    p = small()
    with pytest.warns(ConvergenceWarning, match=r"iteration_limit.*relative gap .*tol 1e-09"):
        s = llr.solve_irls(p, tol=1e-9, max_iter=3)
    assert s.status == "iteration_limit"
    assert s.n_iter == 3
    assert s.certificate.relative_gap > 1e-9
    assert s.objective <= min(s.trace.objective)  # type: ignore[union-attr]


def test_time_limit_is_a_status_and_a_warning() -> None:
    with pytest.warns(ConvergenceWarning, match="time_limit"):
        s = llr.solve_irls(small(), tol=1e-12, time_limit=1e-9)
    assert s.status == "time_limit"
    assert np.isfinite(s.W).all()


def test_warm_start_reaches_the_same_optimum_in_fewer_iterations() -> None:
    p = paper(10)
    cold = llr.solve_irls(p, tol=1e-8)
    near = llr.solve_irls(p.with_lambdas(0.101), tol=1e-8)
    for start in (near, near.W):
        warm = llr.solve_irls(p, tol=1e-8, W0=start)
        assert warm.status == "optimal"
        assert warm.objective == pytest.approx(cold.objective, rel=2e-8)
    assert llr.solve_irls(p, tol=1e-8, W0=near).n_iter < cold.n_iter


def test_where_all_is_fused_a_larger_lambda1_needs_no_step() -> None:
    """W stays, and so does U: the proof is the old one."""
    s = llr.solve_irls(small(lambda1=10.0), tol=1e-8)
    assert np.all(s.W == s.W[0])
    again = llr.solve_irls(s.problem.with_lambdas(lambda1=25.0), tol=1e-8, W0=s)
    assert (again.status, again.n_iter) == ("optimal", 1)
    assert np.array_equal(again.W, s.W)


def test_two_points_of_a_path_are_a_better_start_than_one() -> None:
    p = paper(10)
    first, second = (llr.solve_irls(p.with_lambdas(l1), tol=1e-8) for l1 in (0.05, 0.055))
    target = p.with_lambdas(0.0605)

    def first_gap(W0: object) -> float:
        trace = llr.solve_irls(target, W0=W0).trace  # type: ignore[arg-type]
        assert trace is not None
        return float(trace.objective[0] - trace.dual[0])

    assert first_gap([first, second]) < 0.8 * first_gap(second)
    assert first_gap([second]) == first_gap(second)
    # nothing to extrapolate: both changed, or none did
    assert first_gap([llr.solve_irls(p.with_lambdas(0.05, 2.0), tol=1e-8), second]) == first_gap(second)
    assert first_gap([second, second]) == first_gap(second)


def test_callback_and_progress(capsys: pytest.CaptureFixture[str]) -> None:
    steps: list[irls.Step] = []
    s = llr.solve_irls(small(), callback=steps.append, progress=True)
    assert [step.iteration for step in steps] == list(range(1, s.n_iter + 1))
    assert steps[-1].dual <= steps[-1].objective
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("gap") == s.n_iter


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
def test_bad_options_are_named(options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        llr.solve_irls(small(), **options)  # type: ignore[arg-type]


def test_what_is_no_problem_and_no_solution_is_named() -> None:
    with pytest.raises(TypeError, match=r"problem must be a Problem, got str: see Problem\.from_samples"):
        llr.solve_irls("p")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="of something else: 'x'; give solutions only"):
        llr.solve_irls(small(), W0=[llr.solve_irls(small()), "x"])  # type: ignore[list-item]


def test_a_solution_of_another_graph_is_refused_as_start() -> None:
    other = Problem.from_samples(*llr.make_synthetic(5, 0, 40, 20, 4)[:2], n_neighbors=3)
    with pytest.raises(ValueError, match="another graph"):
        llr.solve_irls(small(), W0=llr.solve_irls(other))
    with pytest.raises(ValueError, match="another graph"):
        llr.solve_irls(small(), W0=[llr.solve_irls(other), llr.solve_irls(small())])


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
        "zero weights": Problem(X, y, ring, np.zeros(11), 0.2, 0.5),
        "all zero": Problem(np.zeros((4, 2)), [1, 1, -1, -1], complete(4), one(6), 0.2, 0.5),
    }


@pytest.mark.parametrize("name", list(degenerate()))
def test_degenerate_data(name: str) -> None:
    p = degenerate()[name]
    s = llr.solve_irls(p, tol=1e-8)
    assert s.status == "optimal"
    c = certificate(p, s.W, s.certificate.alpha, s.certificate.U)
    assert -1e-12 * c.primal <= c.gap <= 1e-8 * c.primal
    assert s.trace is not None
    assert s.trace.is_monotone()


def test_opposite_twins_that_fuse_have_no_weights_at_all() -> None:
    s = llr.solve_irls(degenerate()["opposite twins, all fused"], tol=1e-9)
    assert np.all(s.W == 0.0)


def test_scaling_law() -> None:
    problems = degenerate()
    base = llr.solve_irls(problems["features x 1e6"], tol=1e-9)
    tiny = llr.solve_irls(problems["features x 1e-6"], tol=1e-9)
    assert base.objective == pytest.approx(tiny.objective, rel=1e-8)


# ---- lambda2 = 0 ----------------------------------------------------------------------------------------------


def overlapping() -> Problem:
    rng = np.random.default_rng(3)
    X = rng.standard_normal((40, 2))
    y = np.where(rng.random(40) < 0.5, 1.0, -1.0)
    return Problem(X, y, [(i, i + 1) for i in range(39)], np.ones(39), lambda1=3.0, lambda2=0.0)


def test_without_the_exclusive_penalty_overlapping_data_is_solved_and_said_to_be_uncertified() -> None:
    p = overlapping()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        s = llr.solve_irls(p, tol=1e-6)
    assert s.status == "uncertified"
    assert s.certificate.bounded_relative_gap <= 1e-6
    exact = llr.solve_exact(p)
    assert s.objective <= exact.objective * (1 + 1e-6)
    assert "lambda2 = 0" in str(s.certificate)
    assert "among bounded W only" in s.message


def test_without_the_exclusive_penalty_separable_data_is_refused() -> None:
    p = overlapping()
    separable = Problem(p.X, np.sign(p.X[:, 0]), p.edges, p.weights, lambda1=3.0, lambda2=0.0)
    for solve in (llr.solve_irls, llr.solve_exact):
        with pytest.raises(ValueError, match=r"lambda2 = 0 and the 40 connected sample.*separable"):
            solve(separable)


# ---- never a wrong "optimal" ----------------------------------------------------------------------------------


def test_an_underflowing_penalty_does_not_fake_a_proof() -> None:
    X = np.array([[-0.5], [-0.4], [-2.4], [1.8], [1.1]])
    p = Problem(X, [1, 1, 1, -1, -1], [(i, i + 1) for i in range(4)], np.ones(4), 5.0, 3.3e-260)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        s = llr.solve_irls(p)
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
    gap = (s.objective - s.trace.dual[-1]) / s.objective
    assert 0 < gap < s.certificate.relative_gap
    assert llr.solve_irls(p, tol=gap).status == "optimal"


def test_a_start_worse_than_zero_is_ignored() -> None:
    p = small()
    for size in (1e3, 1e154, 1e308):
        W0 = np.full(p.shape, size)
        W0[0] *= -1.0
        s = llr.solve_irls(p, W0=W0)
        assert s.status == "optimal"
    assert p.objective(W0) == np.inf


def test_solve_exact_from_several_threads_keeps_lambdas_apart() -> None:
    p = small()
    lambda1s = [0.01, 0.1, 1.0, 10.0]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda l1: llr.solve_exact(p.with_lambdas(l1)).objective, lambda1s))
    alone = [llr.solve_irls(p.with_lambdas(l1), tol=1e-8).objective for l1 in lambda1s]
    assert together == pytest.approx(alone, rel=1e-7)
