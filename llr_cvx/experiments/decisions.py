"""What the detector's decisions are worth on public data: the tables of docs/detect.md.

`python -m llr_cvx.experiments.decisions` prints them (about three minutes on one core); ``--draws`` sets the number of
random draws of known inliers, test rows and calibration rows.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.pipeline import make_pipeline

from llr_cvx.arrays import BoolArray, FloatArray
from llr_cvx.detection.estimator import LLRDetector
from llr_cvx.detection.ranking import selected_features
from llr_cvx.detection.scalers import ConditionalScaler, InlierScaler
from llr_cvx.detection.settings import SETTINGS
from llr_cvx.experiments.comparison.detectors import Verdict
from llr_cvx.experiments.comparison.trials import judged


class Data(NamedTuple):
    """Inliers, outliers, and how many rows a draw takes as known inliers and as test rows."""

    inliers: FloatArray
    outliers: FloatArray
    n_inlier: int
    n_test: int

    def draw(self, share: float, seed: int) -> tuple[FloatArray, FloatArray, BoolArray]:
        """Pooled rows with the outliers last, labels, and which test rows are outliers."""
        rng = np.random.default_rng(seed)
        k = round(share * self.n_test)
        inliers = rng.permutation(self.inliers)[: self.n_inlier + self.n_test - k]
        X = np.vstack([inliers, rng.permutation(self.outliers)[:k]])
        return X, np.repeat([1.0, -1.0], [self.n_inlier, self.n_test]), np.arange(self.n_test) >= self.n_test - k


def data_sets() -> dict[str, Data]:
    """Benign against malignant tumours; the digit 3 against 8."""
    cancer, digits = load_breast_cancer(), load_digits()
    three, eight = (digits.data[digits.target == label] for label in (3, 8))
    varied = three.std(axis=0) > 1.0  # pixels that are blank in nearly every 3 have no scale
    return {
        "breast cancer": Data(cancer.data[cancer.target == 1], cancer.data[cancer.target == 0], 200, 100),
        "digits, 3 and 8": Data(three[:, varied], eight[:, varied], 120, 60),
    }


def decide(data: Data, share: float, seed: int, **parameters: Any) -> dict[str, float]:
    """What one draw gives at an FDR of 0.1: as in the comparison of detectors, AUC, shares and features per outlier."""
    X, y, outlier = data.draw(share, seed)
    detector = LLRDetector(fdr=0.1, random_state=seed, scaler=InlierScaler(), tol=1e-4, **parameters)
    flagged = (detector.fit_predict(X, y) < 0) & (y < 0)
    reasons = selected_features(detector.solution_.problem.X, detector.solution_.W).sum(axis=1)
    test = np.flatnonzero(y < 0)
    inliers = detector.calibration_rows_ if outlier.all() else test[~outlier]
    rows = np.concatenate([inliers, test[outlier]])
    return judged(
        Verdict(detector.log_ratio_[rows], flagged[rows], reasons[rows]), np.arange(len(rows)) >= len(inliers)
    )


def settings_table(draws: int) -> Iterator[str]:
    """Both settings at three shares of outliers, as a Markdown table."""
    yield "| data | outliers | setting | AUC | found at FDR 0.1 | false discoveries | features per outlier |"
    yield "|---|---|---|---|---|---|---|"
    for name, data in data_sets().items():
        for share in (0.2, 0.5, 1.0):
            for setting, lambdas in SETTINGS.items():
                runs = [decide(data, share, seed, **lambdas) for seed in range(draws)]
                mean = {measure: np.mean([run[measure] for run in runs]) for measure in runs[0]}
                yield (
                    f"| {name} | {share:.0%} | {setting} | {mean['auc']:.2f} | {mean['found']:.0%} "
                    f"| {mean['false_discoveries']:.0%} | {mean['reasons']:.1f} |"
                )


def clean_table(draws: int) -> Iterator[str]:
    """How often p is small for clean batches, with the scaler inside the detector and in a Pipeline before it."""
    levels = (0.01, 0.05, 0.1)
    yield "| scaler | place | " + " | ".join(f"p ≤ {level:g}" for level in levels) + " |"
    yield "|---|---|---|---|---|"
    data = data_sets()["breast cancer"]
    places: dict[str, Callable[[Any, Any], Any]] = {
        "`scaler=`": lambda scaler, detector: make_pipeline(detector.set_params(scaler=scaler)),
        "Pipeline": make_pipeline,
    }
    for scaler in (InlierScaler(), ConditionalScaler()):
        for place, build in places.items():
            p = []
            for seed in range(draws):
                X, y, _ = data.draw(0.0, seed)
                model = build(scaler, LLRDetector(fdr=0.1, random_state=seed, tol=1e-2))
                p.append(model.fit(X, y)[-1].pvalues_[y < 0])
            shares = " | ".join(f"{np.mean(np.array(p) <= level):.3f}" for level in levels)
            yield f"| `{type(scaler).__name__}` | {place} | {shares} |"


def main(arguments: list[str] | None = None) -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=20)
    draws = parser.parse_args(arguments).draws
    for line in chain(settings_table(draws), [""], clean_table(5 * draws)):
        print(line, flush=True)


if __name__ == "__main__":
    main()
