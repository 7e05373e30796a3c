"""The figure of the variants: AUC, and precision and recall of what is selected."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from llr_cvx.experiments.figures import COLORS, MARKERS
from llr_cvx.experiments.variants.report import SELECTING, Values, name
from llr_cvx.experiments.variants.trials import DIMENSIONS, LLR_DETECTION, cells, labels
from llr_cvx.report.plots import BLUE

_COLORS = {**COLORS, LLR_DETECTION: BLUE}
_MARKERS = {**MARKERS, LLR_DETECTION: "s"}


def draw(values: Values) -> Figure:
    """AUC of the methods that select features, and their precision and recall."""
    figure = Figure(figsize=(9.0, 5.0), layout="constrained")
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
        left.errorbar(place, means, errors, fmt=_MARKERS[label], color=_COLORS[label], ms=6, label=name(label))
        for d, fill in zip(DIMENSIONS, (_COLORS[label], "white"), strict=False):
            some = [cell for cell in cells() if cell.endswith(f"= {d}")]
            points = [[np.nanmean(values[m][cell, label]) for cell in some] for m in ("recall", "precision")]
            right.plot(*points, _MARKERS[label], color=_COLORS[label], mfc=fill, ms=7)
    left.plot([], [], ".", color="#BBBBBB", ms=7, label="other methods")
    left.set_xticks(place, list(cells()), rotation=35, ha="right")
    left.set(ylabel="AUC", title="Detection, mean ± standard error")
    which = ", ".join(f"{fill}: d = {d}" for fill, d in zip(("filled", "hollow"), DIMENSIONS, strict=False))
    right.set(xlabel=f"recall ({which})", ylabel="precision", title="Planted features")
    figure.legend(loc="outside lower center", ncols=5, frameon=False)
    for ax in (left, right):
        ax.grid(alpha=0.25)
    return figure
