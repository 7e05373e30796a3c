"""Measuring conic solvers: seconds until a relative gap is *proved*, with the cheapest tolerance that reaches it.

A conic solver is run with tolerances from loose to tight. Each answer is certified after the clock has stopped, by
its own multipliers or by a dual point searched for from W, whichever proves more. Time to compile the model is
counted, once, and kept apart too.
"""

from __future__ import annotations

import copy
import math
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import cvxpy as cp

from llr_cvx.benchmarks.measure import Record, Rules
from llr_cvx.problem import Problem
from llr_cvx.proofs.certificate import shown_gap
from llr_cvx.solution import SolverError
from llr_cvx.solvers.conic import compiled
from llr_cvx.solvers.exact import formulate, solve_exact
from llr_cvx.verdicts.dual_search import certify

#: For each conic solver: its tolerances from loose to tight, and the options that one of them stands for.
TOLERANCES: dict[str, tuple[tuple[float, ...], Callable[[float], dict[str, Any]]]] = {
    "CLARABEL": ((1e-4, 1e-8, 1e-11), lambda t: {"tol_gap_abs": t, "tol_gap_rel": t, "tol_feas": t}),
    "SCS": (tuple(10.0**-k for k in range(3, 10)), lambda t: {"eps_abs": t, "eps_rel": t}),
}


@dataclass(frozen=True)
class Attempt:
    """One run of a conic solver: its tolerance, what it took and what could be proved of its W.

    `solved` is the solver's own word: False if it gave up before its tolerance, on iterations, time or progress.
    """

    setting: str
    seconds: float
    reached: float
    solved: bool = True


def attempts(
    problem: Problem, solver: str, target: float, rules: Rules, tell: Callable[[str], object]
) -> tuple[float, list[Attempt]]:
    """Seconds to compile, and runs from loose to tight until `target` is proved or the solver gives up."""
    tolerances, options = TOLERANCES[solver]
    limits = {"CLARABEL": {"time_limit": rules.time_limit, "max_threads": rules.threads}}
    limits["SCS"] = {"time_limit_secs": rules.time_limit}
    own = copy.copy(problem)
    began = rules.clock()
    compiled(own, formulate).problem.get_problem_data(solver)
    compile_seconds = rules.clock() - began
    done: list[Attempt] = []
    for tolerance in tolerances:
        tell(f"{solver} with tolerance {tolerance:.0e}, N = {own.shape[0]}, d = {own.shape[1]} ...")
        done.append(attempt(own, solver, f"{tolerance:.0e}", target, options(tolerance) | limits[solver], rules.clock))
        tell(f"{solver}: gap {shown_gap(done[-1].reached, '.1e')} proved after {done[-1].seconds:.2f} s")
        if done[-1].reached <= target or not done[-1].solved:
            break
    return compile_seconds, done


def attempt(
    problem: Problem, solver: str, setting: str, target: float, options: dict[str, Any], clock: Callable[[], float]
) -> Attempt:
    """One run on a compiled model, certified after the clock has stopped."""
    began = clock()
    try:
        # With this tol the multipliers are taken as they come: no time goes into the search for better ones.
        # Without warm_start=False, CVXPY would start from the answer to the looser tolerance.
        s = solve_exact(problem, solver, tol=sys.float_info.max, warm_start=False, **options)
    except SolverError:
        return Attempt(f"{setting}: no W", clock() - began, math.inf, solved=False)
    seconds = clock() - began
    reached = s.certificate.relative_gap
    if not reached <= target:
        reached = min(reached, certify(problem, s.W).relative_gap)
    return Attempt(setting, seconds, reached, compiled(problem, formulate).problem.status == cp.OPTIMAL)


def cheapest(done: Iterable[Attempt], gap: float) -> Attempt:
    """The quickest attempt that reaches the gap; if none does, the closest, with NaN for its time.

    >>> runs = [Attempt("loose", 1.0, 2e-4), Attempt("tight", 3.0, 5e-8)]
    >>> [cheapest(runs, gap).seconds for gap in (1e-3, 1e-6, 1e-9)]
    [1.0, 3.0, nan]
    """
    done = list(done)
    enough = [a for a in done if a.reached <= gap]
    if enough:
        return min(enough, key=lambda a: a.seconds)
    return replace(min(done, key=lambda a: a.reached), seconds=math.nan)


def measure_conic(
    problem: Problem, solver: str, gaps: Sequence[float], seed: int, rules: Rules, tell: Callable[[str], object]
) -> list[Record]:
    """One record a gap, all from the same few runs."""
    cell = ("race", solver, *problem.shape, problem.lambda1, problem.lambda2, seed)
    if solver not in cp.installed_solvers():
        return [Record(*cell, gap, math.nan, math.inf, math.nan, "not installed") for gap in gaps]
    compile_seconds, done = attempts(problem, solver, min(gaps), rules, tell)
    best = [(gap, cheapest(done, gap)) for gap in gaps]
    return [Record(*cell, g, compile_seconds + a.seconds, a.reached, compile_seconds, a.setting) for g, a in best]
