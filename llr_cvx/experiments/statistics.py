"""Means, standard deviations and tests of stored trials."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

from llr_cvx.arrays import FloatArray
from llr_cvx.store import Record

#: Level of the paired t-tests.
SIGNIFICANCE_LEVEL = 0.05


class Summary(NamedTuple):
    """Mean and standard deviation of the AUC over the `n` trials that gave one."""

    mean: float
    sd: float
    n: int


def table(records: Iterable[Record], cell: str) -> dict[str, FloatArray]:
    """AUC of each label over the trials of a cell, in trial order; nan where there is none."""
    rows = sorted((r for r in records if r["cell"] == cell), key=lambda r: int(r["trial"]))
    labels = list(rows[0]["results"]) if rows else []
    return {x: np.array([row["results"][x].get("auc", np.nan) for row in rows], dtype=float) for x in labels}


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


def comparable(aucs: Mapping[str, FloatArray]) -> set[str]:
    """The label with the highest mean, and all that a paired t-test cannot distinguish from it.

    The test is paired because all methods see the same draws.
    """
    means = {label: summarize(values).mean for label, values in aucs.items() if np.isfinite(values).any()}
    if not means:
        return set()
    best = max(means, key=lambda label: means[label])
    return {label for label in means if not differs(aucs[best], aucs[label])}


def differs(a: FloatArray, b: FloatArray) -> bool:
    """Whether a paired t-test at `SIGNIFICANCE_LEVEL` tells two columns of trials apart."""
    difference = (a - b)[np.isfinite(a - b)]
    if difference.size < 2:
        return False
    if np.ptp(difference) == 0:
        return bool(difference[0] != 0)
    return bool(stats.ttest_1samp(difference, 0.0).pvalue < SIGNIFICANCE_LEVEL)


def compared(columns: Mapping[str, tuple[FloatArray, FloatArray]]) -> dict[int, list[str]]:
    """The cases in which the first column is significantly above (1), below (-1) or level with (0) the second."""
    found: dict[int, list[str]] = {1: [], 0: [], -1: []}
    for case, (a, b) in columns.items():
        found[int(np.sign(np.nanmean(a - b))) if differs(a, b) else 0].append(case)
    return found


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
