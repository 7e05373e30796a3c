"""Seeded generators of the instance library: graphs, samples, planted optima, and regimes in which solvers differ.

Problems that are too large to be stored are generated whenever they are loaded. Their samples and edge weights are
multiples of `GRID`, so that the last digit of a library's exp or log decides nothing and every machine generates
the same doubles.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from itertools import combinations

import numpy as np

from llr_cvx.arrays import FloatArray, IntArray
from llr_cvx.datasets import make_synthetic
from llr_cvx.graph import GraphWarning, build_graph
from llr_cvx.instances.planted import Planted, plant
from llr_cvx.instances.varied import KINDS
from llr_cvx.problem import Problem

#: Known inliers, test inliers and outliers of the paper's data, and of a small version of it.
PAPER, SMALL = (200, 100, 10), (42, 20, 2)
#: Spacing of the samples and of the edge weights: an error in the last place of a double survives rounding to it with
#: a probability of about 1e-10.
GRID = 2.0**-20
#: How far "nearly" is: relative distance of a bound from being attained, or of two rows from being equal.
NEARLY = 1e-6


# ---- graphs ---------------------------------------------------------------------------------------------

NO_EDGES: IntArray = np.empty((0, 2), dtype=np.int64)


def chain(N: int) -> IntArray:
    """0 - 1 - 2 - ... - (N-1)."""
    return np.column_stack([np.arange(N - 1), np.arange(1, N)])


def ring(N: int) -> IntArray:
    """A chain whose ends are joined."""
    return np.vstack([chain(N), [[0, N - 1]]])


def star(N: int) -> IntArray:
    """Sample 0 joined to every other."""
    return np.column_stack([np.zeros(N - 1, dtype=np.int64), np.arange(1, N)])


def complete(N: int) -> IntArray:
    """Every pair."""
    return np.array(list(combinations(range(N), 2)))


def band(N: int, width: int) -> IntArray:
    """Each sample joined to the next `width` ones."""
    return np.array([(i, j) for i in range(N) for j in range(i + 1, min(N, i + width + 1))])


# ---- samples --------------------------------------------------------------------------------------------


def synthetic(d: int, seed: int, lambda1: float, lambda2: float, sizes: tuple[int, int, int]) -> Problem:
    """The paper's data (known inliers, test inliers, outliers) over its similarity graph."""
    X_inlier, X_test, _ = make_synthetic(d, seed, *sizes)
    return Problem.from_samples(X_inlier, X_test, lambda1, lambda2)


def gaussian(
    seed: int, N: int, d: int, edges: IntArray, lambda1: float, lambda2: float, spread: float = 0.0, n_inlier: int = 0
) -> Problem:
    """Standard normal samples, half of them inliers by default; weights exp(spread * normal)."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((N, d))
    y = np.where(np.arange(N) < (n_inlier or N // 2), 1.0, -1.0)
    weights = np.exp(spread * rng.standard_normal(len(edges)))
    return Problem(X, y, edges, weights, lambda1, lambda2)


def scaled_columns(seed: int) -> Problem:
    """Columns with scales from 1e-4 to 1e4."""
    p = gaussian(seed, 40, 9, ring(40), 0.1, 1.0)
    return replace(p, X=p.X * 10.0 ** np.arange(-4, 5))


def far_outlier(seed: int) -> Problem:
    """One row a million times larger than the others."""
    p = gaussian(seed, 30, 4, chain(30), 0.05, 0.5)
    X = p.X.copy()
    X[-1] *= 1e6
    return replace(p, X=X)


def duplicates(seed: int, opposite: bool) -> Problem:
    """Each row twice, joined by an edge, with opposite or equal labels."""
    half = 16
    x = np.random.default_rng(seed).standard_normal((half, 5))
    label = np.where(np.arange(half) % 2 == 0, 1.0, -1.0)
    edges = np.vstack([np.column_stack([np.arange(half), np.arange(half) + half]), chain(half)])
    y = np.concatenate([label, -label if opposite else label])
    return Problem(np.vstack([x, x]), y, edges, np.ones(len(edges)), 0.2, 0.3)


def identical_rows() -> Problem:
    """All samples at one point; only their labels differ."""
    y = np.repeat([1.0, -1.0], [7, 5])
    return Problem(np.tile([1.0, -2.0, 0.5], (12, 1)), y, complete(12), np.ones(66), 0.1, 0.5)


def with_zeros(seed: int) -> Problem:
    """Zero rows, a zero column and edges of weight zero."""
    p = gaussian(seed, 24, 5, ring(24), 0.1, 0.4)
    X, weights = p.X.copy(), p.weights.copy()
    X[::6], X[:, 2], weights[::5] = 0.0, 0.0, 0.0
    return replace(p, X=X, weights=weights)


def binary(seed: int) -> Problem:
    """Features -1 and +1: ties everywhere, so the optimal W is far from unique."""
    p = gaussian(seed, 32, 6, ring(32), 0.15, 0.5)
    return replace(p, X=np.sign(p.X))


def islands(seed: int) -> Problem:
    """A ring, a chain and a complete graph without edges between them, and four isolated samples."""
    edges = np.vstack([ring(12), 12 + chain(10), 22 + complete(6)])
    p = gaussian(seed, 32, 4, edges, 0.2, 0.5, spread=0.5)
    return replace(p, y=np.where(np.arange(32) % 2 == 0, 1.0, -1.0))


def pair(x: float, lambda1: float) -> Problem:
    """An inlier at 1 and a test sample at x, joined."""
    return Problem(np.array([[1.0], [x]]), np.array([1.0, -1.0]), chain(2), np.ones(1), lambda1, 0.3)


# ---- regimes --------------------------------------------------------------------------------------------


def on_grid(values: FloatArray) -> FloatArray:
    """Multiples of GRID near `values`.

    >>> on_grid(np.array([0.1])) / GRID
    array([104858.])
    """
    return np.asarray(np.round(values / GRID) * GRID)


def neighbours_problem(X: FloatArray, n_inlier: int, lambda1: float, lambda2: float) -> Problem:
    """Samples, inliers first, over their similarity graph; samples and weights on the grid."""
    X = on_grid(X)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GraphWarning)  # columns of large scale isolate rows, and this is wanted
        graph = build_graph(X, 5, "median")
    y = np.where(np.arange(len(X)) < n_inlier, 1.0, -1.0)
    return Problem(X, y, graph.edges, on_grid(graph.weights), lambda1, lambda2)


def drawn(kind: str, seed: int, N: int, d: int, lambda1: float, lambda2: float, decades: float = 0.0) -> Problem:
    """Samples of one of `varied.KINDS`, two thirds of them inliers; columns scaled by 10^U(-decades, decades).

    A tenth of the test samples are shifted by 3 in the first two features before the scaling.
    """
    rng = np.random.default_rng([seed, N, d])
    X, n_inlier = KINDS[kind](rng, N, d), 2 * N // 3
    X[N - (N - n_inlier) // 10 :, :2] += 3.0
    return neighbours_problem(X * 10.0 ** rng.uniform(-decades, decades, d), n_inlier, lambda1, lambda2)


def ladder(N: int) -> Problem:
    """The paper's data with d = 10 at any size, in its proportions: N samples, a thirtieth of them outliers."""
    n_outlier, n_test_inlier = N // 30, N // 3
    p = synthetic(10, 40, 0.1, 0.3, (N - n_test_inlier - n_outlier, n_test_inlier, n_outlier))
    return neighbours_problem(p.X, int(np.sum(p.y > 0)), p.lambda1, p.lambda2)


