"""The HTML page of a run: its text is in `page.html`, which draws the charts that are laid out here."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from typing import Any

import numpy as np

from llr_cvx.arrays import FloatArray
from llr_cvx.detection.explanation import Explanation
from llr_cvx.detection.features import Column, FeatureValue, percent
from llr_cvx.detection.screening import Detection
from llr_cvx.proofs.certificate import shown_gap
from llr_cvx.report.pages import render

#: At most this many outliers are shown, each in the table and on a card; more than people read, and browsers are quick.
MAX_SHOWN = 300
#: Features drawn on a card, others named as unusual, and columns named as being behind the outliers.
MAX_CARD_FEATURES, MAX_ALSO, MAX_CAUSES = 3, 4, 12
#: Size of a distribution on a card, and its bars: of numbers, and of the levels of a category.
WIDTH, HEIGHT, MAX_BARS, MAX_LEVELS = 120.0, 30.0, 24, 8


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
    solution, detector = run.detector.solution_, run.detector
    rows = [(e, *_reasons(e)) for e in run.worst[:MAX_SHOWN]]
    drawn = {r.column for _, why, _ in rows for r in why[:MAX_CARD_FEATURES]}
    cut = None if run.undecided or np.isinf(detector.fitted_offset_) else detector.fitted_offset_
    values = {
        **{"run": run, "title": title, "rows": rows, "solution": solution, "percent": percent},
        **{"max_causes": MAX_CAUSES, "max_features": MAX_CARD_FEATURES},
        "causes": Counter(e.reasons[0].feature for e in run.explanations if e.reasons).most_common(),
        "date": (date or datetime.now().astimezone()).strftime("%d %B %Y, %H:%M %Z").strip().removeprefix("0"),
        "ranks": {e.row: e.rank for e, _, _ in rows if run.explanations},
        "symbols": {k: Distribution(run.features.columns[k], len(run.inliers)) for k in sorted(drawn)},
        "histogram": histogram(run.log_ratio, detector.log_ratio_[detector.calibration_rows_], cut),
        "gap": shown_gap(solution.certificate.relative_gap, ".1e"),
    }
    return render("report/page.html", values)


def _reasons(e: Explanation) -> tuple[list[FeatureValue], list[FeatureValue]]:
    """The reasons that push a row towards "outlier", but for those that hardly do; and what else is unusual in it."""
    total = sum(abs(r.contribution) for r in e.reasons)
    why = [r for r in e.reasons if r.contribution < 0 and -r.contribution >= 0.01 * total]
    return why, [f for f in (*why[1:], *e.also_unusual) if f.position != "within"][:MAX_ALSO]


class Distribution:
    """The values of a feature of the known inliers, which are the first `known` rows; `path` draws them."""

    def __init__(self, column: Column, known: int) -> None:
        place, bars, inliers = column.order, MAX_BARS, column.order[:known]
        if column.typical is None:  # levels, most frequent first; all beyond the most shown share the last place
            place, bars = np.minimum(place, MAX_LEVELS), int(min(inliers.max() + 1, MAX_LEVELS)) + 1
            low, high = -0.5, bars - 0.5
        else:
            pad = 0.35 * (np.nanmax(inliers) - np.nanmin(inliers)) or 1.0
            low, high = np.nanmin(inliers) - pad, np.nanmax(inliers) + pad
        heights, _ = np.histogram(place[:known], bars, (low, high))
        self.x = (np.nan_to_num(place, nan=low) - low) / (high - low) * WIDTH
        room, tall = WIDTH / bars, np.maximum(heights / heights.max() * (HEIGHT - 4), 0.8)
        self.path = "".join(f"M{k * room:.1f} 29v-{tall[k]:.1f}h{room - 1:.1f}V29z" for k in np.flatnonzero(heights))

    def mark(self, row: int) -> str:
        """A line at the value of a row, or an arrow if it lies beyond the edge."""
        x = float(self.x[row])
        if -1e-9 <= x <= WIDTH + 1e-9:
            return f"M{np.clip(x, 1.5, WIDTH - 1.5) - 1.5:.1f} 0h3v30h-3z"
        return f"M{WIDTH:g} 15l-9 -7v14z" if x > 0 else "M0 15l9 -7v14z"


def histogram(scores: FloatArray, held: FloatArray, offset: float | None) -> dict[str, Any]:
    """Bars of the scores, those below `offset` as outliers, and the outline of the scores of held-out inliers."""
    together = np.concatenate([scores, held, [] if offset is None else [offset]])
    pad = 0.03 * float(np.ptp(together)) or 0.5
    low, high = float(together.min()) - pad, float(together.max()) + pad
    step = (high - low) / float(np.clip(2 * np.sqrt(len(scores)), 8, 50))
    first = low if offset is None else offset - step * np.ceil((offset - low) / step)  # no bar straddles the offset
    edges = first + step * np.arange(np.ceil((high - first) / step) + 1)
    below = scores < (-np.inf if offset is None else offset)
    counts = {kind: np.histogram(scores[part], edges)[0] for kind, part in (("out", below), ("known", ~below))}
    expected = np.histogram(held, edges)[0] * (len(scores) / max(len(held), 1))
    unit = 110.0 / max((counts["out"] + counts["known"]).max(), expected.max(), 1.0)
    room = 420.0 / (len(edges) - 1)
    line = "M10 120" + "".join(f"V{120 - n * unit:.1f}h{room:.2f}" for n in expected) + "V120"
    return {
        "bars": [
            (kind, *np.round([10.5 + k * room, 120 - tall, room - 1, tall], 1).tolist())
            for kind, found in counts.items()
            for k in np.flatnonzero(found)
            for tall in [max(found[k] * unit, 2.0)]
        ],
        "line": line if len(held) else "",
        "cut": "" if offset is None else round(10 + (offset - first) / step * room, 1),
    }
