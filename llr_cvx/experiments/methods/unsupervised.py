"""The methods that look for low density: KDE, one-class SVM and LOF."""

from __future__ import annotations

import numpy as np
from scipy.special import logsumexp
from sklearn.neighbors import KernelDensity, LocalOutlierFactor
from sklearn.svm import OneClassSVM

from llr_cvx.arrays import FloatArray
from llr_cvx.experiments.methods._base import Outcome, pool, squared_distances
from llr_cvx.experiments.protocol import Protocol, median_distance

#: Candidate widths of KDE, in units of the median distance between inliers.
KDE_WIDTHS = np.geomspace(0.05, 2.0, 12)

#: nu of the one-class SVM: libSVM's default, since the paper names the library but no value.
OSVM_NU = 0.5


def kde(X_inlier: FloatArray, X_test: FloatArray, protocol: Protocol, rng: np.random.Generator) -> Outcome:
    """Log density of the inliers at the test rows, p(x) = 1/(n (2 pi s^2)^(d/2)) sum_k exp(-||x-x_k||^2/(2 s^2)).

    The width s maximises the leave-one-out likelihood of the inliers.
    """
    width = kde_width(X_inlier)
    density = KernelDensity(bandwidth=width, algorithm="kd_tree").fit(X_inlier)
    return Outcome(np.asarray(density.score_samples(X_test)), {"width": width})


def kde_width(X: FloatArray) -> float:
    """The candidate width with the highest leave-one-out log likelihood."""
    n, d = X.shape
    d2 = squared_distances(X, X)
    np.fill_diagonal(d2, np.inf)
    widths = KDE_WIDTHS * median_distance(X)
    scores = [logsumexp(-0.5 * d2 / s**2, axis=1).sum() - n * d * np.log(s) for s in widths]
    return float(widths[int(np.argmax(scores))])


def osvm(X_inlier: FloatArray, X_test: FloatArray, protocol: Protocol, rng: np.random.Generator) -> Outcome:
    """One-class SVM on the pooled samples with Gaussian width = median distance, as in the paper."""
    X, _ = pool(X_inlier, X_test)
    width = median_distance(X)
    machine = OneClassSVM(kernel="rbf", gamma=0.5 / width**2, nu=OSVM_NU, tol=1e-6)
    # The constructor has no such argument, and None would draw from the global state.
    machine.random_state = int(rng.integers(2**31))
    machine.fit(X)
    return Outcome(np.asarray(machine.decision_function(X_test)).ravel(), {"width": width})


def lof(X_inlier: FloatArray, X_test: FloatArray, protocol: Protocol, rng: np.random.Generator) -> Outcome:
    """Minus the local outlier factor of each test row among the inliers alone."""
    k = min(protocol.lof_neighbors, len(X_inlier) - 1)
    model = LocalOutlierFactor(n_neighbors=k, novelty=True).fit(X_inlier)
    return Outcome(np.asarray(model.score_samples(X_test)), {"n_neighbors": float(k)})
