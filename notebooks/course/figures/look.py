"""Figures of one size and one colour convention, as SVG: sharp on any screen.

Known inliers are grey squares, test rows blue circles, outliers orange triangles, and nothing else is orange.
Objectives come in blue, proven lower bounds in green, majorisers and whatever is compared in pink. Nothing is shown
by colour alone.
"""

from __future__ import annotations

from typing import Any

import matplotlib.pyplot as plt

from llr_cvx.report.plots import BLUE, GREEN, GREY, INK, ORANGE  # noqa: F401  (cells use them)

PINK, AMBER, SKY = "#CC79A7", "#E69F00", "#56B4E9"
SERIES = list(zip((BLUE, PINK, GREEN, AMBER, INK, SKY), "os^DvP", strict=True))

try:
    from matplotlib_inline.backend_inline import set_matplotlib_formats
except ImportError:  # outside Jupyter
    pass
else:
    set_matplotlib_formats("svg", metadata={"Date": None}, bbox_inches=None)

plt.rcParams.update(
    {
        "font.size": 12,
        "axes.titlesize": 12,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "legend.frameon": False,
        "legend.fontsize": 10.5,
        "lines.linewidth": 2,
        "svg.hashsalt": "llr_cvx",
        "figure.constrained_layout.use": True,
    }
)


def panels(columns: int = 1, rows: int = 1, **options: Any) -> Any:
    """Axes in a figure of the common width, 3.6 inches a row."""
    return plt.subplots(rows, columns, figsize=(9.0, 3.6 * rows), **options)[1]
