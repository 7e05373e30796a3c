"""Paths of penalties: every point certified, in order, equal to a cold solve."""

from __future__ import annotations

import numpy as np
import pytest
from builders import proved
from sizes import in_long

import llr_cvx as llr
from llr_cvx.benchmarks.measure import instance
from llr_cvx.problem import Problem
from llr_cvx.solution import ConvergenceWarning


def problem() -> Problem:
    X_inlier, X_test, _ = llr.make_synthetic(5, 0, n_inlier=40, n_test_inlier=20, n_outlier=4)
    return Problem.from_samples(X_inlier, X_test)


@pytest.mark.parametrize("lambda1s", [np.geomspace(0.01, 10, 7), in_long(np.geomspace(10, 0.01, 7))])
def test_each_point_of_a_lambda1_path_is_certified_and_equals_a_cold_solve(lambda1s: np.ndarray) -> None:
    p = problem()
    path = llr.regularization_path(p, lambda1s, 0.5, tol=1e-7)
    assert [s.problem.lambda1 for s in path] == pytest.approx(list(lambda1s))
    assert {s.problem.lambda2 for s in path} == {0.5}
    for s in path:
        assert (s.solver, s.status) == ("FAST", "optimal")
        assert proved(s, 1e-7)
        cold = llr.solve_irls(s.problem, tol=1e-7)
        assert s.objective == pytest.approx(cold.objective, rel=2e-7)
    clusters = [int(s.clusters.max()) + 1 for s in sorted(path, key=lambda s: s.problem.lambda1)]
    assert clusters[0] > clusters[-1] == 1


def test_a_lambda2_path() -> None:
    path = llr.regularization_path(problem(), lambda2=[0.1, 1.0, 5.0])
    assert [s.problem.lambda2 for s in path] == [0.1, 1.0, 5.0]
    assert {s.problem.lambda1 for s in path} == {0.1}
    assert all(s.status == "optimal" for s in path)
    sizes = [np.abs(s.W).sum() for s in path]
    assert sizes == sorted(sizes, reverse=True)


def test_points_share_their_graph_and_start_from_those_before() -> None:
    p = instance(150, 10, 0)
    path = llr.regularization_path(p, np.geomspace(0.05, 0.3, 6))
    assert all(s.problem.graph is p.graph for s in path)
    first = [s.trace.phase[0] for s in path if s.trace is not None]
    assert first == ["irls"] + ["splitting"] * 5
    cold = [llr.solve_fast(s.problem) for s in path]
    assert sum(s.n_iter for s in path[1:]) < 0.7 * sum(s.n_iter for s in cold[1:])


@pytest.mark.parametrize("tol", [in_long(1e-9), 1e-12])
def test_a_path_to_a_gap_beyond_single_precision(tol: float) -> None:
    for s in llr.regularization_path(problem(), np.geomspace(0.05, 0.5, 6), tol=tol):
        assert s.status == "optimal"
        assert proved(s, tol)
        assert s.W.dtype == np.float64


def test_zeros_and_fused_rows_of_a_path_are_those_of_the_optimum() -> None:
    p = instance(310, 10, seed=0)
    last = llr.regularization_path(p, [0.6, 0.67, 0.74])[-1]
    reference = llr.solve_fast(last.problem, 1e-10)
    i, j = last.problem.edges.T
    fused = reference.clusters[i] == reference.clusters[j]
    assert fused.sum() > 300
    assert np.mean((last.clusters[i] == last.clusters[j]) == fused) > 0.95
    assert np.mean(last.support == reference.support) > 0.9


def test_a_path_in_both_penalties_is_refused() -> None:
    with pytest.raises(ValueError, match="lambda1s has 2 values and lambda2 has 3"):
        llr.regularization_path(problem(), [0.1, 0.2], [1.0, 2.0, 3.0])


@pytest.mark.parametrize(
    ("values", "message"),
    [([], "lambda1s is empty"), ([0.1, -1.0], "every value of lambda1s must be"), (["a"], "lambda1s must be")],
)
def test_bad_values_are_named(values: list[object], message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        llr.regularization_path(problem(), values)  # type: ignore[arg-type]


def test_a_path_needs_a_problem() -> None:
    with pytest.raises(TypeError, match="problem must be a Problem, got ndarray"):
        llr.regularization_path(np.eye(3), [0.1])  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["lambda1", "lambda2s", "W0"])
def test_arguments_that_do_not_exist_are_named_with_those_that_do(name: str) -> None:
    with pytest.raises(TypeError, match=f"no argument '{name}': the penalties are lambda1s and lambda2, and callback"):
        llr.regularization_path(problem(), [0.1], **{name: None})  # type: ignore[arg-type]


@pytest.mark.parametrize("which", ["lambda1s", "lambda2"])
@pytest.mark.parametrize(
    "values",
    [
        [100.0, np.nextafter(100.0, 200.0), np.nextafter(100.0, 200.0)],
        [1e6, np.nextafter(1e6, 2e6), 2e6],
        [1, 1, 2],
    ],
)
def test_points_that_nearly_coincide(which: str, values: list[float]) -> None:
    """Adjacent numbers can have equal logarithms: nothing is extrapolated then."""
    p = Problem(np.eye(4), [1, -1, 1, -1], [[0, 1], [1, 2], [2, 3]], [1.0, 1, 1], 0.1, 1.0)
    assert [s.status for s in llr.regularization_path(p, **{which: values})] == ["optimal"] * 3  # type: ignore[arg-type]


@pytest.mark.parametrize("lambda1s", [[1e-200, 1e120], [1e-300, 1e10], [1e10, 1e-300]])
def test_points_that_are_worlds_apart(lambda1s: list[float]) -> None:
    assert [s.status for s in llr.regularization_path(problem(), lambda1s)] == ["optimal"] * 2


def test_progress_names_every_point(capsys: pytest.CaptureFixture[str]) -> None:
    llr.regularization_path(problem(), [0.1, 0.2], progress=True)
    told = capsys.readouterr().err
    assert "point 1 of 2: lambda1 = 0.1, lambda2 = 1\n" in told
    assert "point 2 of 2: lambda1 = 0.2, lambda2 = 1\n" in told


def test_a_warning_names_the_point() -> None:
    with pytest.warns(ConvergenceWarning, match="at lambda1 = 0.2, lambda2 = 1: relative gap"):
        llr.regularization_path(problem(), [0.2], max_iter=1)
