"""The measurements as one figure (needs matplotlib)."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import cycle
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from llr_cvx.benchmarks.measure import Record
from llr_cvx.benchmarks.tables import groups, middle, select, times

_COLORS = {
    "IRLS": "#000000",
    "CLARABEL": "#D55E00",
    "SCS": "#0072B2",
    "FAST": "#009E73",
    "FAST path": "#009E73",
    "FAST cold": "#999999",
}


def figure(records: list[Record]) -> Figure:
    """One panel a part that was measured."""
    panels = [(select(records, part=part), draw) for part, draw in _PANELS.items()]
    panels = [(of_part, draw) for of_part, draw in panels if of_part]
    fig = Figure(figsize=(4.6 * max(len(panels), 1), 4.2), layout="constrained")
    for k, (of_part, draw) in enumerate(panels):
        draw(fig.add_subplot(1, len(panels), k + 1), of_part)
    return fig


def _draw_race(ax: Axes, records: list[Record]) -> None:
    style = dict(zip(sorted({r.d for r in records}), cycle(("-", "--", ":", "-.")), strict=False))
    for line in groups(records, lambda r: (r.d, r.solver)):
        by_gap = {cell[0].gap: middle(cell) for cell in groups(line, lambda r: r.gap)}
        missed = ", ".join(f"{gap:.0e}" for gap, seconds in by_gap.items() if math.isnan(seconds))
        r = line[0]
        label = f"{r.solver}, d = {r.d}" + (f" (not {missed})" if missed else "")
        look: dict[str, Any] = {"ls": style[r.d], "marker": "o", "ms": 4, "color": _COLORS[r.solver]}
        ax.plot(list(by_gap), list(by_gap.values()), label=label, **look)
    ax.set(xscale="log", yscale="log", xlabel="proved relative gap", ylabel="seconds", title="Time to a proof")
    ax.invert_xaxis()
    ax.legend(fontsize=8, ncols=2, loc="upper center", bbox_to_anchor=(0.5, -0.15))  # below: lines fill the axes
    ax.grid(alpha=0.25)


def _draw_growth(ax: Axes, records: list[Record]) -> None:
    name = "N" if records[0].part == "size" else "d"
    for line in groups(records, lambda r: r.solver):
        cells = groups(line, lambda r: (r.N, r.d))
        size = [getattr(cell[0], name) for cell in cells]
        ratio = [middle(cell) / middle(cells[0]) for cell in cells]
        solver = line[0].solver
        ax.plot(size, ratio, marker="o", color=_COLORS[solver], label=f"{solver}, gap {records[0].gap:.0e}")
    ax.plot(size, [s / size[0] for s in size], ":", color="#999999", label=f"proportional to {name}")
    ax.set(xscale="log", yscale="log", xlabel=name, ylabel="time, ratio to the first", title=f"Growth with {name}")
    ax.set_xticks(size, [f"{s:,}" for s in size])
    ax.set_yticks(ratio, [times(x) for x in ratio])
    ax.minorticks_off()
    ax.legend(fontsize=8)
    ax.grid(alpha=0.25)


def _draw_path(ax: Axes, records: list[Record]) -> None:
    places = groups(records, lambda r: (r.d, r.setting))
    for solver, shift in (("FAST path", -0.2), ("FAST cold", 0.2)):
        heights = [middle(select(place, solver=solver)) for place in places]
        name = solver.removeprefix("FAST ")
        ax.bar([k + shift for k in range(len(places))], heights, width=0.4, color=_COLORS[solver], label=name)
    ax.set_xticks(
        range(len(places)), [f"d = {place[0].d}\n{place[0].setting.partition(' ')[2]}" for place in places], fontsize=8
    )
    ax.set(
        ylabel="seconds",
        xlabel=f"range of {records[0].setting.partition(' ')[0]}",
        title=f"Path of {records[0].points} points",
    )
    ax.legend(fontsize=8)


_PANELS: dict[str, Callable[[Axes, list[Record]], None]] = {
    "race": _draw_race,
    "size": _draw_growth,
    "dim": _draw_growth,
    "path": _draw_path,
}
