"""The result of a run of the detector on two tables, ready to print and save."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import numpy as np

from llr_cvx.detection.calibration import judge_batch, rows_needed, smallest_discovery
from llr_cvx.detection.estimator import LLRDetector
from llr_cvx.detection.explanation import explain_rows

#: Where no row is called an outlier, this many of the lowest scores are explained.
LOWEST_SHOWN = 5


class Detection:
    """The result of a run: `detector`, fitted to the tables `inliers` and `test`, and to both in one as `pooled`.

    `base` is log(n/n') with n unlabelled rows and n' inliers in the model: log r of a row without contributions.
    `log_ratio` and `pvalues` are those of the test rows, the latter NaN unless some inliers were `held_out`. `batch`
    compares the test rows as a whole with these, and `smallest_discovery` is the fewest rows that can be called
    outliers at once. `explanations` are those of the outliers, worst first; `worst` are the same or, where there are
    none, those of the rows with the lowest scores. There are none if the rows are `undecided`, for that reason, and
    possibly since the inliers are `too_few`. If lambda was `chosen`, that says how, and `curve` is its `LambdaCurve`.
    `sources` are the files; rows are `numbered` if they have no names.
    """

    def __init__(
        self, inliers: Any, test: Any, pooled: Any, detector: LLRDetector, scaling: str, undecided: str
    ) -> None:
        n, fdr, held = len(inliers), detector.fdr, detector.log_ratio_[detector.calibration_rows_]
        self.inliers, self.test, self.pooled, self.detector = inliers, test, pooled, detector
        self.scaling, self.undecided = scaling, undecided
        self.sources = tuple(str(table.attrs.get("source", "a table in memory")) for table in (inliers, test))
        self.ids, self.numbered = [*inliers.index, *test.index], test.index.inferred_type == "integer"
        self.base, self.log_ratio = detector.solution_.problem.base, detector.log_ratio_[n:]
        self.held_out = len(held)
        self.pvalues = detector.pvalues_[n:] if len(held) else np.full(len(test), np.nan)
        self.batch = judge_batch(self.log_ratio, held) if len(held) else None
        self.smallest_discovery = 1 if fdr is None else smallest_discovery(len(held), len(test), fdr)
        self.features = detector._features(pooled)
        outliers = np.flatnonzero(self.log_ratio < detector.fitted_offset_)
        decided = outliers.size > 0 and not undecided
        rows = outliers if decided else np.argsort(self.log_ratio, kind="stable")[:LOWEST_SHOWN]
        self.worst = explain_rows(self.features, n + rows, detector.fitted_offset_)
        self.explanations = self.worst if decided else []
        self.too_few = len(held) > 0 and not self.explanations and 2 * self.smallest_discovery > len(test) + 1
        self.notes: list[str] = []
        self.curve, problem = getattr(detector, "curve_", None), detector.solution_.problem
        self.chosen = self.curve.reason(problem.lambda1, problem.lambda2) if self.curve else ""

    def id_of(self, row: int) -> str:
        """The id of a pooled row."""
        return str(self.ids[row])

    def name_of(self, row: int) -> str:
        """The id of a pooled row, or "row 7" if rows are only numbered."""
        return f"row {self.ids[row]}" if isinstance(self.ids[row], int) else str(self.ids[row])

    @property
    def rule(self) -> str:
        """How outliers are told, in words."""
        detector = self.detector
        words = {
            "fdr": f"p-values, false discovery rate {detector.fdr or 0:g}",
            "false_alarm": f"p-values, false alarm rate {detector.false_alarm or 0:g}",
            "threshold": "given",
            "contamination": f"lowest {100 * (detector.contamination or 0):g} % of the test rows",
        }
        fence = "lower fence of the test rows' scores (first quartile - 1.5 interquartile ranges)"
        return next((said for name, said in words.items() if getattr(detector, name) is not None), fence)

    def decision(self) -> list[str]:
        """What was decided, by which rule, and what that rule can and cannot see."""
        rows, known, m, fewest = len(self.test), len(self.inliers), self.held_out, self.smallest_discovery
        count = f"{len(self.explanations)} of {rows} test rows are outliers"
        if self.undecided:
            return [f"ranked only: {self.undecided}"]
        if self.batch is None:
            return [f"{count} (threshold on log r: {self.detector.fitted_offset_:.4g}, {self.rule})"]
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
            f"{count} ({self.rule})",
            f"{m} of the {known} inliers are held out for p-values: none is below 1/{m + 1}{limit}",
            f"{whole}: test rows score below held-out inliers in {100 * self.batch.below:.0f} % of pairs "
            f"(50 % by chance, p = {self.batch.pvalue:.2g})",
        ]

    def parameters(self) -> dict[str, Any]:
        """The parameters used, including those chosen by cross-validation."""
        detector, problem = self.detector, self.detector.solution_.problem
        return {
            **{name: getattr(problem, name) for name in ("lambda1", "lambda2", "n_neighbors", "sigma")},
            **{name: getattr(detector, name) for name in ("fit_intercept", "random_state", "tol")},
            "scaling": self.scaling,
            "threshold": float(np.exp(detector.fitted_offset_)),
            "threshold_rule": self.rule,
            "held_out": self.held_out,
            "solver": detector.solution_.solver,
        }

    def as_dict(self) -> dict[str, Any]:
        """The whole result; `llr_cvx.cli.files.as_json` turns it into text."""
        solution, proof, n = self.detector.solution_, self.detector.solution_.certificate, len(self.inliers)
        lower, upper = (self.base + end[n:] for end in proof.score_bounds)
        scores = self.scores()[["id", "log_ratio", "pvalue", "rank"]]
        scores = scores.assign(relative_to_base=self.log_ratio - self.base, lower=lower, upper=upper)
        return {
            "inliers": {"file": self.sources[0], "rows": n},
            "test": {"file": self.sources[1], "rows": len(self.test)},
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
            **({"choice": {"reason": self.chosen, **self.curve.as_dict()}} if self.curve else {}),
        }

    def scores(self) -> Any:
        """All test rows in file order, as a DataFrame: id, log_ratio, pvalue, outlier, rank and reasons.

        Reasons are what pushes a row towards "outlier", strongest first, with its value: a JSON list of texts.
        """
        import pandas

        rows = range(len(self.inliers), len(self.pooled))
        outliers = {e.row for e in self.explanations}
        reasons = (
            [f"{r.feature} = {r.shown}, {r.rank}" for r in self.features.reasons(i) if r.contribution < 0] for i in rows
        )
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
