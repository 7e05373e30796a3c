"""Where the fast solver begins: W, its dual unknowns, and lengths that fit them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from llr_cvx import validation as check
from llr_cvx.arrays import BoolArray, FloatArray, row_dot, row_norms
from llr_cvx.problem import Problem
from llr_cvx.proofs.certificate import lower_bound
from llr_cvx.solution import Solution
from llr_cvx.solvers.fast.multipliers import Multipliers
from llr_cvx.solvers.fast.reweighting import Duals
from llr_cvx.solvers.fast.splitting import applies
from llr_cvx.solvers.smoothing import Smoothed, smoothed, smoothed_objective

SHRINK = 0.3  # of epsilon, once the gap is down to the cost of smoothing
SETTLED = 3.0  # that is, to this multiple of J_epsilon - J
HANDOVER = 3e-3  # relative gap at which the method of multipliers takes over
INSIDE = 0.98  # ||u_e||^2 below which an edge counts as fused
NEAR = 0.1  # relative gap up to which the zeros of a solution for other lambdas are worth keeping,
FUSED = 4e-4  # if no more edges than this share of all weights are fused (few features have few zeros to keep);
LENGTH = 3e-3  # share of a typical weight that edges are smoothed by then
MOST = 0.88  # share of fused edges beyond which splitting moves the clusters too slowly


class Start(NamedTuple):
    """Where to begin."""

    W: FloatArray
    duals: Duals
    epsilon: float
    near: bool = False  # a solution for other lambdas, close enough for its zeros to be kept
    splits: bool = False  # one from which splitting goes on
    known: tuple[tuple[FloatArray, float], ...] = ()  # W and J(W) that are not to be lost, begun with or not


def typical_weight(problem: Problem) -> float:
    """The size that |w_ik| has when samples are fitted alone: all lengths scale with it, and so with the data."""
    largest = np.abs(problem.X).max(axis=1)
    largest = largest[largest > 0]
    if not largest.size:
        return 10.0
    return float(np.median(1.0 / (4.0 * problem.lambda2 / largest + 0.5 * largest)))


def cold_start(problem: Problem) -> Start:
    """W = 0."""
    W = np.zeros(problem.shape)
    return Start(W, Duals(np.zeros((len(problem.edges), W.shape[1])), W), 0.1 * typical_weight(problem))


def warm_start(problem: Problem, W: FloatArray) -> Start:
    """From a W alone: the epsilon, and the smoothed directions, that give the best lower bound."""

    def bound(at: Smoothed) -> float:
        return lower_bound(problem, at.alpha, problem.radii[:, None] * at.d_hat, W)

    first = 0.1 * typical_weight(problem)
    at = max((smoothed(problem, W, first * 10.0**-k) for k in range(7)), key=bound)
    return Start(W, Duals(at.d_hat, at.w_hat), at.epsilon)


def start_from(problem: Problem, W0: ArrayLike | Solution | Sequence[Solution]) -> Start:
    """From a W alone, from a solution with its dual point, or from the last two solutions of a path.

    Of the points that these offer the one with the smallest duality gap is taken. Newton's method that keeps its
    zeros goes on from there where few edges are fused, else splitting, or IRLS where that is no use. IRLS starts
    from W = 0 if J is no smaller at the point.
    """
    J_of_zero = float(len(problem.y) * np.log(2.0))
    path: Any = [W0] if isinstance(W0, Solution) else W0
    if not (isinstance(path, (list, tuple)) and any(isinstance(s, Solution) for s in path)):
        W = _matrix(problem, path)
        return warm_start(problem, W) if problem.objective(W) < J_of_zero else cold_start(problem)
    for s in path:
        if not isinstance(s, Solution):
            raise ValueError(f"W0 is a list of solutions and of something else: {s!r:.60}; give solutions only")
        check.weight_matrix(s.W, problem.shape, "W0")
        if s.certificate.U.shape != (len(problem.edges), problem.shape[1]):
            raise ValueError("W0 is the solution of a problem with another graph: pass its W alone")
    last = path[-1]
    on_sphere = _on_sphere(last)
    offers = [(last.W, last.certificate.U), *_extrapolated(problem, list(path[-2:]))]
    points = [_point(problem, W, _in_unit_balls(problem, U, on_sphere)) for W, U in offers]
    best = min(points, key=lambda point: point.gap)
    n_fused = np.count_nonzero(row_dot(best.u, best.u)[problem.radii > 0] < INSIDE)
    if n_fused <= FUSED * best.W.size and best.gap <= NEAR * best.objective and best.objective < J_of_zero:
        start = Start(best.W, Duals(best.u, np.sign(best.W)), LENGTH * typical_weight(problem), near=True)
    elif applies(problem) and fused_share(problem, best.u) <= MOST:
        start = Start(best.W, Duals(best.u, np.zeros(problem.shape)), 0.0, splits=True)
    else:
        start = _start_at(problem, best) if best.objective < J_of_zero else cold_start(problem)
    return start._replace(known=tuple((point.W, point.objective) for point in points))


def _matrix(problem: Problem, W0: Any) -> FloatArray:
    no_matrix = isinstance(W0, list) and (not W0 or (isinstance(W0[0], np.ndarray) and W0[0].ndim == 2))
    if no_matrix or isinstance(W0, str):
        wanted = f"a matrix of shape {problem.shape}, a Solution or a list of them"
        raise ValueError(f"W0 must be {wanted}, got {W0!r:.60}")
    return check.weight_matrix(W0, problem.shape, "W0")


class _Point(NamedTuple):
    W: FloatArray
    u: FloatArray
    objective: float
    gap: float


def _point(problem: Problem, W: FloatArray, u: FloatArray) -> _Point:
    objective = problem.objective(W)
    return _Point(
        W, u, objective, objective - lower_bound(problem, problem.alpha(W), problem.radii[:, None] * u, W)
    )


def _start_at(problem: Problem, point: _Point) -> Start:
    """With an epsilon whose smoothing costs at most three times the gap."""
    epsilon = 0.1 * typical_weight(problem)
    cost = smoothed_objective(problem, point.W, epsilon) - point.objective  # convex in epsilon, and 0 at 0
    share = SETTLED * point.gap / cost if cost > 0 else 1.0
    return Start(point.W, duals_of(problem, point.W, point.u), epsilon * float(np.clip(share, 1e-5, 1.0)))


def fused_share(problem: Problem, u: FloatArray) -> float:
    """Share of the edges whose u_e is inside the unit ball."""
    return float(np.mean(row_dot(u, u)[problem.radii > 0] < INSIDE))


def duals_of(problem: Problem, W: FloatArray, u: FloatArray) -> Duals:
    """u, and z from the dual vectors."""
    v = problem.dual_vectors(problem.alpha(W), problem.radii[:, None] * u)
    largest = np.abs(v).max(axis=1, keepdims=True)
    return Duals(u, -np.divide(v, largest, out=np.zeros_like(v), where=largest > 0))


def _extrapolated(problem: Problem, path: list[Solution]) -> list[tuple[FloatArray, FloatArray]]:
    """W and U on the line through two solutions, in the logarithm of the lambda that changes.

    W keeps the zeros and the signs of the last one.
    """
    lambdas = [(p.lambda1, p.lambda2) for p in (*(s.problem for s in path), problem)]
    changing = [values for values in zip(*lambdas, strict=True) if len(set(values)) > 1]
    if len(path) < 2 or len(changing) != 1 or min(changing[0]) <= 0:
        return []
    before, last = path
    at = np.log(changing[0])
    if at[0] == at[1]:
        return []
    h = float(np.clip((at[2] - at[1]) / (at[1] - at[0]), -2.0, 2.0))
    W = last.W + h * (last.W - before.W)
    U = last.certificate.U + h * (last.certificate.U - before.certificate.U)
    return [(np.where(W * np.sign(last.W) <= 0.0, 0.0, W), U)]


def _on_sphere(s: Solution) -> BoolArray:
    """The edges whose U_e has the full length lambda1 omega_e: those that are not fused."""
    norms = row_norms(s.certificate.U)
    return (norms > 0.999 * s.problem.radii) & (norms > 0)


def _in_unit_balls(problem: Problem, U: FloatArray, on_sphere: BoolArray) -> FloatArray:
    """u_e = U_e / (lambda1 omega_e), shortened to length 1, or brought to it; 0 where nothing is coupled.

    The U_e of a fused edge is kept: where all are fused, W does not change with lambda1, and neither does U.
    """
    norms = row_norms(U)
    reach = np.where(on_sphere, norms, np.maximum(problem.radii, norms))
    coupled = (problem.radii > 1e-300) & (reach > 0)
    return np.divide(U, reach[:, None], out=np.zeros_like(U), where=coupled[:, None])


def centred(W: FloatArray, z: FloatArray, epsilon: float) -> FloatArray:
    """W with each exact zero moved to where w / sqrt(w^2 + epsilon^2) = z: IRLS leaves a kink slowly."""
    z = np.clip(z, -0.95, 0.95)
    return np.where(W == 0.0, epsilon * z / np.sqrt(1.0 - z**2), W)


def multipliers(problem: Problem, duals: Duals, sizes: FloatArray, t: float) -> Multipliers:
    """The multipliers that belong to u, z and sizes ||w_i||_1, with lengths of t times the typical weight."""
    return Multipliers(duals.u, sizes[:, None] * duals.z, t * typical_weight(problem), t)
