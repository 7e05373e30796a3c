"""The conclusion, in sentences chosen and filled in by the results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from llr_cvx.experiments.benchmarks import BENCHMARKS
from llr_cvx.experiments.ceilings import above
from llr_cvx.experiments.forensics.readings import TEST
from llr_cvx.experiments.forensics.report import Evidence, honest, leaks
from llr_cvx.experiments.printed import TABLE2
from llr_cvx.experiments.study import noise
from llr_cvx.experiments.tables import Finding, listed

Row = Mapping[str, Any]

#: A reading is rejected where its means differ from the printed ones with a chance below this.
REJECTED = 0.001


def findings(items: Sequence[Evidence], fresh: Sequence[Evidence], ceilings: Sequence[Row]) -> list[Finding]:
    """What was tried, what came out, and what it means.

    `fresh` are the default, the closest reading on test rows and the leaks, on draws that took no part in the choice.
    """
    own, leaky = honest(items), leaks(items)
    best, *leaked = (next(i for i in fresh if i.measure == TEST and i.name == own[0].name), *leaks(fresh))
    closest = min(leaked, key=lambda item: item.distance)
    return [
        Finding("The column", _column(fresh[0])),
        Finding("Readings on test rows", _own(own, best)),
        Finding("Leaks", _leaks(leaky, leaked)),
        Finding("Ceilings", _ceilings(ceilings, own)),
        Finding("Conclusion", _conclusion(own, best, closest, ceilings)),
    ]


def _column(default: Evidence) -> str:
    printed = np.array([TABLE2[name]["llr"].mean for name in BENCHMARKS])
    low = [name for name, here, there in zip(BENCHMARKS, default.means, printed, strict=True) if here < there]
    return (
        f"under the default protocol, on {default.aucs.shape[1]} draws, LLR averages {default.means.mean():.3f} over "
        f"the sets; the printed column averages {printed.mean():.3f}. It is lower here on {len(low)} of "
        f"{len(BENCHMARKS)} sets, at a distance of {default.distance:.2f} printed standard deviations."
    )


def _own(own: Sequence[Evidence], best: Evidence) -> str:
    trials, fresh = own[0].aucs.shape[1], best.aucs.shape[1]
    near = sum(item.distance <= own[0].distance + 2 * own[0].error for item in own)
    return (
        f"{len(own)} readings were tried, with {trials} trials each, at distances from {own[0].distance:.2f} to "
        f"{own[-1].distance:.2f}; {near} are within two standard errors of the smallest. The closest is "
        f"{own[0].name}, {own[0].distance:.2f} ± {own[0].error:.2f}; on {fresh} fresh draws, {best.distance:.2f} ± "
        f"{best.error:.2f} with {best.within} of {len(BENCHMARKS)} sets within half a standard deviation. Were it "
        f"the paper's own, sampling alone would give {noise(fresh)[0]:.2f}; it is {_verdict(best)}."
    )


def _leaks(leaky: Sequence[Evidence], fresh: Sequence[Evidence]) -> str:
    each = [
        f"{item.name} has a mean of {item.means.mean():.3f} and a distance of {item.distance:.2f} ± "
        f"{item.error:.2f}, with {item.within} sets within half a standard deviation, and is {_verdict(item)}"
        for item in fresh
    ]
    return (
        f"{len(leaky)} readings were also judged with a leak, at distances from {leaky[0].distance:.2f} to "
        f"{leaky[-1].distance:.2f}. On {fresh[0].aucs.shape[1]} fresh draws and over all pooled rows, "
        f"{'; '.join(each)}."
    )


def _verdict(item: Evidence) -> str:
    return (
        f"rejected as an exact account (p = {item.p:.1g})" if item.p < REJECTED else f"not rejected (p = {item.p:.2f})"
    )


def _ceilings(rows: Sequence[Row], own: Sequence[Evidence]) -> str:
    higher = [row for row in rows if above(row)]
    each = [
        f"{row['set']}, {row['paper_mean']:.3f} against {row['logistic']:.3f} (logistic) and {row['forest']:.3f} "
        "(forest)"
        for row in higher
    ]
    tops = [
        f"{_beyond(row, own) or 'none'} on {row['set']} (highest mean "
        f"{max(item.means[BENCHMARKS.index(row['set'])] for item in own):.3f})"
        for row in higher
    ]
    repeated = min(rows, key=lambda row: row["distinct_rows"] / row["rows"])
    return (
        "the printed mean of LLR, which is given no label of an outlier, exceeds by more than two standard errors "
        f"what classifiers with all labels reach in cross-validation on {len(higher)} of {len(rows)} sets: "
        f"{listed(each)}. Readings that do so, of {len(own)} with {own[0].aucs.shape[1]} trials each: {listed(tops)}. "
        f"On {repeated['set']}, with "
        f"{repeated['distinct_rows']} distinct rows among {repeated['rows']}, no fixed function of x can exceed "
        f"{repeated['in-sample']:.3f} on the rows that it was fitted to; {repeated['paper_mean']:.3f} is printed."
    )


def _beyond(ceiling: Row, own: Sequence[Evidence]) -> int:
    """How many readings exceed, by more than two standard errors, what both classifiers reach on a set."""
    k, top = BENCHMARKS.index(ceiling["set"]), max(ceiling["logistic"], ceiling["forest"])
    trials = [item.aucs[k][np.isfinite(item.aucs[k])] for item in own]
    return sum(bool(auc.mean() - 2 * auc.std(ddof=1) / np.sqrt(len(auc)) > top) for auc in trials)


def _conclusion(own: Sequence[Evidence], best: Evidence, leak: Evidence, ceilings: Sequence[Row]) -> str:
    higher = [row for row in ceilings if above(row)]
    never = [row["set"] for row in higher if not _beyond(row, own)]
    if best.p >= REJECTED:
        return (
            f"the printed column can be explained on test rows: {best.name} is not rejected. No leak is needed; that "
            f"it was found among {len(own)} readings still asks for a confirmation by the authors."
        )
    gain = best.distance - leak.distance
    error = float(np.hypot(best.error, leak.error))
    if gain > 2 * error:
        why = (
            f"counting the known inliers among the rows that are judged ({leak.name}) comes closer than any reading on "
            f"test rows, by {gain:.2f} ± {error:.2f}"
        )
    else:
        why = f"not even a leak comes clearly closer (gain {gain:.2f} ± {error:.2f})"
    exact = "and is not rejected" if leak.p >= REJECTED else "but is itself rejected as an exact account"
    sets = listed([row["set"] for row in higher])
    alone = f", and no reading does so on {listed(never)}" if never else ""
    return (
        f"LLR's printed column does not reproduce as the AUC on test rows of the model as written: of {len(own)} "
        f"readings none is closer than {own[0].distance:.2f}, the closest is rejected on fresh draws, and it "
        f"would have to beat supervised learning on {len(higher)} sets ({sets}){alone}. Confidence in this: "
        f"{'high' if never else 'moderate'}. As to the cause, {why}, {exact}. Confidence that this leak is the cause: "
        f"{'moderate' if leak.p >= REJECTED and gain > 2 * error else 'low'}; it was found by a search, and only the "
        "authors' code could tell."
    )
