"""The result of a run of the detector on two tables, ready to print and save."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from llr_cvx.arrays import FloatArray
from llr_cvx.detection.calibration import BatchVerdict, judge_batch, rows_needed, smallest_discovery
from llr_cvx.detection.estimator import LLRDetector
from llr_cvx.detection.explanation import Explanation, Features


@dataclass(eq=False)
class Detection:
    """The result of a run.

    Attributes
    ----------
    inliers, test, pooled : DataFrame
        The tables, in their original units, and both in one.
    detector : LLRDetector
        Fitted to both tables, inliers first.
    scaling : str
        One of `SCALINGS`.
    explanations : list of Explanation
        The outliers, worst first, with values in the units of the tables.
    lowest : list of Explanation
        The rows with the lowest scores, where no row is called an outlier.
    undecided : str
        Why no decision was made, if so; all rows are ranked.
    notes : list of str
        Warnings of the run.
    """

    inliers: Any
    test: Any
    pooled: Any
    detector: LLRDetector
    scaling: str
    explanations: list[Explanation]
    lowest: list[Explanation] = field(default_factory=list)
    undecided: str = ""
    notes: list[str] = field(default_factory=list)

    @property
    def log_ratio(self) -> FloatArray:
        """log r of the test rows."""
        return np.asarray(self.detector.log_ratio_[len(self.inliers) :])

    @property
    def base(self) -> float:
        """log(n/n') with n unlabelled rows and n' inliers in the model: log r of a row without contributions."""
        return self.detector.solution_.problem.base

    @property
    def held_out(self) -> int:
        """How many of the inliers were held out for p-values."""
        return len(self.detector.calibration_rows_)

    @property
    def pvalues(self) -> FloatArray:
        """p-values of the test rows; NaN where there are none."""
        return self.detector.pvalues_[len(self.inliers) :] if self.held_out else np.full(len(self.test), np.nan)

    @cached_property
    def batch(self) -> BatchVerdict | None:
        """The test rows as a whole against the held-out inliers."""
        held = self.detector.log_ratio_[self.detector.calibration_rows_]
        return judge_batch(self.log_ratio, held) if self.held_out else None

    @property
    def smallest_discovery(self) -> int:
        """The fewest rows that can be called outliers at once."""
        fdr = self.detector.fdr
        return 1 if fdr is None else smallest_discovery(self.held_out, len(self.test), fdr)

    @property
    def too_few(self) -> bool:
        """Whether no row is called an outlier since there are too few inliers for it."""
        return bool(self.held_out) and not self.explanations and 2 * self.smallest_discovery > len(self.test) + 1

    def id_of(self, row: int) -> str:
        """The id of a pooled row."""
        n = len(self.inliers)
        return str(self.test.index[row - n] if row >= n else self.inliers.index[row])

    def name_of(self, row: int) -> str:
        """The id of a pooled row, or "row 7" if rows are only numbered."""
        table = self.test if row >= len(self.inliers) else self.inliers
        return f"row {self.id_of(row)}" if numbered(table) else self.id_of(row)

    @cached_property
    def features(self) -> Features:
        """The features of the pooled rows."""
        return self.detector._features(self.pooled)

    def feature_counts(self) -> list[tuple[str, int]]:
        """How often each feature is the strongest reason for an outlier, most frequent first."""
        return Counter(e.reasons[0].feature for e in self.explanations if e.reasons).most_common()

    def decision(self) -> list[str]:
        """What was decided, by which rule, and what that rule can and cannot see."""
        rows, known, m, fewest = len(self.test), len(self.inliers), self.held_out, self.smallest_discovery
        rule, count = threshold_rule(self.detector), f"{len(self.explanations)} of {rows} test rows are outliers"
        if self.undecided:
            return [f"ranked only: {self.undecided}"]
        if self.batch is None:
            return [f"{count} (threshold on log r: {self.detector.fitted_offset_:.4g}, {rule})"]
        if self.too_few:
            count = f"ranked only: {known} inliers are too few to call single rows outliers"
        limit = ""
        if self.detector.fdr is not None and fewest > 1:
            alone = rows_needed(self.detector.fdr / rows)
            limit = f", so {fewest} rows must stand out before any is an outlier (1 with {alone} held out)"
        whole = "the batch as a whole looks normal"
        if self.batch.differs:
            whole = "part of the batch differs"
        if self.batch.bad:
            whole = "the batch as a whole is BAD"
        return [
            f"{count} ({rule})",
            f"{m} of the {known} inliers are held out for p-values: none is below 1/{m + 1}{limit}",
            f"{whole}: test rows score below held-out inliers in {100 * self.batch.below:.0f} % of pairs "
            f"(50 % by chance, p = {self.batch.pvalue:.2g})",
        ]

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
            "threshold": float(np.exp(detector.fitted_offset_)),
            "threshold_rule": threshold_rule(detector),
            "held_out": self.held_out,
            "random_state": detector.random_state if isinstance(detector.random_state, int) else None,
            "solver": detector.solution_.solver,
            "tol": detector.tol,
        }

    def as_dict(self) -> dict[str, Any]:
        """The whole result; `llr_cvx.cli.files.as_json` turns it into text."""
        solution, n = self.detector.solution_, len(self.inliers)
        proof = solution.certificate
        lower, upper = (self.base + end[n:] for end in proof.score_bounds)
        scores = self.scores()[["id", "log_ratio", "pvalue", "rank"]]
        scores = scores.assign(relative_to_base=self.log_ratio - self.base, lower=lower, upper=upper)
        return {
            "inliers": {"file": source(self.inliers), "rows": n},
            "test": {"file": source(self.test), "rows": len(self.test)},
            "features": list(self.inliers.columns),
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
            "undecided": self.undecided,
            "base": self.base,
            "batch": asdict(self.batch) | {"bad": self.batch.bad} if self.batch else None,
            "suspicious_inliers": [self.id_of(row) for row in self.detector.suspicious_inliers_.tolist()],
            "rows": "test_row, and ids where there is no id column, count the rows of a file from 1 without its "
            "header line; row and shares_with count the pooled rows from 0, inliers first",
            "outliers": [
                {"id": self.id_of(e.row), "test_row": e.row - n + 1}
                | {"shares_with_ids": [*map(self.id_of, e.shares_with)], **asdict(e)}
                for e in self.explanations
            ],
            "scores": scores.to_dict("records"),
        }

    def scores(self) -> Any:
        """All test rows in file order, as a DataFrame: id, log_ratio, pvalue, outlier, rank and reasons.

        Reasons are what pushes a row towards "outlier", strongest first, with its value: a JSON list of texts.
        """
        import pandas

        rows = range(len(self.inliers), len(self.pooled))
        outliers = {e.row for e in self.explanations}
        pushes = ([r for r in self.features.reasons(i) if r.contribution < 0] for i in rows)
        reasons = ([f"{r.feature} = {r.shown}, {r.rank}" for r in found] for found in pushes)
        return pandas.DataFrame(
            {
                "id": self.test.index.astype(str),
                "log_ratio": self.log_ratio,
                "pvalue": self.pvalues,
                "outlier": [None if self.undecided else int(row in outliers) for row in rows],
                "rank": np.argsort(np.argsort(self.log_ratio, kind="stable")) + 1,
                "reasons": [json.dumps(texts, ensure_ascii=False) for texts in reasons],
            }
        )


def numbered(table: Any) -> bool:
    """Whether the rows of a table have numbers, not names."""
    return bool(table.index.inferred_type == "integer")


def source(table: Any) -> str:
    """Where a table came from."""
    return str(table.attrs.get("source", "a table in memory"))


def threshold_rule(detector: LLRDetector) -> str:
    """How outliers were told, in words."""
    words = {
        "fdr": f"p-values, false discovery rate {detector.fdr or 0:g}",
        "false_alarm": f"p-values, false alarm rate {detector.false_alarm or 0:g}",
        "threshold": "given",
        "contamination": f"lowest {100 * (detector.contamination or 0):g} % of the test rows",
    }
    fence = "lower fence of the test rows' scores (first quartile - 1.5 interquartile ranges)"
    return next((said for name, said in words.items() if getattr(detector, name) is not None), fence)
