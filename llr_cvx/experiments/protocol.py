"""The choices that the paper leaves open, in one frozen record that is printed beside the numbers."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
from scipy.spatial.distance import pdist

from llr_cvx.arrays import FloatArray

SCALINGS = {
    "none": "features as they come",
    "minmax": "each feature to [0, 1] over the pooled samples of the trial",
    "symmetric": "each feature to [-1, 1] over the pooled samples of the trial",
    "standard": "each feature to mean 0 and variance 1 over the pooled samples of the trial",
    "whole-standard": "each feature to mean 0 and variance 1 over the whole set, before anything is drawn",
    "whole-symmetric": "each feature to [-1, 1] over the whole set, before anything is drawn",
}
OUTLIERS = {
    "ten": "10 outliers in each test set, as the paper says",
    "class": "10 % of the outlier class in each test set",
    "test": "10 % of the number of test inliers as outliers in each test set",
}
ROLES = {
    "negative": "two-class sets: the inliers are the class that benchmark collections label -1",
    "positive": "two-class sets: the inliers are the class that benchmark collections label +1",
    "majority": "two-class sets: the inliers are the larger class",
}
WIDTHS = {
    "median": "median of the positive K-nearest-neighbour distances",
    "pairwise": "median of all positive pairwise distances",
}
L1_RULES = {
    "cv": "lambda of l1-LR by 5-fold deviance",
    "fixed": "lambda of l1-LR = 0.1 lambda_max, where lambda_max is the smallest that gives w = 0",
}

#: The choices given by keywords, and the meaning of each.
WORDS = {"scaling": SCALINGS, "n_outliers": OUTLIERS, "inliers": ROLES, "sigma": WIDTHS, "l1_lambda": L1_RULES}


@dataclass(frozen=True)
class Protocol:
    """Every choice that turns a data set into a number.

    What the baselines depend on, down to `lof_neighbors`, has the defaults that come closest to their printed means
    and standard deviations: the first row of ``results/protocol.csv``, written by ``llr-cvx reproduce protocol``.
    What concerns LLR alone has the defaults of the package; LLR's printed column chose none of them.

    Parameters
    ----------
    scaling, n_outliers, inliers, l1_lambda, sigma : str
        Keywords of `WORDS`, which says what they mean; `sigma` is the width of the similarity graph.
    vehicle_outlier : str
        The class of Vehicle that is "class 1", the outliers; Glass has numbered classes.
    lof_neighbors, n_neighbors : int
        K of LOF and of the similarity graph.
    intercept : bool
        For LLR: a constant feature, penalised like any other.
    lambda1, lambda2 : float
        The paper's 0.1 and 1.
    tol : float
        Relative gap that LLR must prove.
    """

    scaling: str = "standard"
    n_outliers: str = "class"
    inliers: str = "negative"
    vehicle_outlier: str = "opel"
    l1_lambda: str = "fixed"
    lof_neighbors: int = 5
    n_neighbors: int = 5
    sigma: str = "median"
    intercept: bool = False
    lambda1: float = 0.1
    lambda2: float = 1.0
    tol: float = 1e-6

    def __post_init__(self) -> None:
        for name, known in WORDS.items():
            value = getattr(self, name)
            if value not in known:
                raise ValueError(f"{name} must be one of {', '.join(known)}, got {value!r}")

    def as_dict(self) -> dict[str, Any]:
        """All choices by name."""
        return asdict(self)

    def in_words(self) -> dict[str, Any]:
        """All choices by name, each keyword with its meaning.

        >>> Protocol(sigma="median").in_words()["sigma"]
        'median: median of the positive K-nearest-neighbour distances'
        """
        return {
            name: f"{value}: {WORDS[name][value]}" if name in WORDS else value for name, value in self.as_dict().items()
        }

    def outliers(self, class_size: int, test_inliers: int) -> int:
        """Outliers in a test set, given the size of their class and the number of test inliers.

        >>> Protocol(n_outliers="class").outliers(class_size=268, test_inliers=250)
        27
        """
        wanted = {"ten": 10, "class": round(0.1 * class_size), "test": round(0.1 * test_inliers)}[self.n_outliers]
        return min(max(wanted, 1), class_size)

    def scale(
        self, X_inlier: FloatArray, X_test: FloatArray, whole: FloatArray | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Both samples, scaled by their pooled rows or by the `whole` set; constant features become 0."""
        place, _, rule = self.scaling.rpartition("-")
        if rule == "none":
            return X_inlier, X_test
        if place == "whole" and whole is None:
            raise ValueError(f"scaling {self.scaling!r} needs the whole set that the samples were drawn from")
        reference = whole if place == "whole" and whole is not None else np.vstack([X_inlier, X_test])
        if rule == "standard":
            centre, spread = reference.mean(axis=0), reference.std(axis=0)
        else:
            low, high = reference.min(axis=0), reference.max(axis=0)
            centre, spread = (low, high - low) if rule == "minmax" else ((low + high) / 2, (high - low) / 2)
        spread = np.where(np.ptp(reference, axis=0) > 0, spread, np.inf)
        return (X_inlier - centre) / spread, (X_test - centre) / spread

    def graph_width(self, X: FloatArray) -> float | Literal["median"]:
        """The `sigma` argument of `Problem.from_samples` for the pooled rows X."""
        return "median" if self.sigma == "median" else median_distance(X)


def median_distance(X: FloatArray) -> float:
    """Median of the positive pairwise distances; 1 if all rows are equal.

    >>> median_distance(np.array([[0.0], [0.0], [1.0], [3.0]]))
    2.0
    """
    distance = pdist(X)
    positive = distance[distance > 0]
    return float(np.median(positive)) if positive.size else 1.0
