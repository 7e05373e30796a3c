"""Means, standard deviations and tests of stored trials."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

from llr_cvx.arrays import FloatArray
from llr_cvx.store import Record

#: Level of the t-test that decides what is bold.
SIGNIFICANCE_LEVEL = 0.05


class Summary(NamedTuple):
    """Mean and standard deviation of the AUC over the `n` trials that gave one."""

    mean: float
    sd: float
    n: int


class Failure(NamedTuple):
    """A trial in which a method gave no AUC, or LLR did not prove its gap."""

    cell: str
    trial: int
    label: str
    reason: str


def table(records: Iterable[Record], cell: str, measure: str = "auc") -> dict[str, FloatArray]:
    """AUC, or another measure, of each label over the trials of a cell, in trial order; nan where there is none."""
    rows = sorted((r for r in records if r["cell"] == cell), key=lambda r: int(r["trial"]))
    labels = list(rows[0]["results"]) if rows else []
    return {x: np.array([row["results"][x].get(measure, np.nan) for row in rows], dtype=float) for x in labels}


def wide(records: Iterable[Record], measures: Sequence[str] = ("auc",)) -> list[dict[str, Any]]:
    """One row per cell, label and measure, with a column per trial, as in the trial files of the studies."""
    rows: dict[tuple[str, str, str], dict[str, Any]] = {}
    for record in sorted(records, key=lambda record: int(record["trial"])):
        for label, result in record["results"].items():
            for measure in measures:
                key = (record["cell"], label, measure)
                row = rows.setdefault(key, dict(zip(("cell", "label", "measure"), key, strict=True)))
                row[f"trial {record['trial']}"] = round(result[measure], 6) if measure in result else ""
    names = list(dict.fromkeys(name for row in rows.values() for name in row))
    return [{name: row.get(name, "") for name in names} for row in rows.values()]


def by_trial(rows: Iterable[Mapping[str, Any]], measure: str = "auc") -> dict[tuple[str, str], FloatArray]:
    """The rows of `wide` as arrays over the trials, by cell and label; nan where a trial gave nothing.

    >>> by_trial([{"cell": "Heart", "label": "llr", "measure": "auc", "trial 0": 0.5, "trial 1": ""}])
    {('Heart', 'llr'): array([0.5, nan])}
    """
    return {
        (row["cell"], row["label"]): np.array(
            [np.nan if cell == "" else float(cell) for name, cell in row.items() if name.startswith("trial ")]
        )
        for row in rows
        if row["measure"] == measure
    }


def summarize(aucs: FloatArray) -> Summary:
    """Mean and sample standard deviation; nan without trials, sd 0 for a single trial.

    >>> summarize(np.array([0.5, 0.7, np.nan]))
    Summary(mean=0.6, sd=0.1414..., n=2)
    """
    found = aucs[np.isfinite(aucs)]
    if not found.size:
        return Summary(float("nan"), float("nan"), 0)
    sd = float(found.std(ddof=1)) if found.size > 1 else 0.0
    return Summary(float(found.mean()), sd, int(found.size))


def comparable(aucs: Mapping[str, FloatArray], level: float = SIGNIFICANCE_LEVEL) -> set[str]:
    """The label with the highest mean, and all that a paired t-test at `level` cannot distinguish from it.

    The test is paired because all methods see the same draws.
    """
    means = {label: summarize(values).mean for label, values in aucs.items()}
    known = {label: mean for label, mean in means.items() if np.isfinite(mean)}
    if not known:
        return set()
    best = max(known, key=lambda label: known[label])
    return {best} | {x for x in known if x != best and not differs(aucs[best], aucs[x], level)}


def differs(a: FloatArray, b: FloatArray, level: float = SIGNIFICANCE_LEVEL) -> bool:
    """Whether a paired t-test at `level` tells two columns of trials apart."""
    difference = (a - b)[np.isfinite(a - b)]
    if difference.size < 2:
        return False
    if np.ptp(difference) == 0:
        return bool(difference[0] != 0)
    return bool(stats.ttest_1samp(difference, 0.0).pvalue < level)


def failures(records: Iterable[Record]) -> list[Failure]:
    """All failures, trial by trial."""
    return [
        Failure(record["cell"], record["trial"], label, result["failed"])
        for record in records
        for label, result in record["results"].items()
        if "failed" in result
    ]


def worst_gap(records: Iterable[Record]) -> tuple[float, int]:
    """The largest proven relative gap of LLR, and the number of fits considered; not those of the conic solver."""
    results = [result for record in records for label, result in record["results"].items() if label != "llr_exact"]
    gaps = [result["gap"] for result in results if "gap" in result]
    return (max(gaps), len(gaps)) if gaps else (float("nan"), 0)


def core_seconds(records: Sequence[Record]) -> dict[str, float]:
    """Processor time of each method, summed over trials."""
    total: dict[str, float] = {}
    for record in records:
        for label, result in record["results"].items():
            total[label] = total.get(label, 0.0) + float(result["seconds"])
    return total


def flat(
    records: Iterable[Record],
    columns: Sequence[str] = ("auc", "gap", "seconds", "failed"),
    cell: str = "cell",
    label: str = "method",
) -> list[dict[str, Any]]:
    """One row per trial and label, as in the trial files; empty where there is no value."""
    return [
        {cell: record["cell"], "trial": record["trial"], label: name, **{c: result.get(c, "") for c in columns}}
        for record in records
        for name, result in record["results"].items()
    ]
