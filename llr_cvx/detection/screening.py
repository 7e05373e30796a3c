"""Run the detector on two tables: the result, ready to print and save, and what a reader of it should know."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import numpy as np

from llr_cvx.detection.calibration import judge_batch, rows_needed, smallest_discovery
from llr_cvx.detection.encoding import TableEncoder, levels_of
from llr_cvx.detection.estimator import LLRDetector
from llr_cvx.detection.explanation import explain_rows
from llr_cvx.detection.features import TYPICAL_QUANTILES, TYPICAL_RANGE
from llr_cvx.detection.pairs import Missing
from llr_cvx.detection.scalers import SCALINGS
from llr_cvx.graph import IsolatedWarning
from llr_cvx.text import listing

#: Where no row is called an outlier, this many of the lowest scores are explained.
LOWEST_SHOWN = 5
#: With fewer inliers, the ends of their typical range rest on single rows.
MIN_INLIERS = round(1 / TYPICAL_QUANTILES[0])
#: What row numbers mean, for rows without ids.
ROW_NUMBERING = "rows are numbered from 1 within their file, without the header line"


class Detection:
    """The result of a run: `detector`, fitted to the tables `inliers` and `test`, in one as `pooled`.

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
        self.inliers, self.test, self.detector = inliers, test, detector
        self.scaling, self.undecided = scaling, undecided
        self.sources = tuple(str(table.attrs.get("source", "a table in memory")) for table in (inliers, test))
        self.ids, self.numbered = [*inliers.index, *test.index], test.index.inferred_type == "integer"
        problem, self.log_ratio = detector.solution_.problem, detector.log_ratio_[n:]
        self.base, self.held_out = problem.base, len(held)
        self.pvalues = detector.pvalues_[n:] if len(held) else np.full(len(test), np.nan)
        self.batch = judge_batch(self.log_ratio, held) if len(held) else None
        self.smallest_discovery = 1 if fdr is None else smallest_discovery(len(held), len(test), fdr)
        self.features = detector._features(pooled)
        outliers = np.flatnonzero(self.log_ratio < detector.fitted_offset_)
        decided = outliers.size > 0 and not undecided
        rows = outliers if decided else np.argsort(self.log_ratio, kind="stable")[:LOWEST_SHOWN]
        self.worst = explain_rows(self.features, n + rows, detector.fitted_offset_)
        self.explanations = self.worst if decided else []
        self.too_few = not self.explanations and 2 * self.smallest_discovery > len(test) + 1
        self.curve = getattr(detector, "curve_", None)
        self.chosen = self.curve.reason(problem.lambda1, problem.lambda2) if self.curve else ""
        self.notes: list[str] = []

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
        rows, known, m = len(self.test), len(self.inliers), self.held_out
        count = f"{len(self.explanations)} of {rows} test rows are outliers"
        if self.undecided:
            return [f"ranked only: {self.undecided}"]
        if self.batch is None:
            return [f"{count} (threshold on log r: {self.detector.fitted_offset_:.4g}, {self.rule})"]
        if self.too_few:
            count = f"ranked only: {known} inliers are too few to call single rows outliers"
        limit = ""
        if self.detector.fdr and self.smallest_discovery > 1:
            fewest, alone = self.smallest_discovery, rows_needed(self.detector.fdr / rows)
            limit = f", so {fewest} rows must stand out before any is an outlier (1 with {alone} held out)"
        whole = "part of the batch differs" if self.batch.differs else "the batch as a whole looks normal"
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
        scores = self.scores().drop(columns=["outlier", "reasons"])
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
            "rows": "ids where there is no id column, and then test_row, count the rows of a file from 1 without its "
            "header line; else test_row counts those that are used; row and shares_with count the pooled rows from 0, "
            "inliers first",
            "outliers": [
                {"id": self.id_of(e.row), "test_row": self.ids[e.row] if self.numbered else e.row - n + 1}
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

        why = map(self.features.reasons, range(len(self.inliers), len(self.ids)))
        reasons = ([f"{r.feature} = {r.shown}, {r.rank}" for r in found if r.contribution < 0] for found in why)
        outliers = self.log_ratio < self.detector.fitted_offset_
        return pandas.DataFrame(
            {
                "id": self.test.index.astype(str),
                "log_ratio": self.log_ratio,
                "pvalue": self.pvalues,
                "outlier": None if self.undecided else outliers.astype(int),
                "rank": np.argsort(np.argsort(self.log_ratio, kind="stable")) + 1,
                "reasons": [json.dumps(texts, ensure_ascii=False) for texts in reasons],
            }
        )


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
        warnings.simplefilter("ignore", IsolatedWarning)  # said with the names of the rows
        detector.fit(pooled, np.repeat([1.0, -1.0], [len(inliers), len(test)]), **fit)
        run = Detection(inliers, test, pooled, detector, scaling, undecided)
    run.notes = list(dict.fromkeys([*_notes(run), *(str(w.message) for w in caught)]))
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
        where = [f"{run.name_of(row)} of the {'test rows' if row >= n else 'inliers'}" for row in apart]
        yield (
            f"{len(apart)} row(s) lie so far away that all their Gaussian weights underflow to 0 at sigma = "
            f"{detector.sigma_:.4g} ({listing(where, 5, quoted=False)}): each is scored alone, by its own features "
            "only. A larger sigma couples them to their neighbours again"
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
    left_out, differing = run.detector.scaler_.left_out_.items(), []
    constant, names = ([n for n, why in left_out if why == kind] for kind in ("constant", "row names"))
    for name in constant:
        levels, common = levels_of(run.test[name]), levels_of(run.inliers[name]).mode()
        rows = len(run.inliers) + np.flatnonzero(levels.notna() & ~levels.isin(common[:1]))
        if rows.size:
            differing.append(f"{name!r} differs in {rows.size} test row(s), the first {run.name_of(rows[0])}")
    if constant:
        who = f"inliers{' in the model' if run.held_out else ''}"
        yield f"left out, since constant among the {who}: {'; '.join([listing(constant), *differing[:5]])}"
    if names:
        yield f"left out, since text that differs from row to row: {listing(names)} (--id NAME to name rows by it)"
