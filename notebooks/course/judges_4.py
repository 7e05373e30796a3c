"""Judges of notebook 4, proof of optimality."""

from __future__ import annotations

from typing import Any

import numpy as np

import llr_cvx as llr
from course.exercises import close, judge, require
from course.problems import small
from llr_cvx.proofs.certificate import certificate
from llr_cvx.verdicts.weights import gap_parts


@judge("4.1")
def a_floor_of_your_own(alpha: Any, U: Any) -> str:
    """A dual point that proves 84 % of the optimum."""
    problem = small()
    W = llr.solve_fast(problem, tol=1e-9).W
    proof = certificate(problem, W, np.asarray(alpha, dtype=float), np.asarray(U, dtype=float))
    share = proof.dual / proof.primal
    require(
        share >= 0.84,
        f"this point proves J* ≥ {proof.dual:.3f}, {share:.1%} of the optimum; 84 % are asked for",
    )
    return f"the certificate proves J* ≥ {proof.dual:.3f}, {share:.1%} of the optimum"


@judge("4.2")
def three_kinds_of_terms(fit: float, network: float, selection: float) -> str:
    """The parts of the gap of W = 0 beside the best dual point."""
    problem = small()
    W, proof = np.zeros(problem.shape), llr.solve_fast(problem, tol=1e-9).certificate
    gap = problem.objective(W) - proof.dual
    fault = f"the three should add up to the gap {gap:.6f}, these to {fit + network + selection:.6f}"
    close(fit + network + selection, gap, fault)
    parts = {name: terms.sum() for name, terms in gap_parts(problem, W, proof).items()}
    for name, value in (("fit", fit), ("network", network), ("selection", selection)):
        require(
            abs(value - parts[name]) <= 1e-3 * gap,
            f"they add up, but the part called {name} is another one",
        )
    return f"they add up to the gap {gap:.6f}, and none of them is negative"


@judge("4.3")
def the_lowest_row_is_proved(tol: float) -> str:
    """The largest power of ten at which no interval reaches below that of the lowest row."""
    require(f"{tol:e}".startswith("1.000000e-"), f"{tol:g} is not a tolerance of the form 10^-m")
    require(
        _lowest_is_proved(tol),
        f"stopped at {tol:g}, two intervals still overlap at the low end",
    )
    require(
        not _lowest_is_proved(10 * tol),
        f"true, but stopping at {10 * tol:g} proves it already",
    )
    return "there the interval of the lowest score lies below all the others, and not at ten times this tolerance"


def _lowest_is_proved(tol: float) -> bool:
    problem = small()
    low, high = (end[problem.y < 0] for end in llr.solve_fast(problem, tol=tol).certificate.score_bounds)
    return bool(high.min() < np.delete(low, high.argmin()).min())


@judge("4.4")
def too_long_a_dual_point(word: str) -> str:
    """The bound of 1.1 U, which is moved back into its domain."""
    problem, best = small(), llr.solve_fast(small(), tol=1e-9)
    good = best.certificate
    longer = llr.certify(problem, best.W, alpha=good.alpha, U=1.1 * good.U)
    truth = "lower" if longer.dual < good.dual else "higher" if longer.dual > good.dual else "equal"
    require(word in ("lower", "higher", "equal"), 'answer "lower", "higher" or "equal"')
    require(word == truth, f"the bound goes from {good.dual:.6f} to {longer.dual:.6f}")
    return f"from {good.dual:.6f} to {longer.dual:.6f}: a point outside its domain is moved back first, and proves less"
