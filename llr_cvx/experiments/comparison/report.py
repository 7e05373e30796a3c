"""The tables of the comparison, and what they show in sentences whose numbers are all computed from them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from llr_cvx.arrays import FloatArray
from llr_cvx.experiments.comparison.detectors import DETECTORS, FDR
from llr_cvx.experiments.statistics import compared, summarize
from llr_cvx.experiments.tables import Finding, listed, markdown, ranked

Row = Mapping[str, Any]

#: What is measured in each trial, in the order of the files.
MEASURES = ("auc", "ap", "reasons", "false_alarms", "found", "false_discoveries")
#: Another detector is clearly ahead of LLR on a set if its AUC is higher by this much.
CLEAR_LEAD = 0.05


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
        shares = ("false_alarms", "found", "false_discoveries")
        lines = []
        for name in self.names:
            reasons = self.average(name, "reasons")
            lines.append(
                [
                    name,
                    *(f"{self.average(name, m):.3f}" for m in ("auc", "ap")),
                    "-" if np.isnan(reasons) else f"{reasons:.1f}",
                    DETECTORS[name].decision,
                    *(f"{self.average(name, m):.0%}" for m in shares),
                ]
            )
        shown = ["false alarms", "outliers found", "false discoveries"]
        return markdown(["detector", "AUC", "AP", "reasons per outlier", "default decision", *shown], lines)

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
        about: dict[str, Callable[[], str]] = {
            "Ranking": self._ranking,
            "Against KNN": lambda: self._against("LLR detection, uncalibrated", "KNN"),
            "Against max|z|": lambda: self._against("LLR paper, uncalibrated", "max|z|"),
            "Price of calibration": self._price,
            "Decisions": self._decisions,
            "Reasons": self._reasons,
            "Where LLR is behind": self._behind,
        }
        return [Finding(subject, sentence()) for subject, sentence in about.items()]

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
