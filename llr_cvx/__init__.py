"""Localized logistic regression: exact, fast, and proved optimal."""

from llr_cvx.datasets import make_synthetic
from llr_cvx.detection.estimator import LLRDetector
from llr_cvx.graph import similarity_graph
from llr_cvx.problem import Problem
from llr_cvx.solution import Solution
from llr_cvx.solvers.exact import formulate, solve_exact
from llr_cvx.solvers.fast.solver import solve_fast
from llr_cvx.solvers.irls import solve_irls
from llr_cvx.solvers.path import regularization_path
from llr_cvx.verdicts.dual_search import certify
from llr_cvx.verdicts.weights import verify

__all__ = [
    "LLRDetector",
    "Problem",
    "Solution",
    "certify",
    "formulate",
    "make_synthetic",
    "regularization_path",
    "similarity_graph",
    "solve_exact",
    "solve_fast",
    "solve_irls",
    "verify",
]
