"""Where an iterative solver begins: W, its dual unknowns, and an epsilon that fits them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from llr_cvx import validation as check
from llr_cvx.arrays import BoolArray, FloatArray, row_norms
from llr_cvx.problem import Problem
from llr_cvx.proofs.certificate import lower_bound
from llr_cvx.solution import Solution
from llr_cvx.solvers import settings
from llr_cvx.solvers.smoothing import smoothed

#: A typical weight within these has epsilons, the smallest included, whose squares are normal doubles.
_SQUARABLE = (1e-135, 1e135)


class Duals(NamedTuple):
    """The dual unknowns of primal-dual IRLS: u_e in the unit ball and z_ik in [-1, 1]."""

    u: FloatArray
    z: FloatArray


class Start(NamedTuple):
    """Where to begin.

    `known` are W with their J(W) that must not be lost, begun with or not; `neighbour` says that W and duals belong
    to a solution for other lambdas; `gap` is their duality gap, where it is known.
    """

    W: FloatArray
    duals: Duals
    epsilon: float
    known: tuple[tuple[FloatArray, float], ...] = ()
    neighbour: bool = False
    gap: float = np.inf


def typical_weight(problem: Problem) -> float:
    """The size of |w_ik| when samples are fitted alone: all lengths scale with it, and so with the data.

    Samples whose score would drown in the rounding of the largest one say nothing about it.
    """
    largest = np.abs(problem.X).max(axis=1)
    largest = largest[largest > 0]
    if not largest.size:
        return 10.0
    with np.errstate(over="ignore", divide="ignore"):  # samples may be as small as 5e-324
        weight = 1.0 / (4.0 * problem.lambda2 / largest + 0.5 * largest)
    weight = weight.clip(*_SQUARABLE)
    score = largest * weight
    return float(np.median(weight[score >= np.finfo(float).eps * score.max()]))


def cold_start(problem: Problem) -> Start:
    """W = 0."""
    W = np.zeros(problem.shape)
    duals = Duals(np.zeros((len(problem.edges), W.shape[1])), W)
    return Start(W, duals, settings.FIRST_EPSILON * typical_weight(problem))


def start_from(problem: Problem, W0: ArrayLike | Solution | Sequence[Solution]) -> Start:
    """From a W alone, from a solution with its dual point, or from the last two solutions of a path.

    Of the points that these offer, the one with the smallest duality gap is taken; W = 0 if J is no smaller there.
    """
    path: Any = [W0] if isinstance(W0, Solution) else W0
    if isinstance(path, (list, tuple)) and any(isinstance(s, Solution) for s in path):
        return _from_path(problem, path)
    W = _matrix(problem, path)
    return warm_start(problem, W) if _better_than_zero(problem, problem.objective(W)) else cold_start(problem)


def warm_start(problem: Problem, W: FloatArray) -> Start:
    """From a W alone: the epsilon, and the smoothed directions, that give the best lower bound."""
    first = settings.FIRST_EPSILON * typical_weight(problem)
    offers = (smoothed(problem, W, first * 10.0**-k) for k in range(7))
    at = max(offers, key=lambda at: lower_bound(problem, at.alpha, problem.radii[:, None] * at.d_hat, W))
    return Start(W, Duals(at.d_hat, at.w_hat), at.epsilon, ((W, at.objective),))


def _from_path(problem: Problem, path: Sequence[Solution]) -> Start:
    for s in path:
        if not isinstance(s, Solution):
            raise ValueError(f"W0 is a list of solutions and of something else: {s!r:.60}; give solutions only")
        check.weight_matrix(s.W, problem.shape, "W0")
        if s.certificate.U.shape != (len(problem.edges), problem.shape[1]):
            raise ValueError("W0 is the solution of a problem with another graph: pass its W alone")
    last, on_sphere = path[-1], _on_sphere(path[-1])
    offers = [(last.W, last.certificate.U), *_extrapolated(problem, list(path[-2:]))]
    starts = [start_near(problem, W, _in_unit_balls(problem, U, on_sphere)) for W, U in offers]
    best = min(starts, key=lambda start: start.gap)
    chosen = best if _better_than_zero(problem, best.known[0][1]) else cold_start(problem)
    return chosen._replace(known=tuple(start.known[0] for start in starts), neighbour=True)


def _better_than_zero(problem: Problem, objective: float) -> bool:
    return bool(objective < len(problem.y) * np.log(2.0))


def _matrix(problem: Problem, W0: Any) -> FloatArray:
    no_matrix = isinstance(W0, list) and (not W0 or (isinstance(W0[0], np.ndarray) and W0[0].ndim == 2))
    if no_matrix or isinstance(W0, str):
        wanted = f"a matrix of shape {problem.shape}, a Solution or a list of them"
        raise ValueError(f"W0 must be {wanted}, got {W0!r:.60}")
    return check.weight_matrix(W0, problem.shape, "W0")


def start_near(problem: Problem, W: FloatArray, u: FloatArray) -> Start:
    """From a primal and a dual point, with an epsilon whose smoothing costs about as much as their gap."""
    objective, alpha, U = problem.objective(W), problem.alpha(W), problem.radii[:, None] * u
    v = problem.dual_vectors(alpha, U)
    largest = np.abs(v).max(axis=1, keepdims=True)
    z = -np.divide(v, largest, out=np.zeros_like(v), where=largest > 0)
    gap = objective - lower_bound(problem, alpha, U, W)
    # to first order, J_epsilon - J is at most epsilon times this
    slope = problem.radii.sum() + 2.0 * problem.lambda2 * W.shape[1] * np.abs(W).sum()
    epsilon = settings.SETTLED * gap / slope if slope > 0 else np.inf
    first = settings.FIRST_EPSILON * typical_weight(problem)
    return Start(W, Duals(u, z), float(np.clip(epsilon, 1e-5 * first, first)), ((W, objective),), gap=gap)


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
