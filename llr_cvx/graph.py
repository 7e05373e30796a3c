"""The similarity graph R of Sec. 2.3: K nearest neighbours with Gaussian weights.

The paper sums r_ij ||w_i - w_j|| over ordered pairs, and a K-nearest-neighbour relation is not
symmetric. Here each undirected edge e = {i, j}, i < j, appears once with weight
omega_e = r_ij + r_ji, which is the same sum exactly.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import connected_components

from llr_cvx import validation as check
from llr_cvx.arrays import FloatArray, IntArray, read_only


class GraphWarning(UserWarning):
    """The similarity graph has rows without an effective neighbour, or a degenerate width."""


class IsolatedWarning(GraphWarning):
    """Rows are so far away that all their weights underflow."""


@dataclass(frozen=True, eq=False)
class Graph:
    """A frozen similarity graph; `str()` gives a summary.

    Problems that differ only in their penalties share one graph by reference.

    Attributes
    ----------
    n_samples : int
    edges : array of int, shape (E, 2)
        Undirected edges (i, j), i < j, each once.
    weights : array of shape (E,)
        omega_e >= 0.
    n_neighbors, sigma : int or None, float or None
        The parameters it was built with; None for a graph given by hand.
    """

    n_samples: int
    edges: IntArray = field(repr=False)
    weights: FloatArray = field(repr=False)
    n_neighbors: int | None = None
    sigma: float | None = None

    def __post_init__(self) -> None:
        for name in ("edges", "weights"):
            object.__setattr__(self, name, read_only(getattr(self, name)))

    @cached_property
    def incidence(self) -> csr_array:
        """Sparse B of shape (E, N) with (B W)_e = w_i - w_j."""
        n_edges = len(self.edges)
        data, indptr = np.tile([1.0, -1.0], n_edges), np.arange(0, 2 * n_edges + 1, 2)
        return _frozen(csr_array((data, self.edges.ravel(), indptr), shape=(n_edges, self.n_samples)))

    @cached_property
    def incidence_T(self) -> csr_array:
        """The transpose of `incidence`, stored by rows."""
        return _frozen(self.incidence.T.tocsr())

    def degrees(self, values: FloatArray) -> FloatArray:
        """Sum a per-edge value over the edges incident to each sample."""
        i, j = self.edges.T
        total = np.bincount(i, values, minlength=self.n_samples) + np.bincount(j, values, minlength=self.n_samples)
        return total.astype(np.float64)

    @cached_property
    def components(self) -> IntArray:
        """A component label for each sample, over edges of positive weight."""
        return component_labels(self.n_samples, self.edges[self.weights > 0])

    @property
    def n_components(self) -> int:
        """Number of components over edges of positive weight; each isolated sample is one."""
        return int(self.components.max()) + 1

    @property
    def isolated(self) -> IntArray:
        """Rows without an edge of positive weight, which are scored alone."""
        degree = np.bincount(self.edges[self.weights > 0].ravel(), minlength=self.n_samples)
        return np.flatnonzero(degree == 0).astype(np.int64)

    @property
    def underflowed(self) -> IntArray:
        """Edges whose Gaussian weight is exactly 0 in double precision, shape (m, 2)."""
        return np.asarray(self.edges[self.weights == 0])

    def __str__(self) -> str:
        width = "given by hand" if self.sigma is None else f"K = {self.n_neighbors}, sigma = {self.sigma:.4g}"
        lines = [
            f"graph: {self.n_samples} samples, {len(self.edges)} edges ({width})",
            f"  connected components   {self.n_components}",
            f"  isolated samples       {len(self.isolated)}{_listing(self.isolated)}",
            f"  underflowed edges      {len(self.underflowed)}",
        ]
        return "\n".join(lines)


def _frozen(matrix: csr_array) -> csr_array:
    for array in (matrix.data, matrix.indices, matrix.indptr):
        array.setflags(write=False)
    return matrix


def _listing(rows: IntArray, limit: int = 10) -> str:
    if not len(rows):
        return ""
    shown = ", ".join(str(int(r)) for r in rows[:limit])
    return f" (rows {shown}{', ...' if len(rows) > limit else ''})"


def component_labels(n_samples: int, edges: IntArray) -> IntArray:
    """A label 0, 1, ... for each sample, equal for samples joined by a path of edges."""
    if not len(edges):
        return np.arange(n_samples)
    adjacency = coo_array((np.ones(len(edges)), (edges[:, 0], edges[:, 1])), shape=(n_samples, n_samples))
    return np.asarray(connected_components(adjacency, directed=False)[1], dtype=np.int64)


def similarity_graph(
    X: ArrayLike, n_neighbors: int = 5, sigma: float | Literal["median"] = "median"
) -> tuple[IntArray, FloatArray]:
    """Edges and weights of the paper's similarity graph.

    Parameters
    ----------
    X : array-like of shape (N, d)
        Pooled samples.
    n_neighbors : int
        K; a sample is never its own neighbour.
    sigma : float or "median"
        Gaussian width; "median" is the median of the positive K-nearest-neighbour distances.

    Returns
    -------
    edges : array of shape (E, 2)
        Undirected edges, i < j, sorted.
    weights : array of shape (E,)
        omega_e = r_ij + r_ji, where r_ij = exp(-||x_i - x_j||^2 / (2 sigma^2)) if j is one of the K nearest
        neighbours of i and 0 otherwise. An edge whose weight underflows is kept with weight 0.

    Examples
    --------
    >>> edges, weights = similarity_graph([[0.0], [1.0], [3.0]], n_neighbors=1, sigma=1.0)
    >>> edges.tolist()
    [[0, 1], [1, 2]]
    """
    graph = build_graph(check.samples(X, "X"), n_neighbors, sigma)
    return graph.edges, graph.weights


def build_graph(X: FloatArray, n_neighbors: int, sigma: float | str) -> Graph:
    """The similarity graph of validated X, with the width used; warns about isolated rows."""
    from sklearn.neighbors import NearestNeighbors  # over a second: solvers and judges of given graphs do without it

    n_samples = X.shape[0]
    K = check.whole_number(n_neighbors, "n_neighbors")
    if K >= n_samples:
        raise ValueError(f"n_neighbors must be smaller than the number of pooled samples: got {K} for {n_samples} rows")
    # Scaling by a power of two is exact and keeps squares finite; centring preserves the digits of close rows.
    scale = float(np.ldexp(1.0, int(np.frexp(np.abs(X).max())[1]) - 1))
    Xs = X / scale
    Xs -= np.median(Xs, axis=0)
    neighbors = NearestNeighbors(n_neighbors=K).fit(Xs).kneighbors(return_distance=False)
    i = np.repeat(np.arange(n_samples), K)
    j = neighbors.ravel().astype(np.int64)
    # Recomputed from differences: the fast search loses digits for close rows.
    distance = _row_distances(Xs, i, j)
    width = _width(distance, sigma, scale)
    with np.errstate(over="ignore", divide="ignore"):
        r = np.exp(-0.5 * np.divide(distance, width / scale, out=np.zeros_like(distance), where=distance > 0) ** 2)

    low, high = np.minimum(i, j), np.maximum(i, j)
    keys, edge_of = np.unique(low * n_samples + high, return_inverse=True)
    weights = np.bincount(edge_of, weights=r, minlength=len(keys)).astype(np.float64)
    edges = np.column_stack([keys // n_samples, keys % n_samples]).astype(np.int64)
    graph = Graph(n_samples, edges, weights, K, width)
    warn_isolated(graph, width)
    return graph


def _row_distances(X: FloatArray, i: IntArray, j: IntArray, block: int = 200_000) -> FloatArray:
    """||x_i - x_j|| for pairs of rows, in blocks to limit memory."""
    parts = [np.linalg.norm(X[i[s : s + block]] - X[j[s : s + block]], axis=1) for s in range(0, len(i), block)]
    return np.concatenate(parts)


def _width(distance: FloatArray, sigma: float | str, scale: float) -> float:
    if isinstance(sigma, str):
        if sigma != "median":
            raise ValueError(f'sigma must be a positive number or "median", got {sigma!r}')
        positive = distance[distance > 0]
        width = float(np.median(positive)) * scale if positive.size else 0.0
        if width > 0:
            return width
        warnings.warn(
            "sigma='median' found no positive neighbour distance (all neighbours are duplicates): using sigma = 1",
            GraphWarning,
            stacklevel=4,
        )
        return 1.0
    return check.real_number(sigma, "sigma", strict=True)


def warn_isolated(graph: Graph, width: float) -> None:
    """Warn about rows that are coupled to no other."""
    if len(graph.isolated):
        warnings.warn(
            f"{len(graph.isolated)} sample(s) lie so far away that all their Gaussian weights underflow to 0 at "
            f"sigma = {width:.4g}{_listing(graph.isolated)}: each is scored alone, by its own features only. "
            "A larger sigma couples them to their neighbours again.",
            IsolatedWarning,
            stacklevel=4,
        )
