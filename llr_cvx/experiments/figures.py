"""Fig. 1 of the paper: AUC against d, the learned weights, the scores and convergence.

Colours are those of `llr_cvx.report.plots`, and nothing is shown by colour alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from llr_cvx import archive
from llr_cvx.arrays import BoolArray, FloatArray
from llr_cvx.experiments.methods import METHODS
from llr_cvx.experiments.statistics import Summary
from llr_cvx.report.plots import BLUE, GREEN, GREY, ORANGE
from llr_cvx.solution import Solution

#: method -> d -> summary over the trials
Auc = Mapping[str, Mapping[int, Summary]]

#: Colour-blind safe, and none is that of outliers; LLR is drawn last, in black.
COLORS = {
    "kde": "#999999", "osvm": "#56B4E9", "lof": "#E69F00", "l1lr": "#CC79A7", "klr": "#882255",
    "kliep": "#009E73", "ulsif": "#0072B2", "rulsif": "#44AA99", "maxnorm": "#332288",
    "lokdr": "#AA4499", "llr": "#000000",
}  # fmt: skip
MARKERS = dict(zip(COLORS, "vs^DPXphd*o", strict=True))


def draw_figure1(auc: Auc, solution: Solution, is_outlier: BoolArray, algorithm1: FloatArray) -> Figure:
    """The four panels.

    Parameters
    ----------
    auc : mapping
        method -> d -> Summary over the trials.
    solution : Solution
        LLR on one draw, with its trace.
    is_outlier : booleans over the test rows of that draw
    algorithm1 : array
        J at the iterates W(0), W(1), ... of Algorithm 1 on that draw.
    """
    figure = Figure(figsize=(9.0, 8.0), layout="constrained")
    panels = figure.subplots(2, 2)
    draw_auc(panels[0, 0], auc)
    draw_weights(panels[0, 1], solution)
    draw_scores(panels[1, 0], solution, is_outlier)
    draw_convergence(panels[1, 1], solution, algorithm1)
    return figure


def draw_auc(ax: Axes, auc: Auc) -> None:
    """(a) Mean AUC against d; the band is the standard error of the mean."""
    for key, by_d in auc.items():
        d = np.array(sorted(by_d))
        mean = np.array([by_d[k].mean for k in d])
        error = np.array([by_d[k].sd / max(by_d[k].n, 1) ** 0.5 for k in d])
        style: dict[str, Any] = {"lw": 2.2, "zorder": 5} if key == "llr" else {"lw": 1.2}
        dashes = "--" if key == "maxnorm" else "-"
        style |= {"marker": MARKERS[key], "ms": 4.5, "color": COLORS[key], "label": METHODS[key].label}
        ax.plot(d, mean, dashes, **style)
        ax.fill_between(d, mean - error, mean + error, color=COLORS[key], alpha=0.18, lw=0)
    n = max(s.n for by_d in auc.values() for s in by_d.values())
    ax.set(xlabel="number of features d", ylabel="AUC", title=f"(a) AUC ± standard error, {n} trials")
    ax.legend(ncols=3, fontsize=9, loc="upper center", bbox_to_anchor=(0.5, -0.2), frameon=False)
    ax.grid(alpha=0.25)


def draw_weights(ax: Axes, solution: Solution) -> None:
    """(b) The learned W, one column per sample; the last ten are outliers."""
    W = solution.W.T
    limit = float(np.abs(W).max()) or 1.0
    image = ax.imshow(
        W, aspect="auto", cmap="PuOr", vmin=-limit, vmax=limit, interpolation="nearest",
        extent=(0.5, W.shape[1] + 0.5, W.shape[0] + 0.5, 0.5),
    )  # fmt: skip
    ax.figure.colorbar(image, ax=ax, label="weight")
    p = solution.problem
    setting = f"d = {p.shape[1]}, λ1 = {p.lambda1:g}, λ2 = {p.lambda2:g}"
    ax.set(xlabel="sample", ylabel="feature", title=f"(b) Weights, {setting}")


def draw_scores(ax: Axes, solution: Solution, is_outlier: BoolArray) -> None:
    """(c) The outlier score r of Eq. (4) for each pooled sample; low means outlier."""
    p = solution.problem
    sample = np.arange(1, p.shape[0] + 1)
    r = np.exp(solution.log_ratio)
    test = p.y < 0
    outlier = np.zeros(len(r), dtype=bool)
    outlier[test] = is_outlier
    kinds = [("known inlier", ~test, GREY, "s"), ("test row", test & ~outlier, BLUE, "o")]
    for label, rows, color, marker in [*kinds, ("outlier", outlier, ORANGE, "^")]:
        ax.scatter(sample[rows], r[rows], s=14, color=color, marker=marker, label=label)
    ax.set(xlabel="sample", ylabel="r(x) = (n/n') exp(w·x)", title="(c) r: low is an outlier")
    ax.legend(fontsize=9, loc="upper right")
    ax.grid(alpha=0.25)


def draw_convergence(ax: Axes, solution: Solution, algorithm1: FloatArray) -> None:
    """(d) J at each iteration of Algorithm 1 as printed; the best J and the proven bound of the solver used here."""
    trace = solution.trace
    if trace is None:
        raise ValueError(f"the solution of {solution.solver} has no trace: use an iterative solver")
    step = np.arange(len(trace.best))  # both start from W = 0
    ax.plot(np.arange(len(algorithm1)), algorithm1, color=COLORS["l1lr"], marker="s", ms=3, label="J(W), Algorithm 1")
    name = f"solve_{solution.solver.lower()}"
    ax.plot(step, trace.best, color=BLUE, marker="o", ms=3, label=f"best J(W), {name}")
    ax.plot(step, trace.dual, "--", color=GREEN, marker="v", ms=3, label="its proven lower bound of J*")
    gap = max(solution.certificate.relative_gap, 1e-16)  # rounding can make it zero or negative
    ax.set(xlabel="iteration", ylabel="objective", title=f"(d) Convergence, proven gap {gap:.0e}")
    low, high = float(solution.certificate.dual), float(max(*trace.best, *algorithm1))
    margin = 0.1 * (high - low) or 1.0
    ax.set_ylim(low - 2.0 * margin, high + margin)
    ax.legend(fontsize=9)
    ax.grid(alpha=0.25)


def save(figure: Figure, path: Path) -> None:
    """Write <path>.png and <path>.svg atomically; the SVG contains no date."""
    import matplotlib

    with matplotlib.rc_context({"svg.hashsalt": "llr-cvx", "font.size": 10}):
        for suffix, metadata in ((".png", None), (".svg", {"Date": None})):
            with archive.replacing(path.with_suffix(suffix)) as stream:
                figure.savefig(stream, format=suffix[1:], dpi=130, metadata=metadata)
