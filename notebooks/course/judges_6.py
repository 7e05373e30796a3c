"""Judges of notebook 6, bring your own solver."""

from __future__ import annotations

from typing import Any

import numpy as np

import llr_cvx as llr
from course.exercises import accepted, close, judge, require
from llr_cvx import checker
from llr_cvx.instances import load_instance
from llr_cvx.proofs.files import certificate_arrays, problem_arrays


@judge("6.1")
def optimal_by_hand(p: Any, s: Any) -> str:
    """p - a + 2 t ||p||_1 s = 0 with s a subgradient of ||.||_1 at p."""
    a, t = np.array([3.0, 2.0, -0.5]), 0.25
    p, s = np.asarray(p, dtype=float), np.asarray(s, dtype=float)
    require(p.shape == s.shape == (3,), "p and s have three entries each")
    require(
        np.all(np.abs(s) <= 1 + 1e-9),
        "some |s_k| exceeds 1: s is no subgradient of the ℓ1 norm",
    )
    require(
        np.allclose(s[p != 0], np.sign(p[p != 0])),
        "where p_k is not zero, s_k is its sign",
    )
    rest = p - a + 2 * t * np.abs(p).sum() * s
    require(
        np.abs(rest).max() < 1e-9,
        f"p − a + 2t‖p‖₁ s = {rest.round(4).tolist()}, not zero",
    )
    return "all conditions hold, and the function is convex: p is its minimiser"


@judge("6.2")
def another_problem(lambda2: float) -> str:
    """The forgotten factor 2 is a lambda2 half as large."""
    p = load_instance("fused-some").problem
    a = np.random.default_rng(0).standard_normal((50, 6))
    buggy = _threshold(a, p.lambda2, factor=1.0)
    fault = f"at λ2 = {lambda2:g} the right step has other thresholds than the wrong one at {p.lambda2:g}"
    close(_threshold(a, lambda2), buggy, fault, rtol=1e-9)
    verdict = llr.verify(p, llr.solve_fast(p.with_lambdas(lambda2=lambda2), tol=1e-9).W)
    return f"it solves another problem perfectly; of its W, verify says: {str(verdict).splitlines()[0]}"


def _threshold(a: Any, t: float, factor: float = 2.0) -> Any:
    largest = -np.sort(-np.abs(a), axis=1)
    return (np.cumsum(largest, axis=1) / (np.arange(1, a.shape[1] + 1) + 1 / (factor * t))).max(axis=1)


@judge("6.3")
def a_raised_claim(claim_confirmed: bool, interval_changes: bool) -> str:
    """What the checker says about a certificate whose bound was raised."""
    p = load_instance("fused-some").problem
    W = llr.solve_fast(p, tol=1e-9).W
    honest = certificate_arrays(llr.certify(p, W), W)
    raised = {**honest, "dual": honest["dual"] + 1e-3}
    before, after = (checker.check(problem_arrays(p), claim) for claim in (honest, raised))
    require(
        claim_confirmed == after["confirmed"],
        f"the checker says: {' '.join(after['reasons']) or 'confirmed'}",
    )
    changes = (before["dual_low"], before["primal_high"]) != (
        after["dual_low"],
        after["primal_high"],
    )
    require(
        interval_changes == changes,
        "the interval is computed from W, α and U alone; which of them did you change?",
    )
    return f"the checker says: {' '.join(after['reasons'])}"


@judge("6.4")
def a_solver_of_your_own(W: Any) -> str:
    """A W to 1e-9."""
    return accepted(load_instance("fused-some").problem, W, tol=1e-9)
