"""From an answer to a row: what is proved about it, what it claimed falsely, and where it fails. Nothing is believed.

A W is proved optimal by its J, recomputed with a bound on all rounding errors, and a proven lower bound of J*: that of
the instance library, of the entry's own dual point, or of a search. Claims and reported values only count against an
entry: they are compared with what is proved, and a claim that is false makes the row "false claim".
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from llr_cvx import checker
from llr_cvx.arena.answers import Answer
from llr_cvx.arena.sandbox import Limits, Outcome
from llr_cvx.arrays import FloatArray
from llr_cvx.problem import Problem
from llr_cvx.proofs.certificate import feasible
from llr_cvx.solution import first_rise
from llr_cvx.solvers.smoothing import smoothed_objective
from llr_cvx.verdicts.weights import LISTED, Reference, Verdict, judge, verify

#: What a row can say, in words.
STATUSES = {
    "proved": "J(W) - J* <= tol J(W) is proved",
    "not proved": "a W, but not proved optimal to tol; the interval says how far off it is at least and at most",
    "false claim": "what the entry reported about its answer is proved to be false",
    "invalid": "no W that could be judged, or the entry changed what it must not touch",
    "crash": "the process failed, or exceeded its memory",
    "timeout": "no answer within the time limit",
}
#: An objective that rises by no more than this, relatively, has not risen.
RISE_RTOL = 1e-12
#: A claim is false if it is wrong by more than this, relatively: more than the arithmetic of any honest solver.
CLAIM_RTOL = 1e-9
#: Relative gaps to which times are measured.
LEVELS = (1e-3, 1e-6, 1e-9)
#: Points kept of the curve of the gap against time.
CURVE_POINTS = 100


@dataclass
class Row:
    """What is known about one entry on one problem. Everything but `claims` is measured or recomputed."""

    status: str = ""  #: one of `STATUSES`
    reason: str = ""  #: why, in words
    accepted: bool = False  #: whether the status is "proved"
    suboptimality: tuple[float, float] | None = None  #: proven interval of J(W) - J*; None where there is no W
    objective: float | None = None  #: J(W)
    relative_gap: float | None = None  #: the upper end of the interval as a share of it
    seconds: float = 0.0  #: on the entry's clock; of the whole process for a program
    cpu_seconds: float = 0.0  #: likewise, of the processor
    #: peak in bytes of the process with its descendants, the interpreter included; 0 if too short to be seen
    memory: int = 0
    iterates: int = 0  #: how many there were
    judged_iterates: int = 0  #: how many were kept: all up to 1000, then fewer and fewer of the later ones
    monotone: bool | None = None  #: whether J of the iterates never rises
    first_rise: int | None = None  #: the first judged iterate at which J is larger than before
    monotone_smoothed: bool | None = None  #: J_epsilon, with the epsilon that the entry gave for each
    #: seconds to relative gaps of `LEVELS`, from the iterates; None where not reached
    time_to: dict[str, float | None] = field(default_factory=dict)
    stamped_by: str = ""  #: who took the times of the iterates: "runner", "system" (when a file was written), "entry"
    violations: Mapping[str, float] = field(default_factory=dict)  #: this and the next four as in `Verdict`
    worst_samples: list[int] = field(default_factory=list)
    should_be_zero: list[list[int]] = field(default_factory=list)
    should_be_fused: list[list[int]] = field(default_factory=list)
    residuals: Mapping[str, float] = field(default_factory=dict)
    claims: Mapping[str, Any] = field(default_factory=dict)
    curve: list[tuple[float, float]] = field(default_factory=list)  #: time and relative gap of the iterates, thinned
    notes: list[str] = field(default_factory=list)
    output: str = ""  #: the end of what a failed entry printed
    judge_seconds: float = 0.0  #: processor time of judging


class Known(NamedTuple):
    """What is known about the optimum: lower <= J* <= upper, and a reference point, which may take a solve."""

    lower: float
    upper: float
    point: Callable[[], Reference]
    ready: bool = True


def judge_run(
    problem: Problem, known: Known | None, outcome: Outcome, answer: Answer, tol: float, limits: Limits
) -> Row:
    """The row of one run; where nothing is known about the optimum, a proof is searched for."""
    began = time.process_time()
    seconds = min(float(answer.facts.get("seconds", outcome.seconds)), outcome.seconds)
    row = Row(
        seconds=seconds,
        cpu_seconds=float(answer.facts.get("cpu_seconds", outcome.cpu_seconds)),
        memory=max(outcome.memory, int(answer.facts.get("memory", 0))),
        iterates=int(answer.facts.get("iterates", len(answer.iterates))),
        judged_iterates=len(answer.iterates),
        claims={name: value for name, value in answer.claims.items() if name != "trace"},
        notes=[*answer.notes, *outcome.notes()],
    )
    row.status, row.reason = outcome.failure(limits)
    if answer.fault and not row.status:
        row.status, row.reason = "invalid", answer.fault
    stopped = answer.facts.get("stopped")
    W = _stopped_at(answer, limits.seconds) if stopped else answer.W
    if not row.status and (W is None or (seconds > limits.seconds and not stopped)):
        row.status, row.reason = "timeout", f"no answer within {limits.seconds:g} s"
    if row.status:
        row.output = (outcome.stderr or outcome.stdout)[-2000:]
    else:
        assert W is not None
        if stopped:
            answer.claims = {}  # they belong to an iterate after the limit
            row.notes.append(f"stopped at the time limit of {limits.seconds:g} s: judged by its last iterate before")
        _judge_answer(row, problem, W, answer, known, tol, limits)
    row.accepted = row.status == "proved"
    row.judge_seconds = time.process_time() - began
    return row


def _stopped_at(answer: Answer, limit: float) -> FloatArray | None:
    """The last iterate before the limit."""
    if answer.stamps is None:
        return None
    within = np.flatnonzero(answer.stamps <= limit)
    return answer.iterates[int(within[-1])] if within.size else None


def _judge_answer(
    row: Row, problem: Problem, W: FloatArray, answer: Answer, known: Known | None, tol: float, limits: Limits
) -> None:
    own = _own_point(problem, answer)
    v, dual_point = _verdict(problem, W, known, own, tol, limits)
    J, (low, high) = v.objective, v.suboptimality
    lower, upper = J - high, min(J, v.reference, math.inf if known is None else known.upper)
    row.suboptimality, row.objective, row.relative_gap = (low, high), J, high / J if J > 0 else math.inf
    if dual_point:
        row.violations, row.residuals = dict(v.violations), v.residuals._asdict()
        row.worst_samples = v.worst_samples[:LISTED].tolist()
        row.should_be_zero = v.should_be_zero[:LISTED].tolist()
        row.should_be_fused = v.should_be_fused[:LISTED].tolist()
    values = np.array([problem.objective(iterate) for iterate in answer.iterates])
    _judge_iterates(row, problem, answer, values, lower)
    lies = _false_claims(J, lower, upper, own.lower if own else None, values, answer, row.notes)
    row.status = "false claim" if lies else "proved" if v.accepted else "not proved"
    row.reason = "; ".join(lies) if lies else "" if v.accepted else _why(v)


def _own_point(problem: Problem, answer: Answer) -> Reference | None:
    """The entry's own dual point, made feasible, with what it proves; None if it gave none."""
    if answer.alpha is None or answer.U is None or answer.W is None:
        return None
    data = tuple(getattr(problem, name) for name in checker.PROBLEM)
    alpha, U = feasible(problem, answer.alpha, answer.U)
    with np.errstate(all="ignore"):
        return Reference(answer.W, alpha, U, checker.dual(data, alpha, U)[0])


