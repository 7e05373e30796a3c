"""What `llr-cvx bench` measures, job by job; finished jobs are kept, so that an interrupted run can go on."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache, partial
from typing import Any

import numpy as np

from llr_cvx.benchmarks import conic, measure, sensitivity
from llr_cvx.benchmarks.measure import Record, Rules
from llr_cvx.benchmarks.sensitivity import Effect
from llr_cvx.problem import Problem
from llr_cvx.progress import Pace
from llr_cvx.proofs.certificate import shown_gap
from llr_cvx.store import Journal

Tell = Callable[[str], object]

#: What --quick leaves out: conic solvers above this d, and sizes above this N.
QUICK_D, QUICK_N = 10, 4_000

#: Growth with N is measured at this d, growth with d at this N. Up to IRLS_N, IRLS is measured beside FAST.
SIZE_D, DIM_N, IRLS_N = 20, 1_000, 16_000

PARTS = ("race", "size", "dim", "path", "plane", "coupled", "large", "million", "new", "settings")
#: New rows scored in the part "new", and rough seconds for all of them.
NEW_ROWS, NEW_COST = 20_000, 6.0
#: Where a path begins and ends, as multiples of its lambda: the more points per decade, the more a warm start saves.
SPANS = ((0.1, 1.0), (0.1, 10.0))

#: The plane of penalties.
LAMBDA1S, LAMBDA2S = (0.001, 0.01, 0.1, 1.0, 10.0), (0.01, 0.1, 1.0, 10.0)

#: N and d of what runs in a process of its own.
APART = {"large": (100_000, 20), "million": (1_000_000, 5)}

#: Rough seconds on one core, for the time left: of one run of FAST per row and feature, of a conic solver at d = 50
#: with all its tolerances, and of one setting.
FAST_COST, CONIC_COST, SETTING_COST = 5e-5, {"CLARABEL": 270.0, "SCS": 60.0}, 6.0


@dataclass(frozen=True)
class Job:
    """One thing to measure."""

    name: str  # what it is, in words; identifies it among the jobs of a run
    cost: float  # rough seconds that it takes
    run: Callable[[], Sequence[Record | Effect]]


def jobs(parts: Sequence[str], o: dict[str, Any], rules: Rules, tell: Tell) -> list[Job]:
    """The jobs of every part asked for, seed by seed; `o` are the options of the command."""
    found = [job for seed in o["seeds"] for job in _of_seed(parts, o, seed, rules, tell)]
    cases = cache(sensitivity.warmed_cases)  # made when the first of the settings is measured

    def effects(name: str) -> list[Effect]:
        return sensitivity.effects(name, cases(), rules.clock, tell)

    names = o["only"] or tuple(sensitivity.tuned()) if "settings" in parts else ()
    return found + [Job(f"settings: {name}", SETTING_COST, partial(effects, name)) for name in names]


def _of_seed(parts: Sequence[str], o: dict[str, Any], seed: int, rules: Rules, tell: Tell) -> Iterator[Job]:
    lambdas = (o["lambda1"], o["lambda2"])
    both, runs = tuple(measure.SOLVERS), min(rules.runs, 5)

    def paper(d: int) -> Problem:
        return measure.instance(o["rows"], d, seed, *lambdas)

    def one(part: str, solver: str, N: int, d: int, penalties: tuple[float, ...], gap: float) -> list[Record]:
        problem = measure.instance(N, d, seed, *penalties)
        return [measure.measure_solver(part, solver, problem, gap, seed, rules, progress=N >= 5_000)]

    def own(part: str, N: int, d: int, gap: float, *given: float, solvers: Sequence[str] = ("FAST",)) -> Iterator[Job]:
        penalties = given or lambdas
        for solver in solvers:
            where = f"lambda1 = {penalties[0]:g}, lambda2 = {penalties[1]:g}, seed {seed}"
            name = f"{part}: {solver} to {gap:.0e}, N = {N:,}, d = {d}, {where}"
            cost = FAST_COST * N * d * runs * (2 if solver == "IRLS" else 1)
            yield Job(name, cost, partial(one, part, solver, N, d, penalties, gap))

    def race(d: int, solver: str) -> list[Record]:
        return conic.measure_conic(paper(d), solver, o["gaps"], seed, rules, tell)

    def apart(part: str, cell: tuple[int, int, int, float, float]) -> list[Record]:
        return [measure.measure_apart(part, cell, 1e-4, rules)]

    def path(d: int, span: tuple[float, float]) -> list[Record]:
        values = o[o["along"]] * np.geomspace(*span, o["points"])[:: -1 if o["descending"] else 1]
        return measure.measure_path(paper(d), o["along"], values.tolist(), o["gap"] or 1e-6, seed, rules)

    if "race" in parts:
        for d in o["dims"]:
            for gap in o["gaps"]:
                yield from own("race", o["rows"], d, gap, solvers=both)
            for solver in conic.TOLERANCES if not (o["quick"] and d > QUICK_D) else ():
                cost = CONIC_COST[solver] * (d / 50) * o["rows"] / 310
                yield Job(f"race: {solver}, d = {d}, seed {seed}", cost, partial(race, d, solver))
    if "size" in parts:
        for N in (N for N in o["sizes"] if not (o["quick"] and N > QUICK_N)):
            yield from own("size", N, SIZE_D, 1e-4, solvers=both if N <= IRLS_N else ("FAST",))
    if "dim" in parts:
        for d in o["growing"]:
            yield from own("dim", DIM_N, d, 1e-4)
    if "path" in parts:
        for d, span in itertools.product(o["dims"], SPANS):
            where = f"{span[0]:g} to {span[1]:g} times, N = {o['rows']}, d = {d}, seed {seed}"
            cost = 2 * FAST_COST * o["points"] * o["rows"] * d * runs
            yield Job(f"path of {o['points']} points, {where}", cost, partial(path, d, span))
    if "plane" in parts:
        for d, *penalties in itertools.product(o["dims"], LAMBDA1S, LAMBDA2S):
            yield from own("plane", o["rows"], d, o["gap"] or 1e-9, *penalties, solvers=both)
    if "coupled" in parts:
        yield from own("coupled", 5_000, 20, 1e-4, 1.0, o["lambda2"])
    if "new" in parts:

        def joined() -> list[Record]:
            return [measure.measure_new_rows(paper(SIZE_D), NEW_ROWS, seed, rules)]

        name = f"new: {NEW_ROWS:,} new rows, N = {o['rows']}, d = {SIZE_D}, seed {seed}"
        yield Job(name, NEW_COST * runs, joined)
    for part, (N, d) in APART.items():
        if part in parts:
            name = f"{part}: FAST to 1e-4, N = {N:,}, d = {d}, seed {seed}, in its own process"
            yield Job(name, FAST_COST * N * d, partial(apart, part, (N, d, seed, *lambdas)))


def run_jobs(todo: Iterable[Job], journal: Journal, tell: Tell) -> tuple[list[Record], list[Effect]]:
    """All records, ordered for the tables, and all effects; what the journal holds is not measured again."""
    todo = list(todo)
    pace = Pace(sum(job.cost for job in todo if job.name not in journal.done))
    records: list[Record] = []
    effects: list[Effect] = []
    for number, job in enumerate(todo, start=1):
        if job.name not in journal.done:
            tell(f"[{number}/{len(todo)}{pace.left()}] {job.name} ...")
            found = job.run()
            journal.keep(job.name, list(map(asdict, found)))
            pace.advance(job.cost)
            for r in found:
                if isinstance(r, Record):
                    tell(f"  {r.solver}: gap {shown_gap(r.reached, '.1e')} proved after {r.seconds:.3f} s")
        for row in journal.done[job.name]:
            if "part" in row:
                records.append(Record(**row))
            else:
                effects.append(Effect(**row))
    solvers = {name: k for k, name in enumerate((*measure.SOLVERS, *conic.TOLERANCES))}
    records.sort(key=lambda r: (PARTS.index(r.part), r.N, r.d, -r.gap, solvers.get(r.solver, 0)))
    return records, sensitivity.ranked(effects)
