"""Algorithm 1 as the paper prints it, with a fixed epsilon."""

import numpy as np
from benchmark_utils.stopping import ProvedGap
from benchopt import BaseSolver

import llr_cvx as llr
from llr_cvx.solvers.algorithm1 import algorithm1


class Solver(BaseSolver):
    """More and more steps from W = 0; epsilon limits the gap that can be reached."""

    name = "Algorithm 1"
    stopping_criterion = ProvedGap(strategy="iteration")
    parameters = {"epsilon": [1e-3]}

    def set_objective(self, **problem):
        """Validate the problem; not timed."""
        self.problem = llr.Problem(**problem)

    def run(self, n_iter):
        """n_iter steps."""
        zero = np.zeros(self.problem.shape)
        self.W = algorithm1(self.problem, n_steps=n_iter, epsilon=self.epsilon).W if n_iter else zero

    def get_next(self, n_iter):
        """Half as many steps again."""
        return n_iter + n_iter // 2 + 1

    def get_result(self):
        """The last W."""
        return {"W": self.W}
