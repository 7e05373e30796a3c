"""What `llr-cvx detect` prints: the decision, and the outliers with their reasons."""

from __future__ import annotations

import math
from typing import Any

from llr_cvx.cli.options import say
from llr_cvx.detection.explanation import Explanation
from llr_cvx.detection.result import Detection
from llr_cvx.detection.screening import ROW_NUMBERING
from llr_cvx.detection.selection import LLRDetectorCV
from llr_cvx.proofs.certificate import shown_gap

#: A proven interval within this distance of log r is printed as log r +- that distance.
MAX_SYMMETRIC_REACH = 0.01


def how_chosen(run: Detection) -> dict[str, Any]:
    """How the lambdas were chosen, if they were not given."""
    if not isinstance(run.detector, LLRDetectorCV):
        return {}
    chosen = (run.detector.lambda1_, run.detector.lambda2_)
    return {"choice": {"reason": run.detector.curve_.reason(*chosen), **run.detector.curve_.as_dict()}}


def print_outliers(run: Detection, top: int, quiet: bool) -> None:
    """Print notes, decision and outliers; the worst rows if there is none."""
    solution, shown = run.detector.solution_, run.worst[:top]
    for note in [] if quiet else run.notes:
        say(f"note: {note}", err=True)
    for choice in how_chosen(run).values():
        say(choice["reason"])
    n = int((solution.problem.y < 0).sum())
    say(
        *run.decision(),
        f"base: log(n/n') = log({n}/{len(solution.problem.y) - n}) = {run.base:.4g}; "
        "a row's log r is this plus its contributions",
    )
    if run.numbered:
        say(ROW_NUMBERING)
    if not run.explanations and shown:
        say(f"the {len(shown)} lowest scores:" if len(shown) > 1 else "the lowest score:")
    for e in shown:
        _print_row(run, e)
    if len(run.explanations) > top:
        say("", f"... and {len(run.explanations) - top} more")
    say(
        "",
        f"{solution.solver}: {solution.status}, proven relative gap "
        f"{shown_gap(solution.certificate.relative_gap, '.1e')} (asked for {run.detector.tol:.0e}), "
        f"{solution.seconds:.2f} s",
    )


def _print_row(run: Detection, e: Explanation) -> None:
    p = run.pvalues[e.row - len(run.inliers)]
    say(
        "",
        f"#{e.rank} {run.name_of(e.row)}: {f'p = {p:.3g}, ' if run.held_out else ''}r = {e.ratio:.4g}, "
        f"log r = {e.log_ratio:.4g} = base {'-' if e.log_ratio < run.base else '+'} {abs(e.log_ratio - run.base):.4g} "
        f"(proven {_interval(e)}{'' if e.certain else ': crosses the threshold'})",
        *e.details(),
    )
    if e.shares_with:
        others = [run.name_of(row) for row in e.shares_with[:10]]
        more = e.group_size - 1 - len(others)
        say(f"    same reasons as: {', '.join(others)}{f' and {more} more' if more else ''}")


def _interval(e: Explanation) -> str:
    """Both ends, or +- the larger distance if four digits would not distinguish them from log r."""
    low, high = e.interval
    reach = max(high - e.log_ratio, e.log_ratio - low)
    return f"± {_rounded_up(reach)}" if reach <= MAX_SYMMETRIC_REACH else f"{low:.4g} to {high:.4g}"


def _rounded_up(reach: float) -> str:
    """One significant digit, never less than `reach`."""
    if reach <= 0:
        return "0"
    unit = 10.0 ** math.floor(math.log10(reach))
    return f"{math.ceil(reach / unit) * unit:.0e}"
