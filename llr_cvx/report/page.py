"""The HTML page of a run: its text is in `page.html`, its charts are laid out here."""

from __future__ import annotations

from collections import Counter
from datetime import datetime

import numpy as np

from llr_cvx.arrays import FloatArray
from llr_cvx.detection.explanation import Explanation
from llr_cvx.detection.features import Column, FeatureValue, percent
from llr_cvx.detection.screening import Detection
from llr_cvx.report.pages import render

#: At most this many outliers are shown, each in the table and on a card; more than people read, and browsers are quick.
MAX_SHOWN = 300
#: Features drawn on a card, others named as unusual, and columns named as being behind the outliers.
MAX_CARD_FEATURES, MAX_ALSO, MAX_CAUSES = 3, 4, 12
#: Size of a distribution on a card, and its bars: of numbers, and of the levels of a category.
WIDTH, HEIGHT, MAX_BARS, MAX_LEVELS = 120, 30, 24, 8


def render_report(run: Detection, title: str = "Outliers, and why", date: datetime | None = None) -> str:
    """The HTML page, as a string; `date` is now unless given.

    >>> import pandas as pd
    >>> from llr_cvx.detection.screening import detect
    >>> from llr_cvx.detection.estimator import LLRDetector
    >>> good = pd.DataFrame(np.random.default_rng(0).normal(size=(9, 2)), columns=["<i>a", "b"])
    >>> new = pd.DataFrame([[9.0, 0.0], [0.1, 0.2]], columns=["<i>a", "b"], index=["x", "y"])
    >>> page = render_report(detect(good, new, LLRDetector(threshold=0.1)))
    >>> "<i>a" in page, "&lt;i&gt;a" in page
    (False, True)
    """
    rows = [(e, *_reasons(e)) for e in run.worst[:MAX_SHOWN]]
    causes = Counter(e.reasons[0].feature for e in run.explanations if e.reasons).most_common()
    drawn = {r.column: run.features.columns[r.column] for _, why, _ in rows for r in why}
    date = date or datetime.now().astimezone()
    held, offset = run.detector.log_ratio_[run.detector.calibration_rows_], run.detector.fitted_offset_
    values = {
        "run": run,
        "title": title,
        "date": f"{date.day} {date:%B %Y, %H:%M %Z}".strip(),
        "rows": rows,
        "linked": {e.row for e in run.explanations[:MAX_SHOWN]},
        "causes": causes[:MAX_CAUSES],
        "other_causes": sum(count for _, count in causes[MAX_CAUSES:]),
        "distributions": {k: Distribution(column, len(run.inliers)) for k, column in drawn.items()},
        "histogram": histogram(run.log_ratio, held, -np.inf if run.undecided else offset),
        "percent": percent,
    }
    return render("report/page.html", values)


def _reasons(e: Explanation) -> tuple[list[FeatureValue], list[FeatureValue]]:
    """The reasons that push a row towards "outlier", but for those that hardly do; and what else is unusual in it."""
    total = sum(abs(r.contribution) for r in e.reasons)
    why = [r for r in e.reasons if r.contribution < 0 and -r.contribution >= 0.01 * total]
    also = [f for f in (*why[1:], *e.also_unusual) if f.position != "within"]
    return why[:MAX_CARD_FEATURES], also[:MAX_ALSO]


class Distribution:
    """The values of a feature of the known inliers, which are the first `known` rows; `path` draws them."""

    def __init__(self, column: Column, known: int) -> None:
        place, inliers = column.order, column.order[:known]
        if column.typical is None:  # levels, most frequent first; all beyond the most shown share the last place
            place = np.minimum(place, MAX_LEVELS)
            edges = np.arange(min(inliers.max() + 1, MAX_LEVELS) + 2) - 0.5
        else:
            pad = 0.35 * (np.nanmax(inliers) - np.nanmin(inliers)) or 1.0
            edges = np.linspace(np.nanmin(inliers) - pad, np.nanmax(inliers) + pad, MAX_BARS + 1)
        heights, _ = np.histogram(place[:known], edges)
        self.path = bars(heights / heights.max(), WIDTH, HEIGHT)
        self.x = (np.nan_to_num(place, nan=edges[0]) - edges[0]) / (edges[-1] - edges[0]) * WIDTH

    def mark(self, row: int) -> str:
        """A line at the value of a row, or an arrow if it lies beyond the edge."""
        x = self.x[row]
        if 0 <= x <= WIDTH:
            return f"M{np.clip(x, 1.5, WIDTH - 1.5) - 1.5:.1f} 0h3v30h-3z"
        return "M0 15l9 -7v14z" if x < 0 else f"M{WIDTH} 15l-9 -7v14z"


def histogram(scores: FloatArray, held: FloatArray, offset: float) -> dict[str, str]:
    """Paths: bars of the scores, of those below `offset`, and of held-out inliers in proportion; a line at `offset`."""
    every = np.concatenate([scores, held, [offset]])
    every = every[np.isfinite(every)]
    pad = 0.03 * np.ptp(every) + 1e-9 * max(1.0, np.abs(every).max())
    low, high = every.min() - pad, every.max() + pad
    step = (high - low) / np.clip(2 * np.sqrt(len(scores)), 8, 50)
    edge = offset if np.isfinite(offset) else low  # where a bar begins: none straddles the offset
    edges = edge + step * np.arange(-np.ceil((edge - low) / step), np.ceil((high - edge) / step) + 1)
    rows, outliers, inliers = (np.histogram(part, edges)[0] for part in (scores, scores[scores < offset], held))
    counts = {"rows": rows, "outliers": outliers, "held": inliers * (len(scores) / max(len(held), 1))}
    most = max(count.max() for count in counts.values())
    paths = {kind: bars(count / most, 440, 120) for kind, count in counts.items()}
    cut = (offset - edges[0]) / (edges[-1] - edges[0]) * 440
    return {**paths, "cut": f"M{cut:.1f} 0V120" if np.isfinite(cut) else ""}


def bars(shares: FloatArray, width: float, height: float) -> str:
    """A path of bars side by side in `width`, shares of `height` tall; what is not 0 can be seen."""
    room = width / len(shares)
    tall = {k: max(shares[k] * height, 1.0) for k in np.flatnonzero(shares)}
    return "".join(f"M{k * room:.1f} {height}v-{tall[k]:.1f}h{room - 1:.1f}V{height}z" for k in tall)
