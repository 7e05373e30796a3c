"""`llr-cvx reproduce detectors`: LLR beside common outlier detectors on public data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from llr_cvx.detection.calibration import hold_out, smallest_discovery
from llr_cvx.experiments import statistics, tables
from llr_cvx.experiments.benchmarks import SETS, load_benchmark
from llr_cvx.experiments.comparison.detectors import COMPONENTS, DETECTORS, FDR, KNN_NEIGHBORS, TOL
from llr_cvx.experiments.comparison.report import MEASURES, Report
from llr_cvx.experiments.comparison.trials import MAX_KNOWN, MAX_TEST_INLIERS, inlier_class, plan, sizes
from llr_cvx.experiments.session import Setting, closing, environment, run_and_store, write


def detectors(setting: Setting, names: Sequence[str] = SETS) -> dict[str, Any]:
    """Run all detectors on all sets, and write what they found."""
    draws = {name: sizes(load_benchmark(name)) for name in names}
    choices = {"detectors": list(DETECTORS), "tol": TOL, "draws": draws}
    tasks = plan(setting.trials, setting.seed, names)
    records, facts = run_and_store(setting, "detectors", tasks, choices)
    trials = statistics.flat(records, (*MEASURES, "gap", "seconds", "failed"), "set", "detector")
    report = Report(trials)
    rows = report.rows()
    parts = [
        "# LLR beside other detectors",
        protocol(setting.trials, names),
        power(names),
        "## Over all sets",
        report.overview(),
        "## What it shows",
        tables.bullets(report.findings()),
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
    rows = []
    for name in names:
        data = load_benchmark(name)
        inlier = inlier_class(data)
        known, test, outliers = sizes(data)
        others = len(data.counts) - 1
        outlier = next(c for c in data.counts if c != inlier) if others == 1 else f"the other {others}"
        batch = [known, f"{test} + {outliers}", fewest(known, test + outliers)]
        rows.append([name, data.X.shape[1], inlier, outlier, *batch, data.source])
    return tables.markdown(
        [
            "set",
            "d",
            "inlier class",
            "outlier class",
            "known inliers",
            "test batch",
            "LLR flags none or at least",
            "source",
        ],
        rows,
    )
