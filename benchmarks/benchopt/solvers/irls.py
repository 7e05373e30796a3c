"""IRLS: Algorithm 1 in primal-dual form."""

from benchmark_utils.stopping import ProvedGap
from benchopt import BaseSolver

import llr_cvx as llr


class Solver(BaseSolver):
    """`solve_irls`, run to smaller and smaller proven gaps."""

    name = "IRLS"
    stopping_criterion = ProvedGap(strategy="tolerance")

    def set_objective(self, **problem):
        """Validate the problem; not timed."""
        self.problem = llr.Problem(**problem)

    def run(self, tol):
        """Solve from W = 0."""
        self.W = llr.solve_irls(self.problem, tol=min(max(tol, 1e-9), 1.0)).W

    def get_next(self, tol):
        """A tenth of the tolerance; benchopt starts at infinity."""
        return min(tol, 1.0) / 10.0

    def get_result(self):
        """The last W."""
        return {"W": self.W}
