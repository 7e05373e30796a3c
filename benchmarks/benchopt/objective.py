"""Localized logistic regression as a benchopt objective, with the certified gap as its metric."""

import numpy as np
from benchopt import BaseObjective

from llr_cvx import checker


class Objective(BaseObjective):
    """J(W), judged by a proven lower bound on the optimum J*."""

    name = "Localized logistic regression"
    url = "https://arxiv.org/abs/1702.06354"
    min_benchopt_version = "1.6"

    def set_data(self, X, y, edges, weights, lambda1, lambda2, lower):
        """A problem, and a number that is proved to be at most J*."""
        self.data = {"X": X, "y": y, "edges": edges, "weights": weights, "lambda1": lambda1, "lambda2": lambda2}
        self.lower = lower

    def get_objective(self):
        """The problem alone: a solver does not see the bound."""
        return self.data

    def evaluate_result(self, W):
        """`value` is a proven upper bound on (J(W) - J*) / J(W): J(W) rounded up against the bound."""
        W = np.asarray(W, dtype=float)
        if W.shape != self.data["X"].shape or not np.isfinite(W).all():
            return {"value": np.inf, "J": np.inf, "suboptimality": np.inf}
        _, J = checker.primal(tuple(self.data[name] for name in checker.PROBLEM), W)
        return {"value": (J - self.lower) / J, "J": J, "suboptimality": J - self.lower}

    def get_one_result(self):
        """W = 0."""
        return {"W": np.zeros_like(self.data["X"])}
