"""Run a conic solver through CVXPY without believing it: any ending becomes a status or a clear error."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from threading import Lock
from typing import Any
from weakref import WeakKeyDictionary

import cvxpy as cp
import numpy as np

from llr_cvx import validation as check
from llr_cvx.arrays import FloatArray
from llr_cvx.graph import Graph
from llr_cvx.problem import Problem
from llr_cvx.proofs.certificate import Certificate, certificate, shown_gap
from llr_cvx.solution import Solution, SolverError

Formulate = Callable[[Problem], tuple[cp.Problem, cp.Variable]]


class Model:
    """A compiled model; the lock keeps threads that solve it for different lambdas apart."""

    def __init__(self, formulation: tuple[cp.Problem, cp.Variable]) -> None:
        self.problem, self.W = formulation
        self.lock = Lock()

    def set_lambdas(self, problem: Problem) -> None:
        """Give the parameters the penalties of this problem."""
        for name in ("lambda1", "lambda2"):
            self.problem.param_dict[name].value = getattr(problem, name)


#: Compiled models by graph, kept while the graph lives: problems that differ only in their lambdas share one.
_MODELS: WeakKeyDictionary[Graph, Model] = WeakKeyDictionary()
_MODELS_LOCK = Lock()


def compiled(problem: Problem, formulate: Formulate) -> Model:
    """The model of this problem's samples and graph, made on first use."""
    with _MODELS_LOCK:
        if problem.graph not in _MODELS:
            _MODELS[problem.graph] = Model(formulate(problem))
        return _MODELS[problem.graph]


def solve(problem: Problem, formulate: Formulate, solver: str, tol: float, options: dict[str, Any]) -> Solution:
    """Solve the CVXPY model, recompute J from W, and let the solver's own multipliers prove the status."""
    tol = check.real_number(tol, "tol", strict=True)
    name = installed(solver)
    problem.require_attained()
    start = time.perf_counter()
    model = compiled(problem, formulate)
    with model.lock:
        model.set_lambdas(problem)
        said = _run(model.problem, model.W, name, options)
        if model.W.value is None or not np.isfinite(model.W.value).all():
            raise SolverError(f"{name} returned no finite W ({said}); try another solver or rescale the features")
        W = np.array(model.W.value, dtype=float)
        proof = _prove(problem, model.problem, W, tol)
        stats = model.problem.solver_stats
    bounded = problem.lambda2 == 0 and proof.bounded_relative_gap <= tol
    status = "optimal" if proof.proves(tol) else "uncertified" if bounded else "inaccurate"
    reached = f"{name} said {said}; proven relative gap {shown_gap(proof.bounded_relative_gap)}, tol {tol:g}"
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
    """What the solver's own multipliers prove of W, or where that is not enough, the best U for the alpha of W.

    Only conic solvers are asked: this proof judges the others.
    """
    alpha, U = problem.alpha(W), np.zeros((len(problem.edges), problem.shape[1]))
    multipliers = [constraint.dual_value for constraint in model.constraints]
    usable = all(m is not None and np.isfinite(m).all() for m in multipliers)
    if usable and len(multipliers) > 1:
        U = -multipliers[1]
    alphas = [problem.y * multipliers[0], alpha] if usable else [alpha]
    proof = max((certificate(problem, W, a, U) for a in alphas), key=_proved)
    if problem.lambda2 > 0 and not proof.proves(tol) and problem.radii.any():
        better = _best_edges(problem, alpha)
        if better is not None:
            proof = max(proof, certificate(problem, W, alpha, better), key=_proved)
    return proof


def _proved(proof: Certificate) -> float:
    return proof.dual if proof.bounded_dual is None else proof.bounded_dual


def _best_edges(problem: Problem, alpha: FloatArray) -> FloatArray | None:
    """The U that maximises D(alpha, U) for a fixed alpha, by Clarabel; None where it finds none."""
    U = cp.Variable((len(problem.edges), problem.shape[1]))
    v = problem.incidence_T @ U - (alpha * problem.y)[:, None] * problem.X
    loss = cp.sum_squares(cp.norm(v, "inf", axis=1))
    model = cp.Problem(cp.Minimize(loss), [cp.norm(U, 2, axis=1) <= problem.radii])
    try:
        _run(model, U, "CLARABEL", {})
    except SolverError:
        return None
    return U.value if U.value is not None and np.isfinite(U.value).all() else None
