"""The end of a solve: read the face off an iterate, minimise on it, complete the dual, and see what is proved."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from llr_cvx._completion import complete_dual
from llr_cvx._face import Face, components, descend, identify, released
from llr_cvx._region import gap_shares
from llr_cvx._system import Duals
from llr_cvx._validation import FloatArray
from llr_cvx.certificate import lower_bound
from llr_cvx.problem import Problem
from llr_cvx.smoothing import row_dot


@dataclass
class Best:
    """The best primal and the best dual point so far; they need not come from the same iteration."""

    problem: Problem
    W: FloatArray
    objective: float = np.inf
    alpha: FloatArray = field(init=False)
    U: FloatArray = field(init=False)
    dual: float = 0.0  # proved by alpha = 0, U = 0

    def __post_init__(self) -> None:
        self.alpha = np.zeros(self.problem.shape[0])
        self.U = np.zeros((len(self.problem.edges), self.problem.shape[1]))

    @property
    def relative_gap(self) -> float:
        """(objective - dual) / objective."""
        return (self.objective - self.dual) / self.objective if self.objective > 0 else 0.0

    def primal(self, W: FloatArray, objective: float) -> None:
        """Keep W if it is better."""
        if objective < self.objective:
            self.adopt(W, objective)

    def adopt(self, W: FloatArray, objective: float) -> None:
        """Keep W; for lambda2 = 0 the bound holds up to a radius that grows with W, so it is taken anew."""
        self.W, self.objective = W, objective
        if self.problem.lambda2 == 0:
            self.dual = lower_bound(self.problem, self.alpha, self.U, W)

    def bound(self, alpha: FloatArray, U: FloatArray) -> None:
        """Keep the dual point if it proves more."""
        value = lower_bound(self.problem, alpha, U, self.W)
        if value > self.dual:
            self.alpha, self.U, self.dual = alpha, U, value


def finish(problem: Problem, W: FloatArray, duals: Duals, best: Best, tol: float, budget: int) -> bool:
    """Newton on the face read off (W, duals); True if its W, exactly sparse and exactly fused, is proved to tol."""
    face = identify(problem, W, duals)
    U = problem.radii[:, None] * duals.u
    for _ in range(3):
        face, budget, share = _settle(face, U, best, tol, budget)
        if best.relative_gap <= tol or budget <= 0:
            return best.relative_gap <= tol
        wrong = (face.membership @ share > 0.1 * share.sum() / len(face.w)) & (face.sizes > 1)
        if not wrong.any():
            return False
        face, budget = released(face, W, wrong), budget + 100
    return False


def _settle(face: Face, U: FloatArray, best: Best, tol: float, budget: int) -> tuple[Face, int, FloatArray]:
    """Minimise on a face, complete the dual, keep what is better; also what each sample adds to the gap."""
    problem = face.problem
    face, budget = descend(face, budget, accuracy=max(1e-14, 1e-5 * tol))
    W, objective = face.W, problem.objective(face.W)
    alpha, U = complete_dual(face, U, target=objective * (1.0 - min(0.01 * tol, 1e-13)))
    best.bound(alpha, U)
    if objective < best.objective or objective - best.dual <= tol * objective:
        best.adopt(W, objective)
    return face, budget, gap_shares(problem, W, alpha, U)


def finish_fused(problem: Problem, best: Best, tol: float) -> bool:
    """Whether every component is one cluster: cheap to try, and the answer wherever lambda1 is large.

    It is tried only if the edges at each sample could carry what the sample pulls at W = 0.
    """
    pull = 0.5 * np.sqrt(row_dot(problem.X, problem.X))
    if not problem.radii.any() or np.any(pull > problem.degrees(problem.radii)):
        return False
    clusters = components(problem, problem.radii > 0)
    w = np.zeros((int(clusters.max()) + 1, problem.shape[1]))
    face = Face(problem, clusters, w, np.full(w.shape, problem.lambda2 == 0))
    _settle(face, np.zeros((len(problem.edges), w.shape[1])), best, tol, budget=1000)
    return best.relative_gap <= tol
