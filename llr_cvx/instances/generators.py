"""Seeded generators of the instance library: graphs, samples and planted optima."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from llr_cvx.arrays import IntArray
from llr_cvx.datasets import make_synthetic
from llr_cvx.instances.planted import Planted, plant
from llr_cvx.problem import Problem

# ---- graphs ---------------------------------------------------------------------------------------------


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


# ---- samples --------------------------------------------------------------------------------------------


def synthetic(d: int, seed: int, lambda1: float, lambda2: float, sizes: tuple[int, int, int], K: int = 5) -> Problem:
    """The paper's data (known inliers, test inliers, outliers) over its similarity graph."""
    X_inlier, X_test, _ = make_synthetic(d, seed, *sizes)
    return Problem.from_samples(X_inlier, X_test, lambda1, lambda2, n_neighbors=K)


def gaussian(
    seed: int,
    N: int,
    d: int,
    edges: IntArray,
    lambda1: float,
    lambda2: float,
    spread: float = 0.0,
    n_inlier: int = 0,
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
    return Problem(p.X * 10.0 ** np.arange(-4, 5), p.y, p.edges, p.weights, p.lambda1, p.lambda2)


def far_outlier(seed: int) -> Problem:
    """One row a million times larger than the others."""
    p = gaussian(seed, 30, 4, chain(30), 0.05, 0.5)
    X = p.X.copy()
    X[-1] *= 1e6
    return Problem(X, p.y, p.edges, p.weights, p.lambda1, p.lambda2)


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
    return Problem(X, p.y, p.edges, weights, p.lambda1, p.lambda2)


def binary(seed: int) -> Problem:
    """Features -1 and +1: ties everywhere, so the optimal W is far from unique."""
    p = gaussian(seed, 32, 6, ring(32), 0.15, 0.5)
    return Problem(np.sign(p.X), p.y, p.edges, p.weights, p.lambda1, p.lambda2)


def islands(seed: int) -> Problem:
    """A ring, a chain and a complete graph without edges between them, and four isolated samples."""
    edges = np.vstack([ring(12), 12 + chain(10), 22 + complete(6)])
    p = gaussian(seed, 32, 4, edges, 0.2, 0.5, spread=0.5)
    return Problem(p.X, np.where(np.arange(32) % 2 == 0, 1.0, -1.0), p.edges, p.weights, p.lambda1, p.lambda2)


# ---- planted optima -------------------------------------------------------------------------------------


def planted(
    seed: int, N: int, d: int, clusters: int, density: float, edges: IntArray, lambda1: float, lambda2: float
) -> Planted:
    """Blocks of samples share one of `clusters` rows, whose entries are nonzero with probability `density`."""
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((clusters, d)) * (rng.random((clusters, d)) < density)
    W = centres[np.arange(N) * clusters // N]
    return plant(W, edges, np.exp(0.3 * rng.standard_normal(len(edges))), lambda1, lambda2, rng)


def band(N: int, width: int) -> IntArray:
    """Each sample joined to the next `width` ones."""
    return np.array([(i, j) for i in range(N) for j in range(i + 1, min(N, i + width + 1))])


NO_EDGES: IntArray = np.empty((0, 2), dtype=np.int64)
PAPER = (200, 100, 10)
SMALL = (42, 20, 2)


def pair(x: float, lambda1: float) -> Problem:
    """An inlier at 1 and a test sample at x, joined."""
    return Problem(np.array([[1.0], [x]]), np.array([1.0, -1.0]), chain(2), np.ones(1), lambda1, 0.3)
