"""CVXPY with a conic solver."""

import sys

from benchmark_utils.stopping import ProvedGap
from benchopt import BaseSolver

import llr_cvx as llr
from llr_cvx.benchmarks.conic import TOLERANCES


class Solver(BaseSolver):
    """`solve_exact` at smaller and smaller tolerances of the conic solver; compilation is timed."""

    name = "CVXPY"
    stopping_criterion = ProvedGap(strategy="tolerance")
    parameters = {"solver": ["CLARABEL", "SCS"]}

    def set_objective(self, **problem):
        """Keep the problem; every run compiles it anew."""
        self.data = problem

    def run(self, tol):
        """Compile and solve."""
        tightest, options = min(TOLERANCES[self.solver][0]), TOLERANCES[self.solver][1]
        # With this tol no time goes into a proof: the objective judges W.
        solution = llr.solve_exact(
            llr.Problem(**self.data), self.solver, tol=sys.float_info.max, **options(min(max(tol, tightest), 1e-2))
        )
        self.W = solution.W

    def get_next(self, tol):
        """A tenth of the tolerance; benchopt starts at infinity."""
        return min(tol, 1.0) / 10.0

    def get_result(self):
        """The last W."""
        return {"W": self.W}
