"""The HTML page of a run, without scripts; its text, and the drawing of its charts, are in `page.html`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

from llr_cvx.arena import tables
from llr_cvx.arena.judge import STATUSES
from llr_cvx.arena.tables import Result
from llr_cvx.report.pages import render

Points = list[tuple[float, float]]

#: Failures that get a card, and problems whose chart is shown at once; the other charts are folded away.
MAX_CARDS, OPEN_CHARTS, MAX_CHARTS = 100, 9, 60
#: Entries have one of this many colours, by their order: s0, s1, ...
COLOURS = 8
#: Columns of the table of all results that hold text, and those that a phone does not show.
_TEXT = ("instance", "status", "monotone")
_EXTRA = ("N", "d", *(f"to {name}" for name in tables.TIMES), "monotone", "MB")
#: No gap below this is shown: it is rounding.
FLOOR = 1e-14


def _is_traced(row: Result) -> bool:
    """Whether there is an iterate to draw: one with a finite gap."""
    return any(gap < math.inf for _, gap in row["curve"])


def render_arena(document: Result, title: str = "Arena") -> str:
    """The page of a run as a string."""
    results, tol = document["results"], document["conditions"]["tol"]
    colours = {one["entry"]: f"s{k % COLOURS}" for k, one in enumerate(document["summary"])}
    problems = groupby(sorted(results, key=lambda row: str(row["instance"])), key=lambda row: row["instance"])
    traced = [rows for rows in (list(rows) for _, rows in problems) if any(map(_is_traced, rows))]
    traced.sort(key=lambda rows: -rows[0]["N"] * rows[0]["d"])
    values = {
        **{"document": document, "title": title, "colours": colours, "statuses": STATUSES},
        **{"label": tables.label, "cells": tables.cells, "px": px, "tick": tick},
        **{"max_cards": MAX_CARDS, "open_charts": OPEN_CHARTS},
        "shown": [name for name in STATUSES if name == "proved" or any(one[name] for one in document["summary"])],
        "columns": {name: "n" * (name not in _TEXT) + " extra" * (name in _EXTRA) for name in tables.COLUMNS},
        "profile": profile_chart(results, colours) if any(row["accepted"] for row in results) else None,
        "gaps": [gap_chart(rows, colours, tol) for rows in traced[:MAX_CHARTS]],
        "conclusion": tables.conclusion(document).splitlines(),
        "conditions": tables.conditions(document["conditions"]),
    }
    return render("arena/page.html", values)


# ---- charts --------------------------------------------------------------------------------------------------------


class Axis(NamedTuple):
    """A logarithmic or linear scale from `low` to `high` onto the pixels from `start` to `end`."""

    name: str
    low: float
    high: float
    start: float
    end: float
    logarithmic: bool = True

    def place(self, value: float) -> float:
        """The pixel of a value; values beyond the ends are moved there."""
        value = min(max(value, self.low), self.high)
        share = (value - self.low) / (self.high - self.low)
        if self.logarithmic:
            share = math.log(value / self.low) / math.log(self.high / self.low)
        return self.start + share * (self.end - self.start)

    def ticks(self, most: int = 5) -> list[float]:
        """Powers of ten, thinned to about so many; quarters on a linear axis."""
        if not self.logarithmic:
            return [self.low + k * (self.high - self.low) / 4 for k in range(5)]
        first, last = math.ceil(math.log10(self.low) - 1e-9), math.floor(math.log10(self.high) + 1e-9)
        step = max(1, -(-(last - first) // most))
        return [10.0**k for k in range(first, last + 1, step)]


class Chart(NamedTuple):
    """Lines and dots in the units of the axes, each with its style."""

    title: str
    label: str
    x: Axis
    y: Axis
    lines: list[tuple[str, Points]]
    dots: list[tuple[str, tuple[float, float]]]


def decades(values: Sequence[float]) -> tuple[float, float]:
    """Powers of ten around positive values.

    >>> decades([0.02, 3.0])
    (0.01, 10.0)
    """
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    return 10.0**low, 10.0 ** max(high, low + 1)


def gap_chart(rows: Sequence[Result], colours: Mapping[str, str], tol: float) -> Chart:
    """The relative gap of each entry's iterates against time on one problem; a dot is an answer without iterates."""
    ends = {row["entry"]: [(row["seconds"], row["relative_gap"])] for row in rows if row["relative_gap"] is not None}
    found = {row["entry"]: row["curve"] or ends.get(row["entry"], []) for row in rows}
    curves = {
        entry: [(max(t, 1e-4), max(g, FLOOR)) for t, g in points if g < math.inf] for entry, points in found.items()
    }
    drawn = [(colours[entry], points) for entry, points in curves.items() if points]
    x = Axis("seconds", *decades([t for _, points in drawn for t, _ in points]), 44.0, 292.0)
    y = Axis("relative gap", *decades([min(g, 10.0) for _, points in drawn for _, g in points] + [tol]), 158.0, 8.0)
    lines = [("cut", [(x.low, tol), (x.high, tol)]), *((f"line {colour}", points) for colour, points in drawn)]
    title = rows[0]["instance"]
    return Chart(title, f"Gap against time on {title}", x, y, lines, [(colour, points[-1]) for colour, points in drawn])


