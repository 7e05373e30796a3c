"""Localized logistic regression: exact, fast, and proved optimal."""

TYPE_CHECKING = False  # as in typing, which takes longer to import than all that happens here
if TYPE_CHECKING:
    from llr_cvx.datasets import make_synthetic
    from llr_cvx.detection.encoding import TableEncoder
    from llr_cvx.detection.estimator import LLRDetector
    from llr_cvx.detection.scalers import ConditionalScaler, InlierScaler
    from llr_cvx.detection.selection import LLRDetectorCV
    from llr_cvx.graph import similarity_graph
    from llr_cvx.problem import Problem
    from llr_cvx.solution import Solution
    from llr_cvx.solvers.exact import formulate, solve_exact
    from llr_cvx.solvers.fast.solver import solve_fast
    from llr_cvx.solvers.irls import solve_irls
    from llr_cvx.solvers.path import regularization_path
    from llr_cvx.verdicts.dual_search import certify
    from llr_cvx.verdicts.weights import verify

__version__ = "0.1.0"

__all__ = [
    "ConditionalScaler",
    "InlierScaler",
    "LLRDetector",
    "LLRDetectorCV",
    "Problem",
    "Solution",
    "TableEncoder",
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

#: Where each public name comes from. It is imported when first used, so that the command can answer an interrupt
#: before NumPy, SciPy, scikit-learn and CVXPY are loaded.
_HOME = {
    "ConditionalScaler": "detection.scalers",
    "InlierScaler": "detection.scalers",
    "LLRDetector": "detection.estimator",
    "LLRDetectorCV": "detection.selection",
    "Problem": "problem",
    "Solution": "solution",
    "TableEncoder": "detection.encoding",
    "certify": "verdicts.dual_search",
    "formulate": "solvers.exact",
    "make_synthetic": "datasets",
    "regularization_path": "solvers.path",
    "similarity_graph": "graph",
    "solve_exact": "solvers.exact",
    "solve_fast": "solvers.fast.solver",
    "solve_irls": "solvers.irls",
    "verify": "verdicts.weights",
}

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Import a public name, or a module of the package."""
        from importlib import import_module

        if name in _HOME:
            value = getattr(import_module(f"llr_cvx.{_HOME[name]}"), name)
        else:
            try:
                value = import_module(f"llr_cvx.{name}")
            except ModuleNotFoundError as error:
                if error.name != f"llr_cvx.{name}":
                    raise
                raise AttributeError(f"module 'llr_cvx' has no attribute {name!r}") from None
        globals()[name] = value
        return value

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
