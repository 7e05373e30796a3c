"""The LLR problem, Eq. (5): the data, the objective and the pieces that solvers share.

J(W) = sum_i log(1 + exp(-y_i w_i.x_i))
     + lambda1 sum_e omega_e ||w_i - w_j||_2
     + lambda2 sum_i ||w_i||_1^2
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array
from scipy.special import expit

from llr_cvx import archive
from llr_cvx import validation as check
from llr_cvx.arrays import FloatArray, IntArray, read_only, row_dot, row_norms
from llr_cvx.graph import Graph, build_graph, component_labels
from llr_cvx.separability import separable


class ObjectiveParts(NamedTuple):
    """The three sums of Eq. (5), with their lambdas."""

    logistic: float
    network: float
    exclusive: float


@dataclass(frozen=True, eq=False)
class Problem:
    """One instance of localized logistic regression, validated once and frozen.

    Parameters
    ----------
    X : array-like of shape (N, d)
        Pooled samples; their largest absolute value lies between 1e-150 and 1e150, or all are zero.
    y : array-like of shape (N,)
        +1 for known inliers, -1 for test samples; both must occur.
    edges : array-like of shape (E, 2)
        Undirected edges (i, j) with i < j, each once. Reversed, repeated and looping edges are refused.
    weights : array-like of shape (E,)
        omega_e >= 0.
    lambda1, lambda2 : float
        Network and exclusive penalty, >= 0, at most 1e150 and not both zero.
    sigma, n_neighbors : float, int, optional
        How the graph was made; only reported.

    Examples
    --------
    >>> p = Problem([[1.0], [2.0]], [1, -1], [[0, 1]], [1.0], lambda1=0.5, lambda2=1.0)
    >>> round(p.objective([[0.0], [0.0]]), 6)  # 2 log 2
    1.386294
    """

    X: FloatArray
    y: FloatArray
    edges: IntArray
    weights: FloatArray
    lambda1: float = 0.1
    lambda2: float = 1.0
    sigma: float | None = None
    n_neighbors: int | None = None
    #: The frozen graph; shared by reference between problems that differ only in their lambdas.
    graph: Graph = field(init=False, repr=False)

    def __post_init__(self) -> None:
        X = check.squarable(check.samples(self.X, "X"), "X")
        y = check.labels(self.y, len(X))
        edges = check.edge_list(self.edges, len(X))
        weights = check.edge_weights(self.weights, len(edges))
        sigma = None if self.sigma is None else check.real_number(self.sigma, "sigma", strict=True)
        K = None if self.n_neighbors is None else check.whole_number(self.n_neighbors, "n_neighbors")
        graph = Graph(len(X), edges, weights, K, sigma)
        self._set(X=read_only(X), y=read_only(y), graph=graph, edges=graph.edges, weights=graph.weights)
        self._set(sigma=sigma, n_neighbors=K, **_penalties(self.lambda1, self.lambda2))

    def _set(self, **values: Any) -> None:
        """Fill the fields of an instance that is still under construction."""
        vars(self).update(values)

    @classmethod
    def from_samples(
        cls,
        X_inlier: ArrayLike,
        X_test: ArrayLike,
        lambda1: float = 0.1,
        lambda2: float = 1.0,
        n_neighbors: int = 5,
        sigma: float | Literal["median"] = "median",
    ) -> Problem:
        """Pool known inliers (y = +1, first) and test samples (y = -1) over their similarity graph."""
        inlier, test = check.samples(X_inlier, "X_inlier"), check.samples(X_test, "X_test")
        if inlier.shape[1] != test.shape[1]:
            raise ValueError(
                f"X_inlier has {inlier.shape[1]} columns but X_test has {test.shape[1]}: same features, same order"
            )
        X = np.vstack([inlier, test])
        y = np.repeat([1.0, -1.0], [len(inlier), len(test)])
        graph = build_graph(X, n_neighbors, sigma)
        return cls(X, y, graph.edges, graph.weights, lambda1, lambda2, graph.sigma, graph.n_neighbors)

    def with_lambdas(self, lambda1: float | None = None, lambda2: float | None = None) -> Problem:
        """The same samples and graph, by reference, with other penalties."""
        other = object.__new__(Problem)
        other._set(**{f.name: getattr(self, f.name) for f in fields(self)})
        other._set(
            **_penalties(self.lambda1 if lambda1 is None else lambda1, self.lambda2 if lambda2 is None else lambda2)
        )
        return other

    def __reduce__(self) -> tuple[Any, ...]:
        return Problem, tuple(getattr(self, f.name) for f in fields(self) if f.init)

    # ---- the objective ------------------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, int]:
        """(N, d): the shape of X and of W."""
        return self.X.shape[0], self.X.shape[1]

    @property
    def radii(self) -> FloatArray:
        """lambda1 omega_e: the weight of each edge in J and the radius of its dual ball."""
        return self.lambda1 * self.weights

    @property
    def incidence(self) -> csr_array:
        """Sparse B of shape (E, N) with (B W)_e = w_i - w_j."""
        return self.graph.incidence

    @property
    def incidence_T(self) -> csr_array:
        """The transpose of `incidence`, stored by rows."""
        return self.graph.incidence_T

    @property
    def base(self) -> float:
        """log(n/n') for n test samples and n' known inliers: log r of a row whose score is 0."""
        n_inlier = np.count_nonzero(self.y > 0)
        return float(np.log((len(self.y) - n_inlier) / n_inlier))

    def scores(self, W: ArrayLike) -> FloatArray:
        """w_i . x_i for each pooled row."""
        return _scores(self.X, check.weight_matrix(W, self.shape))

    def terms(self, W: ArrayLike) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The terms of J(W): logistic per sample, network per edge, exclusive per sample."""
        W = check.weight_matrix(W, self.shape)
        with np.errstate(over="ignore"):
            logistic = np.logaddexp(0.0, -self.y * _scores(self.X, W))
            network = self.radii * row_norms(self.incidence @ W)
            exclusive = self.lambda2 * np.abs(W).sum(axis=1) ** 2 if self.lambda2 else np.zeros(len(W))
        return logistic, network, exclusive

    def parts(self, W: ArrayLike) -> ObjectiveParts:
        """The logistic, network and exclusive sums of J(W)."""
        with np.errstate(over="ignore"):
            return ObjectiveParts(*(float(terms.sum()) for terms in self.terms(W)))

    def objective(self, W: ArrayLike) -> float:
        """J(W), Eq. (5)."""
        return sum(self.parts(W))

    def log_ratio(self, W: ArrayLike) -> FloatArray:
        """log r(x_i) = log(n/n') + w_i.x_i, Eq. (4); n test samples, n' inliers. Low means outlier."""
        return self.base + self.scores(W)

    def require_attained(self) -> None:
        """Raise if J has no minimiser."""
        if not self.attained:
            rows = self._separable_rows
            raise ValueError(
                f"lambda2 = 0 and the {len(rows)} connected sample(s) that contain row {rows[0]} are linearly "
                "separable: J falls forever along the separating direction and has no minimiser; use lambda2 > 0"
            )

    @property
    def attained(self) -> bool:
        """Whether J has a minimiser: not if lambda2 = 0 and some component of the graph is linearly separable."""
        return self.lambda2 > 0 or not len(self._separable_rows)

    @cached_property
    def _separable_rows(self) -> IntArray:
        """The first component whose samples are linearly separable, or no rows at all."""
        components = (rows for rows in self._components() if separable(self.y[rows, None] * self.X[rows]))
        return next(components, np.empty(0, dtype=np.int64))

    def _components(self) -> list[IntArray]:
        label = component_labels(self.shape[0], self.edges[self.radii > 0])
        order = np.argsort(label, kind="stable")
        return np.split(order, np.flatnonzero(np.diff(label[order])) + 1)

    # ---- gradient pieces that solvers and certificates share --------------------------------------

    def alpha(self, W: ArrayLike) -> FloatArray:
        """alpha_i = sigmoid(-y_i w_i.x_i): minus the slope of the logistic term, and the natural dual point."""
        return np.asarray(expit(-self.y * self.scores(W)))

    def dual_vectors(self, alpha: FloatArray, U: FloatArray) -> FloatArray:
        """v_i = -alpha_i y_i x_i + sum_{e=(i,j)} U_e - sum_{e=(j,i)} U_e."""
        return np.asarray(self.incidence_T @ U) - (alpha * self.y)[:, None] * self.X

    # ---- storage ------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        N, d = self.shape
        return f"Problem(N={N}, d={d}, edges={len(self.edges)}, lambda1={self.lambda1:g}, lambda2={self.lambda2:g})"

    def save(self, path: str | Path) -> None:
        """Write one .npz (no pickle); an existing file is replaced whole or left alone."""
        arrays = {f.name: getattr(self, f.name) for f in fields(self) if f.init}
        archive.save(path, {k: np.asarray(v) for k, v in arrays.items() if v is not None})

    @classmethod
    def load(cls, path: str | Path) -> Problem:
        """Read what `save` wrote; nothing in the file is executed."""
        required = ("X", "y", "edges", "weights", "lambda1", "lambda2")
        arrays = archive.load(path, required=required, optional=("sigma", "n_neighbors"))
        values: dict[str, Any] = {k: (v.item() if v.ndim == 0 else v) for k, v in arrays.items()}
        try:
            return cls(**values)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{path} is not a valid problem: {error}") from error


def _penalties(lambda1: Any, lambda2: Any) -> dict[str, float]:
    """Both lambdas, validated together."""
    found = {"lambda1": check.penalty(lambda1, "lambda1"), "lambda2": check.penalty(lambda2, "lambda2")}
    if not any(found.values()):
        raise ValueError(
            "lambda1 and lambda2 are both 0: every sample could be fitted alone and the infimum of the "
            "objective is not attained; make at least one positive"
        )
    return found


def _scores(X: FloatArray, W: FloatArray) -> FloatArray:
    with np.errstate(over="ignore", invalid="ignore"):
        scores = row_dot(X, W)
        if np.isnan(scores).any():  # inf - inf on the way: the sum itself is finite, or infinite with one sign
            scale = np.abs(W).max()
            scores = row_dot(X, W / scale) * scale
    return scores
