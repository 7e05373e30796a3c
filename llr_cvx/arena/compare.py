"""Two runs side by side: what broke, what was mended, and what became slower by more than the noise.

The noise is measured by the repeats of each run. A change of time counts if the repeats of the two runs do not overlap,
and if the ratio of their medians exceeds the ratio of slowest to fastest that repeats of one run typically have.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median
from typing import Any

Document = Mapping[str, Any]

#: With fewer repeats than this in either run, times are shown but not judged.
MIN_REPEATS = 3
#: Conditions under which two runs must agree to be compared, and those without which only their times are not.
MUST_AGREE, TIMES_NEED = ("tol",), ("time_limit", "threads", "machine")


@dataclass(frozen=True)
class Change:
    """One problem in both runs.

    Attributes
    ----------
    instance, before, after : str
        Its name, and the status in each run.
    ratio : float or None
        Median time after / before; None unless both have an answer.
    verdict : {"broken", "mended", "changed", "slower", "faster", "same", "unmeasured"}
        "changed": unproved in both, for different reasons; "unmeasured": too few repeats, or times not comparable.
    """

    instance: str
    before: str
    after: str
    ratio: float | None
    verdict: str


def compare(a: Document, b: Document, clock: str = "seconds") -> tuple[list[Change], list[str]]:
    """The changes from run a to run b, and notes on what could not be compared.

    Parameters
    ----------
    a, b : mapping
        Documents that `llr-cvx arena --json` wrote, with one entry each; see `split` for one with two entries.
    clock : {"seconds", "cpu_seconds"}
    """
    for name in MUST_AGREE:
        if a["conditions"][name] != b["conditions"][name]:
            raise ValueError(f"the runs differ in {name}: {a['conditions'][name]} and {b['conditions'][name]}")
    notes = [f"times are not comparable: {why}" for why in _obstacles(a["conditions"], b["conditions"])]
    old, new = ({row["instance"]: row for row in document["results"]} for document in (a, b))
    alone = sorted(old.keys() ^ new.keys())
    if alone:
        notes.append(f"in one run only: {', '.join(alone)}")
    both = [name for name in old if name in new]
    usual = typical_spread([row["repeats"][clock] for rows in (old, new) for row in rows.values()])
    return [_change(old[name], new[name], clock, usual, bool(notes) and "times" in notes[0]) for name in both], notes


def split(document: Document) -> tuple[Document, Document]:
    """A run of two entries in turns as two runs of one."""
    names = list(dict.fromkeys(row["entry"] for row in document["results"]))
    if len(names) != 2:
        raise ValueError(f"one file is compared with itself if it holds two entries; this one holds {len(names)}")
    first, second = ([row for row in document["results"] if row["entry"] == name] for name in names)
    return {**document, "results": first}, {**document, "results": second}


def typical_spread(repeats: list[list[float]]) -> float:
    """The ratio of the slowest to the fastest repeat, in the median over all rows.

    >>> typical_spread([[1.0, 1.1, 1.2], [1.0, 1.0, 1.0], [2.0, 3.0, 2.0]])
    1.2
    """
    ratios = [max(times) / min(times) for times in repeats if len(times) > 1 and min(times) > 0]
    return median(ratios) if ratios else 1.0


def _obstacles(a: Mapping[str, Any], b: Mapping[str, Any]) -> list[str]:
    found = [f"{name} is {a[name]} and {b[name]}" for name in TIMES_NEED if a[name] != b[name]]
    return found + ["runs shared cores"] * (not (a["comparable_times"] and b["comparable_times"]))


def _change(a: Mapping[str, Any], b: Mapping[str, Any], clock: str, usual: float, incomparable: bool) -> Change:
    before, after = a["repeats"][clock], b["repeats"][clock]
    told = (a["instance"], a["status"], b["status"])
    if a["accepted"] != b["accepted"]:
        return Change(*told, None, "mended" if b["accepted"] else "broken")
    if not a["accepted"] or min(*before, *after) <= 0:
        return Change(*told, None, "same" if a["status"] == b["status"] else "changed")
    ratio = median(after) / median(before)
    if incomparable or min(len(before), len(after)) < MIN_REPEATS:
        return Change(*told, ratio, "unmeasured")
    if min(after) > max(before) and ratio > usual:
        return Change(*told, ratio, "slower")
    if max(after) < min(before) and ratio < 1 / usual:
        return Change(*told, ratio, "faster")
    return Change(*told, ratio, "same")
