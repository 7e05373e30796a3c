"""p-values with a finite-sample guarantee, and decisions made with them.

Known inliers are exchangeable with the inliers among the test rows. If a score treats a held-out inlier and a test
row alike, the rank of a test inlier among m held-out ones is uniform, and

    p_j = (1 + #{held-out inliers with score <= s_j}) / (m + 1)

is at most a with probability at most a, for every a, in finite samples and for any score. Two ways to treat them alike
are in use: all of them join the fit as unlabelled rows, in an order that does not tell them apart (AdaDetect: Marandon,
Lei, Mary, Roquain, Annals of Statistics 2024), or none of them takes part in it (split conformal). Ties count against
the test row, which keeps all guarantees and makes p larger than it need be.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import mannwhitneyu

from llr_cvx.arrays import FloatArray, IntArray

#: Share of the known inliers that stay in the model. On breast cancer (200 inliers, 100 test rows, half of them
#: outliers, 24 draws) holding out 80, 100, 120, 133 or 150 finds 46, 45, 50, 47 or 36 % of the outliers at FDR 0.1.
MODEL_SHARE = 1 / 3
#: The model keeps this many rows where that leaves half of the inliers for calibration: scales rest on them.
MIN_MODEL_ROWS = 30
#: p and its level are ratios of small whole numbers: equal ones may differ by this much after rounding.
ROUNDING = 1e-12
#: A batch is bad as a whole if its rank-sum p is at most this,
BATCH_LEVEL = 0.01
#: and this share of the pairs (test row, held-out inlier) has the test row below: with fewer than half of the rows
#: outliers, no score can reach it.
BATCH_SHARE = 0.75


def rows_needed(level: float) -> int:
    """The smallest m with 1 / (m + 1) <= level: with fewer held-out inliers no p can be that small.

    >>> [rows_needed(level) for level in (0.01, 0.05, 0.1, 0.3)]
    [99, 19, 9, 3]
    """
    return math.ceil((1.0 - ROUNDING) / level) - 1


def hold_out(known: IntArray, level: float, name: str, rng: np.random.RandomState) -> IntArray:
    """A random part of the known inliers for calibration, in increasing order.

    Parameters
    ----------
    known : array of int
        The rows known to be inliers.
    level, name : float, str
        The level to be reached, and the parameter that asks for it.
    rng : RandomState

    Raises
    ------
    ValueError
        If p cannot become as small as `level` with the inliers given; the message says how many it takes.
    """
    n, needed = len(known), rows_needed(level)
    if n <= needed:
        raise ValueError(
            f"{name}={level:g} needs at least {needed} held-out inliers, since p is at least 1/(m + 1) with m of them, "
            f"and one more for the model; y marks {n} known inlier(s): give at least {needed + 1}, or a level of "
            f"at least {1 / max(n, 1):.3g}"
        )
    model = max(math.ceil(MODEL_SHARE * n), min(n // 2, MIN_MODEL_ROWS))
    m = max(n - model, needed)
    return np.sort(rng.permutation(known)[:m])


def conformal_pvalues(scores: ArrayLike, calibration: ArrayLike) -> FloatArray:
    """p_j = (1 + #{calibration scores <= s_j}) / (m + 1).

    >>> conformal_pvalues([-3.0, 1.0, 1.5], [0.0, 1.0, 2.0]).tolist()
    [0.25, 0.75, 0.75]
    """
    ordered = np.sort(np.asarray(calibration, dtype=float))
    below = np.searchsorted(ordered, np.asarray(scores, dtype=float), side="right")
    return np.asarray((1.0 + below) / (1.0 + len(ordered)))


def score_offset(calibration: FloatArray, level: float) -> float:
    """The score below which p <= level: the k-th lowest of the m calibration scores, k = floor(level (m + 1)).

    >>> score_offset(np.array([3.0, 1.0, 2.0]), 0.5), score_offset(np.array([3.0, 1.0, 2.0]), 0.1)
    (2.0, -inf)
    """
    k = math.floor(level * (len(calibration) + 1) * (1.0 + ROUNDING))
    if k < 1:
        return -math.inf
    return float(np.sort(calibration)[k - 1]) if k <= len(calibration) else math.inf


def bh_level(pvalues: ArrayLike, fdr: float) -> float:
    """The level of Benjamini and Hochberg: flagging p <= level keeps the expected share of false alarms below `fdr`.

    fdr k / n for the largest k such that k of the n p-values are at most that; 0 if there is none.

    >>> bh_level([0.01, 0.04, 0.5, 0.9], fdr=0.1)
    0.05
    """
    p = np.sort(np.asarray(pvalues, dtype=float))
    levels = fdr * np.arange(1, len(p) + 1) / max(len(p), 1)
    passed = np.flatnonzero(p <= levels * (1.0 + ROUNDING))
    return float(levels[passed[-1]]) if passed.size else 0.0


def benjamini_hochberg(pvalues: ArrayLike, fdr: float) -> NDArray[np.bool_]:
    """Which of the p-values to flag at a false discovery rate; NaN is neither counted nor flagged.

    >>> benjamini_hochberg([0.01, np.nan, 0.04, 0.5, 0.9], fdr=0.1).tolist()
    [True, False, True, False, False]
    """
    p = np.asarray(pvalues, dtype=float)
    return np.asarray(p <= bh_level(p[~np.isnan(p)], fdr) * (1.0 + ROUNDING))


def conformal_evalues(scores: ArrayLike, calibration: ArrayLike, fdr: float) -> FloatArray:
    """e_j = (m + 1) / (1 + #{calibration scores <= t}) for rows that Benjamini-Hochberg flags, t the highest of them.

    0 for the others. The e-values of the n0 inliers have an expected sum of at most n0, and so has their average over
    several splits: `e_benjamini_hochberg` of that average controls the false discovery rate, and depends less on the
    seed (Bashari, Epstein, Romano, Sesia, NeurIPS 2023).

    >>> conformal_evalues([-3.0, -2.0, 1.0], [0.0, 1.0, 2.0], fdr=0.5).tolist()
    [4.0, 4.0, 0.0]
    """
    s, held = np.asarray(scores, dtype=float), np.asarray(calibration, dtype=float)
    flagged = benjamini_hochberg(conformal_pvalues(s, held), fdr)
    if not flagged.any():
        return np.zeros(len(s))
    return np.asarray(flagged * (len(held) + 1.0) / (1.0 + np.count_nonzero(held <= s[flagged].max())))


def e_benjamini_hochberg(evalues: ArrayLike, fdr: float) -> NDArray[np.bool_]:
    """Flag the k rows of the largest e-values, for the largest k such that they are all at least n / (fdr k).

    >>> e_benjamini_hochberg([30.0, 0.0, 21.0, 2.0], fdr=0.1).tolist()
    [True, False, True, False]
    """
    e = np.asarray(evalues, dtype=float)
    bounds = len(e) / (fdr * np.arange(1, len(e) + 1)) * (1.0 - ROUNDING)
    passed = np.flatnonzero(np.sort(e)[::-1] >= bounds)
    return np.asarray(e >= bounds[passed[-1]]) if passed.size else np.zeros(len(e), dtype=bool)


def smallest_discovery(m: int, n: int, fdr: float) -> int:
    """The fewest of n rows that Benjamini-Hochberg can flag at once, since no p is below 1 / (m + 1).

    >>> smallest_discovery(m=150, n=100, fdr=0.1), smallest_discovery(m=999, n=100, fdr=0.1)
    (7, 1)
    """
    return max(1, math.ceil(n / (fdr * (m + 1)) * (1.0 - ROUNDING)))


@dataclass(frozen=True)
class BatchVerdict:
    """Whether the test rows as a whole score below the held-out inliers.

    Attributes
    ----------
    below : float
        Share of the pairs (test row, held-out inlier) in which the test row scores lower, ties counting one half:
        0.5 is expected if all test rows are inliers, and at least 2 below - 1 of them are outliers if there were no
        chance.
    pvalue : float
        Wilcoxon's rank-sum test of "all test rows are inliers", one-sided; its null distribution follows from
        exchangeability alone (exact for small samples without ties, else its normal limit).
    """

    below: float
    pvalue: float

    @property
    def differs(self) -> bool:
        """Whether the test rows differ from the inliers by more than chance, be it only by a few outliers."""
        return self.pvalue <= BATCH_LEVEL

    @property
    def bad(self) -> bool:
        """Whether the batch is called bad as a whole."""
        return self.differs and self.below >= BATCH_SHARE


def judge_batch(scores: FloatArray, calibration: FloatArray) -> BatchVerdict:
    """Compare the test rows as a whole with the held-out inliers.

    >>> judge_batch(np.arange(8.0), np.arange(8.0) + 10.0).bad, judge_batch(np.arange(8.0), np.arange(8.0)).bad
    (True, False)
    """
    if np.ptp(np.concatenate([scores, calibration])) == 0:  # constant scores say nothing
        return BatchVerdict(0.5, 1.0)
    test = mannwhitneyu(scores, calibration, alternative="less")
    return BatchVerdict(1.0 - float(test.statistic) / (len(scores) * len(calibration)), float(test.pvalue))