def _verdict(
    problem: Problem, W: FloatArray, known: Known | None, own: Reference | None, tol: float, limits: Limits
) -> tuple[Verdict, bool]:
    """The verdict, and whether it has a dual point to explain a gap with.

    A proof takes bounds of J* alone, so a reference point that needs a solve is asked for only if there is none.
    """
    if known is None:
        v = judge(problem, W, tol, own) if own else None
        return (v if v and v.accepted else verify(problem, W, tol, time_limit=limits.seconds)), True
    lower, upper = max(known.lower, own.lower if own else 0.0), known.upper
    if not known.ready:
        point = own or Reference(W, problem.alpha(W), np.zeros((len(problem.edges), problem.shape[1])))
        v = judge(problem, W, tol, point._replace(W=W, lower=lower, upper=upper))
        if own or v.accepted:
            return v, own is not None
    return judge(problem, W, tol, known.point()._replace(lower=lower, upper=upper)), True


def _why(v: Verdict) -> str:
    """In one line: which optimality condition fails most, and where."""
    if not math.isfinite(v.objective):
        return "J(W) overflows"
    low, high = (f"{bound / v.objective:.1e}" if v.objective > 0 else "inf" for bound in v.suboptimality)
    words = f"J(W) may exceed J* by {high} of it"
    if v.suboptimality[0] > 0:
        words = f"J(W) exceeds J* by {high if low == high else f'{low} to {high}'} of it"
    total = sum(v.violations.values())
    if 0 < total < math.inf:
        worst = max(v.violations, key=lambda name: v.violations[name])
        words += f"; {v.violations[worst] / total:.0%} of the gap is in {worst}"
        words += f"; worst sample {v.worst_samples[0]}" if len(v.worst_samples) else ""
    words += f"; {len(v.should_be_zero)} coordinate(s) should be zero" if len(v.should_be_zero) else ""
    return words + (f"; {len(v.should_be_fused)} edge(s) should be fused" if len(v.should_be_fused) else "")


