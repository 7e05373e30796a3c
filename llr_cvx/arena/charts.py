"""Line charts of a run, as SVG without scripts: the gap against time, and profiles over all problems."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from llr_cvx.arena import svg
from llr_cvx.report.charts import px

Result = Mapping[str, Any]
Points = Sequence[tuple[float, float]]

#: Entries have one of this many colours, by their order, s0, s1, ...
COLOURS = 8
#: No gap below this is shown: it is rounding.
FLOOR = 1e-14


class Axis(NamedTuple):
    """A logarithmic or linear scale from `low` to `high` onto the pixels from `start` to `end`."""

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

    def ticks(self, most: int) -> list[float]:
        """Powers of ten, thinned to at most so many; quarters on a linear axis."""
        if not self.logarithmic:
            return [self.low + k * (self.high - self.low) / 4 for k in range(5)]
        first, last = math.ceil(math.log10(self.low) - 1e-9), math.floor(math.log10(self.high) + 1e-9)
        step = max(1, -(-(last - first) // most))
        return [10.0**k for k in range(first, last + 1, step)]


def decades(values: Sequence[float]) -> tuple[float, float]:
    """Powers of ten around positive values.

    >>> decades([0.02, 3.0])
    (0.01, 10.0)
    """
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    return 10.0**low, 10.0 ** max(high, low + 1)


def gap_chart(rows: Sequence[Result], entries: Sequence[str], tol: float) -> str:
    """The relative gap of each entry's iterates against time on one problem; a dot is an answer without iterates."""
    curves = {row["entry"]: [(t, max(g, FLOOR)) for t, g in row["curve"]] or _end(row) for row in rows}
    curves = {entry: points for entry, points in curves.items() if points}
    times = [max(t, 1e-4) for points in curves.values() for t, _ in points]
    gaps = [min(g, 10.0) for points in curves.values() for _, g in points]
    x = Axis(*decades(times), 44.0, 292.0)
    y = Axis(*decades([*gaps, tol]), 158.0, 8.0)
    body = _frame(x, y, "seconds", 5, "relative gap")
    body.append(_line([(x.low, tol), (x.high, tol)], x, y, "cut"))
    for entry, points in curves.items():
        colour = f"s{entries.index(entry) % COLOURS}"
        body.append(_line([(max(t, x.low), g) for t, g in points], x, y, f"line {colour}"))
        end_x, end_y = (px(axis.place(v)) for axis, v in zip((x, y), points[-1], strict=True))
        body.append(f'<circle cx="{end_x}" cy="{end_y}" r="3" class="dot {colour}"/>')
    return svg.drawing(300, 198, f"Gap against time on {rows[0]['instance']}", body)


def _end(row: Result) -> list[tuple[float, float]]:
    gap = row["relative_gap"]
    return [(row["seconds"], max(gap, FLOOR))] if gap is not None and math.isfinite(gap) else []


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


def profile_chart(results: Sequence[Result], entries: Sequence[str]) -> str:
    """The profile as stairs."""
    steps, relative = profile(results, entries)
    times = [max(t, 1e-4) for points in steps.values() for t, _ in points] or [1.0]
    x = Axis(*decades(times), 40.0, 448.0)
    y = Axis(0.0, 1.0, 218.0, 12.0, logarithmic=False)
    label = "time relative to the fastest" if relative else "seconds"
    body = _frame(x, y, label, 6, "share proved")
    for entry, points in ((entry, points) for entry, points in steps.items() if points):
        stairs = [(x.low, 0.0)]
        for t, share in points:
            stairs += [(max(t, x.low), stairs[-1][1]), (max(t, x.low), share)]
        stairs.append((x.high, stairs[-1][1]))
        body.append(_line(stairs, x, y, f"line s{entries.index(entry) % COLOURS}"))
    return svg.drawing(456, 258, f"Share of problems proved against {label}", body)


def _frame(x: Axis, y: Axis, label: str, most: int, side: str) -> list[str]:
    n = px
    body = []
    for tick in x.ticks(most):
        place = n(x.place(tick))
        body.append(f'<line x1="{place}" y1="{n(y.end)}" x2="{place}" y2="{n(y.start)}" class="axis"/>')
        body.append(svg.text(x.place(tick), y.start + 18, _tick(tick), "number", "middle"))
    for tick in y.ticks(5):
        place = n(y.place(tick))
        body.append(f'<line x1="{n(x.start)}" y1="{place}" x2="{n(x.end)}" y2="{place}" class="axis"/>')
        body.append(svg.text(x.start - 5, y.place(tick) + 4, _tick(tick), "number", "end"))
    body.append(svg.text(x.end, y.start + 35, f"{label} →", "name", "end"))
    body.append(svg.text(x.start, y.start + 35, f"↑ {side}", "name"))
    return body


def _tick(value: float) -> str:
    """A power of ten in few characters.

    >>> _tick(0.01), _tick(1e-9), _tick(0.25)
    ('0.01', '1e−9', '0.25')
    """
    if value == 0 or 0.001 <= value < 10_000:
        return f"{value:g}"
    return f"1e{round(math.log10(value)):d}".replace("-", "−")


def _line(points: Points, x: Axis, y: Axis, kind: str) -> str:
    n = px
    places = " ".join(f"{n(x.place(a))},{n(y.place(b))}" for a, b in points)
    return f'<polyline points="{places}" class="{kind}"/>'
