"""Run the detector on two tables and collect what it finds, ready to print and save."""

from __future__ import annotations

import csv
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import IO, Any

import numpy as np
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, RobustScaler, StandardScaler

from llr_cvx.arrays import FloatArray
from llr_cvx.detection.estimator import LLRDetector
from llr_cvx.detection.explanation import TYPICAL_QUANTILES, Explanation
from llr_cvx.detection.tables import Frame
from llr_cvx.graph import IsolatedWarning

#: Ways to scale features; the scale is always that of the known inliers.
SCALINGS: dict[str, Callable[[], Any]] = {
    "none": FunctionTransformer,
    "standard": StandardScaler,
    "robust": RobustScaler,
    "minmax": MinMaxScaler,
}

#: With fewer test rows, the quartiles of their scores mean little.
MIN_TEST_ROWS = 8
#: With fewer inliers, the ends of their typical range rest on single rows.
MIN_INLIERS = round(1 / TYPICAL_QUANTILES[0])
#: What row numbers mean, for rows without ids.
ROW_NUMBERING = "rows are numbered from 1 within their file, without the header line"


@dataclass(frozen=True, eq=False)
class Detection:
    """The result of a run.

    Attributes
    ----------
    inliers, test : Frame
        The tables, in their original units.
    detector : LLRDetector
        Fitted to both tables, inliers first.
    scaling : str
        One of `SCALINGS`.
    explanations : list of Explanation
        The outliers, worst first, with values in the units of the tables.
    notes : list of str
        Warnings of the run.
    """

    inliers: Frame
    test: Frame
    detector: LLRDetector
    scaling: str
    explanations: list[Explanation]
    notes: list[str] = field(default_factory=list)

    @property
    def log_ratio(self) -> FloatArray:
        """log r of the test rows."""
        return np.asarray(self.detector.log_ratio_[len(self.inliers.ids) :])

    @property
    def base(self) -> float:
        """log(n/n') with n test rows and n' inliers: log r of a row without contributions."""
        return self.detector.solution_.problem.base

    @property
    def intervals(self) -> tuple[FloatArray, FloatArray]:
        """Proven lower and upper bounds of each test row's log r at the exact optimum."""
        low, high = self.detector.solution_.certificate.score_bounds
        n = len(self.inliers.ids)
        return self.base + low[n:], self.base + high[n:]

    def id_of(self, row: int) -> str:
        """The id of a pooled row."""
        n = len(self.inliers.ids)
        return self.test.ids[row - n] if row >= n else self.inliers.ids[row]

    def name_of(self, row: int) -> str:
        """The id of a pooled row, or "row 7" if rows are only numbered."""
        numbered = (self.test if row >= len(self.inliers.ids) else self.inliers).numbered
        return f"row {self.id_of(row)}" if numbered else self.id_of(row)

    def feature_counts(self) -> list[tuple[str, int]]:
        """How often each feature is the strongest reason for an outlier, most frequent first."""
        return Counter(e.reasons[0].feature for e in self.explanations if e.reasons).most_common()

    def parameters(self) -> dict[str, Any]:
        """The parameters used, including those chosen by cross-validation."""
        detector, problem = self.detector, self.detector.solution_.problem
        return {
            "lambda1": problem.lambda1,
            "lambda2": problem.lambda2,
            "n_neighbors": detector.n_neighbors_,
            "sigma": detector.sigma_,
            "scaling": self.scaling,
            "fit_intercept": bool(detector.fit_intercept),
            "threshold": float(np.exp(detector.offset_)),
            "threshold_rule": threshold_rule(detector),
            "solver": detector.solution_.solver,
            "tol": detector.tol,
        }

    def as_dict(self) -> dict[str, Any]:
        """The whole result as plain values for JSON."""
        solution = self.detector.solution_
        proof = solution.certificate
        low, high = self.intervals
        return {
            "inliers": {"file": self.inliers.source, "rows": len(self.inliers.ids)},
            "test": {"file": self.test.source, "rows": len(self.test.ids)},
            "features": list(self.test.columns),
            "parameters": self.parameters(),
            "certificate": {
                "status": solution.status,
                "objective": proof.primal,
                "lower_bound": proof.dual,
                "relative_gap": proof.relative_gap,
                "iterations": solution.n_iter,
                "seconds": solution.seconds,
            },
            "notes": self.notes,
            "rows": "test_row, and ids where there is no id column, count the rows of a file from 1 without its "
            "header line; row and shares_with count the pooled rows from 0, inliers first",
            "outliers": [
                {
                    "id": self.id_of(e.row),
                    "test_row": e.row - len(self.inliers.ids) + 1,
                    "shares_with_ids": [self.id_of(row) for row in e.shares_with],
                    **e.as_dict(),
                }
                for e in self.explanations
            ],
            "scores": [
                {"id": i, "log_ratio": float(z), "lower": _finite(a), "upper": _finite(b)}
                for i, z, a, b in zip(self.test.ids, self.log_ratio, low, high, strict=True)
            ],
        }

    def write_scores(self, stream: IO[str]) -> None:
        """Write a CSV of all test rows, in file order."""
        found = {e.row - len(self.inliers.ids): e for e in self.explanations}
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(["id", "log_ratio", "ratio", "lower", "upper", "outlier", "rank", "reasons"])
        rows = zip(self.test.ids, self.log_ratio.tolist(), *(end.tolist() for end in self.intervals), strict=True)
        for k, (name, z, low, high) in enumerate(rows):
            e = found.get(k)
            tail = [1, e.rank, " ".join(r.feature for r in e.reasons)] if e else [0, "", ""]
            writer.writerow([name, z, float(np.exp(z)), low, high, *tail])


