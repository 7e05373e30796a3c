"""What a solve has found so far: the best primal and the best dual point."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from llr_cvx.arrays import FloatArray
from llr_cvx.problem import Problem
from llr_cvx.proofs.certificate import lower_bound, rounding_share


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
        """(objective - dual) / objective, and the share that the proof will charge for rounding."""
        gap = (self.objective - self.dual) / self.objective if self.objective > 0 else 0.0
        return gap + rounding_share(self.problem)

    def primal(self, W: FloatArray, objective: float) -> None:
        """Keep W if it is better."""
        if objective < self.objective:
            self.adopt(W, objective)

    def adopt(self, W: FloatArray, objective: float) -> None:
        """Keep W; for lambda2 = 0 the bound holds up to a radius that grows with W, so it is taken anew."""
        self.W, self.objective = W, objective
        if self.problem.lambda2 == 0:
            self.dual = lower_bound(self.problem, self.alpha, self.U, W)

    def bound(self, alpha: FloatArray, U: FloatArray) -> float:
        """What the dual point proves; it is kept if that is more."""
        value = lower_bound(self.problem, alpha, U, self.W)
        if value > self.dual:
            self.alpha, self.U, self.dual = alpha, U, value
        return value
