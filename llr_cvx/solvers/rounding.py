"""Exact zeros and exactly equal rows: W on the active face that a method has identified."""

from __future__ import annotations

import numpy as np
from scipy.sparse import coo_array

from llr_cvx.arrays import BoolArray, FloatArray
from llr_cvx.graph import component_labels
from llr_cvx.problem import Problem


def fused_rows(problem: Problem, W: FloatArray, fused: BoolArray) -> FloatArray:
    """W with the rows joined by the marked edges replaced by their mean; a weight is 0 where most of them have 0.

    >>> p = Problem([[1.0]] * 3, [1, -1, -1], [[0, 1], [1, 2]], [1.0, 1.0], lambda1=0.1, lambda2=1.0)
    >>> fused_rows(p, np.array([[1.0], [3.0], [7.0]]), np.array([True, False])).tolist()
    [[2.0], [2.0], [7.0]]
    """
    clusters = component_labels(len(W), problem.edges[fused & (problem.radii > 0)])
    C, N = int(clusters.max()) + 1, len(W)
    if C == N:
        return W
    mean = coo_array((1.0 / np.bincount(clusters)[clusters], (clusters, np.arange(N))), shape=(C, N)).tocsr()
    used = mean @ (W != 0.0).astype(float) > 0.5 if problem.lambda2 > 0 else True
    return np.asarray(np.where(used, mean @ W, 0.0)[clusters])