def path_problem(seed: int, N: int, d: int) -> Problem:
    """Samples along a path, whose label changes from block to block with a tenth of the labels flipped."""
    rng = np.random.default_rng([seed, N, d])
    X = on_grid(1.0 + 0.5 * rng.standard_normal((N, d)))
    block = np.where(np.arange(N) * 8 // N % 2 == 0, 1.0, -1.0)
    y = np.where(rng.random(N) < 0.1, -block, block)
    return Problem(X, y, chain(N), np.ones(N - 1), 0.5, 0.02)


def network_lasso(lambda2: float) -> Problem:
    """The network lasso with a vanishing exclusive penalty; labels at random, so that no component is separable."""
    rng = np.random.default_rng(50)
    X, y = rng.standard_normal((90, 3)), rng.permutation(np.repeat([1.0, -1.0], 45))
    return replace(neighbours_problem(X, 45, 0.5, lambda2), y=y)


def twin_columns(seed: int) -> Problem:
    """Every feature twice, the second time with a relative error of NEARLY: either may be selected."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((80, 6))
    X = np.hstack([X, X * (1.0 + NEARLY * rng.standard_normal(X.shape))])
    graph = build_graph(X, 5, "median")
    return Problem(X, np.where(np.arange(80) < 50, 1.0, -1.0), graph.edges, graph.weights, 0.1, 0.3)


# ---- planted optima -------------------------------------------------------------------------------------


def planted(
    seed: int, N: int, d: int, clusters: int, density: float, edges: IntArray, lambda1: float, lambda2: float
) -> Planted:
    """Blocks of samples share one of `clusters` rows, whose entries are nonzero with probability `density`."""
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((clusters, d)) * (rng.random((clusters, d)) < density)
    W = centres[np.arange(N) * clusters // N]
    return plant(W, edges, np.exp(0.3 * rng.standard_normal(len(edges))), lambda1, lambda2, rng)


def planted_blocks(seed: int, *, density: float = 0.5, spread: float = 0.0, tight: bool = False) -> Planted:
    """60 samples with 8 features in six blocks of rows that are equal up to a relative error of `spread`.

    A feature is selected with probability `density`; `tight` bounds are nearly attained.
    """
    slack, least = (1 - NEARLY, 1 - 2 * NEARLY) if tight else (0.8, 0.0)
    edges = band(60, 2)
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((6, 8)) * (rng.random((6, 8)) < density)
    W = np.repeat(centres, 10, axis=0) * (1.0 + spread * rng.standard_normal((60, 8)))
    return plant(W, edges, np.exp(0.3 * rng.standard_normal(len(edges))), 0.3, 0.2, rng, slack, least)
