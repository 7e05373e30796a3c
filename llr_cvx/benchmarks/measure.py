"""Measuring IRLS and the fast solver: seconds until a relative gap is *proved*.

They prove the gap as they run, within the time that is measured. The median of several runs counts, each on a fresh
copy of the problem, so that nothing is left over from the run before. Conic solvers are measured in
`llr_cvx.benchmarks.conic`.
"""

from __future__ import annotations

import copy
import math
import statistics
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import cvxpy as cp
import numpy as np
from threadpoolctl import threadpool_limits

from llr_cvx.datasets import synthetic_of_size
from llr_cvx.detection.new_rows import FittedRows
from llr_cvx.problem import Problem
from llr_cvx.processes import call_apart, peak_memory
from llr_cvx.solution import ConvergenceWarning, Solution
from llr_cvx.solvers.fast.solver import solve_fast
from llr_cvx.solvers.irls import solve_irls
from llr_cvx.solvers.path import regularization_path

#: The solvers of this package.
SOLVERS: dict[str, Callable[..., Solution]] = {"IRLS": solve_irls, "FAST": solve_fast}

#: Repeating a run stops, after at least one, when this many seconds are spent.
REPEAT_SECONDS = 20.0


@dataclass(frozen=True)
class Record:
    """One measurement."""

    part: str  # a name in `plan.PARTS`
    solver: str  # "IRLS", "FAST", "CLARABEL", "SCS"; for a path "FAST path" and "FAST cold", for new rows "JOIN"
    N: int
    d: int
    lambda1: float
    lambda2: float
    seed: int
    gap: float  # relative; the one asked for
    seconds: float  # time to the gap; NaN if it was not reached
    reached: float  # the gap proved
    compile_seconds: float = 0.0  # the part of the time spent on compiling the model
    setting: str = ""  # the solver's tolerance that was the cheapest to reach the gap, or came closest; or a remark
    runs: int = 1  # `seconds` is the median of so many runs,
    points: int = 1  # in each of which so many problems were solved
    fused_share: float = math.nan  # share of the edges that are fused at the optimum; see `fused_share`
    monotone: bool | None = None  # whether J_epsilon never rose; None where that is not promised
    peak_bytes: int | None = None  # largest memory of a process that did this and nothing else

    @property
    def certified(self) -> bool:
        """Whether the gap asked for is proved."""
        return self.reached <= self.gap


@dataclass(frozen=True)
class Rules:
    """What is the same for every solver."""

    threads: int = 1  # of BLAS and of Clarabel's own factorisation
    runs: int = 5  # of IRLS and FAST, to take the median of
    time_limit: float = 600.0  # seconds for one run of a conic solver
    clock: Callable[[], float] = time.perf_counter  # or `time.process_time` on a machine that is busy


def instance(N: int, d: int, seed: int, lambda1: float = 0.1, lambda2: float = 1.0) -> Problem:
    """The paper's synthetic data with N rows.

    >>> instance(310, 10, seed=0)
    Problem(N=310, d=10, edges=1204, lambda1=0.1, lambda2=1)
    """
    X_inlier, X_test, _ = synthetic_of_size(N, d, seed)
    return Problem.from_samples(X_inlier, X_test, lambda1, lambda2)


# ---- IRLS and the fast solver -----------------------------------------------------------------------------


def measure_solver(
    part: str, solver: str, problem: Problem, gap: float, seed: int, rules: Rules, progress: bool = False
) -> Record:
    """The median time of IRLS or FAST to a gap; fewer runs if they are long."""
    seconds: list[float] = []
    while len(seconds) < rules.runs and sum(seconds) < REPEAT_SECONDS:
        fresh = copy.copy(problem)
        with timed(rules.clock, seconds):
            s = SOLVERS[solver](fresh, gap, progress=progress)
    reached = s.certificate.relative_gap
    return Record(
        *(part, solver, *problem.shape, problem.lambda1, problem.lambda2, seed, gap),
        seconds=statistics.median(seconds) if reached <= gap else math.nan,
        reached=reached,
        setting=f"median of {len(seconds)}",
        runs=len(seconds),
        fused_share=fused_share(s),
        monotone=s.trace.is_monotone() if solver == "IRLS" and s.trace else None,
    )


