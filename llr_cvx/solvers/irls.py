"""The fast solver: iteratively reweighted least squares with a primal-dual Newton step, multipliers, and a proof.

Each iteration is at first a step of Algorithm 1 in its modern form: the weights 1/||w_i - w_j|| and 1/|w_ik| are
those of the current W, smoothed by epsilon, and one linear system is solved by conjugate gradients.

* The dual unknowns are updated beside W (see `reweighting`).
* epsilon shrinks when the duality gap is down to what the smoothing costs, or five steps did not get it there;
  J_epsilon(W) decreases at every step: at fixed epsilon by the line search, and with epsilon by monotonicity.
* Where smaller epsilon would make the systems stiff, the method of multipliers takes over (see
  `multipliers`): it ends with exactly fused samples, exact zeros and any gap down to rounding error. An
  iteration is then one update of the multipliers, and the trace holds the best J so far, with epsilon = 0.
* From a solution for other lambdas, with its dual point, one of two methods takes the place of IRLS and mostly ends
  at tol. Where few edges are fused, Newton's method that keeps the zeros of W (see `pursuit`) needs three
  to five systems. Elsewhere the rounds of splitting (see `splitting`) cost far less than a system, and for
  many samples they take the place of the multipliers too; an iteration is then a few rounds. The trace holds the
  best J so far.
* For tol <= 1e-9 Newton's method on the face of W that the multipliers show (see `polish`) is tried before
  they have got there: where that face is right, it goes to rounding error at once.

Only a certified relative gap ends it well; limits are statuses of their own.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from llr_cvx import validation as check
from llr_cvx.arrays import FloatArray, read_only
from llr_cvx.problem import Problem
from llr_cvx.proofs.certificate import certificate
from llr_cvx.solution import ConvergenceWarning, Solution, Trace
from llr_cvx.solvers.best import Best
from llr_cvx.solvers.fast.phases import iterations
from llr_cvx.solvers.fast.starts import Start, cold_start, start_from


class Step(NamedTuple):
    """What a callback sees after each iteration."""

    iteration: int
    W: FloatArray
    objective: float
    smoothed_objective: float
    dual: float
    epsilon: float
    seconds: float


@dataclass(frozen=True, eq=False)
class Run:
    """A finished run: what was reached and why it stopped."""

    best: Best
    status: str
    trace: Trace


def solve_irls(
    problem: Problem,
    tol: float = 1e-6,
    *,
    W0: ArrayLike | Solution | Sequence[Solution] | None = None,
    max_iter: int = 300,
    time_limit: float | None = None,
    callback: Callable[[Step], object] | None = None,
    progress: bool = False,
) -> Solution:
    """Solve Eq. (5) until the certificate proves a relative gap of at most `tol`.

    Parameters
    ----------
    problem : Problem
    tol : float
        Relative duality gap to prove; 1e-12 is within reach. With a tol well below 3e-3 zeros of W are exact and
        fused rows exactly equal (`Solution.support`, `Solution.clusters`): those of a W this good, and for
        tol <= 1e-9, where the finish succeeds, those of the optimum.
    W0 : array-like of shape (N, d), Solution or list of Solution, optional
        Where to start. A `Solution` for nearby lambdas is better than its W alone: its dual point is used too. The
        last two solutions of a path, in a list, are better still.
    max_iter : int
    time_limit : float, optional
        Seconds. Either limit gives the best W found, with a status and a `ConvergenceWarning`.
    callback : callable, optional
        Called with a `Step` after each iteration.
    progress : bool
        Print a line for each iteration to standard error.

    Returns
    -------
    Solution
        Its `trace` has one entry an iteration.

    Examples
    --------
    >>> from llr_cvx.datasets import make_synthetic
    >>> X_inlier, X_test, _ = make_synthetic(d=5, random_state=0)
    >>> s = solve_irls(Problem.from_samples(X_inlier, X_test), tol=1e-9)
    >>> s.status, s.certificate.relative_gap <= 1e-9
    ('optimal', True)
    """
    if not isinstance(problem, Problem):
        raise TypeError(f"problem must be a Problem, got {type(problem).__name__}: see Problem.from_samples")
    tol = check.real_number(tol, "tol", strict=True)
    max_iter = check.whole_number(max_iter, "max_iter")
    limit = np.inf if time_limit is None else check.real_number(time_limit, "time_limit", strict=True)
    start = None if W0 is None else start_from(problem, W0)
    problem.require_attained()
    began = time.perf_counter()
    listeners = [callback] if callback else []
    if progress:
        listeners.append(_print_step)
    run = minimise(problem, tol, start, max_iter, limit, listeners)
    best = run.best
    proof = certificate(problem, best.W, best.alpha, best.U)
    reached = f"relative gap {proof.bounded_relative_gap:.2e}, tol {tol:g}, {len(run.trace.dual)} iterations"
    status = run.status
    if status == "optimal" and problem.lambda2 == 0:
        status = "uncertified"
        reached += "; lambda2 = 0: proved among bounded W only"
    elif status == "optimal" and not proof.proves(tol):
        status = "inaccurate"
    if status not in ("optimal", "uncertified"):
        where = f"lambda1 = {problem.lambda1:g}, lambda2 = {problem.lambda2:g}"
        told = f"solve_irls stopped with status {status!r} at {where}: {reached}"
        warnings.warn(told, ConvergenceWarning, stacklevel=2)
    return Solution(
        problem=problem,
        W=best.W,
        objective=proof.primal,
        status=status,
        message=reached,
        certificate=proof,
        solver="IRLS",
        seconds=time.perf_counter() - began,
        n_iter=len(run.trace.dual),
        trace=run.trace,
    )


def minimise(
    problem: Problem,
    tol: float,
    start: Start | None = None,
    max_iter: int = 300,
    time_limit: float = np.inf,
    listeners: list[Callable[[Step], object]] | None = None,
) -> Run:
    """Iterate, record what is proved, and stop at tol or at a limit."""
    began = time.perf_counter()
    start = start or cold_start(problem)
    best = Best(problem, start.W)
    rows: list[tuple[float, float, float, float, float]] = []
    status = ""
    steps = iterations(problem, start, best, tol, began + time_limit)
    for at in steps:
        seconds = time.perf_counter() - began
        rows.append((at.objective, at.smoothed_objective, best.dual, at.epsilon, seconds))
        for listener in listeners or []:
            listener(
                Step(
                    len(rows),
                    read_only(at.W),
                    at.objective,
                    at.smoothed_objective,
                    best.dual,
                    at.epsilon,
                    seconds,
                )
            )
        if len(rows) >= max_iter or seconds > time_limit:
            status = "iteration_limit" if len(rows) >= max_iter else "time_limit"
            steps.close()  # what a method has at hand is looked at once more
    if best.relative_gap <= tol:
        status = "optimal"
    return Run(best, status or "inaccurate", Trace(*(np.array(column) for column in zip(*rows, strict=True))))


def _print_step(step: Step) -> None:
    gap = (step.objective - step.dual) / step.objective if step.objective else 0.0
    print(
        f"{step.iteration:4d}  J {step.objective:.10g}  gap {gap:.1e}  epsilon {step.epsilon:.1e}  "
        f"{step.seconds:.2f} s",
        file=sys.stderr,
    )
