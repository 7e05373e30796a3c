"""How much each tuned number of the solvers matters: time and missed gaps with a third of it and with three times it.

A number is changed in `llr_cvx.solvers.settings` while a fixed set of problems (`cases`) is solved. Times are single
runs, compared with those of the defaults just before: a mean ratio is good to a few percent, the largest is rougher.
"""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import geometric_mean
from typing import Any

from llr_cvx.benchmarks.measure import SOLVERS, instance, timed
from llr_cvx.benchmarks.tables import times
from llr_cvx.instances.varied import varied_problem
from llr_cvx.problem import Problem
from llr_cvx.solvers import settings

Case = tuple[Problem, float]  # and the gap to prove

#: Numbers below 1 stay below 1, and these below a bound of their own.
BELOW = {"RELAX": 2.0}


@dataclass(frozen=True)
class Effect:
    """One number changed; by solver, the mean and the largest time ratio to the default, and gaps missed."""

    name: str
    default: Any
    tried: Any
    by_solver: dict[str, tuple[float, float, int]]


def tuned() -> dict[str, Any]:
    """Every number in `settings`."""
    return {name: value for name, value in vars(settings).items() if name.isupper()}


def scaled(name: str, value: Any, factor: float) -> Any:
    """The number times a factor, to three digits: whole numbers stay whole and positive, shares below 1.

    >>> scaled("MAX_HELD", 8, 1 / 3), scaled("INNER_CG", 1, 1 / 3), scaled("TUNING_ROUNDS", (4, 10), 3.0)
    (3, 1, (12, 30))
    >>> scaled("EPSILON_SHRINK", 0.2, 3.0), scaled("MAX_FUSED", 0.9, 3.0), scaled("RELAX", 1.7, 3.0)
    (0.6, 0.95, 1.85)
    """
    if isinstance(value, tuple):
        return tuple(scaled(name, v, factor) for v in value)
    if isinstance(value, int):
        return max(1, round(factor * value))
    bound = BELOW.get(name, 1.0 if value < 1.0 else math.inf)
    return float(f"{factor * value if factor * value < bound else 0.5 * (bound + value):.3g}")


@contextmanager
def changed(name: str, value: Any) -> Iterator[None]:
    """Another value for one setting, within this context only."""
    default = getattr(settings, name)
    setattr(settings, name, value)
    try:
        yield
    finally:
        setattr(settings, name, default)


def cases() -> list[Case]:
    """Cells of the paper's data, N = 1,000 and three varied problems, to gaps of 1e-6 and 1e-9."""
    cells = [((310, 10), 1e-6), ((310, 10), 1e-9), ((310, 50), 1e-6), ((310, 50), 1e-9), ((1000, 20), 1e-6)]
    found = [(instance(N, d, seed=0), tol) for (N, d), tol in cells]
    found += [(instance(310, 10, 0, lambda1, 0.1), tol) for lambda1, tol in ((0.01, 1e-9), (1.0, 1e-6))]
    return found + [(varied_problem(seed), tol) for seed in (0, 3, 6) for tol in (1e-6, 1e-9)]


def run(solver: str, problems: Iterable[Case], clock: Callable[[], float]) -> tuple[list[float], int]:
    """Seconds of each solve, and how many missed their gap."""
    seconds: list[float] = []
    missed = 0
    for problem, tol in problems:
        with timed(clock, seconds):
            s = SOLVERS[solver](copy.copy(problem), tol, time_limit=10.0)  # slower counts as missed
        missed += s.status != "optimal"
    return seconds, missed


def warmed_cases() -> list[Case]:
    """The cases, each solved once, since the first run is slower."""
    found = cases()
    for k in SOLVERS:
        run(k, found, time.perf_counter)
    return found


def effects(name: str, problems: list[Case], clock: Callable[[], float], tell: Callable[[str], object]) -> list[Effect]:
    """One number changed both ways."""
    found = []
    default = tuned()[name]
    base = {k: run(k, problems, clock)[0] for k in SOLVERS}  # anew for each number: a machine's speed drifts
    for tried in (scaled(name, default, factor) for factor in (1 / 3, 3.0)):
        tell(f"{name} = {tried} instead of {default} ...")
        found.append(Effect(name, default, tried, {}))
        for k in SOLVERS:
            with changed(name, tried):
                seconds, missed = run(k, problems, clock)
            ratios = [a / b for a, b in zip(seconds, base[k], strict=True)]
            found[-1].by_solver[k] = (geometric_mean(ratios), max(ratios), missed)
    return found


def ranked(found: list[Effect]) -> list[Effect]:
    """Gaps missed first, then the largest change of the mean time."""

    def weight(e: Effect) -> tuple[int, float]:
        means, _, missed = zip(*e.by_solver.values(), strict=True)
        return sum(missed), max(abs(math.log(mean)) for mean in means)

    return sorted(found, key=weight, reverse=True)


def table(found: list[Effect]) -> str:
    """The effects as text, at most 100 columns wide."""
    layout = "  {:<20} {:>10} {:>10}" + "  {:>7} {:>7} {:>6}" * len(SOLVERS)
    lines = ["Settings divided and multiplied by 3: mean and largest time ratio to the default, gaps missed"]
    lines += [layout.format("", "default", "tried", *(x for k in SOLVERS for x in (k, "largest", "missed")))]
    for e in found:
        numbers = (x for mean, most, missed in e.by_solver.values() for x in (times(mean), times(most), missed))
        lines.append(layout.format(e.name, str(e.default), str(e.tried), *numbers))
    return "\n".join(lines)