def _judge_iterates(row: Row, problem: Problem, answer: Answer, values: FloatArray, lower: float) -> None:
    """Monotone or not, times to the levels, and the curve, all from J recomputed at the iterates."""
    if not len(values):
        return
    row.first_rise = first_rise(values, RISE_RTOL)
    row.monotone = row.first_rise is None
    epsilons = answer.epsilons
    if epsilons is not None and (smooth := np.flatnonzero(np.nan_to_num(epsilons) > 0)).size:
        J_epsilon = np.array([smoothed_objective(problem, answer.iterates[k], float(epsilons[k])) for k in smooth])
        shrinks = bool(np.all(np.diff(epsilons[smooth]) <= 0))
        row.monotone_smoothed = shrinks and first_rise(J_epsilon, RISE_RTOL) is None
    if answer.stamps is None:
        row.notes.append("iterates without times")
        return
    row.stamped_by = answer.stamped_by
    stamps = np.clip(answer.stamps, 0.0, None)
    gaps = np.maximum((values - lower) / values, 0.0)
    for level in LEVELS:
        reached = np.flatnonzero(gaps <= level)
        row.time_to[f"{level:.0e}"] = float(stamps[reached[0]]) if reached.size else None
    shown = np.unique(np.geomspace(1, len(gaps), CURVE_POINTS).astype(int)) - 1
    row.curve = [(float(stamps[k]), float(gaps[k])) for k in shown]


def _false_claims(
    J: float, lower: float, upper: float, own: float | None, values: FloatArray, answer: Answer, notes: list[str]
) -> list[str]:
    """Claims that are proved false: about J(W), about the optimum, and about the iterates.

    `lower` and `upper` enclose J*, `own` is what the entry's dual point proves, `values` are J of its iterates. Claims
    that are wrong to its own disadvantage, or that nothing is known about, become notes.
    """
    found = []
    room = CLAIM_RTOL * max(J, 1e-300)
    claimed = answer.claims.get("objective")
    if claimed is not None and not claimed >= J - room:
        found.append(f"it claims J(W) = {claimed:.12g}, but J(W) = {J:.12g}")
    elif claimed is not None and not claimed <= J + room:
        notes.append(f"it claims J(W) = {claimed:.12g}, which is too large: J(W) = {J:.12g}")
    dual = answer.claims.get("dual")
    if dual is not None and not dual <= upper + room:
        found.append(f"it claims J* >= {dual:.12g}, but J* <= {upper:.12g} is proved")
    elif dual is not None and own is not None and not dual <= own + room:
        found.append(f"it claims J* >= {dual:.12g}, but its dual point proves {own:.12g} only")
    if answer.values is not None and len(values):
        said = answer.values
        with np.errstate(invalid="ignore"):
            wrong = np.flatnonzero(np.abs(said - values) > CLAIM_RTOL * np.abs(values))
        if wrong.size:
            k = int(wrong[0])
            found.append(f"it reports J = {said[k]:.12g} for iterate {k}, but J = {values[k]:.12g}")
    trace = np.array(answer.claims.get("trace", []), dtype=float)
    below = np.flatnonzero(trace < lower - room)
    if below.size:
        found.append(f"its trace holds {trace[below[0]]:.12g}, but J* >= {lower:.12g} is proved")
    elif trace.size and len(trace) != len(values):
        notes.append(f"its trace of {len(trace)} values comes without their iterates: not counted")
    return found
