"""Paths of penalties: every point certified, in order, equal to a cold solve."""

from __future__ import annotations

import numpy as np
import pytest

import llr_cvx as llr
from llr_cvx.problem import Problem


def problem() -> Problem:
    X_inlier, X_test, _ = llr.make_synthetic(5, 0, n_inlier=40, n_test_inlier=20, n_outlier=4)
    return Problem.from_samples(X_inlier, X_test)


@pytest.mark.parametrize("lambda1s", [np.geomspace(0.01, 10, 7), np.geomspace(10, 0.01, 7)])
def test_each_point_of_a_lambda1_path_is_certified_and_equals_a_cold_solve(lambda1s: np.ndarray) -> None:
    p = problem()
    path = llr.regularization_path(p, lambda1s, 0.5, tol=1e-7)
    assert [s.problem.lambda1 for s in path] == pytest.approx(list(lambda1s))
    assert {s.problem.lambda2 for s in path} == {0.5}
    for s in path:
        assert s.status == "optimal"
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


def test_a_path_in_both_penalties_is_refused() -> None:
    with pytest.raises(ValueError, match="lambda1s has 2 values and lambda2 has 3"):
        llr.regularization_path(problem(), [0.1, 0.2], [1.0, 2.0, 3.0])


@pytest.mark.parametrize(
    ("values", "message"),
    [([], "lambda1s is empty"), ([0.1, -1.0], "lambda1s must be"), (["a"], "lambda1s must be")],
)
def test_bad_values_are_named(values: list[object], message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        llr.regularization_path(problem(), values)  # type: ignore[arg-type]
