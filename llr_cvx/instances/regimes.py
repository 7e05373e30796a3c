"""Generators of the regimes in which solvers differ, and of the size ladder.

Problems that are too large to be stored are generated whenever they are loaded. Their samples and edge weights are
multiples of `GRID`, so that the last digit of a library's exp or log decides nothing and every machine generates
the same doubles.
"""

from __future__ import annotations

import warnings

import numpy as np

from llr_cvx.arrays import FloatArray, IntArray
from llr_cvx.graph import GraphWarning, build_graph
from llr_cvx.instances.generators import synthetic
from llr_cvx.instances.planted import Planted, plant
from llr_cvx.instances.varied import KINDS
from llr_cvx.problem import Problem

#: Spacing of the samples and of the edge weights: an error in the last place of a double survives rounding to it with
#: a probability of about 1e-10.
GRID = 2.0**-20

#: How far "nearly" is: relative distance of a bound from being attained, or of two rows from being equal.
NEARLY = 1e-6


def on_grid(values: FloatArray) -> FloatArray:
    """Multiples of GRID near `values`.

    >>> on_grid(np.array([0.1])) / GRID
    array([104858.])
    """
    return np.asarray(np.round(values / GRID) * GRID)


def neighbours_problem(X: FloatArray, n_inlier: int, lambda1: float, lambda2: float, n_neighbors: int = 5) -> Problem:
    """Samples, inliers first, over their similarity graph; samples and weights on the grid."""
    X = on_grid(X)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GraphWarning)  # columns of large scale isolate rows, and this is wanted
        graph = build_graph(X, n_neighbors, "median")
    y = np.where(np.arange(len(X)) < n_inlier, 1.0, -1.0)
    return Problem(X, y, graph.edges, on_grid(graph.weights), lambda1, lambda2)


def drawn(
    kind: str, seed: int, N: int, d: int, lambda1: float, lambda2: float, decades: float = 0.0, n_neighbors: int = 5
) -> Problem:
    """Samples of one of `varied.KINDS`, two thirds of them inliers; columns scaled by 10^U(-decades, decades).

    A tenth of the test samples are shifted by 3 in the first two features before the scaling.
    """
    rng = np.random.default_rng([seed, N, d])
    X, n_inlier = KINDS[kind](rng, N, d), 2 * N // 3
    X[N - (N - n_inlier) // 10 :, :2] += 3.0
    return neighbours_problem(X * 10.0 ** rng.uniform(-decades, decades, d), n_inlier, lambda1, lambda2, n_neighbors)


def ladder(N: int) -> Problem:
    """The paper's data with d = 10 at any size, in its proportions: N samples, a thirtieth of them outliers."""
    n_outlier, n_test_inlier = N // 30, N // 3
    p = synthetic(10, 40, 0.1, 0.3, (N - n_test_inlier - n_outlier, n_test_inlier, n_outlier))
    return neighbours_problem(p.X, int(np.sum(p.y > 0)), p.lambda1, p.lambda2)


def path_problem(seed: int, N: int, d: int, edges: IntArray, lambda1: float, lambda2: float) -> Problem:
    """Samples along a path, whose label changes from block to block with a tenth of the labels flipped."""
    rng = np.random.default_rng([seed, N, d])
    X = on_grid(1.0 + 0.5 * rng.standard_normal((N, d)))
    block = np.where(np.arange(N) * 8 // N % 2 == 0, 1.0, -1.0)
    y = np.where(rng.random(N) < 0.1, -block, block)
    return Problem(X, y, edges, np.ones(len(edges)), lambda1, lambda2)


def network_lasso(lambda2: float) -> Problem:
    """The network lasso with a vanishing exclusive penalty; labels at random, so that no component is separable."""
    rng = np.random.default_rng(50)
    X, y = rng.standard_normal((90, 3)), rng.permutation(np.repeat([1.0, -1.0], 45))
    p = neighbours_problem(X, 45, 0.5, lambda2)
    return Problem(p.X, y, p.edges, p.weights, p.lambda1, lambda2)


# ---- nearly tied, nearly fused ----------------------------------------------------------------------------


def twin_columns(seed: int) -> Problem:
    """Every feature twice, the second time with a relative error of NEARLY: either may be selected."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((80, 6))
    X = np.hstack([X, X * (1.0 + NEARLY * rng.standard_normal(X.shape))])
    graph = build_graph(X, 5, "median")
    return Problem(X, np.where(np.arange(80) < 50, 1.0, -1.0), graph.edges, graph.weights, 0.1, 0.3)


def planted_blocks(
    seed: int, edges: IntArray, *, density: float = 0.5, spread: float = 0.0, slack: float = 0.8, least: float = 0.0
) -> Planted:
    """60 samples with 8 features in six blocks of rows that are equal up to a relative error of `spread`.

    A feature is selected with probability `density`; `slack` and `least` as in `plant`.
    """
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((6, 8)) * (rng.random((6, 8)) < density)
    W = np.repeat(centres, 10, axis=0) * (1.0 + spread * rng.standard_normal((60, 8)))
    return plant(W, edges, np.exp(0.3 * rng.standard_normal(len(edges))), 0.3, 0.2, rng, slack, least)
