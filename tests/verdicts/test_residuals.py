"""KKT residuals: zero at an exact optimum, of the size of what is wrong elsewhere, and as the formulas say."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

import llr_cvx as llr
from llr_cvx.instances import load_instance
from llr_cvx.oracles import solve_decoupled
from llr_cvx.verdicts.residuals import prox_exclusive, prox_network, residuals


@pytest.mark.parametrize("name", ["planted-fused", "planted-clusters", "fused-some", "decoupled"])
def test_they_vanish_at_an_exact_optimum(name: str) -> None:
    """A planted optimum, known without a solver, and optima to rounding error."""
    found = load_instance(name)
    assert residuals(found.problem, found.W, found.alpha, found.U).largest < 1e-7
    if name.startswith("planted"):
        assert residuals(found.problem, found.W, found.alpha, found.U).largest < 1e-13


def test_they_vanish_at_a_closed_form_optimum() -> None:
    p = load_instance("no-edges").problem.with_lambdas(lambda1=0.0)
    W = solve_decoupled(p)
    assert residuals(p, W, p.alpha(W), np.zeros((len(p.edges), p.shape[1]))).largest < 1e-12


@pytest.mark.parametrize("size", [1e-6, 1e-4, 1e-2])
def test_they_grow_with_a_perturbation_of_w(size: float) -> None:
    found = load_instance("planted-clusters")
    W = found.W + size * np.random.default_rng(0).standard_normal(found.W.shape)
    r = residuals(found.problem, W, found.alpha, found.U)
    for value in r:
        assert 0.01 * size < value < 100 * size
    assert r.largest == max(r.fit, r.network, r.selection)


def test_each_condition_has_its_own() -> None:
    """A wrong alpha is a matter of fit and selection, a wrong U of network and selection."""
    p, W, alpha, U = (getattr(load_instance("planted-clusters"), k) for k in ("problem", "W", "alpha", "U"))
    assert residuals(p, W, 0.9 * alpha, U).network < 1e-13 < residuals(p, W, 0.9 * alpha, U).fit
    assert residuals(p, W, alpha, 0.9 * U).fit < 1e-13 < residuals(p, W, alpha, 0.9 * U).network


def test_the_formulas_by_hand() -> None:
    p = llr.Problem([[2.0], [1.0]], [1, -1], [[0, 1]], [1.0], lambda1=0.5, lambda2=1.0)
    W, alpha, U = np.array([[1.0], [0.0]]), np.array([0.25, 0.5]), np.array([[0.3]])
    sigmoid = 1 / (1 + np.exp([2.0, 0.0]))
    fit = np.linalg.norm(alpha - sigmoid) / (1 + np.linalg.norm(alpha))
    network = abs(1.0 - (1.3 - 0.5)) / (1 + 1.0 + 0.3)  # d = 1, prox(1.3) = 0.8
    V = np.array([-0.25 * 2.0 + 0.3, 0.5 * 1.0 - 0.3])  # -alpha_i y_i x_i +- U
    selection = np.linalg.norm(W[:, 0] - (W[:, 0] - V) / 3) / (1 + 1.0 + np.linalg.norm(V))  # prox of p^2 is a / 3
    assert tuple(residuals(p, W, alpha, U)) == pytest.approx((fit, network, selection), rel=1e-12)


def test_the_proximal_steps_minimise() -> None:
    rng = np.random.default_rng(1)
    for _ in range(10):
        a, t = rng.normal(size=(1, 3)), float(rng.uniform(0.05, 2.0))
        for prox, penalty in (
            (prox_exclusive(a, t), lambda p, t=t: t * np.abs(p).sum() ** 2),
            (prox_network(a, np.array([t])), lambda p, t=t: t * np.linalg.norm(p)),
        ):
            value = lambda p, a=a, penalty=penalty: penalty(p) + ((p - a[0]) ** 2).sum() / 2  # noqa: E731
            brute = min(minimize(value, rng.normal(size=3), method="Nelder-Mead").fun for _ in range(3))
            assert value(prox[0]) <= brute + 1e-12


def test_without_exclusive_penalty_v_itself_counts() -> None:
    a = np.array([[1.0, -2.0]])
    assert prox_exclusive(a, 0.0) is a


def test_a_verdict_has_them() -> None:
    found = load_instance("fused-some")
    good, bad = llr.verify(found.problem, found.W), llr.verify(found.problem, 1.01 * found.W)
    assert good.residuals.largest < 1e-6 < 1e-4 < bad.residuals.largest
    dual = bad.certificate
    assert bad.residuals == residuals(found.problem, 1.01 * found.W, dual.alpha, dual.U)
