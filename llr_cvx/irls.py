"""The fast solver: iteratively reweighted least squares with a primal-dual Newton step and a proof.

Each iteration is a step of Algorithm 1 in its modern form: the weights 1/||w_i - w_j|| and 1/|w_ik| are those of
the current W, smoothed by epsilon, and one linear system is solved by conjugate gradients. Four things are added.

* The dual unknowns are updated beside W (see `llr_cvx._system`), which turns the slow tail into Newton's method.
* epsilon shrinks when the duality gap is down to what the smoothing costs, or four steps did not get it there;
  J_epsilon(W) decreases at every step: at fixed epsilon by the line search, and with epsilon by monotonicity.
* The few samples that still hold the gap open get Newton steps of their own (see `llr_cvx._region`).
* Once the fused samples and the zero coordinates can be read off, Newton's method on that face
  (see `llr_cvx._face`) finishes to rounding error.

Only a certified relative gap ends it well; limits are statuses of their own.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from llr_cvx import _validation as check
from llr_cvx._face import components
from llr_cvx._finish import Best, finish, finish_fused
from llr_cvx._region import refine
from llr_cvx._starts import SETTLED, SHRINK, Start, cold_start, first_epsilon, start_from
from llr_cvx._system import newton_step
from llr_cvx._validation import FloatArray
from llr_cvx.certificate import certificate
from llr_cvx.problem import Problem
from llr_cvx.smoothing import Smoothed, row_dot, smoothed, smoothed_objective
from llr_cvx.solution import ConvergenceWarning, Solution, Trace

FINISH_BELOW = 1e-5  # tolerances from here on make the exact finish worth its price
FIRST_FINISH = 2e-5  # relative gap at which the exact finish is first tried


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
    W0: ArrayLike | Solution | None = None,
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
        Relative duality gap to prove; 1e-12 is within reach. W is then exactly sparse and exactly fused
        (`Solution.support`, `Solution.clusters`) whenever the final Newton phase succeeds, as for small tol.
    W0 : array-like of shape (N, d) or Solution, optional
        Where to start. A `Solution` for nearby lambdas is better than its W alone: its dual point is used too.
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
    elif status == "optimal" and not proof.proves(tol):
        status = "inaccurate"
    if status not in ("optimal", "uncertified"):
        warnings.warn(f"solve_irls stopped with status {status!r}: {reached}", ConvergenceWarning, stacklevel=2)
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
    """The loop: smooth, bound, finish if possible, shrink epsilon if allowed, step."""
    began = time.perf_counter()
    W, duals, epsilon = start or cold_start(problem)
    floor = 1e-16 * first_epsilon(problem)
    at = smoothed(problem, W, epsilon)
    best = Best(problem, W)
    rows: list[tuple[float, float, float, float, float]] = []
    cg_rtol, held, spent = 1e-2, 0, 0
    next_finish = FIRST_FINISH if tol <= FINISH_BELOW else 0.0
    status = "iteration_limit"

    def record(W: FloatArray, objective: float, value: float, epsilon: float) -> None:
        seconds = time.perf_counter() - began
        rows.append((objective, value, best.dual, epsilon, seconds))
        for listener in listeners or []:
            listener(Step(len(rows), W, objective, value, best.dual, epsilon, seconds))

    if tol <= FINISH_BELOW and finish_fused(problem, best, tol):
        record(best.W, best.objective, best.objective, 0.0)
        max_iter, status = 0, "optimal"
    for _ in range(max_iter):
        best.primal(W, at.objective)
        best.bound(at.alpha, problem.radii[:, None] * at.d_hat)
        best.bound(at.alpha, problem.radii[:, None] * duals.u)
        record(W, at.objective, at.value, at.epsilon)
        gap = best.relative_gap
        if gap <= max(tol, next_finish) and tol <= FINISH_BELOW:
            next_finish = 0.1 * gap
            if finish(problem, W, duals, best, tol, budget=max(200, 3 * spent)):
                record(best.W, best.objective, best.objective, 0.0)
                status = "optimal"
                break
        if gap <= tol:
            status = "optimal"
            break
        if time.perf_counter() - began > time_limit:
            status = "time_limit"
            break

        if best.objective - best.dual <= SETTLED * (at.value - at.objective) or held > 3:
            epsilon, cg_rtol, held = epsilon * SHRINK, 1e-2, 0
            if epsilon < floor:
                status = "inaccurate"
                break
            at = smoothed(problem, W, epsilon)
        else:
            cg_rtol, held = max(0.3 * cg_rtol, 1e-9), held + 1
        stiff = components(problem, row_dot(at.d_hat, at.d_hat) < 0.8)
        dW, duals, n_cg = newton_step(problem, at, duals, stiff, cg_rtol, max_cg=min(max(200, spent), 2000))
        spent += n_cg
        W, at = _line_search(problem, at, dW)
        at, duals = refine(problem, at, duals, tol)
        W = at.W
    if status == "iteration_limit":  # the last step counts too
        best.primal(W, at.objective)
        best.bound(at.alpha, problem.radii[:, None] * duals.u)

    return Run(best, status, Trace(*(np.array(column) for column in zip(*rows, strict=True))))


def _line_search(problem: Problem, at: Smoothed, dW: FloatArray) -> tuple[FloatArray, Smoothed]:
    """The longest of 1, 1/2, ... with sufficient decrease of J_epsilon; W itself if there is none."""
    slope = float(np.vdot(at.gradient, dW))
    t = 1.0
    while t > 1e-7:
        W = at.W + t * dW
        value = smoothed_objective(problem, W, at.epsilon)
        if value <= at.value + 1e-4 * t * slope and value <= at.value:
            return W, smoothed(problem, W, at.epsilon)
        t *= 0.5
    return at.W, at


def _print_step(step: Step) -> None:
    gap = (step.objective - step.dual) / step.objective if step.objective else 0.0
    print(
        f"{step.iteration:4d}  J {step.objective:.10g}  gap {gap:.1e}  epsilon {step.epsilon:.1e}  "
        f"{step.seconds:.2f} s",
        file=sys.stderr,
    )