def profile(results: Sequence[Result], entries: Sequence[str]) -> tuple[dict[str, list[tuple[float, float]]], bool]:
    """For each entry the steps (x, share of problems proved within x), and whether x is relative to the best entry.

    With several entries x is the time divided by the shortest of all entries on that problem (Dolan and Moré, 2002);
    with one it is the time in seconds.

    >>> row = {"instance": "a", "accepted": True}
    >>> profile([row | {"entry": "A", "seconds": 1.0}, row | {"entry": "B", "seconds": 3.0}], ["A", "B"])
    ({'A': [(1.0, 1.0)], 'B': [(3.0, 1.0)]}, True)
    """
    relative = len(entries) > 1
    problems = sorted({row["instance"] for row in results})
    proved = [row for row in results if row["accepted"]]
    best = {name: min((r["seconds"] for r in proved if r["instance"] == name), default=1.0) for name in problems}
    found = {}
    for entry in entries:
        own = [row for row in proved if row["entry"] == entry]
        times = sorted(row["seconds"] / (max(best[row["instance"]], 1e-9) if relative else 1.0) for row in own)
        found[entry] = [(time, (k + 1) / len(problems)) for k, time in enumerate(times)]
    return found, relative


def profile_chart(results: Sequence[Result], colours: Mapping[str, str]) -> Chart:
    """The profile as stairs."""
    steps, relative = profile(results, list(colours))
    times = [max(t, 1e-4) for points in steps.values() for t, _ in points]
    x = Axis("time relative to the fastest" if relative else "seconds", *decades(times), 40.0, 448.0)
    y = Axis("share proved", 0.0, 1.0, 218.0, 12.0, logarithmic=False)
    lines = []
    for entry, points in ((entry, points) for entry, points in steps.items() if points):
        stairs = [(x.low, 0.0)]
        for t, share in [*points, (x.high, points[-1][1])]:
            stairs += [(t, stairs[-1][1]), (t, share)]
        lines.append((f"line {colours[entry]}", stairs))
    return Chart("", f"Share of problems proved against {x.name}", x, y, lines, [])


def px(x: float) -> str:
    """A coordinate with at most one decimal."""
    return f"{x:.1f}".rstrip("0").rstrip(".")


def tick(value: float) -> str:
    """A power of ten in few characters.

    >>> tick(0.01), tick(1e-9), tick(0.25)
    ('0.01', '1e−9', '0.25')
    """
    if value == 0 or 0.001 <= value < 10_000:
        return f"{value:g}"
    return f"1e{round(math.log10(value)):d}".replace("-", "−")
