"""What iterative solvers share: recording iterates, stopping on the certified gap or at a limit, the final proof."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike
from threadpoolctl import ThreadpoolController

from llr_cvx import validation as check
from llr_cvx.arrays import FloatArray, read_only, row_norms
from llr_cvx.problem import Problem
from llr_cvx.proofs.certificate import certificate, lower_bound, rounding_share
from llr_cvx.solution import ConvergenceWarning, Solution, Trace
from llr_cvx.solvers import settings
from llr_cvx.solvers.starts import Start, cold_start, start_from


@dataclass
class Best:
    """The best primal and the best dual point so far; they need not come from the same iteration."""

    problem: Problem
    W: FloatArray
    objective: float = np.inf
    alpha: FloatArray = field(init=False)
    U: FloatArray = field(init=False)
    dual: float = 0.0  # proved by alpha = 0, U = 0

    def __post_init__(self) -> None:
        self.alpha = np.zeros(self.problem.shape[0])
        self.U = np.zeros((len(self.problem.edges), self.problem.shape[1]))

    @property
    def relative_gap(self) -> float:
        """The gap as a share of the objective, and the share that the proof will charge for rounding."""
        return self.relative_gap_of(self.objective)

    def relative_gap_of(self, objective: float) -> float:
        """The same for a W with this objective."""
        share = (objective - self.dual) / objective if objective > 0 else 0.0
        return share + rounding_share(self.problem)

    def primal(self, W: FloatArray, objective: float) -> None:
        """Keep W if none is better; for lambda2 = 0 the bound depends on the size of W and is evaluated again."""
        if objective <= self.objective:
            self.W, self.objective = W, objective
            if self.problem.lambda2 == 0:
                self.dual = lower_bound(self.problem, self.alpha, self.U, W)

    def bound(self, alpha: FloatArray, U: FloatArray) -> float:
        """The value that a dual point proves; the point is kept if that is more than before."""
        value = lower_bound(self.problem, alpha, U, self.W)
        if value > self.dual:
            self.alpha, self.U, self.dual = alpha, U, value
        return value


class Iterate(NamedTuple):
    """One iterate as it is: W and its J(W), and for IRLS its J_epsilon(W) and epsilon."""

    W: FloatArray
    objective: float
    smoothed_objective: float = np.nan
    epsilon: float = 0.0


class Step(NamedTuple):
    """What a callback sees after each iteration; the fields are those of `Trace`."""

    iteration: int
    W: FloatArray
    phase: str
    objective: float
    best: float
    smoothed_objective: float
    dual: float
    epsilon: float
    seconds: float


class Method(Protocol):
    """One phase of a solver. Its constructor starts it; it offers what it finds to a `Best`."""

    name: str

    @property
    def done(self) -> bool:
        """Whether there is nothing more to gain by this method."""

    def step(self) -> Iterate:
        """One iteration."""


@dataclass
class Run:
    """The record of one solve, and the decision when it is over.

    `asked` is the problem that J, the answer and its proof are about, `problem` the one that is iterated on (see
    `capped`); `lowest` is the best W for the former, `best` the best for the latter.
    """

    asked: Problem
    problem: Problem
    tol: float
    start: Start
    max_iter: int = 300
    time_limit: float = np.inf
    listeners: Sequence[Callable[[Step], object]] = ()

    def __post_init__(self) -> None:
        self.began = time.perf_counter()
        self.rows: list[tuple[str, float, float, float, float, float, float]] = []
        self.best = Best(self.problem, self.start.W)
        self.lowest = self.best if self.asked is self.problem else Best(self.asked, self.start.W)
        for W, objective in self.start.known:
            self.offer(W, objective)

    def offer(self, W: FloatArray, objective: float) -> float:
        """Keep W where it is the best, given J(W) of the problem iterated on; J(W) of the problem asked."""
        self.best.primal(W, objective)
        if self.asked is not self.problem:
            objective = self.asked.objective(W)
            self.lowest.primal(W, objective)
        return objective

    @property
    def seconds(self) -> float:
        """Since the start."""
        return time.perf_counter() - self.began

    @property
    def over(self) -> bool:
        """The gap is proved, or a limit is reached; never before the first iterate."""
        return bool(self.rows) and (self.proved or self.limited)

    @property
    def limited(self) -> bool:
        """A limit is reached."""
        return self.n_steps >= self.max_iter or self.seconds > self.time_limit

    @property
    def phase(self) -> str:
        """The method that made the last iterate; empty before the first."""
        return self.rows[-1][0] if self.rows else ""

    @property
    def n_steps(self) -> int:
        """Iterates that count towards the limit: all but the rounding after the last step."""
        return len(self.rows) - (self.phase == "rounding")

    @property
    def proved(self) -> bool:
        """Whether the best points found prove the gap asked for."""
        return self.best.relative_gap <= self.tol

    def follow(self, method: Method, enough: Callable[[], bool] = lambda: False) -> None:
        """Step until the run is over, the method is done, or this is enough of it."""
        while not (self.over or method.done or enough()):
            self.record(method.name, method.step())

    def record(self, phase: str, at: Iterate) -> None:
        """Keep an iterate if it is the best, write it down and tell the listeners."""
        J = self.offer(at.W, at.objective)
        least = min(J, self.rows[-1][2] if self.rows else np.inf)
        self.rows.append((phase, J, least, at.smoothed_objective, self.best.dual, at.epsilon, self.seconds))
        for listener in self.listeners:
            listener(Step(len(self.rows), read_only(at.W), *self.rows[-1]))

    @property
    def status(self) -> str:
        """How it ended, as far as the best points tell."""
        if self.proved:
            return "optimal"
        if self.n_steps >= self.max_iter:
            return "iteration_limit"
        return "time_limit" if self.seconds > self.time_limit else "inaccurate"

    def solution(self, solver: str, why: str = "") -> Solution:
        """The best W with its proof; the status is what that proof says. `why` explains a gap that was not reached."""
        status, W = self.status, self.lowest.W
        proof = certificate(self.asked, W, self.best.alpha, self.best.U)
        told = f"relative gap {proof.bounded_relative_gap:.2e}, tol {self.tol:g}, {len(self.rows)} iterations"
        if status == "optimal" and self.problem.lambda2 == 0 and proof.bounded_relative_gap <= self.tol:
            status = "uncertified"
            told += f"; lambda2 = 0: proved only among W with ||w_i||_1 <= {proof.radius:.3g}"
        elif status == "optimal" and not proof.proves(self.tol):
            status = "inaccurate"
        if status == "inaccurate" and why:
            told += f"; {why}"
        if status not in ("optimal", "uncertified"):
            where = f"lambda1 = {self.problem.lambda1:g}, lambda2 = {self.problem.lambda2:g}"
            words = f"solve_{solver.lower()} stopped with status {status!r} at {where}: {told}"
            warnings.warn(words, ConvergenceWarning, stacklevel=3)
        trace = Trace(*(np.array(column) for column in zip(*self.rows, strict=True)))
        ended = (status, told, proof, solver, self.seconds, len(self.rows), trace)
        return Solution(self.asked, W, proof.primal, *ended)


_blas = cache(ThreadpoolController)


def one_blas_thread() -> AbstractContextManager[object]:
    """Hold BLAS to one thread: the matrices are small, and threads that wait for each other cost more than they save.

    On a machine with other work to do, that is ten times the solver's time.
    """
    limit: AbstractContextManager[object] = _blas().limit(limits=1, user_api="blas")
    return limit


def begin(
    problem: Problem,
    tol: float,
    W0: ArrayLike | Solution | Sequence[Solution] | None,
    max_iter: int,
    time_limit: float | None,
    callback: Callable[[Step], object] | None,
    progress: bool,
) -> Run:
    """A run for the arguments of a public solver, validated."""
    if not isinstance(problem, Problem):
        raise TypeError(f"problem must be a Problem, got {type(problem).__name__}: see Problem.from_samples")
    tol = check.real_number(tol, "tol", strict=True)
    max_iter = check.whole_number(max_iter, "max_iter")
    seconds = np.inf if time_limit is None else check.real_number(time_limit, "time_limit", strict=True)
    model = capped(problem)
    start = cold_start(model) if W0 is None else start_from(model, W0)
    problem.require_attained()
    listeners = ([callback] if callback else []) + ([_print_step] if progress else [])
    return Run(problem, model, tol, start, max_iter, seconds, listeners)


def capped(problem: Problem) -> Problem:
    """The problem with its largest lambda1 omega_e cut down to what no optimal U_e comes near.

    Optimal U_e can be chosen no longer than the sum of all that flows, and edges that do not need their whole radius
    are fused: a larger radius changes nothing but the rounding errors. The proof is always for the problem asked.
    """
    largest = settings.LARGEST_RADIUS * float(np.sqrt(problem.shape[1]) * row_norms(problem.X).sum())
    if not problem.radii.max(initial=0.0) > largest > 0:
        return problem
    weights = np.minimum(problem.weights, largest / problem.lambda1)
    return Problem(problem.X, problem.y, problem.edges, weights, problem.lambda1, problem.lambda2)


def _print_step(step: Step) -> None:
    gap = (step.best - step.dual) / step.best if step.best else 0.0
    epsilon = f"  epsilon {step.epsilon:.1e}" if step.epsilon else ""
    print(
        f"{step.iteration:4d}  {step.phase:<9}  J {step.objective:.10g}  gap {gap:.1e}{epsilon}  {step.seconds:.2f} s",
        file=sys.stderr,
    )
