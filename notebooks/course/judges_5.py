"""Judges of notebook 5, why is this an outlier?"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

import llr_cvx as llr
from course.exercises import judge, require
from course.problems import split_wines, wine, wine_table
from llr_cvx.detection.screening import Detection, detect
from llr_cvx.proofs.certificate import certificate


@cache
def _run(scaling: str = "standard", all_of_cultivar_2: bool = False) -> Detection:
    known, rest, foreign = split_wines()
    foreign = np.flatnonzero(wine.target == 1) if all_of_cultivar_2 else foreign
    detector = llr.LLRDetector(lambda1=1.0, lambda2=1.0)
    return detect(
        wine_table(known),
        wine_table(np.concatenate([rest, foreign])),
        detector,
        scaling,
    )


@judge("5.1")
def without_scaling(feature: str) -> str:
    """The feature with most of the contributions."""
    total = np.abs(_run("none").detector.explain()).sum(axis=0)
    require(
        feature in wine.feature_names,
        f"no feature is called {feature!r}: see wine.feature_names",
    )
    share = total[wine.feature_names.index(feature)] / total.sum()
    require(
        share > 0.5,
        f"{feature} makes {share:.0%} of all contributions: which feature has the largest numbers?",
    )
    return f"{feature} makes {share:.0%} of all contributions"


@judge("5.2")
def bottles_that_come_later(n_outliers: int) -> str:
    """New rows below the threshold."""
    later = np.setdiff1d(np.flatnonzero(wine.target == 2), split_wines()[2])
    truth = int(np.sum(_run().detector.predict(wine.data[later]) < 0))
    require(n_outliers == truth, "that is not how many of them predict calls outliers (−1)")
    return f"{truth} of {len(later)}, although none of them was fitted"


@judge("5.3")
def a_ratio_that_is_surely_low(alpha: Any, U: Any) -> str:
    """A dual point whose certificate keeps r of wine 161 below 0.2."""
    run = _run()
    problem, row = (
        run.detector.solution_.problem,
        len(split_wines()[0]) + run.test.index.get_loc("wine 161 (cultivar 3)"),
    )
    proof = certificate(
        problem,
        run.detector.solution_.W,
        np.asarray(alpha, float),
        np.asarray(U, float),
    )
    highest = float(np.exp(problem.base + proof.score_bounds[1][row]))
    require(highest < 0.2, f"this dual point proves r ≤ {highest:.3g} only")
    return f"the certificate proves r ≤ {highest:.4f} for the optimal W"


@judge("5.4")
def a_crowd_of_foreigners(n_flagged: int) -> str:
    """What Tukey's fence flags when most of the batch is foreign."""
    run = _run(all_of_cultivar_2=True)
    truth, crowd = len(run.explanations), int((wine.target == 1).sum())
    require(
        n_flagged == truth,
        f"with {crowd} foreign wines among {len(run.test)}, who stands out from the rest?",
    )
    return f"{truth}, with {crowd} foreign wines among {len(run.test)}: the fence looks for few rows among many"
