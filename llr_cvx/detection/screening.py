"""Run the detector on two tables, and note what a reader of the result should know."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from llr_cvx.detection.encoding import TableEncoder, levels_of
from llr_cvx.detection.estimator import LLRDetector
from llr_cvx.detection.features import TYPICAL_QUANTILES, TYPICAL_RANGE
from llr_cvx.detection.pairs import Missing, listing
from llr_cvx.detection.result import Detection
from llr_cvx.detection.scalers import SCALINGS
from llr_cvx.graph import IsolatedWarning

#: With fewer inliers, the ends of their typical range rest on single rows.
MIN_INLIERS = round(1 / TYPICAL_QUANTILES[0])
#: What row numbers mean, for rows without ids.
ROW_NUMBERING = "rows are numbered from 1 within their file, without the header line"


def detect(
    inliers: Any,
    test: Any,
    detector: LLRDetector,
    scaling: str = "standard",
    undecided: str = "",
    missing: Missing = "refuse",
    **fit: Any,
) -> Detection:
    """Encode and scale both tables by the inliers, fit them, and explain the outliers among the test rows.

    The tables have the same columns; their index names the rows (see `read_pair`). The detector's `scaler` is set here:
    `scaling` is "none", "standard" (mean and standard deviation of the inliers), "robust" (median and quartiles),
    "minmax" (to [0, 1]) or "conditional" (`ConditionalScaler`). Only inliers in the model count, not those held out.
    Where `undecided` is given, rows are ranked but none is called an outlier, for this reason. For `missing` see
    `TableEncoder`; `fit` is passed to the detector's `fit`.
    """
    import pandas

    if scaling not in SCALINGS:
        raise ValueError(f"scaling must be one of {', '.join(SCALINGS)}, got {scaling!r}")
    encoder = TableEncoder("refuse" if missing == "drop" else missing, SCALINGS[scaling])
    detector.set_params(scaler=encoder)
    pooled = pandas.concat([inliers, test[list(inliers)]], ignore_index=True)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        detector.fit(pooled, np.repeat([1.0, -1.0], [len(inliers), len(test)]), **fit)
        run = Detection(inliers, test, pooled, detector, scaling, undecided)
    run.notes.extend(_notes(run))
    run.notes.extend(dict.fromkeys(str(w.message) for w in caught if not issubclass(w.category, IsolatedWarning)))
    return run


def _notes(run: Detection) -> Iterator[str]:
    """What a reader should know: few rows, suspicious inliers, columns left out, rows apart, many outliers."""
    detector, n, rows, found = run.detector, len(run.inliers), len(run.test), len(run.explanations)
    if n < MIN_INLIERS:
        yield (
            f"only {n} inlier(s): scaling, scores and the {TYPICAL_RANGE} range of each feature rest on few rows; "
            f"{MIN_INLIERS} or more are advised"
        )
    if len(detector.suspicious_inliers_):
        named = listing(map(run.name_of, detector.suspicious_inliers_.tolist()), 5, quoted=False)
        yield f"check these of the inliers, which do not look like the others: {named}; an outlier there hides others"
    yield from _left_out(run)
    if apart := detector.solution_.problem.graph.isolated.tolist():
        named = listing(
            (f"{run.name_of(row)} of the {'test rows' if row >= n else 'inliers'}" for row in apart), 5, quoted=False
        )
        yield (
            f"{len(apart)} row(s) lie so far away that all their Gaussian weights underflow to 0 at sigma = "
            f"{detector.sigma_:.4g} ({named}): each is scored alone, by its own features only. A larger sigma couples "
            "them to their neighbours again"
        )
    if 2 * found > rows and not run.held_out:
        yield (
            f"more than half of the test rows ({found} of {rows}) are called outliers: ordinary rows sit near "
            f"r = n/n' = {rows}/{n} = {rows / n:.3g}, so a threshold on r belongs below that"
        )
    if run.curve and not run.curve.informative:
        yield (
            "the choice of lambda1 means little: no value tells held-out test rows from inliers better than chance. "
            "That is expected where outliers are few, and does not say that there are none"
        )


def _left_out(run: Detection) -> Iterator[str]:
    """A note on the columns that are constant among the inliers of the model, and one on text that names the rows."""
    left_out, differing = run.detector.scaler_.left_out_, []
    constant, names = ([n for n, why in left_out.items() if why == kind] for kind in ("constant", "row names"))
    for name in constant:
        levels, common = levels_of(run.test[name]), levels_of(run.inliers[name]).mode()
        rows = levels.notna() & ~levels.isin(common[:1])
        if rows.any():
            first = run.name_of(len(run.inliers) + int(rows.argmax()))
            differing.append(f"{name!r} differs in {int(rows.sum())} test row(s), the first {first}")
    if constant:
        yield f"left out, since constant among the inliers: {'; '.join([listing(constant), *differing[:5]])}"
    if names:
        yield f"left out, since text that differs from row to row: {listing(names)} (--id NAME to name rows by it)"
