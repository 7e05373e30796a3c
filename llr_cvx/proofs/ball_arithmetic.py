"""[D, P] as a proof: both values in ball arithmetic, every rounding error counted (extra ``rigorous``).

The stored numbers are doubles, hence exact binary fractions. First the dual point is made feasible in exact
rational arithmetic: alpha_i in [0, 1] and ||U_e||^2 <= (lambda1 omega_e)^2 with the exact product on the right.
Then J(W) and D(alpha, U) are evaluated with balls [midpoint +- radius] that are guaranteed to contain the true
values, and rounded outwards to doubles.

For lambda2 = 0 the bound D needs v_i = 0 exactly and the proven interval is [0, P].
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from llr_cvx import validation as check
from llr_cvx.arrays import FloatArray
from llr_cvx.extras import pip_install
from llr_cvx.problem import Problem
from llr_cvx.proofs.certificate import feasible

#: Working precision in bits; doubles have 53.
PRECISION = 160


@dataclass(frozen=True, eq=False)
class Enclosure:
    """Proven doubles around the optimum J*, the objective J(W) and the dual value D(alpha, U).

    Attributes
    ----------
    dual_low, dual_high : float
        dual_low <= D(alpha, U) <= dual_high, so that J* >= dual_low.
    primal_low, primal_high : float
        primal_low <= J(W) <= primal_high, so that J* <= primal_high.
    alpha, U : arrays
        The dual point after it was made feasible exactly.
    """

    dual_low: float
    dual_high: float
    primal_low: float
    primal_high: float
    alpha: FloatArray
    U: FloatArray

    @property
    def gap(self) -> float:
        """A proven upper bound of J(W) - J*."""
        return float(np.nextafter(self.primal_high - self.dual_low, np.inf))

    @property
    def relative_gap(self) -> float:
        """gap / primal_low rounded up: a proven upper bound of (J(W) - J*) / J(W)."""
        return float(np.nextafter(self.gap / self.primal_low, np.inf)) if self.primal_low > 0 else float("inf")

    def __str__(self) -> str:
        return (
            f"proved in ball arithmetic: {self.dual_low!r} <= J* <= {self.primal_high!r}\n"
            f"gap at most {self.gap:.3e} (relative {self.relative_gap:.2e})"
        )


def enclose(problem: Problem, W: ArrayLike, alpha: ArrayLike, U: ArrayLike) -> Enclosure:
    """Prove an interval [dual_low, primal_high] of the optimum J*.

    Parameters
    ----------
    problem : Problem
    W : array-like of shape (N, d)
        Any point; the closer to the optimum, the smaller primal_high.
    alpha, U : array-like of shapes (N,) and (E, d)
        Any dual point, for example of ``certify(problem, W)``; moved into its domain first.

    Examples
    --------
    >>> from llr_cvx import certify
    >>> p = Problem([[1.0], [-1.0]], [1, -1], [[0, 1]], [1.0], lambda1=0.5, lambda2=1.0)
    >>> W = [[0.2], [0.2]]
    >>> c = certify(p, W)
    >>> proof = enclose(p, W, c.alpha, c.U)
    >>> c.dual <= proof.dual_low <= proof.primal_high
    True
    """
    flint = require_flint()
    W = check.weight_matrix(W, problem.shape)
    a, u = exactly_feasible(problem, alpha, U)
    with _precision(flint):
        J, D = _primal(problem, W, flint), _dual(problem, a, u, flint)
        dual_low, dual_high = _outwards(D, flint)
        primal_low, primal_high = _outwards(J, flint)
    return Enclosure(max(dual_low, 0.0), dual_high, primal_low, primal_high, a, u)


def exactly_feasible(problem: Problem, alpha: ArrayLike, U: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """A dual point near (alpha, U) that satisfies its constraints in exact rational arithmetic.

    A U_e inside its ball, by the exact test ||U_e||^2 <= (lambda1 omega_e)^2, is kept. Any other is projected in
    floating point, and were it still outside, shrunk by a growing number of units in the last place.
    """
    a, u = feasible(problem, alpha, U)
    lambda1 = Fraction(problem.lambda1)
    for e, (omega, given) in enumerate(zip(problem.weights.tolist(), np.asarray(U, dtype=float), strict=True)):
        limit = (lambda1 * Fraction(omega)) ** 2
        if _square(given) <= limit:
            u[e] = given
        shrink = 4.0 * np.finfo(float).eps
        while not _square(u[e]) <= limit:
            u[e] = u[e] * (1.0 - shrink) if shrink < 1.0 else 0.0
            shrink *= 4.0
    return a, u


def _square(row: FloatArray) -> Fraction:
    """||row||^2 exactly."""
    return sum((Fraction(x) ** 2 for x in row.tolist()), Fraction(0))


def require_flint() -> Any:
    """The module flint, or an error that says what to install."""
    try:
        import flint
    except ImportError:
        raise ImportError("rigorous enclosures need python-flint: " + pip_install("rigorous")) from None
    return flint


@contextmanager
def _precision(flint: Any) -> Iterator[None]:
    """Work with `PRECISION` bits; the caller's own setting comes back."""
    before = flint.ctx.prec
    flint.ctx.prec = PRECISION
    try:
        yield
    finally:
        flint.ctx.prec = before


