"""Algorithm 1 as printed: Lemma 1, Lemma 2 and Theorem 1 as inequalities at every step."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sizes import in_long

import llr_cvx as llr
from llr_cvx.problem import Problem
from llr_cvx.solvers import algorithm1 as module
from llr_cvx.solvers.algorithm1 import Record, algorithm1, smoothing_bound, surrogate, weights
from llr_cvx.solvers.smoothing import smoothed_objective


def problem(lambda1: float = 0.1, lambda2: float = 1.0) -> Problem:
    X_inlier, X_test, _ = llr.make_synthetic(4, 1, n_inlier=30, n_test_inlier=15, n_outlier=3)
    return Problem.from_samples(X_inlier, X_test, lambda1, lambda2)


@pytest.mark.parametrize("lambda1", [0.0, 0.1, 2.0])
@pytest.mark.parametrize("cg_iterations", [3, in_long(200)])
def test_lemmas_and_theorem_hold_at_every_step(lambda1: float, cg_iterations: int) -> None:
    p = problem(lambda1)
    record = algorithm1(p, n_steps=25, epsilon=1e-3, cg_iterations=cg_iterations)
    assert record.lemma1()
    assert record.lemma2()
    assert record.theorem1()
    assert record.smoothed_objective[-1] < record.smoothed_objective[0]
    rise = np.diff(record.objective).max()
    assert rise <= smoothing_bound(p, record.W, record.epsilon) + 1e-12 * record.objective[0]


@pytest.mark.long
def test_it_converges_to_the_optimum_up_to_the_smoothing() -> None:
    p = problem()
    record = algorithm1(p, n_steps=150, epsilon=1e-4)
    best = llr.solve_irls(p, tol=1e-9).objective
    assert best <= record.objective[-1] * (1 + 1e-9)
    assert record.objective[-1] - best <= 2e-3 * best


def test_the_surrogate_majorises_and_touches() -> None:
    p = problem()
    rng = np.random.default_rng(0)
    W, epsilon = 0.1 * rng.standard_normal(p.shape), 1e-2
    C_g, C_e = weights(p, W, epsilon)
    offset = smoothed_objective(p, W, epsilon) - surrogate(p, W, C_g, C_e)[0]
    for _ in range(20):
        V = W + rng.standard_normal(p.shape) * 10.0 ** rng.uniform(-3, 0)
        assert smoothed_objective(p, V, epsilon) <= surrogate(p, V, C_g, C_e)[0] + offset + 1e-10


def test_the_gradient_is_the_slope() -> None:
    p = problem()
    rng = np.random.default_rng(1)
    W, direction = 0.1 * rng.standard_normal(p.shape), rng.standard_normal(p.shape)
    C_g, C_e = weights(p, W, 1e-2)
    h = 1e-6
    slope = (surrogate(p, W + h * direction, C_g, C_e)[0] - surrogate(p, W - h * direction, C_g, C_e)[0]) / (2 * h)
    assert slope == pytest.approx(float(np.vdot(surrogate(p, W, C_g, C_e)[1], direction)), rel=1e-6)


@pytest.mark.parametrize("factor", [-1.0, 4.0])
def test_a_broken_step_violates_the_checks(factor: float, monkeypatch: pytest.MonkeyPatch) -> None:
    honest = module.minimise_surrogate

    def broken(p, W, C_g, C_e, n):  # type: ignore[no-untyped-def]
        return W + factor * (honest(p, W, C_g, C_e, n) - W)

    monkeypatch.setattr(module, "minimise_surrogate", broken)
    record = algorithm1(problem(), n_steps=4)
    assert not (record.lemma1() and record.theorem1())


def test_each_check_can_fail() -> None:
    fine = Record(np.zeros((1, 1)), *(np.array(v) for v in ([3.0, 2.0], [3.0, 2.0], [3.0], [2.0])), epsilon=1e-3)
    assert fine.lemma1()
    assert fine.lemma2()
    assert fine.theorem1()
    assert not replace(fine, surrogate_after=np.array([3.1])).lemma1()
    assert not replace(fine, surrogate_after=np.array([1.5])).lemma2()
    assert not replace(fine, smoothed_objective=np.array([2.0, 2.1])).theorem1()


@pytest.mark.parametrize(
    ("options", "name"), [({"n_steps": 0}, "n_steps"), ({"epsilon": 0.0}, "epsilon"), ({"cg_iterations": 0}, "cg")]
)
def test_bad_options_are_named(options: dict[str, float], name: str) -> None:
    with pytest.raises(ValueError, match=name):
        algorithm1(problem(), **options)  # type: ignore[arg-type]
