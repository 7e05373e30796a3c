"""What solvers do: majorisers, curves of convergence, and what a dual point proves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from scipy.optimize import minimize_scalar

from course.figures.look import BLUE, GREEN, GREY, INK, PINK, SERIES
from course.figures.samples import groups, in_pool
from llr_cvx import Problem
from llr_cvx.solution import Solution
from llr_cvx.solvers.algorithm1 import surrogate, weights
from llr_cvx.solvers.smoothing import smoothed_objective


def majoriser(problem: Problem, at: Any, epsilon: float) -> Any:
    """The majoriser that touches J_epsilon at a W, as a function of W."""
    C_g, C_e = weights(problem, at, epsilon)
    lift = smoothed_objective(problem, at, epsilon) - surrogate(problem, at, C_g, C_e)[0]
    return lambda W: surrogate(problem, W, C_g, C_e)[0] + lift


def next_point(problem: Problem, touch: float, epsilon: float, w2: float = 0.2) -> float:
    """The w_1 at which the majoriser that touches J_epsilon at (touch, w_2) is smallest, with w_2 fixed."""
    above = majoriser(problem, np.array([[touch], [w2]]), epsilon)
    return float(minimize_scalar(lambda w1: above(np.array([[w1], [w2]])), bounds=(-2.0, 2.0)).x)


def one_majoriser(problem: Problem, touch: float, epsilon: float, ax: Axes, w2: float = 0.2) -> None:
    """J, J_epsilon and the majoriser that touches it, along w_1 with w_2 fixed."""
    at, grid = np.array([[touch], [w2]]), np.linspace(-1.0, 1.4, 241)
    above, lowest = majoriser(problem, at, epsilon), next_point(problem, touch, epsilon, w2)

    def along(function: Callable[[Any], float]) -> Any:
        return [function(np.array([[w1], [w2]])) for w1 in grid]

    ax.plot(grid, along(problem.objective), color=GREY, ls=":", label="J")
    smooth = along(lambda W: smoothed_objective(problem, W, epsilon))
    ax.plot(grid, smooth, color=BLUE, label="$J_\\varepsilon$")
    ax.plot(grid, along(above), color=PINK, ls="--", label="majoriser")
    ax.plot(touch, above(at), "o", color=INK, ms=8, label="touches here")
    minimum = above(np.array([[lowest], [w2]]))
    ax.plot(lowest, minimum, "v", color=PINK, ms=10, label="its minimum: the next point")
    ax.set(xlabel="$w_1$", ylim=(1.1, 2.4), title=f"touches at {touch:g}, ε = {epsilon:g}")


def two_dimensions(problem: Problem, start: Any, epsilon: float, ax: Axes) -> None:
    """Contours of J_epsilon and of its majoriser at the start, over the two weights of `problems.pair`."""
    side = np.linspace(-0.8, 1.2, 81)
    plane = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2, 1)
    square = (len(side), len(side))
    landscape = np.array([smoothed_objective(problem, W, epsilon) for W in plane]).reshape(square)
    above = majoriser(problem, start, epsilon)
    bowl = np.array([above(W) for W in plane]).reshape(square)
    levels = landscape.min() + np.linspace(0.01, 0.6, 6)
    ax.contour(side, side, landscape, levels, colors="0.65", linewidths=1.2)
    ax.contour(side, side, bowl, levels, colors=PINK, linewidths=1.5)
    ax.plot([], [], color="0.65", label="$J_\\varepsilon$")
    ax.plot([], [], color=PINK, label="majoriser at the start")
    ax.plot(side, side, color=GREEN, ls=":", label="kink $w_1 = w_2$")


def excess(series: dict[str, Any], ax: Axes, best: float | None = None, every: int = 1) -> None:
    """Curves on a logarithmic axis, cut at 1e-15; of objectives, the relative excess over `best`."""
    for (name, values), (colour, mark) in zip(series.items(), SERIES, strict=False):
        values = np.asarray(values) if best is None else np.asarray(values) / best - 1.0
        look = {"color": colour, "ms": 4, "markevery": every, "label": name}
        ax.semilogy(np.maximum(values, 1e-15), f"{mark}-", **look)
    ax.legend()


def squeeze(solution: Solution, ax: Axes) -> None:
    """The best J so far and the proven lower bound, iteration by iteration."""
    trace = solution.trace
    steps = np.arange(1, len(trace.dual) + 1)
    ax.fill_between(steps, trace.dual, trace.best, color="0.9")
    ax.plot(steps, trace.best, "o-", color=BLUE, ms=4, label="best J(W)")
    ax.plot(steps, trace.dual, "v--", color=GREEN, ms=4, label="proven lower bound")
    ax.set(
        xlabel="iteration",
        title=f"stopped at a relative gap of {solution.certificate.relative_gap:.0e}",
    )
    ax.locator_params(axis="x", integer=True)
    ax.legend()


def gap_over_time(runs: dict[str, Solution], ax: Axes) -> None:
    """Proven relative gap over seconds; a symbol for the phase that made each iterate."""
    marks = {"irls": "o", "splitting": "^", "rounding": "s"}
    for (name, run), (colour, _) in zip(runs.items(), SERIES, strict=False):
        gap = (run.trace.best - run.trace.dual) / run.trace.best
        ax.loglog(run.trace.seconds, gap, color=colour, label=name)
        for phase, mark in marks.items():
            made = run.trace.phase == phase
            ax.loglog(run.trace.seconds[made], gap[made], mark, color=colour, ms=7)
    for phase, mark in marks.items():
        ax.plot([], [], mark, color=INK, label=f"phase: {phase}")
    ax.set(xlabel="seconds", ylabel="proven relative gap")
    ax.legend()


def race_curves(results: Sequence[Any], entries: Sequence[str], ax: Axes) -> None:
    """The smallest proven gap so far over seconds, for each entry on one instance."""
    for entry, (colour, mark) in zip(entries, SERIES, strict=False):
        row = next(row for row in results if row["entry"] == entry)
        curve = row["curve"] or [(row["seconds"], row["relative_gap"])]
        seconds, gap = np.array(curve).T
        lowest = np.maximum(np.minimum.accumulate(gap), 1e-14)
        spread = 0.12 if row["curve"] else 1  # of the diagonal; a single answer is a marker alone
        look = {"color": colour, "ms": 5, "markevery": spread, "label": entry}
        ax.loglog(np.maximum(seconds, 1e-4), lowest, f"{mark}-", **look)
    ax.set(xlabel="seconds")


def floors_below(problem: Problem, best: Solution, floors: Sequence[float], ax: Axes) -> None:
    """J along w_1 = w_2, and dual points as floors below it."""
    grid = np.linspace(-0.6, 1.2, 200)
    ax.plot(grid, [problem.objective([[w], [w]]) for w in grid], color=BLUE, label="$J$ along $w_1 = w_2$")
    for floor in floors:
        ax.axhline(floor, color=GREEN, lw=1, ls="--")
    ax.plot([], [], color=GREEN, lw=1, ls="--", label="$D$ of random dual points")
    ax.axhline(best.certificate.dual, color=GREEN, label="$D$ of the best dual point")
    ax.plot(best.W[0, 0], best.objective, "*", color=INK, ms=13, label="optimum")
    ax.set(xlabel="w", xticks=[-0.5, 0, 0.5, 1], ylim=(0, 3.4), title="every dual point is a floor")
    ax.legend(ncols=2, loc="upper center", fontsize=9)


def proven_scores(solution: Solution, truth: Any, is_outlier: Any, ax: Axes) -> None:
    """The score of each test row at the optimum, and the interval that a certificate proves for it."""
    test = solution.problem.y < 0
    order, place = np.argsort(truth), np.arange(len(truth))
    low, high = (end[test][order] for end in solution.certificate.score_bounds)
    ax.vlines(place, low, high, color=GREY, lw=4, label="proven interval")
    for rows, style in groups(test, in_pool(solution.problem, is_outlier))[1:]:
        shown = rows[test][order]
        ax.scatter(place[shown], truth[order][shown], zorder=2, **style)
    ax.set(xlabel="test rows, by score", ylabel="score at the optimum")
    ax.legend(loc="lower right")


def log_bars(names: Sequence[str], values: Any, asked: float, words: Sequence[str], ax: Axes) -> None:
    """One bar of log10 a name, blue where it stays below what was asked for, with words at its end."""
    values = np.maximum(values, 1e-16)
    colours = np.where(values <= asked, BLUE, PINK)
    ax.barh(range(len(names)), np.log10(values) + 16, left=-16, color=colours, height=0.6)
    behind = {"fc": "white", "ec": "none", "pad": 1}
    for k, word in enumerate(words):
        ax.text(np.log10(values[k]) + 0.2, k, word, va="center", fontsize=10.5, bbox=behind)
    ax.axvline(np.log10(asked), color=INK, ls="--", lw=1.5, zorder=0)
    ax.set_yticks(range(len(names)), names)
    ax.invert_yaxis()
    ax.set(xlim=(-16, 4), xticks=range(-16, 5, 4))


def solver_said(solution: Solution) -> str:
    """The word with which a conic solver ended, or a dash."""
    words = solution.message.partition("said ")[2]
    return words.split(";")[0].split(" [")[0] or "-"