def _balls(array: FloatArray, flint: Any) -> list[Any]:
    """Doubles as exact balls."""
    return [flint.arb(x) for x in array.tolist()]


def _primal(problem: Problem, W: FloatArray, flint: Any) -> Any:
    """A ball that contains J(W), Eq. (5)."""
    arb = flint.arb
    X, rows = ([_balls(row, flint) for row in matrix] for matrix in (problem.X, W))
    J = arb(0)
    for x, w, y in zip(X, rows, problem.y.tolist(), strict=True):
        margin = int(y) * sum((p * q for p, q in zip(x, w, strict=True)), arb(0))
        J += _softplus(-margin)
        J += arb(problem.lambda2) * sum((abs(q) for q in w), arb(0)) ** 2
    for (i, j), omega in zip(problem.edges.tolist(), problem.weights.tolist(), strict=True):
        squares = sum(((p - q) ** 2 for p, q in zip(rows[i], rows[j], strict=True)), arb(0))
        J += arb(problem.lambda1) * arb(omega) * squares.nonnegative_part().sqrt()
    return J


def _softplus(t: Any) -> Any:
    """log(1 + exp(t)), without the overflow of exp for large t."""
    return t + (-t).exp().log1p() if t.mid() > 0 else t.exp().log1p()


def _dual(problem: Problem, alpha: FloatArray, U: FloatArray, flint: Any) -> Any:
    """A ball that contains D(alpha, U) for an exactly feasible point, or 0 for lambda2 = 0."""
    arb = flint.arb
    if problem.lambda2 == 0:
        return arb(0)
    slopes = _balls(-alpha * problem.y, flint)  # exact: y_i is +1 or -1
    v = [[slope * x for x in _balls(row, flint)] for slope, row in zip(slopes, problem.X, strict=True)]
    for (i, j), row in zip(problem.edges.tolist(), U, strict=True):
        for k, u in enumerate(_balls(row, flint)):
            v[i][k] += u
            v[j][k] -= u
    entropy, squares = arb(0), arb(0)
    for a, row in zip(alpha.tolist(), v, strict=True):
        if 0.0 < a < 1.0:
            entropy -= arb(a) * arb(a).log() + (1 - arb(a)) * (-arb(a)).log1p()
        largest = arb(0)
        for x in row:
            largest = largest.max(abs(x))
        squares += largest**2
    return entropy - squares / (4 * arb(problem.lambda2))


def _outwards(ball: Any, flint: Any) -> tuple[float, float]:
    """Doubles (low, high) with low <= every point of the ball <= high."""
    if not ball.is_finite():
        return -np.inf, np.inf
    low, high = float(ball.lower()), float(ball.upper())
    while not flint.arb(low) <= ball:
        low = float(np.nextafter(low, -np.inf))
    while not flint.arb(high) >= ball:
        high = float(np.nextafter(high, np.inf))
    return low, high
