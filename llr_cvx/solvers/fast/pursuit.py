"""Newton's method with the zeros of W kept: from a solution nearby to a proof in a few systems.

IRLS smooths |w_ik| as well as ||d_e||, and has to take epsilon down for both. A start that is a solution for nearby
lambdas knows most zeros of W. Here they are kept, and only the edges are smoothed:

    F_epsilon(W) = sum_i log(1 + exp(-y_i w_i.x_i)) + lambda1 sum_e omega_e a_e + lambda2 sum_i ||w_i||_1^2,

a_e = sqrt(||d_e||^2 + epsilon^2). A zero weight is freed where |v_ik| exceeds 2 lambda2 ||w_i||_1; one that would
cross zero stops there. On the free weights F_epsilon is smooth, and the primal-dual Newton step of
`reweighting` converges fast, unless many edges are so short that they turn over: then its systems are
hard, or the gap falls slowly, and splitting has to go on.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from llr_cvx.arrays import FloatArray, row_dot
from llr_cvx.problem import Problem
from llr_cvx.solvers.best import Best
from llr_cvx.solvers.fast.balance import balanced
from llr_cvx.solvers.fast.face import face_of
from llr_cvx.solvers.fast.starts import INSIDE, Start
from llr_cvx.solvers.linear.newton_system import Curvature, solve_system
from llr_cvx.solvers.smoothing import logistic, smooth_edges

SHRINK = 0.1  # of epsilon, once the gap is down
SETTLED = 30.0  # to this multiple of F_epsilon - J
RTOL = 3e-2  # of the systems
HARD = 20  # conjugate gradient iterations of a system that shows that edges turn over
PROGRESS = 0.3  # share of the gap that two steps may leave
SMALLEST = 0.03  # share of a step that is tried
ROUND = 10.0  # multiple of tol at which edges with U_e inside its ball are tried fused
HELD = 1e16  # multiple of the largest curvature, which holds a weight at zero


@dataclass(frozen=True, eq=False)
class Point:
    """F_epsilon at one W, and the slopes v of all but its last term."""

    W: FloatArray
    epsilon: float
    alpha: FloatArray
    a: FloatArray
    d_hat: FloatArray
    v: FloatArray
    level: FloatArray  # 2 lambda2 ||w_i||_1
    value: float
    objective: float


def evaluate(problem: Problem, W: FloatArray, epsilon: float) -> Point:
    """F_epsilon and its slopes at W."""
    d_hat, a, lengths = smooth_edges(problem, W, epsilon)
    fit, alpha = logistic(problem, W)
    l1 = np.abs(W).sum(axis=1)
    rest = fit + problem.lambda2 * float(l1 @ l1)
    return Point(
        *(W, epsilon, alpha, a, d_hat),
        v=problem.dual_vectors(alpha, problem.radii[:, None] * d_hat),
        level=2.0 * problem.lambda2 * l1,
        value=rest + float(problem.radii @ a),
        objective=rest + float(problem.radii @ lengths),
    )


def signs(at: Point) -> FloatArray:
    """The sign of each weight; of a zero that is freed, the side it will go to; 0 for those that are not."""
    size, level = np.abs(at.v), at.level[:, None]
    freed = (at.W == 0.0) & (size > level * (1.0 + 1e-9))
    freed &= (level > 0.0) | (size >= size.max(axis=1, keepdims=True))  # of a zero row the steepest
    return np.where(freed, -np.sign(at.v), np.sign(at.W))


def newton(problem: Problem, at: Point, u: FloatArray) -> tuple[Point, FloatArray, int]:
    """A step that does not raise F_epsilon, u after the full step, and the iterations spent."""
    sign, c = signs(at), problem.radii / at.a
    largest = float(problem.graph.degrees(c).max()) + float(np.abs(problem.X).max()) ** 2 + 2.0 * problem.lambda2
    H = Curvature(
        c=c,
        u=u,
        d=at.d_hat,
        s=at.alpha * (1.0 - at.alpha),
        sigma=np.sqrt(2.0 * problem.lambda2) * sign,
        Q=np.where(sign == 0.0, min(HELD * largest, 1e300), 0.0),
    )
    gradient = np.where(sign == 0.0, 0.0, at.v + at.level[:, None] * sign)
    step, n_cg = solve_system(problem, H, -gradient, RTOL)
    u = dual_step(problem, at, u, step)
    size = 1.0
    while size > SMALLEST:
        W = at.W + size * step
        trial = evaluate(problem, np.where(W * sign > 0.0, W, 0.0), at.epsilon)
        if trial.value <= at.value:
            return trial, u, n_cg
        size *= 0.5
    return at, u, n_cg


def dual_step(problem: Problem, at: Point, u: FloatArray, dW: FloatArray) -> FloatArray:
    """u after the step dW: d_hat + [I - (u d_hat^T + d_hat u^T) / 2] B dW / a, shortened to length 1.

    The bracket is symmetric like that of the system, so that the dual error falls with the residual of the system.
    """
    flow = problem.incidence @ dW
    new = flow - (0.5 * row_dot(at.d_hat, flow))[:, None] * u
    new -= (0.5 * row_dot(u, flow))[:, None] * at.d_hat
    new /= at.a[:, None]
    new += at.d_hat
    new /= np.maximum(1.0, np.sqrt(row_dot(new, new)))[:, None]
    return np.asarray(new)


def pursue(problem: Problem, start: Start, best: Best, tol: float) -> Iterator[tuple[FloatArray, FloatArray]]:
    """Newton steps with epsilon shrinking, until tol or until they do not pay; what is found is kept in `best`."""
    at, u = evaluate(problem, start.W, start.epsilon), start.duals.u
    gaps, n_cg = [np.inf, best.relative_gap], 0
    while gaps[-1] > tol and gaps[-1] <= PROGRESS * gaps[-3:][0] and n_cg < HARD:
        if best.objective - best.dual <= SETTLED * (at.value - at.objective):
            at = evaluate(problem, at.W, SHRINK * at.epsilon)
        at, u, n_cg = newton(problem, at, u)
        best.primal(at.W, at.objective)
        best.bound(at.alpha, balanced(problem, at.W, at.alpha, problem.radii[:, None] * u))
        inside = row_dot(u, u) < INSIDE
        if best.relative_gap < ROUND * tol and inside.any():
            exact = face_of(problem, at.W, inside).W
            best.primal(exact, problem.objective(exact))
        gaps.append(best.relative_gap)
        yield at.W, u
