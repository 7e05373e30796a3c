"""The dual of Eq. (5), and what a feasible dual point proves.

For alpha in [0, 1]^N and one U_e per edge with ||U_e||_2 <= lambda1 omega_e let

    v_i = -alpha_i y_i x_i + sum_{e=(i,j)} U_e - sum_{e=(j,i)} U_e,     H(a) = -a log a - (1-a) log(1-a).

Then, for lambda2 > 0 and every W,

    D(alpha, U) = sum_i H(alpha_i) - 1/(4 lambda2) sum_i ||v_i||_inf^2  <=  J(W).

J(W) - D is a sum of Fenchel-Young terms, none of them negative. Each single term is therefore at most the
gap, and that is where the proven bounds on scores come from: with G = J(W) - D, every optimal W* has

    log(1 + exp(-y_i z)) + alpha_i y_i z - H(alpha_i) <= G     for its score z = w_i*.x_i.

For lambda2 = 0 the bound needs v_i = 0, which rounding never gives exactly. What remains true is

    D_R(alpha, U) = sum_i H(alpha_i) - R sum_i ||v_i||_inf  <=  J(W)    for all W with ||w_i||_1 <= R,

a proof of optimality among bounded W only; the unconditional bound is then D = 0 (alpha = 0, U = 0).

A certificate counts every rounding error; `dual_objective` and `lower_bound`, which solvers call often, do not.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, xlog1py, xlogy

from llr_cvx import validation as check
from llr_cvx.arrays import FloatArray, read_only, row_dot, row_norms
from llr_cvx.problem import Problem

EPS = float(np.finfo(float).eps)

#: Allowance for rounding where two values of J are compared and where a score interval is computed.
ROUNDING = 64 * EPS

#: A relative gap that is negative by at most this much is shown as 0.
NOISE = 1e-12

#: Smallest positive double: no product or quotient that underflows is wrong by more.
UNDERFLOW = float(np.finfo(float).smallest_subnormal)

#: An edge whose radius lambda1 omega_e may have lost digits to underflow keeps U_e = 0.
LEAST_RADIUS = 1e-290


@dataclass(frozen=True, eq=False)
class Certificate:
    """A feasible dual point beside a W: what it proves can be rechecked by anyone.

    Attributes
    ----------
    primal, dual : float
        J(W) as computed, and a proven lower bound of D(alpha, U), hence of the optimum J*: rounding is subtracted.
    rounding : float
        Proven bound on the rounding error of `primal`: J(W) - J* <= gap + rounding.
    gap, relative_gap : float
        primal - dual with its sign, and gap / primal.
    alpha, U : arrays of shape (N,) and (E, d)
        The dual point, read-only: the numbers above belong to it.
    score_bounds : (lower, upper)
        Proven interval of every score w_i*.x_i at the optimum.
    bounded_dual, radius : float
        For lambda2 = 0 only: the lower bound D_R on all W with ||w_i||_1 <= R, and that R.
    """

    primal: float
    dual: float
    alpha: FloatArray
    U: FloatArray
    y: FloatArray = field(repr=False)
    bounded_dual: float | None = None
    radius: float | None = None
    rounding: float = 0.0

    def __post_init__(self) -> None:
        for name in ("alpha", "U", "y"):
            object.__setattr__(self, name, read_only(getattr(self, name)))

    @property
    def gap(self) -> float:
        """primal - dual, with its sign."""
        return self.primal - self.dual

    @property
    def relative_gap(self) -> float:
        """The gap as a share of J(W)."""
        return _relative(self.gap, self.primal)

    @property
    def bounded_relative_gap(self) -> float:
        """For lambda2 = 0: the relative gap over all W with ||w_i||_1 <= radius."""
        if self.bounded_dual is None:
            return self.relative_gap
        return _relative(self.primal - self.bounded_dual, self.primal)

    @cached_property
    def score_bounds(self) -> tuple[FloatArray, FloatArray]:
        """Lower and upper bounds that the score w_i*.x_i of every optimal W* is proved to keep."""
        excess = max(self.gap, 0.0) + self.rounding + ROUNDING * self.primal
        low, high = score_interval(self.alpha, self.y, excess)
        return read_only(low), read_only(high)

    def proves(self, tol: float) -> bool:
        """The one predicate behind "optimal": J(W) - J* <= tol J(W) is proved, rounding included."""
        return bool(-self.rounding <= self.gap <= tol * (self.primal - self.rounding) - self.rounding)

    def _shown_gap(self) -> str:
        return "0" if -NOISE <= self.relative_gap < 0 else f"{self.gap:.3e}"

    def __str__(self) -> str:
        lines = [
            f"J(W)            {self.primal:.12g}",
            f"proven J* >=    {self.dual:.12g}",
            f"gap             {self._shown_gap()}   (relative {shown_gap(self.relative_gap, '.2e')})",
        ]
        if self.bounded_dual is not None:
            lines.append(
                "lambda2 = 0: an unconditional bound needs v_i = 0 exactly, so J* >= 0 is all that is proved;\n"
                f"             among all W with ||w_i||_1 <= {self.radius:.3g}: J >= {self.bounded_dual:.12g} "
                f"(relative gap {shown_gap(self.bounded_relative_gap)})"
            )
        return "\n".join(lines)


def shown_gap(relative_gap: float, how: str = ".2e") -> str:
    """A relative gap to print: 0 where rounding made it negative, else the number itself.

    >>> shown_gap(3e-7), shown_gap(-2e-16), shown_gap(-0.5)  # the last one is no rounding, and has to be seen
    ('3.00e-07', '0', '-5.00e-01')
    """
    return "0" if -NOISE <= relative_gap < 0 else format(relative_gap, how)


def _relative(gap: float, primal: float) -> float:
    if not np.isfinite(primal):
        return float("inf")
    return gap / primal if primal > 0 else (0.0 if gap <= 0 else float("inf"))


def entropy(alpha: FloatArray) -> FloatArray:
    """H(alpha) = -alpha log alpha - (1 - alpha) log(1 - alpha), 0 at both ends."""
    return np.asarray(-xlogy(alpha, alpha) - xlog1py(1.0 - alpha, -alpha))


def dual_objective(problem: Problem, alpha: FloatArray, U: FloatArray) -> float:
    """D(alpha, U) for lambda2 > 0 and a feasible dual point."""
    v_max = np.abs(problem.dual_vectors(alpha, U)).max(axis=1)
    with np.errstate(over="ignore"):  # divided before it is squared: v^2 may underflow where v^2 / lambda2 does not
        return float(entropy(alpha).sum() - ((v_max / (2.0 * np.sqrt(problem.lambda2))) ** 2).sum())


def _rounding_of_v(problem: Problem, alpha: FloatArray, U: FloatArray) -> FloatArray:
    """Bound on the rounding error of each v_ik: one unit for each term of its sum, and three to spare."""
    terms = problem.graph.degrees(np.ones(len(U))) + 4.0
    size = alpha[:, None] * np.abs(problem.X) + abs(problem.incidence_T) @ np.abs(U)
    return np.asarray(terms[:, None] * (0.5 * EPS * size + UNDERFLOW))


def _proven_bound(problem: Problem, alpha: FloatArray, U: FloatArray, W: FloatArray) -> float:
    """D(alpha, U), or D_R for lambda2 = 0, minus a bound on all rounding errors (exp, log: 4 ulp)."""
    with np.errstate(over="ignore"):
        v_max = (np.abs(problem.dual_vectors(alpha, U)) + _rounding_of_v(problem, alpha, U)).max(axis=1)
        if problem.lambda2 > 0:
            penalties = (v_max / (2.0 * np.sqrt(problem.lambda2))) ** 2
        else:
            penalties = trust_radius(problem, W) * v_max
        gain, loss = _total(entropy(alpha)), _total(penalties)
    return gain - loss - 8.0 * EPS * (gain + loss) - 4.0 * len(alpha) * UNDERFLOW


def _primal_rounding(problem: Problem, W: FloatArray, primal: float) -> float:
    """Bound on |primal - J(W)|; a margin that may be off by delta moves its loss by delta times the slope there."""
    N, d = problem.shape
    with np.errstate(over="ignore", invalid="ignore"):
        delta = (d + 4.0) * EPS * row_dot(np.abs(problem.X), np.abs(W))
        slope = np.exp(np.minimum(delta - np.logaddexp(0.0, problem.y * problem.scores(W)), 0.0))
        J = sum(map(_total, problem.terms(W)))
        scale = 1.0 + problem.lambda2 + problem.radii.max(initial=0.0) + d * np.abs(W).max()
        underflow = 8.0 * UNDERFLOW * (N + len(problem.edges)) * scale
        error = abs(J - primal) + (d + 16.0) * EPS * J + _total(delta * slope) + underflow
    return float(error) if math.isfinite(error) else math.inf


def _total(terms: FloatArray) -> float:
    """The sum with a single rounding; inf if it may overflow or a term is not a number."""
    return math.fsum(terms.tolist()) if terms.sum() < 1e300 else math.inf


def rounding_share(problem: Problem) -> float:
    """What a certificate charges for rounding, as a share of J: 3e-15 to 4e-14 on the instance library."""
    return (2.0 * problem.shape[1] + 64.0) * EPS


def feasible(problem: Problem, alpha: ArrayLike, U: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """A feasible dual point near (alpha, U): alpha clipped to [0, 1], each U_e scaled into its ball.

    ||U_e|| <= lambda1 omega_e then holds exactly: a computed norm is right to (d/4 + 2) eps, the product and the
    scaling cost 3 eps more. What is farther inside than that is kept, and what is scaled ends up there.
    """
    a = check.real_array(alpha, "alpha", ndim=1)
    if a.shape != problem.y.shape:
        raise ValueError(f"alpha has shape {a.shape} but the problem needs {problem.y.shape}")
    u = check.real_array(U, "U", ndim=2)
    if u.shape != (len(problem.edges), problem.shape[1]):
        raise ValueError(f"U has shape {u.shape} but the problem needs {(len(problem.edges), problem.shape[1])}")
    margin = (0.25 * problem.shape[1] + 6.0) * EPS
    radius = np.where(problem.radii > LEAST_RADIUS, problem.radii, 0.0)
    with np.errstate(over="ignore"):
        norms = row_norms(u)
    out = norms > radius * (1.0 - margin)
    u[out] = u[out] / norms[out, None] * (radius[out] * (1.0 - 3.0 * margin))[:, None]
    return np.clip(a, 0.0, 1.0), u


def certificate(problem: Problem, W: ArrayLike, alpha: ArrayLike, U: ArrayLike) -> Certificate:
    """What the dual point (alpha, U), made feasible first, proves about W."""
    W = check.weight_matrix(W, problem.shape)
    primal = problem.objective(W)
    rounding = _primal_rounding(problem, W, primal)
    a, u = feasible(problem, alpha, U)
    bound = _proven_bound(problem, a, u, W)
    if problem.lambda2 > 0:
        return Certificate(primal, bound, a, u, problem.y, rounding=rounding)
    nothing = np.zeros_like(a), np.zeros_like(u)
    return Certificate(primal, 0.0, *nothing, problem.y, max(bound, 0.0), trust_radius(problem, W), rounding)


def trust_radius(problem: Problem, W: FloatArray) -> float:
    """R for lambda2 = 0: ten times the largest ||w_i||_1, so that W lies well inside, and never near 0."""
    least = 1.0 / (float(np.abs(problem.X).max()) or 1.0)
    return 10.0 * max(float(np.abs(W).sum(axis=1).max()), least)


def lower_bound(problem: Problem, alpha: FloatArray, U: FloatArray, W: FloatArray) -> float:
    """D(alpha, U), or for lambda2 = 0 the bound D_R on all W no larger than ten times this one."""
    if problem.lambda2 > 0:
        return dual_objective(problem, alpha, U)
    v_max = np.abs(problem.dual_vectors(alpha, U)).max(axis=1)
    return float(entropy(alpha).sum() - trust_radius(problem, W) * v_max.sum())


def score_interval(alpha: FloatArray, y: FloatArray, excess: float) -> tuple[FloatArray, FloatArray]:
    """All z with log(1 + exp(-y z)) + alpha y z - H(alpha) <= excess: a convex function, so an interval."""
    if not np.isfinite(excess):
        return np.full_like(y, -np.inf), np.full_like(y, np.inf)
    low, high = _root(alpha, excess, -1.0), _root(alpha, excess, +1.0)
    return np.where(y > 0, low, -high), np.where(y > 0, high, -low)


def _root(alpha: FloatArray, excess: float, side: float) -> FloatArray:
    """The root left (side = -1) or right (+1) of the minimum, by Newton: from its first step on outside."""
    with np.errstate(divide="ignore"):
        z = np.log1p(-alpha) - np.log(alpha)  # the minimiser: alpha = sigmoid(-z)
    ends = ~np.isfinite(z)  # alpha = 0 or 1: bounded on one side only
    sign = np.where(alpha < 0.5, 1.0, -1.0)
    z = np.where(ends, sign * -np.log(np.expm1(max(excess, 1e-300))) if excess < 700 else -sign * excess, z)
    unbounded = ends & (sign == side)
    one_sided = ends & (sign != side)
    start = z + side * np.sqrt(8.0 * excess)
    root = np.where(ends, z, start)
    for _ in range(60):
        value = np.logaddexp(0.0, -root) + alpha * root - entropy(alpha) - excess
        slope = alpha - expit(-root)
        step = np.divide(value, slope, out=np.zeros_like(root), where=np.abs(slope) > 0)
        root = np.where(ends, root, root - step)
        if np.all(np.abs(step[~ends]) <= 1e-15 * (1.0 + np.abs(root[~ends]))):
            break
    root = np.where(one_sided, z, root)
    return np.where(unbounded, side * np.inf, root)