def measure_path(
    problem: Problem, penalty: str, values: Sequence[float], gap: float, seed: int, rules: Rules
) -> list[Record]:
    """A warm-started path over lambda1 or lambda2, and the same points solved from nothing, in turns."""
    varied: tuple[Any, Any] = (values, None) if penalty == "lambda1" else (None, values)

    def warm() -> list[Solution]:
        return regularization_path(copy.copy(problem), *varied, tol=gap)

    def cold() -> list[Solution]:
        return [solve_fast(copy.copy(problem).with_lambdas(**{penalty: value}), gap) for value in values]

    ways = {"FAST path": warm, "FAST cold": cold}
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    worst = dict.fromkeys(ways, -math.inf)
    while len(seconds["FAST cold"]) < rules.runs and sum(seconds["FAST cold"]) < REPEAT_SECONDS:
        for name, way in ways.items():
            with timed(rules.clock, seconds[name]):
                solutions = way()
            worst[name] = max(worst[name], *(s.certificate.relative_gap for s in solutions))
    return [
        Record(
            *("path", name, *problem.shape, problem.lambda1, problem.lambda2, seed, gap),
            seconds=statistics.median(seconds[name]) if worst[name] <= gap else math.nan,
            reached=worst[name],
            setting=f"{penalty} {values[0]:g} to {values[-1]:g}",
            runs=len(seconds[name]),
            points=len(values),
        )
        for name in ways
    ]


def measure_new_rows(problem: Problem, n_rows: int, seed: int, rules: Rules, gap: float = 1e-8) -> Record:
    """Score new rows by joining the model fitted to `problem`; `points` is their number, `reached` the worst gap."""
    fitted = FittedRows(solve_fast(problem))
    rows = np.random.default_rng(seed + 1).normal(size=(n_rows, problem.shape[1]))
    seconds: list[float] = []
    for _ in range(rules.runs):
        with timed(rules.clock, seconds):
            worst = float(fitted.join(rows).relative_gap.max())
    return Record(
        *("new", "JOIN", *problem.shape, problem.lambda1, problem.lambda2, seed, gap),
        seconds=statistics.median(seconds) if worst <= gap else math.nan,
        reached=worst,
        runs=rules.runs,
        points=n_rows,
    )


def fused_share(s: Solution) -> float:
    """Share of the edges that the dual point shows fused: ||U_e|| <= 0.99 lambda1 omega_e.

    At the optimum U_e.d_e = lambda1 omega_e ||d_e||: d_e = 0 wherever U_e is inside its ball. A cautious count
    there, and an estimate at larger gaps, before rows of W are exactly equal.
    """
    live = s.problem.radii > 0
    norms = np.linalg.norm(s.certificate.U[live], axis=1)
    return float(np.mean(norms <= 0.99 * s.problem.radii[live])) if live.any() else math.nan


@contextmanager
def timed(clock: Callable[[], float], seconds: list[float]) -> Iterator[None]:
    """Append what the block takes; a gap that is missed goes into the record, not into a warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        began = clock()
        yield
        seconds.append(clock() - began)


@contextmanager
def blas_threads(threads: int) -> Iterator[None]:
    """The same number of BLAS and OpenMP threads for every solver in this process."""
    cp.installed_solvers()  # loads the solvers: a library can be limited only once it is there
    with threadpool_limits(threads):
        yield


# ---- in a process of its own ------------------------------------------------------------------------------


def measure_apart(part: str, cell: tuple[int, int, int, float, float], gap: float, rules: Rules) -> Record:
    """Make an `instance` and solve it once by FAST in a new process, and note that process's peak of memory."""
    record: Record = call_apart(_alone, part, cell, gap, rules)
    return record


def _alone(part: str, cell: tuple[int, int, int, float, float], gap: float, rules: Rules) -> Record:
    with blas_threads(rules.threads):
        record = measure_solver(part, "FAST", instance(*cell), gap, cell[2], replace(rules, runs=1), progress=True)
    return replace(record, peak_bytes=peak_memory())
