"""The figure: LLR's printed column, the readings and the ceilings, set by set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from llr_cvx.experiments.benchmarks import BENCHMARKS
from llr_cvx.experiments.forensics.report import Evidence, honest, leaks
from llr_cvx.experiments.printed import TABLE2


def draw(items: Sequence[Evidence], fresh: Sequence[Evidence], ceilings: Sequence[Mapping[str, Any]]) -> Figure:
    """Printed means with standard deviations; every reading on test rows as a dot; what was confirmed; the ceilings."""
    figure = Figure(figsize=(9.0, 6.6), layout="constrained")
    ax = figure.subplots()
    place = np.arange(len(BENCHMARKS))
    own = honest(items)
    for k, item in enumerate(own):
        shift = -0.12 + 0.24 * k / max(len(own) - 1, 1)
        label = f"{len(own)} readings on test rows, from the closest (left)" if k == 0 else None
        ax.plot(place + shift, item.means, ".", ms=4, color="#999999", alpha=0.7, label=label)
    printed = [TABLE2[name]["llr"] for name in BENCHMARKS]
    ax.errorbar(
        place - 0.3, [p.mean for p in printed], [p.sd for p in printed],
        fmt="o", ms=9, mfc="white", color="#000000", capsize=4, label="LLR, printed (± sd)",
    )  # fmt: skip
    confirmed = {"the default": fresh[0], "closest on test rows": fresh[1] if fresh[1] in honest(fresh) else fresh[0]}
    for (label, item), marker, color in zip(confirmed.items(), ("D", "s"), ("#0072B2", "#009E73"), strict=True):
        ax.plot(place + 0.2, item.means, marker, ms=7, color=color, label=f"{label}: {item.name}")
    leak = min(leaks(fresh), key=lambda item: item.distance)
    ax.plot(place + 0.3, leak.means, "v", ms=8, color="#E69F00", label=f"leak, known inliers judged too: {leak.name}")
    for key, style, text in (("logistic", "-", "logistic regression"), ("forest", ":", "forest")):
        values = [row[key] for row in ceilings]
        ax.hlines(values, place - 0.4, place + 0.4, color="#CC79A7", ls=style, label=f"{text} with all labels, 5-fold")
    flare = next(row for row in ceilings if row["set"] == "Flare solar")
    k = BENCHMARKS.index("Flare solar")
    ax.hlines(
        flare["in-sample"], k - 0.4, k + 0.4, color="#882255", lw=2.5, label="best function of x, in-sample (Flare)"
    )
    ax.axhline(0.5, color="#999999", lw=0.8, ls="--")
    ax.set_xticks(place, BENCHMARKS)
    ax.set(ylabel="AUC", title="LLR: printed, as the paper may be read, and what labels would give")
    figure.legend(fontsize=9, loc="outside lower center", ncols=2, frameon=False)
    ax.spines[["top", "right"]].set_visible(False)
    return figure
