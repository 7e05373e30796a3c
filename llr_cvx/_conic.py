"""Run a conic solver through CVXPY without believing it: any ending becomes a status or a clear error."""

from __future__ import annotations

import time
import warnings
from typing import Any

import cvxpy as cp
import numpy as np

from llr_cvx import _validation as check
from llr_cvx._validation import FloatArray
from llr_cvx.certificate import Certificate, certificate, shown_gap
from llr_cvx.certify import certify
from llr_cvx.problem import Problem
from llr_cvx.solution import Solution, SolverError


def solve(
    problem: Problem, model: cp.Problem, variable: cp.Variable, solver: str, tol: float, options: dict[str, Any]
) -> Solution:
    """Solve the CVXPY model, recompute J from W, and let the certificate decide the status."""
    tol = check.real_number(tol, "tol", strict=True)
    name = installed(solver)
    problem.require_attained()
    start = time.perf_counter()
    said = _run(model, variable, name, options)
    if variable.value is None or not np.isfinite(variable.value).all():
        raise SolverError(f"{name} returned no finite W ({said}); try another solver or rescale the features")
    W = np.array(variable.value, dtype=float)
    proof = _prove(problem, model, W, tol)
    status = "uncertified" if problem.lambda2 == 0 else "optimal" if proof.proves(tol) else "inaccurate"
    reached = f"{name} said {said}; proven relative gap {shown_gap(proof.bounded_relative_gap)}, tol {tol:g}"
    stats = model.solver_stats
    return Solution(
        problem=problem,
        W=W,
        objective=proof.primal,
        status=status,
        message=reached,
        certificate=proof,
        solver=name,
        seconds=time.perf_counter() - start,
        n_iter=int(getattr(stats, "num_iters", None) or 0),
    )


def installed(solver: str) -> str:
    """The solver's name as CVXPY writes it, or an error that lists the installed ones."""
    if not isinstance(solver, str):
        raise TypeError(f"solver must be the name of a conic solver, got {solver!r}")
    available = cp.installed_solvers()
    if solver.upper() not in available:
        raise ValueError(f"solver {solver!r} is not installed: choose one of {', '.join(available)}")
    return solver.upper()


def _run(model: cp.Problem, variable: cp.Variable, name: str, options: dict[str, Any]) -> str:
    """Solve; return the solver's own word, its warnings included."""
    for v in model.variables():
        v.value = None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            model.solve(solver=name, **{"warm_start": False, **options})  # no memory of an earlier solve
            said = str(model.status)
        except (KeyboardInterrupt, SystemExit, MemoryError):
            raise
        except BaseException as error:  # a panic in a compiled solver is not an Exception
            word = " ".join(str(error).split())
            if variable.value is None:
                raise SolverError(f"{name} failed: {type(error).__name__}: {word}") from error
            said = f"{type(error).__name__}: {word}"
    notes = {" ".join(str(w.message).split()) for w in caught if issubclass(w.category, UserWarning)}
    return said + "".join(f" [{note[:160]}]" for note in sorted(notes))


def _prove(problem: Problem, model: cp.Problem, W: FloatArray, tol: float) -> Certificate:
    """The solver's own multipliers if they prove enough, else a dual point found from W alone."""
    multipliers = [constraint.dual_value for constraint in model.constraints]
    if any(m is None or not np.isfinite(m).all() for m in multipliers):
        return certify(problem, W)
    alpha = problem.y * multipliers[0]
    U = -multipliers[1] if len(multipliers) > 1 else np.zeros((0, problem.shape[1]))
    own = certificate(problem, W, alpha, U)
    if problem.lambda2 == 0 or own.proves(tol):
        return own
    return max(own, certify(problem, W), key=lambda c: c.dual)
