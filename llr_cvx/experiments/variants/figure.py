"""The figure of the variants: AUC, and precision and recall of what is selected."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from llr_cvx.experiments.figures import COLORS
from llr_cvx.experiments.variants.report import SELECTING, Values, name
from llr_cvx.experiments.variants.trials import DIMENSIONS, LLR_DETECTION, cells, labels

#: One for each dimension.
MARKERS = "os"

_COLORS = {**COLORS, LLR_DETECTION: "#0072B2"}


def draw(values: Values) -> Figure:
    """AUC of the methods that select features, and their precision and recall."""
    figure = Figure(figsize=(12.0, 4.6), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(3, 2))
    place = np.arange(len(cells()))
    for label in labels():
        means = np.array([np.nanmean(values["auc"][cell, label]) for cell in cells()])
        if label not in SELECTING:
            left.plot(place, means, ".", color="#BBBBBB", ms=7, zorder=1)
            continue
        errors = [
            np.nanstd(values["auc"][cell, label], ddof=1) / len(values["auc"][cell, label]) ** 0.5 for cell in cells()
        ]
        left.errorbar(place, means, errors, fmt="o", color=_COLORS[label], ms=6, label=name(label))
        for marker, d in zip(MARKERS, DIMENSIONS, strict=True):
            some = [cell for cell in cells() if cell.endswith(f"= {d}")]
            points = [[np.nanmean(values[m][cell, label]) for cell in some] for m in ("recall", "precision")]
            right.plot(*points, marker, color=_COLORS[label], ms=7, label=f"{name(label)}, d = {d}")
    left.plot([], [], ".", color="#BBBBBB", ms=7, label="other methods")
    left.set_xticks(place, list(cells()), rotation=35, ha="right")
    left.set(ylabel="AUC", title="Detection, mean ± standard error")
    right.set(xlabel="recall", ylabel="precision", title="Planted features, one point per variant")
    for ax in (left, right):
        ax.legend(fontsize=7)
        ax.grid(alpha=0.25)
    return figure
