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
#: Conditions in which two runs must agree for their times to be compared.
TIMES_NEED = ("time_limit", "threads", "machine")


@dataclass(frozen=True)
class Change:
    """One problem in both runs: its name, the status in each, and what changed.

    The verdict is "broken", "mended", "changed" (unproved in both, for different reasons), "slower", "faster", "same"
    or "unmeasured" (too few repeats, or times not comparable).
    """

    instance: str
    before: str
    after: str
    ratio: float | None  # median time after / before; None unless both have an answer
    verdict: str


def compare(a: Document, b: Document, clock: str = "seconds") -> tuple[list[Change], list[str]]:
    """The changes from run a to run b, and notes on what could not be compared.

    Parameters
    ----------
    a, b : mapping
        Documents that `llr-cvx arena --json` wrote, with one entry each; see `split` for one with two entries.
    clock : {"seconds", "cpu_seconds"}
    """
    one, other = a["conditions"], b["conditions"]
    if one["tol"] != other["tol"]:
        raise ValueError(f"the runs differ in tol: {one['tol']} and {other['tol']}")
    why = [f"{name} is {one[name]} and {other[name]}" for name in TIMES_NEED if one[name] != other[name]]
    why += ["runs shared cores"] * (not (one["comparable_times"] and other["comparable_times"]))
    notes = [f"times are not comparable: {words}" for words in why]
    old, new = ({row["instance"]: row for row in document["results"]} for document in (a, b))
    alone = sorted(old.keys() ^ new.keys())
    if alone:
        notes.append(f"in one run only: {', '.join(alone)}")
    usual = typical_spread([row["repeats"][clock] for rows in (old, new) for row in rows.values()])
    return [_change(old[name], new[name], clock, usual, bool(why)) for name in old if name in new], notes


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
