"""Where the fast solver begins: W, its dual unknowns, and lengths that fit them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from llr_cvx import _validation as check
from llr_cvx._multipliers import Multipliers
from llr_cvx._reweighting import Duals
from llr_cvx._validation import FloatArray
from llr_cvx.certificate import lower_bound
from llr_cvx.problem import Problem
from llr_cvx.smoothing import Smoothed, smoothed, smoothed_objective
from llr_cvx.solution import Solution

SHRINK = 0.3  # of epsilon, once the gap is down to the cost of smoothing
SETTLED = 3.0  # that is, to this multiple of J_epsilon - J
HANDOVER, WARM_HANDOVER = 3e-3, 0.1  # relative gap at which the method of multipliers takes over, cold and warm


class Start(NamedTuple):
    """Where to begin."""

    W: FloatArray
    duals: Duals
    epsilon: float
    handover: float = HANDOVER


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


def start_from(problem: Problem, W0: ArrayLike | Solution) -> Start:
    """From a solution also its dual point; epsilon such that smoothing costs a third of the gap there."""
    W = check.weight_matrix(W0.W if isinstance(W0, Solution) else W0, problem.shape, "W0")
    if not problem.objective(W) < problem.objective(np.zeros(problem.shape)):
        return cold_start(problem)  # nothing to gain from a W that is worse than none
    if not isinstance(W0, Solution):
        return warm_start(problem, W)
    U, radii = W0.certificate.U, W0.problem.radii
    if U.shape != (len(problem.edges), problem.shape[1]):
        raise ValueError("W0 is the solution of a problem with another graph: pass its W alone")
    u = U * np.divide(1.0, radii, out=np.zeros_like(radii), where=radii > 1e-300)[:, None]
    alpha = problem.alpha(W)
    v = problem.dual_vectors(alpha, problem.radii[:, None] * u)
    largest = np.abs(v).max(axis=1, keepdims=True)
    z = -np.divide(v, largest, out=np.zeros_like(v), where=largest > 0)
    objective = problem.objective(W)
    gap = objective - lower_bound(problem, alpha, problem.radii[:, None] * u, W)
    epsilon = 0.1 * typical_weight(problem)
    while smoothed_objective(problem, W, epsilon) - objective > max(gap, 1e-9 * objective) / SETTLED:
        epsilon *= SHRINK
    return Start(W, Duals(u, z), epsilon, WARM_HANDOVER)


def multipliers(problem: Problem, at: Smoothed, duals: Duals, gap: float) -> Multipliers:
    """The multipliers that belong to a point of IRLS, with lengths that grow with the relative gap there."""
    t = float(np.clip(np.sqrt(10.0 * gap), 1e-2, 1.0))
    return Multipliers(duals.u, at.S[:, None] * duals.z, t * typical_weight(problem), t)
