"""Samples, their scores, and what contributes to them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from sklearn.metrics import roc_auc_score

from course.figures.look import BLUE, GREY, INK, ORANGE, SERIES
from llr_cvx import Problem
from llr_cvx.solution import Solution


def groups(test: Any, outlier: Any) -> list[tuple[Any, dict[str, Any]]]:
    """(mask, marker options) of known inliers, test rows that are inliers, and outliers."""
    return [
        (~test, {"marker": "s", "color": GREY, "s": 14, "label": "known inlier"}),
        (test & ~outlier, {"marker": "o", "color": BLUE, "s": 18, "label": "test row"}),
        (outlier, {"marker": "^", "color": ORANGE, "s": 50, "label": "outlier"}),
    ]


def in_pool(problem: Problem, is_outlier: Any) -> Any:
    """A mask over the test rows as a mask over all rows."""
    outlier = np.zeros(len(problem.y), bool)
    outlier[problem.y < 0] = is_outlier
    return outlier


def auc(solution: Solution, is_outlier: Any) -> float:
    """Share of the pairs of an outlier and another test row in which the outlier has the lower log r."""
    log_r = solution.log_ratio[solution.problem.y < 0]
    return float(roc_auc_score(is_outlier, -log_r))


def coloured_by_ratio(solution: Solution, is_outlier: Any, ax: Axes) -> Any:
    """Rows in the plane; the darker a test row, the lower its log r."""
    problem, test = solution.problem, solution.problem.y < 0
    log_r, scale = solution.log_ratio, {"cmap": "cividis", "vmin": -2.5, "vmax": 0.0}
    for rows, style in groups(test, in_pool(problem, is_outlier))[1:]:
        style = {k: v for k, v in style.items() if k != "color"} | scale
        style["s"] *= 1.5
        dots = ax.scatter(*problem.X[rows].T, c=log_r[rows], ec="k", lw=0.6, **style)
    ax.scatter(*problem.X[~test].T, s=10, marker="s", c="0.8", zorder=0, label="known inlier")
    ax.set(xlabel="feature 1")
    return dots


def clusters(solution: Solution, ax: Axes) -> None:
    """Rows in the plane: equal symbols for equal weight vectors, the six largest groups only."""
    labels, counts = np.unique(solution.clusters, return_counts=True)
    largest = labels[np.argsort(-counts)][: min(6, np.count_nonzero(counts > 2))]
    ax.scatter(*solution.problem.X.T, s=8, c="0.75")
    for label, (colour, mark) in zip(largest, SERIES, strict=False):
        rows = solution.clusters == label
        ax.scatter(
            *solution.problem.X[rows].T,
            s=36,
            marker=mark,
            c=colour,
            edgecolors="white",
            lw=0.5,
        )
    ax.set(
        title=f"λ₁ = {solution.problem.lambda1:g}: {len(labels)} weight vectors",
        xlabel="feature 1",
    )


def bars_over_features(values: Any, chosen: Any, ax: Axes) -> None:
    """One bar a feature; selected features are blue and hatched."""
    bars = ax.bar(
        range(1, len(values) + 1),
        values,
        color=np.where(chosen, BLUE, "0.8"),
        edgecolor=INK,
    )
    for bar, is_chosen in zip(bars, chosen, strict=True):
        bar.set_hatch("//" if is_chosen else "")
    ax.set_xticks(range(1, len(values) + 1))


def histogram(solution: Solution, is_outlier: Any, ax: Axes) -> None:
    """log r of the test rows."""
    log_r = solution.log_ratio[solution.problem.y < 0]
    bins = np.linspace(log_r.min() - 1e-9, log_r.max() + 1e-9, 25)
    parts, looks = [log_r[is_outlier], log_r[~is_outlier]], {"color": [ORANGE, BLUE], "edgecolor": "white"}
    hatched, _ = ax.hist(parts, bins, stacked=True, label=["outlier", "test row"], **looks)[2]
    for bar in hatched:
        bar.set_hatch("//")
    ax.set(xlabel="log r", ylabel="test rows")
    ax.locator_params(axis="x", nbins=5)
    ax.locator_params(axis="y", integer=True)
    ax.legend()


def lowest_contributions(solution: Solution, is_outlier: Any, ax: Axes, rows: int = 15) -> None:
    """Contributions to the lowest scores of test rows, one line per row."""
    test = solution.problem.y < 0
    order = np.argsort(solution.log_ratio[test])[:rows]
    shown = (solution.W * solution.problem.X)[test][order]
    size = np.abs(shown).max()
    image = ax.imshow(shown, cmap="PuOr", vmin=-size, vmax=size, aspect="auto")
    ax.set_xticks(range(shown.shape[1]), [str(k + 1) for k in range(shown.shape[1])])
    ax.set_yticks(range(rows), ["▲" if is_outlier[i] else "" for i in order], color=ORANGE)
    ax.set(xlabel="feature", ylabel="lowest scores (▲ outlier)", title="contributions")
    ax.figure.colorbar(image, ax=ax)


def sorted_scores(solution: Solution, is_outlier: Any, ax: Axes) -> None:
    """log r of the test rows in order; outliers are orange and hatched."""
    log_r = solution.log_ratio[solution.problem.y < 0]
    order = np.argsort(log_r)
    hatches = ["//" if odd else "" for odd in is_outlier[order]]
    colours = np.where(is_outlier[order], ORANGE, BLUE)
    ax.bar(range(len(order)), log_r[order], color=colours, hatch=hatches, edgecolor="white", lw=0.3)
    ax.set(xlabel="test rows, by log r (hatched: outlier)", ylabel="log r")


def contributions(solution: Solution, row: int, names: Sequence[str], ax: Axes) -> None:
    """Contributions of all features to one score: left, and orange, pushes towards outlier."""
    push = solution.W[row] * solution.problem.X[row]
    ax.barh(names, push, color=np.where(push < 0, ORANGE, BLUE))
    ax.axvline(0, color=INK, lw=0.8)
    ax.tick_params(axis="y", labelsize=9)
    ax.invert_yaxis()
    ax.set_xlabel("contribution to log r")
