"""The method of multipliers with semismooth Newton steps: from a rough primal and dual point to any accuracy.

IRLS smooths ||d_e|| and |w_ik| and has to send epsilon to 0, where its systems become stiff. Here the kinks are
moved instead. With multipliers u_e (in the unit ball) and zeta_i (a subgradient of ||w_i||_1^2 / 2), a length tau,
and t, which is tau as a multiple of the size of |w_ik|,

    L(W) = sum_i log(1 + exp(-y_i w_i.x_i)) + lambda1 sum_e omega_e M(q_e) + 2 lambda2 sum_i E(p_i),
    q_e = d_e + tau u_e,    p_i = w_i + t zeta_i.

M(q) = ||q||^2 / (2 tau) for ||q|| <= tau and ||q|| - tau / 2 beyond is Huber's function, the Moreau envelope of the
norm, and E(p) = min_w ||w||_1^2 / 2 + ||w - p||^2 / (2 t) that of the exclusive penalty. L is smooth, its gradient
piecewise smooth, and its minimiser gives the next multipliers

    u_e = q_e / max(tau, ||q_e||),    zeta_i = (p_i - w_i) / t    with the minimiser w_i in E(p_i).

They converge for every tau, the faster the smaller it is. All u_e lie in their balls, so every step proves a bound.
The edges with ||q_e|| <= tau are those that fuse, and w_i is exactly sparse: W is rounded to exact clusters and
zeros. Newton's method for such Lagrangians: Li, Sun and Toh (2018) for the lasso, Sun, Toh and Yuan (2021) for
convex clustering, which has the same penalty on edges.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from llr_cvx.arrays import BoolArray, FloatArray, row_dot
from llr_cvx.problem import Problem
from llr_cvx.proofs.certificate import entropy, trust_radius
from llr_cvx.solvers.best import Best
from llr_cvx.solvers.fast.face import face_of
from llr_cvx.solvers.linear.newton_system import Curvature, solve_system
from llr_cvx.solvers.smoothing import logistic

SHRINK_TAU = 0.5  # after every update of the multipliers
OVERSHOOT = 1.3  # of that update; 1 is the plain method, below 2 it still converges
SHORTEST = 1e-6  # t below which lengths shrink only if nothing else helps: u_e = q_e / tau magnifies rounding
SETTLED_AT = 0.5  # L counts as minimised once its gradient explains this share of the gap
STEPS = 15  # Newton steps that minimising L may take
STALLS = 8  # updates in a row that do not improve the gap by a tenth end it
DAMPING = 0.03  # of Newton steps, see `curvature`
CG_RTOL = 0.1


@dataclass(frozen=True, eq=False)
class Multipliers:
    """u_e and zeta_i with their lengths tau and t; after overshooting u_e may be a little outside its ball."""

    u: FloatArray
    zeta: FloatArray
    tau: float
    t: float

    def moved(self, u: FloatArray, zeta: FloatArray, shrink: float) -> Multipliers:
        """Past the new multipliers, with shorter lengths."""
        return Multipliers(
            self.u + OVERSHOOT * (u - self.u),
            self.zeta + OVERSHOOT * (zeta - self.zeta),
            *(shrink * self.tau, shrink * self.t),
        )


@dataclass(frozen=True, eq=False)
class Lagrangian:
    """L at one W, its gradient and the next multipliers; J(W) and the dual value D that these prove."""

    W: FloatArray
    d: FloatArray  # w_i - w_j for each edge, updated by differences: on fused edges W itself has only rounding left
    value: float
    gradient: FloatArray
    u: FloatArray
    zeta: FloatArray
    reach: FloatArray  # max(tau, ||q_e||)
    fused: BoolArray  # ||q_e|| <= tau
    sparse: FloatArray  # the minimisers w_i in E(p_i)
    alpha: FloatArray
    objective: float
    dual: float
    error: float  # what D loses because the gradient is not 0


def evaluate(problem: Problem, W: FloatArray, d: FloatArray, m: Multipliers) -> Lagrangian:
    """L(W) and everything that comes with it, given also d_e = w_i - w_j."""
    two_lambda2 = 2.0 * problem.lambda2
    q = m.tau * m.u
    q += d
    norms = np.sqrt(row_dot(q, q))
    fused, reach = norms <= m.tau, np.maximum(norms, m.tau)
    huber = np.where(fused, norms**2 / (2.0 * m.tau), norms - 0.5 * m.tau)
    p = W + m.t * m.zeta
    w = shrunk(p, m.t)
    q /= reach[:, None]
    u, zeta = q, (p - w) / m.t
    l1, l1_sparse = np.abs(W).sum(axis=1), np.abs(w).sum(axis=1)
    envelopes = 0.5 * float(l1_sparse @ l1_sparse + m.t * np.vdot(zeta, zeta))
    fit, alpha = logistic(problem, W)
    v = problem.dual_vectors(alpha, problem.radii[:, None] * u)
    v_max = np.abs(v).max(axis=1)
    if problem.lambda2 > 0:
        level = v_max / two_lambda2
        with np.errstate(over="ignore"):
            weight, penalty = np.maximum(l1, level), problem.lambda2 * float(level @ level)
    else:
        weight = np.full_like(v_max, trust_radius(problem, W))
        penalty = float(weight @ v_max)
    v += two_lambda2 * zeta
    return Lagrangian(
        W=W,
        d=d,
        value=fit + float(problem.radii @ huber) + two_lambda2 * envelopes,
        gradient=v,
        u=u,
        zeta=zeta,
        reach=reach,
        fused=fused,
        sparse=w if problem.lambda2 > 0 else W,
        alpha=alpha,
        objective=fit + float(problem.radii @ np.sqrt(row_dot(d, d))) + problem.lambda2 * float(l1 @ l1),
        dual=float(entropy(alpha).sum()) - penalty,
        error=float(weight @ np.abs(v).max(axis=1)),
    )


def shrunk(p: FloatArray, t: float) -> FloatArray:
    """argmin_w ||w||_1^2 / 2 + ||w - p||^2 / (2 t) for each row: |p| less t ||w||_1, but not below 0."""
    size = np.abs(p)
    falling = -np.sort(-size, axis=1)
    levels = t * np.cumsum(falling, axis=1) / (1.0 + t * np.arange(1, p.shape[1] + 1))
    last = np.maximum(np.count_nonzero(falling > levels, axis=1), 1) - 1
    level = np.take_along_axis(levels, last[:, None], axis=1)
    return np.asarray(np.copysign(np.maximum(size - level, 0.0), p))


def curvature(problem: Problem, at: Lagrangian, tau: float, t: float) -> Curvature:
    """A generalised Hessian of L: fused edges pull with I / tau, others along their tangent with I / ||q_e||.

    Where L is linear in some direction, damping that vanishes with the gradient keeps the step within a few dozen
    times t zeta_i, which is how far the kinks are.
    """
    two_lambda2 = 2.0 * problem.lambda2
    on = at.sparse != 0.0
    size = np.sqrt(two_lambda2 / (1.0 + t * np.count_nonzero(on, axis=1)))
    far = np.maximum(t * np.abs(at.zeta).max(axis=1), tau)
    damping = DAMPING * np.abs(at.gradient).max(axis=1) / far
    d_hat = np.where(at.fused[:, None], 0.0, at.u)
    return Curvature(
        c=problem.radii / at.reach,
        u=d_hat,
        d=d_hat,
        s=at.alpha * (1.0 - at.alpha),
        sigma=np.sign(at.sparse) * size[:, None],
        Q=np.where(on, 0.0, two_lambda2 / t) + damping[:, None],
    )


def newton(problem: Problem, at: Lagrangian, m: Multipliers, rtol: float) -> Lagrangian:
    """A Newton step on L with backtracking; the same point where no step lowers L."""
    stiff = bool(np.count_nonzero(at.fused) > len(at.W) // 2)
    step, _ = solve_system(problem, curvature(problem, at, m.tau, m.t), -at.gradient, rtol, stiff)
    d_step = problem.incidence @ step
    slope = float(np.vdot(at.gradient, step))
    size = 1.0
    while size > 1e-6:
        trial = evaluate(problem, at.W + size * step, at.d + size * d_step, m)
        if trial.value <= at.value + 1e-4 * size * slope + 1e-13 * abs(at.value):
            return trial
        size *= 0.5
    return at


def multiply(
    problem: Problem, W: FloatArray, m: Multipliers, best: Best, tol: float, deadline: float = np.inf
) -> Iterator[Lagrangian]:
    """Minimise L, keep what is better in `best`, update the multipliers; until tol is proved or it stalls."""
    stalls = 0
    d = problem.incidence @ W
    while stalls < STALLS and best.relative_gap > tol:
        before = best.relative_gap
        at = evaluate(problem, W, d, m)
        for _ in range(STEPS):
            gap = min(at.objective, best.objective) - max(at.dual, best.dual)
            settled = at.error <= SETTLED_AT * gap or gap <= 0.5 * tol * best.objective
            if settled or time.perf_counter() > deadline:
                break
            at = newton(problem, at, m, CG_RTOL * 0.1**stalls)
        exact = face_of(problem, at.sparse, at.fused).W
        best.primal(exact, problem.objective(exact))
        best.bound(at.alpha, problem.radii[:, None] * at.u)
        yield at
        if settled:
            shrink = SHRINK_TAU if m.t > SHORTEST or stalls else 1.0
            W, d, m = exact, problem.incidence @ exact, m.moved(at.u, at.zeta, shrink)
        else:
            W, d, m = at.W, at.d, Multipliers(at.u, at.zeta, m.tau, m.t)
        stalls = 0 if best.relative_gap < 0.9 * before else stalls + 1
