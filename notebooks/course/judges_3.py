"""Judges of notebook 3, IRLS."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from course.exercises import answered, close, judge, require
from course.problems import small
from llr_cvx.solvers.algorithm1 import algorithm1, minimise_surrogate, weights
from llr_cvx.solvers.smoothing import smoothed_objective
from llr_cvx.verdicts.traces import verify_trace


@judge("3.1")
def what_the_parabola_adds(remainder: Callable[[float, float], float]) -> str:
    """a^2 / (2 a0) + a0 / 2 - a = (a - a0)^2 / (2 a0)."""
    a, a0 = np.random.default_rng(0).uniform(0.01, 3.0, (2, 200))
    found = np.array([answered(remainder(x, x0)) for x, x0 in zip(a, a0, strict=True)])
    close(
        found,
        a**2 / (2 * a0) + a0 / 2 - a,
        "this is not the right side minus the left side",
        rtol=1e-9,
    )
    near = a0 * (1 + 1e-9 * np.random.default_rng(1).standard_normal(200))
    lowest = min(remainder(x, x0) for x, x0 in zip(near, a0, strict=True))
    require(
        lowest >= 0,
        f"equal, but who sees that it is not negative? Near a = a(d₀) rounding makes it {lowest:.0e}: find the square",
    )
    return "equal at 200 random points; a square divided by 2a(d₀) > 0 is not negative, and zero only at a = a(d₀)"


@judge("3.2")
def first_weights(value: float) -> str:
    """C_e = d at W = 0."""
    for epsilon in (1e-1, 1e-6):
        C_e = weights(small(), np.zeros(small().shape), epsilon)[1]
        close(value, C_e.mean(), f"not at ε = {epsilon:g}: put b = ε and S = d ε into S/b")
    return "S/b = d ε/ε: ε cancels"


@judge("3.3")
def a_trace_of_your_own(iterates: Sequence[Any]) -> str:
    """Eleven iterates of Algorithm 1 with one conjugate gradient iteration a step."""
    problem, epsilon = small(), 1e-3
    require(
        len(iterates) == 11,
        f"eleven matrices are needed, W(0) to W(10), got {len(iterates)}",
    )
    require(not np.any(iterates[0]), "W(0) is the zero matrix")
    values = [smoothed_objective(problem, np.asarray(W), epsilon) for W in iterates]
    verdict = verify_trace(values)
    require(verdict.monotone, f"verify_trace says of J_ε: {verdict}")
    for t, (W, following) in enumerate(pairwise(np.asarray(iterates, dtype=float))):
        one = minimise_surrogate(problem, W, *weights(problem, W, epsilon), cg_iterations=1)
        close(following, one, f"W({t + 1}) is not what one iteration makes of W({t})", rtol=1e-9)
    return f"verify_trace says: {verdict}"


@judge("3.4")
def a_forged_trace(value: int) -> str:
    """The first value that rises."""
    values = algorithm1(small(), n_steps=12, epsilon=1e-3).smoothed_objective.copy()
    values[[7, 8]] = values[[8, 7]]
    verdict = verify_trace(values)
    require(
        value == verdict.first_violation,
        "no: write down values 6 to 9 after the swap, and look for the first rise",
    )
    return f"verify_trace says: {verdict}"
