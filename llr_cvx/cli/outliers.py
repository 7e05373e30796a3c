"""What `llr-cvx detect` prints: the decision, and the outliers with their reasons."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import ROUND_CEILING, Context

from llr_cvx.cli.options import say
from llr_cvx.detection.explanation import Explanation
from llr_cvx.detection.result import Detection
from llr_cvx.detection.screening import ROW_NUMBERING
from llr_cvx.proofs.certificate import shown_gap

#: A proven interval within this distance of log r is printed as log r +- that distance.
MAX_SYMMETRIC_REACH = 0.01


def print_outliers(run: Detection, top: int, quiet: bool) -> None:
    """Print notes, decision and outliers; the worst rows if there is none."""
    solution, shown, more = run.detector.solution_, run.worst[:top], len(run.explanations) - top
    say(*(f"note: {note}" for note in run.notes if not quiet), err=True)
    say(*filter(None, [run.chosen]), *run.decision())
    n = int((solution.problem.y < 0).sum())
    base = f"base: log(n/n') = log({n}/{len(solution.problem.y) - n}) = {run.base:.4g}"
    say(f"{base}; a row's log r is this plus its contributions")
    if run.numbered:
        say(ROW_NUMBERING)
    if shown and not run.explanations:
        say(f"the {len(shown)} lowest scores:" if len(shown) > 1 else "the lowest score:")
    for e in shown:
        say("", *_lines(run, e))
    if more > 0:
        say("", f"... and {more} more")
    gap = shown_gap(solution.certificate.relative_gap, ".1e")
    accuracy = f"proven relative gap {gap} (asked for {run.detector.tol:.0e})"
    say("", f"{solution.solver}: {solution.status}, {accuracy}, {solution.seconds:.2f} s")


def _lines(run: Detection, e: Explanation) -> Iterator[str]:
    p = f"p = {run.pvalues[e.row - len(run.inliers)]:.3g}, " if run.held_out else ""
    part = f"base {'-' if e.log_ratio < run.base else '+'} {abs(e.log_ratio - run.base):.4g}"
    proof = f"proven {_interval(e)}{'' if e.certain else ': crosses the threshold'}"
    yield f"#{e.rank} {run.name_of(e.row)}: {p}r = {e.ratio:.4g}, log r = {e.log_ratio:.4g} = {part} ({proof})"
    yield from e.details()
    if e.shares_with:
        others = [run.name_of(row) for row in e.shares_with[:10]]
        more = e.group_size - 1 - len(others)
        yield f"    same reasons as: {', '.join(others)}{f' and {more} more' if more else ''}"


def _interval(e: Explanation) -> str:
    """Both ends, or +- the larger distance, rounded up, if four digits would not distinguish them from log r."""
    low, high = e.interval
    reach = max(high - e.log_ratio, e.log_ratio - low, 0.0)
    if not 0.0 < reach <= MAX_SYMMETRIC_REACH:
        return f"{low:.4g} to {high:.4g}" if reach else "± 0"
    return f"± {float(Context(1, ROUND_CEILING).create_decimal_from_float(reach)):.0e}"
