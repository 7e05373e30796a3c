"""LoKDR: greedy choice of features by the local kernel density ratio, after Azmandian et al. (ACML 2012).

Its authors compare labelled normal samples with labelled outliers, fix the number of features by hand, and leave the
detection to another method. Here no outlier is labelled, so three things differ:

- unlabelled test rows take the place of the outliers. Most of them are inliers, and a ratio of mean densities would
  drown the few outliers; the criterion is the difference of mean *log* densities, to which a row far from all inliers
  contributes in proportion to its squared distance;
- features are added while the best of them helps significantly, so that their number is not set by hand;
- the score is the ratio that was maximised: the kernel densities of the known inliers and of the test rows, both on the
  chosen features.
"""

from __future__ import annotations

import numpy as np
from scipy.special import logsumexp
from scipy.stats import norm

from llr_cvx.arrays import FloatArray, row_dot
from llr_cvx.experiments.methods._base import Outcome
from llr_cvx.experiments.protocol import Protocol

#: The width of the kernel at a sample, in each feature, is the distance to its so many-th nearest neighbour.
WIDTH_NEIGHBORS = 10

#: Least width, as a fraction of the root mean square distance: equal values have neighbours at distance 0.
MIN_WIDTH = 0.1

#: Level of the test that a feature has to pass if it is not the first.
LEVEL = 0.05

#: Least product of kernels: what is farther away counts as being at this distance.
FARTHEST = 1e-200


def lokdr(X_inlier: FloatArray, X_test: FloatArray, protocol: Protocol, rng: np.random.Generator) -> Outcome:
    """log q'(x) - log q(x) on the chosen features: local kernel densities of known inliers and of test rows."""
    chosen = select(X_inlier, X_test)
    inlier, test = X_inlier[:, chosen], X_test[:, chosen]
    ratio = logsumexp(log_kernels(test, inlier).sum(axis=0), axis=1)
    ratio -= logsumexp(_without_self(log_kernels(test, test).sum(axis=0)), axis=1)
    importance = np.zeros(X_test.shape)
    importance[:, chosen] = np.arange(len(chosen), 0, -1)
    return Outcome(np.asarray(ratio), {"selected": float(len(chosen))}, importance)


def select(X_inlier: FloatArray, X_test: FloatArray) -> list[int]:
    """Features in the order in which they were chosen.

    Each step adds the feature k that maximises

        mean_j log q_S(x'_j) - mean_i log q_S(x_i),   S = chosen + {k},

    with q_S the local kernel density of the known inliers x' (without x'_j itself) on the features S.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X_inlier, X_test = rng.normal(size=(100, 6)), rng.normal(size=(60, 6))
    >>> X_test[-10:, 4] += 5.0
    >>> select(X_inlier, X_test)[0]
    4
    """
    n, d = X_inlier.shape
    rows = np.vstack([X_inlier, X_test])
    factors, height = np.empty((d, len(rows), n)), np.empty((d, len(rows)))
    for k in range(d):
        factors[k], height[k] = _scaled(_without_self(_log_kernel(rows[:, k], X_inlier[:, k])))
    product, top, before = np.ones((len(rows), n)), np.zeros(len(rows)), np.zeros(len(rows))
    chosen: list[int] = []
    while len(chosen) < d:
        left = [k for k in range(d) if k not in chosen]
        sums = np.array([row_dot(product, factors[k]) for k in left])
        after = np.log(np.maximum(sums, FARTHEST)) + height[left] + top
        gain_in, gain_out = after[:, :n] - before[:n], after[:, n:] - before[n:]
        gain = gain_in.mean(axis=1) - gain_out.mean(axis=1)
        best = int(np.argmax(gain))
        error = np.hypot(gain_in[best].std() / n**0.5, gain_out[best].std() / len(X_test) ** 0.5)
        if chosen and gain[best] <= norm.isf(LEVEL) * error:
            break
        chosen.append(left[best])
        product, peak = _scaled(np.log(np.maximum(product * factors[left[best]], FARTHEST)))
        top, before = top + height[left[best]] + peak, after[best]
    return chosen


def log_kernels(X: FloatArray, centers: FloatArray) -> FloatArray:
    """-(x - c)^2 / (2 h_c^2) - log h_c for each feature, row x and centre c, with a width of its own at each centre.

    >>> log_kernels(np.array([[0.0], [2.0]]), np.array([[0.0], [1.0]])).round(2).tolist()
    [[[-0.0, -0.5], [-2.0, -0.5]]]
    """
    return np.stack([_log_kernel(x, c) for x, c in zip(X.T, centers.T, strict=True)])


def _log_kernel(x: FloatArray, centers: FloatArray) -> FloatArray:
    """The same for one feature: its arrays fit into the cache, which is several times faster."""
    own = np.abs(centers[:, None] - centers)
    k = min(WIDTH_NEIGHBORS, len(centers) - 1)
    root = np.sqrt((own**2).mean())
    widths = np.maximum(np.partition(own, k, axis=1)[:, k], MIN_WIDTH * root if root > 0 else 1.0)
    return np.asarray(-0.5 * ((x[:, None] - centers) / widths) ** 2 - np.log(widths))


def _scaled(logs: FloatArray) -> tuple[FloatArray, FloatArray]:
    """exp(logs) with a largest entry of 1 in each row, and the logarithms of what the rows were divided by."""
    top = logs.max(axis=-1)
    return np.exp(logs - top[..., None]), np.asarray(top)


def _without_self(kernels: FloatArray) -> FloatArray:
    """The kernels with those of the first rows at themselves, which are the centres, set to zero."""
    kernels[np.diag_indices(kernels.shape[1])] = -np.inf
    return kernels
