"""The HTML page of a run; its text is in `page.html`."""

from __future__ import annotations

from collections import Counter
from datetime import datetime

import numpy as np

from llr_cvx.detection.explanation import Explanation
from llr_cvx.detection.features import FeatureValue, percent
from llr_cvx.detection.screening import Detection
from llr_cvx.proofs.certificate import shown_gap
from llr_cvx.report.charts import Distribution, histogram, px
from llr_cvx.report.pages import render

#: At most this many outliers are shown, each in the table and on a card; more than people read, and browsers are quick.
MAX_SHOWN = 300
#: Features drawn on a card, others named as unusual, and columns named as being behind the outliers.
MAX_CARD_FEATURES, MAX_ALSO, MAX_CAUSES = 3, 4, 12


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
        **{"run": run, "title": title, "rows": rows, "solution": solution, "px": px, "percent": percent},
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
