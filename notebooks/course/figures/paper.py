"""The paper's numbers and those measured here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from course.figures.look import BLUE, INK, SERIES
from llr_cvx.experiments.methods import METHODS
from llr_cvx.experiments.plans import FACTORS
from llr_cvx.experiments.printed import PRINTED_METHODS

Rows = Sequence[Mapping[str, Any]]


def protocols(study: Rows, choice: str, ax: Axes) -> None:
    """How far means and standard deviations of the baselines are off; one marker per value of a choice."""
    for value, (color, marker) in zip(FACTORS[choice], SERIES, strict=False):
        some = [row for row in study if row[choice] == value]
        points = [row["means"] for row in some], [row["sds"] for row in some]
        ax.plot(*points, marker, color=color, ms=4, alpha=0.7, label=str(value))
    ax.plot(study[0]["means"], study[0]["sds"], "*", color=INK, ms=14, label="closest")
    ax.set(xlabel="means off by (printed standard deviations)", ylabel="log sd off by", title=choice)
    ax.legend(ncols=2)


def beside_the_paper(table2: Rows, name: str, ax: Axes) -> None:
    """Printed and measured AUC of the printed methods on one set, with standard deviations."""
    cells = {row["method"]: row for row in table2 if row["set"] == name}
    place = np.arange(len(PRINTED_METHODS))
    for shift, prefix, marker, color in ((-0.12, "paper_", "o", INK), (0.12, "", "D", BLUE)):
        means, sds = ([cells[key][prefix + column] for key in PRINTED_METHODS] for column in ("mean", "sd"))
        label = "paper" if prefix else "here"
        ax.errorbar(place + shift, means, sds, fmt=marker, color=color, capsize=3, label=label)
    ax.set_xticks(place, [METHODS[key].label for key in PRINTED_METHODS])
    ax.set(title=name, ylabel="AUC")
    ax.legend()
