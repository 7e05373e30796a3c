"""`llr-cvx reproduce detectors`: LLR beside common outlier detectors on public data.

All numbers in the sentences are computed from the trials.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from llr_cvx.arrays import FloatArray
from llr_cvx.detection.calibration import hold_out, smallest_discovery
from llr_cvx.experiments.benchmarks import SETS, load_benchmark
from llr_cvx.experiments.comparison.detectors import COMPONENTS, DETECTORS, FDR, KNN_NEIGHBORS, TOL
from llr_cvx.experiments.comparison.trials import MAX_KNOWN, MAX_TEST_INLIERS, plan, sizes
from llr_cvx.experiments.session import Setting, closing, environment, run_and_store, write
from llr_cvx.experiments.statistics import compared, flat, summarize
from llr_cvx.experiments.tables import Finding, bullets, listed, markdown, ranked

Row = Mapping[str, Any]

#: What is measured in each trial, in the order of the files.
MEASURES = ("auc", "ap", "reasons", "false_alarms", "found", "false_discoveries")
#: Another detector is clearly ahead of LLR on a set if its AUC is higher by this much.
CLEAR_LEAD = 0.05


def detectors(setting: Setting, names: Sequence[str] = SETS) -> dict[str, Any]:
    """Run all detectors on all sets, and write what they found."""
    draws = {name: sizes(load_benchmark(name)) for name in names}
    choices = {"detectors": list(DETECTORS), "tol": TOL, "draws": draws}
    tasks = plan(setting.trials, setting.seed, names)
    records, facts = run_and_store(setting, "detectors", tasks, choices)
    trials = flat(records, (*MEASURES, "gap", "seconds", "failed"), "set", "detector")
    report = Report(trials)
    rows = report.rows()
    parts = [
        "# LLR beside other detectors",
        protocol(setting.trials, names),
        power(names),
        "## Over all sets",
        report.overview(),
        "## What it shows",
        bullets(report.findings()),
        "## AUC",
        "Bold: the best of the row and every detector that a paired t-test at 5 % does not tell from it.",
        report.ranking("auc"),
        "## Average precision",
        report.ranking("ap"),
        "## Shares of inliers and of outliers flagged",
        report.decisions(),
        closing(facts),
        "## Sets",
        set_table(names),
        "## Versions",
        environment(setting),
    ]
    return {
        "rows": rows,
        "findings": dict(report.findings()),
        **facts,
        "files": write(setting.out, "detectors", parts, {"detectors": rows, "detectors_trials": trials}),
    }


# ---- what the tables show --------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Report:
    """All that is said, as functions of the trials."""

    trials: Sequence[Row]

    @cached_property
    def sets(self) -> list[str]:
        """The sets, in the order of the trials."""
        return list(dict.fromkeys(row["set"] for row in self.trials))

    @cached_property
    def names(self) -> list[str]:
        """The detectors."""
        return list(dict.fromkeys(row["detector"] for row in self.trials))

    @cached_property
    def values(self) -> dict[tuple[str, str, str], FloatArray]:
        """(set, detector, measure) -> one value per trial, nan where there is none."""
        found = defaultdict(list)
        for row in sorted(self.trials, key=lambda row: int(row["trial"])):
            for measure in MEASURES:
                value = np.nan if row[measure] == "" else float(row[measure])
                found[row["set"], row["detector"], measure].append(value)
        return {key: np.array(values) for key, values in found.items()}

    def mean(self, name: str, detector: str, measure: str) -> float:
        """The mean over the trials of a set that have a value."""
        return summarize(self.values[name, detector, measure]).mean

    def average(self, detector: str, measure: str = "auc") -> float:
        """The mean over the sets of `mean`."""
        return summarize(np.array([self.mean(name, detector, measure) for name in self.sets])).mean

    def rows(self) -> list[dict[str, Any]]:
        """One row per set and detector, then the averages over the sets; empty where there is no value."""

        def row(name: str, detector: str) -> dict[str, Any]:
            of = partial(self.average, detector) if name == "Average" else partial(self.mean, name, detector)
            means = {measure: of(measure) for measure in MEASURES}
            return {"set": name, "detector": detector, **{m: "" if np.isnan(v) else v for m, v in means.items()}}

        return [row(name, detector) for name in (*self.sets, "Average") for detector in self.names]

    # ---- tables ------------------------------------------------------------------------------------------

    def overview(self) -> str:
        """All measures, averaged over the sets."""

        def line(name: str) -> list[str]:
            mean = partial(self.average, name)
            reasons = mean("reasons")
            ranks = [f"{mean(m):.3f}" for m in ("auc", "ap")]
            shares = [f"{mean(m):.0%}" for m in ("false_alarms", "found", "false_discoveries")]
            return [name, *ranks, "-" if np.isnan(reasons) else f"{reasons:.1f}", DETECTORS[name].decision, *shares]

        shown = ["false alarms", "outliers found", "false discoveries"]
        return markdown(
            ["detector", "AUC", "AP", "reasons per outlier", "default decision", *shown], map(line, self.names)
        )

    def ranking(self, measure: str) -> str:
        """Mean AUC or AP on each set; bold are the best and what a paired t-test at 5 % does not tell from it."""
        lines = [[name, *ranked({d: self.values[name, d, measure] for d in self.names}, ".2f")] for name in self.sets]
        lines.append(["Average", *(f"{self.average(d, measure):.2f}" for d in self.names)])
        return markdown(["set", *self.names], lines)

    def decisions(self) -> str:
        """Shares of inliers and outliers flagged on each set."""

        def cell(name: str, detector: str) -> str:
            return f"{self.mean(name, detector, 'false_alarms'):.0%}, {self.mean(name, detector, 'found'):.0%}"

        return markdown(["set", *self.names], [[name, *(cell(name, d) for d in self.names)] for name in self.sets])

    # ---- sentences ---------------------------------------------------------------------------------------

    def findings(self) -> list[Finding]:
        """What the tables show, good or bad."""
        return [
            Finding("Ranking", self._ranking()),
            Finding("Against KNN", self._against("LLR detection, uncalibrated", "KNN")),
            Finding("Against max|z|", self._against("LLR paper, uncalibrated", "max|z|")),
            Finding("Price of calibration", self._price()),
            Finding("Decisions", self._decisions()),
            Finding("Reasons", self._reasons()),
            Finding("Where LLR is behind", self._behind()),
        ]

    def _ranking(self) -> str:
        orders = {m: sorted(self.names, key=lambda d: -self.average(d, m)) for m in ("auc", "ap")}
        auc, ap = ([f"{d} {self.average(d, m):.3f}" for d in order] for m, order in orders.items())
        return f"by mean AUC over {len(self.sets)} sets: {'; '.join(auc)}. By mean AP: {'; '.join(ap)}."

    def _against(self, ours: str, other: str) -> str:
        found = compared({s: (self.values[s, ours, "auc"], self.values[s, other, "auc"]) for s in self.sets})
        return (
            f"{ours} has a mean AUC of {self.average(ours):.3f}, {other} of {self.average(other):.3f}. By a paired "
            f"t-test at 5 % it is ahead on {len(found[1])} of {len(self.sets)} sets ({listed(found[1])}) and behind "
            f"on {len(found[-1])} ({listed(found[-1])})."
        )

    def _price(self) -> str:
        parts = [
            f"from {self.average(f'LLR {setting}, uncalibrated'):.3f} to {self.average(f'LLR {setting}'):.3f} with the "
            f"{setting} setting"
            for setting in ("paper", "detection")
        ]
        return f"holding inliers out for p-values changes the mean AUC {' and '.join(parts)}."

    def _decisions(self) -> str:
        def flagged(name: str) -> str:
            return f"{name} {self.average(name, 'false_alarms'):.1%} and {self.average(name, 'found'):.0%}"

        calibrated = ("LLR paper", "LLR detection")
        discoveries = " and ".join(f"{self.average(name, 'false_discoveries'):.1%}" for name in calibrated)
        return (
            f"share of inliers and of outliers flagged: {'; '.join(flagged(name) for name in self.names)}. The "
            f"calibrated LLR promises at most {FDR:.0%} false discoveries and makes {discoveries} (paper and detection "
            "setting); the others promise nothing."
        )

    def _reasons(self) -> str:
        named = [d for d in self.names if not np.isnan(self.average(d, "reasons"))]
        silent = [d for d in self.names if d not in named]
        counts = "; ".join(f"{d} {self.average(d, 'reasons'):.1f}" for d in named)
        return f"features named for each outlier: {counts}. {listed(silent)} give no reasons."

    def _behind(self) -> str:
        ours = [d for d in self.names if d.startswith("LLR")]
        cases = []
        for name in self.sets:
            lead = {d: self.mean(name, d, "auc") for d in self.names}
            best, own = max(lead, key=lambda d: lead[d]), max(lead[d] for d in ours)
            if lead[best] - own > CLEAR_LEAD:
                cases.append(f"{name} ({best} {lead[best]:.2f}, LLR at best {own:.2f})")
        return f"sets on which another detector has an AUC more than {CLEAR_LEAD:g} above every LLR: {listed(cases)}."


# ---- how the numbers are made ---------------------------------------------------------------------------


def protocol(trials: int, names: Sequence[str]) -> str:
    """How the numbers are made."""
    return (
        f"{len(names)} sets, {trials} random draws of each. The largest class of a set plays the inliers, all other "
        f"rows are outliers. A draw has {MAX_KNOWN} known inliers (at most two thirds of the class) and a test "
        f"batch of {MAX_TEST_INLIERS} other inliers, or as many as are left, and one outlier for nine of them. "
        "Features are standardised by the known inliers. LLR is run as `llr-cvx detect` runs it, part of the inliers "
        "held out for p-values, and uncalibrated, as `LLRDetector` without `fdr`; in the paper's setting and in that "
        f"for detection; it is solved to a proven relative gap of {TOL:g}. KNN is the distance to the "
        f"{KNN_NEIGHBORS}th neighbour; GMM has {COMPONENTS[0]} to {COMPONENTS[-1]} components, chosen by BIC; ℓ1-LR "
        "has λ = 0.1 λ_max, as in Table 2; LOF, isolation forest and one-class SVM have scikit-learn's defaults. All "
        "but ℓ1-LR and LLR are fitted on the known inliers alone. "
        "KNN and GMM have no decision of their own and are given PyOD's default. A reason is a feature with a weight. "
        "AP is the average precision, 0.1 for random scores; false discoveries are the share of inliers among the "
        "flagged rows."
    )


def power(names: Sequence[str]) -> str:
    """What the calibrated decision can do at best in batches of these sizes."""
    draws = [sizes(load_benchmark(name)) for name in names]
    needed = [fewest(known, test + outliers) for known, test, outliers in draws]
    short = sum(outliers < least for (_, _, outliers), least in zip(draws, needed, strict=True))
    return (
        f"Few outliers are hard for calibrated decisions: with so few known inliers, no fewer than {min(needed)} to "
        f"{max(needed)} rows can be flagged at an FDR of {FDR:g}, and on {short} of {len(names)} sets the batch has "
        "fewer outliers than that."
    )


def fewest(known: int, test: int) -> int:
    """The fewest test rows that LLR can flag at the default FDR, since it holds out only part of the known inliers."""
    held = hold_out(np.arange(known), FDR, "fdr", np.random.RandomState(0))
    return smallest_discovery(len(held), test, FDR)


def set_table(names: Sequence[str]) -> str:
    """Sizes, classes and source of each set."""
    header = ["set", "d", "inlier class", "outlier class", "known inliers", "test batch", "LLR flags none or at least"]
    rows = []
    for name in names:
        data = load_benchmark(name)
        inlier, *others = data.counts
        known, test, outliers = sizes(data)
        outlier = others[0] if len(others) == 1 else f"the other {len(others)}"
        batch = [known, f"{test} + {outliers}", fewest(known, test + outliers)]
        rows.append([name, data.X.shape[1], inlier, outlier, *batch, data.source])
    return markdown([*header, "source"], rows)