def scaled(inliers: Frame, test: Frame, scaling: str) -> tuple[FloatArray, FloatArray]:
    """The values of both tables, scaled by the inliers; see `SCALINGS`.

    >>> good, new = (Frame("", ("a",), np.array(v), ()) for v in ([[1.0], [3.0]], [[4.0]]))
    >>> [X.tolist() for X in scaled(good, new, "standard")]
    [[[-1.0], [1.0]], [[2.0]]]
    """
    if scaling not in SCALINGS:
        raise ValueError(f"scaling must be one of {', '.join(SCALINGS)}, got {scaling!r}")
    scaler = SCALINGS[scaling]().fit(inliers.values)
    return scaler.transform(inliers.values), scaler.transform(test.values)


def detect(inliers: Frame, test: Frame, detector: LLRDetector, scaling: str = "standard", **fit: Any) -> Detection:
    """Scale both tables by the inliers, fit them, and explain the outliers among the test rows.

    Parameters
    ----------
    inliers, test : Frame
        Tables with the same columns (see `llr_cvx.detection.tables.read_pair`).
    detector : LLRDetector
    scaling : str
        "none", "standard" (mean and standard deviation of the inliers), "robust" (median and quartiles) or
        "minmax" (to [0, 1]).
    **fit
        Passed to the detector's `fit`.
    """
    X = np.vstack(scaled(inliers, test, scaling))
    y = np.repeat([1.0, -1.0], [len(inliers.values), len(test.values)])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        detector.fit(X, y, **fit)
    raw = np.vstack([inliers.values, test.values])
    run = Detection(inliers, test, detector, scaling, detector.explain_table(values=raw, names=inliers.columns), [])
    run.notes.extend(
        [
            *_few_inliers(inliers),
            *_few_rows(detector, test),
            *_constant_columns(inliers, test),
            *_isolated(run),
            # `_isolated` reports these with the numbering of the files.
            *dict.fromkeys(str(w.message) for w in caught if not issubclass(w.category, IsolatedWarning)),
            *_many_outliers(len(run.explanations), len(inliers.ids), len(test.ids)),
        ]
    )
    return run


def threshold_rule(detector: LLRDetector) -> str:
    """How the threshold was chosen, in words."""
    if detector.threshold is not None:
        return "given"
    if detector.contamination is not None:
        return f"lowest {100 * detector.contamination:g} % of the test rows"
    return "lower fence of the test rows' scores (first quartile - 1.5 interquartile ranges)"


def _few_inliers(inliers: Frame) -> list[str]:
    """A note if there are few inliers, since everything is compared with them."""
    if len(inliers.ids) >= MIN_INLIERS:
        return []
    low, high = (f"{100 * quantile:g} %" for quantile in TYPICAL_QUANTILES)
    return [
        f"only {len(inliers.ids)} inlier(s): scaling, scores and the {low} to {high} range of each feature rest on "
        f"few rows; {MIN_INLIERS} or more are advised"
    ]


def _isolated(run: Detection) -> list[str]:
    """A note on rows that are coupled to no other."""
    rows = run.detector.solution_.problem.graph.isolated.tolist()
    if not rows:
        return []
    n = len(run.inliers.ids)
    named = [f"{run.name_of(row)} of the {'test rows' if row >= n else 'inliers'}" for row in rows[:5]]
    return [
        f"{len(rows)} row(s) lie so far away that all their Gaussian weights underflow to 0 at sigma = "
        f"{run.detector.sigma_:.4g} ({', '.join(named)}{', ...' if len(rows) > 5 else ''}): each is scored alone, "
        "by its own features only. A larger sigma couples them to their neighbours again"
    ]


def _few_rows(detector: LLRDetector, test: Frame) -> list[str]:
    """A note if there are few test rows, since the default threshold compares them with one another."""
    if len(test.ids) >= MIN_TEST_ROWS or detector.threshold is not None or detector.contamination is not None:
        return []
    return [
        f"the default threshold compares the {len(test.ids)} test row(s) with one another and needs at least "
        f"{MIN_TEST_ROWS} to be meaningful: give a threshold on r"
    ]


def _many_outliers(found: int, inliers: int, test: int) -> list[str]:
    """A note if most rows are flagged, often because the threshold assumes that ordinary rows have r = 1."""
    if 2 * found <= test:
        return []
    return [
        f"more than half of the test rows ({found} of {test}) are called outliers: ordinary rows sit near "
        f"r = n/n' = {test}/{inliers} = {test / inliers:.3g}, so a threshold on r belongs below that"
    ]


def _constant_columns(inliers: Frame, test: Frame) -> list[str]:
    """A note on each column that is constant among the inliers and so cannot be scaled by them."""
    notes = []
    for k, name in enumerate(inliers.columns):
        known, checked = inliers.values[:, k], test.values[:, k]
        if len(known) > 1 and np.all(known == known[0]):
            differs = int(np.count_nonzero(checked != known[0]))
            found = f"differs in {differs} test row(s), and its scale is arbitrary"
            meaning = found if differs else "carries no information"
            notes.append(f"column {name!r} is constant ({known[0]:g}) among the inliers: it {meaning}")
    return notes


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
