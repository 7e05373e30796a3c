"""The detectors that are compared, each with the decision it makes if none is asked for.

A detector maps known inliers, test rows and a seed to a `Verdict`. All but LLR, which scales the rows itself as
`llr-cvx detect` does, are given features standardised by the known inliers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from sklearn.ensemble import IsolationForest
from sklearn.mixture import GaussianMixture
from sklearn.neighbors import LocalOutlierFactor, NearestNeighbors
from sklearn.svm import OneClassSVM

from llr_cvx.arrays import BoolArray, FloatArray
from llr_cvx.detection.estimator import LLRDetector
from llr_cvx.detection.ranking import selected_features
from llr_cvx.detection.scalers import InlierScaler
from llr_cvx.detection.settings import SETTINGS
from llr_cvx.experiments.methods import METHODS
from llr_cvx.experiments.methods._base import pool

#: The false discovery rate at which `llr-cvx detect` decides by default.
FDR = 0.1
#: Relative gap that LLR proves, as in Table 2.
TOL = 1e-4
#: K of the nearest-neighbour distance: that of LLR's graph.
KNN_NEIGHBORS = 5
#: KNN and GMM have no decision of their own: they flag rows beyond this share of the known inliers (PyOD's default).
CONTAMINATION = 0.1
#: Numbers of Gaussians that GMM chooses from.
COMPONENTS = range(1, 6)
#: max|z| flags rows with a feature more than this many standard deviations from the mean.
Z_LIMIT = 3.0


class Verdict(NamedTuple):
    """Scores of the test rows (low means outlier), which are flagged, features named for each, LLR's proven gap."""

    scores: FloatArray
    flagged: BoolArray
    reasons: FloatArray | None = None
    gap: float | None = None


Fit = Callable[[FloatArray, FloatArray, int], Verdict]


class Detector(NamedTuple):
    """A detector and, in words, its decision."""

    fit: Fit
    decision: str


def standardised(fit: Fit) -> Fit:
    """`fit` on features with mean 0 and variance 1 among the known inliers."""

    def fitted(X_inlier: FloatArray, X_test: FloatArray, seed: int) -> Verdict:
        scaler = InlierScaler().fit(X_inlier)
        return fit(scaler.transform(X_inlier), scaler.transform(X_test), seed)

    return fitted


def llr(setting: str, fdr: float | None) -> Fit:
    """LLR with a named setting; without `fdr`, all inliers are in the model and Tukey's fence decides."""

    def fit(X_inlier: FloatArray, X_test: FloatArray, seed: int) -> Verdict:
        X, y = pool(X_inlier, X_test)
        penalties: dict[str, Any] = {**SETTINGS[setting]}
        detector = LLRDetector(**penalties, fdr=fdr, random_state=seed, scaler=InlierScaler(), tol=TOL)
        flagged = detector.fit_predict(X, y) < 0
        solution, test = detector.solution_, y < 0
        if solution.status != "optimal":
            raise RuntimeError(f"{solution.status}: {solution.message}")
        reasons = selected_features(solution.problem.X, solution.W).sum(axis=1).astype(float)
        gap = solution.certificate.relative_gap
        return Verdict(detector.log_ratio_[test], flagged[test], reasons[test], gap)

    return fit


def knn(X_inlier: FloatArray, X_test: FloatArray, seed: int) -> Verdict:
    """Minus the distance to the K-th nearest known inlier."""
    model = NearestNeighbors(n_neighbors=KNN_NEIGHBORS).fit(X_inlier)
    own, scores = (-model.kneighbors(X)[0][:, -1] for X in (None, X_test))
    return Verdict(scores, scores < np.quantile(own, CONTAMINATION))


def gmm(X_inlier: FloatArray, X_test: FloatArray, seed: int) -> Verdict:
    """Log density of a Gaussian mixture; the number of components by BIC."""
    models = [GaussianMixture(k, random_state=seed).fit(X_inlier) for k in COMPONENTS]
    model = min(models, key=lambda model: float(model.bic(X_inlier)))
    scores = model.score_samples(X_test)
    return Verdict(scores, scores < np.quantile(model.score_samples(X_inlier), CONTAMINATION))


def by_predict(build: Callable[[int], Any]) -> Fit:
    """A detector of scikit-learn with its defaults, and its own `predict`."""

    def fit(X_inlier: FloatArray, X_test: FloatArray, seed: int) -> Verdict:
        model = build(seed).fit(X_inlier)
        return Verdict(model.score_samples(X_test), model.predict(X_test) < 0)

    return fit


def l1_logistic(X_inlier: FloatArray, X_test: FloatArray, seed: int) -> Verdict:
    """Inliers against test rows by l1-penalised logistic regression, with lambda as in Table 2."""
    outcome = METHODS["l1lr"].run(X_inlier, X_test, seed)
    selected = float(outcome.info["selected"])
    return Verdict(outcome.scores, outcome.scores < 0, np.full(len(X_test), selected))


def max_z(X_inlier: FloatArray, X_test: FloatArray, seed: int) -> Verdict:
    """Minus the largest |z|, which names one feature."""
    scores = METHODS["maxnorm"].score(X_inlier, X_test)
    return Verdict(scores, scores < -Z_LIMIT, np.ones(len(scores)))


_CALIBRATED = f"p-values at FDR {FDR:g} (`llr-cvx detect`)"
_FENCE = "Tukey's fence (`LLRDetector`)"
_QUANTILE = f"beyond {1 - CONTAMINATION:.0%} of the known inliers"

#: The detectors by name, in the order of the tables.
DETECTORS = {
    "LLR paper": Detector(llr("paper", FDR), _CALIBRATED),
    "LLR detection": Detector(llr("detection", FDR), _CALIBRATED),
    "LLR paper, uncalibrated": Detector(llr("paper", None), _FENCE),
    "LLR detection, uncalibrated": Detector(llr("detection", None), _FENCE),
    "KNN": Detector(standardised(knn), _QUANTILE),
    "GMM": Detector(standardised(gmm), _QUANTILE),
    "LOF": Detector(standardised(by_predict(lambda seed: LocalOutlierFactor(novelty=True))), "`predict`: LOF > 1.5"),
    "Isolation forest": Detector(
        standardised(by_predict(lambda seed: IsolationForest(random_state=seed))), "`predict`: anomaly score > 0.5"
    ),
    "One-class SVM": Detector(standardised(by_predict(lambda seed: OneClassSVM())), "`predict`: ν = 0.5"),
    "ℓ1-LR": Detector(standardised(l1_logistic), "`predict`: more likely test row than inlier"),
    "max|z|": Detector(standardised(max_z), f"|z| > {Z_LIMIT:g}"),
}
