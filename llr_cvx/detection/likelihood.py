"""How well a fitted ratio tells held-out inliers from held-out unlabelled rows: a loss that needs no other labels.

    loss = min over b of the mean over held-out rows of log(1 + exp(-y_i (log r(x_i) + b)))

The constant b is free because only score differences decide which rows are outliers, and the model has no intercept
with which to learn the sizes of the two samples; without b the loss would reward memorising those sizes. Weight vectors
of held-out rows come from Weber's rule (`llr_cvx.detection.weber`), which knows nothing of a row's label.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit

from llr_cvx.arrays import FloatArray, IntArray
from llr_cvx.detection.new_rows import FittedRows
from llr_cvx.solution import Solution


def held_out_loss(solution: Solution, rows: FloatArray, y: FloatArray, columns: IntArray) -> float:
    """The loss of a solution on rows that were not fitted, with the columns of its X; `columns` are the graph's."""
    W = FittedRows(solution, columns, "weber").join(rows).W
    return logistic_loss(np.einsum("ij,ij->i", W, rows), y)


def logistic_loss(z: FloatArray, y: FloatArray) -> float:
    """min_b mean log(1 + exp(-y (z + b))): at the optimal b, the mean probability of +1 equals its share.

    >>> round(logistic_loss(np.zeros(4), np.array([1.0, 1.0, 1.0, -1.0])), 6)  # the entropy of (3/4, 1/4)
    0.562335
    """
    share = float(np.mean(y > 0))
    middle = float(np.log(share / (1.0 - share)))
    low, high = middle - z.max() - 1e-9, middle - z.min() + 1e-9
    b = brentq(lambda b: float(np.mean(expit(z + b))) - share, low, high, xtol=1e-12)
    return float(np.logaddexp(0.0, -y * (z + b)).mean())
