"""Weight vectors for rows that were not fitted, computed from the fitted rows alone."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial import KDTree
from scipy.special import expit

from llr_cvx.arrays import FloatArray, IntArray
from llr_cvx.detection.joining import JOIN_TOL, join_rows
from llr_cvx.detection.weber import gaussian_weights, weber_points
from llr_cvx.solution import ConvergenceWarning, Solution

#: Rules for the weight vector of a new row.
RULES = ("join", "weber")
#: Relative accuracy of the Weber objective, proved for every row.
WEBER_TOL = 1e-10
#: To find its neighbours, a row farther from the data than this many radii is moved in along its direction: beyond
#: that, its distances to all fitted rows agree in double precision.
MAX_RADII = 1e6
#: The neighbours of fewer rows are found by one thread: starting others takes longer than the search.
FEW_ROWS = 1_000
#: So many rows are computed at a time, which bounds the memory for their neighbours' weight vectors.
BLOCK_ROWS = 10_000


class Joined(NamedTuple):
    """What the model knows about each of some rows, fitted or new.

    Attributes
    ----------
    W, V : arrays of shape (M, d)
        Weight vectors, and the dual vectors v: a feature has a weight only where |v_k| attains its row's maximum.
    relative_gap : array of shape (M,)
        Proven relative accuracy: of the row's own problem, or of the fit if the row was fitted.
    """

    W: FloatArray
    V: FloatArray
    relative_gap: FloatArray


@dataclass(frozen=True, eq=False)
class FittedRows:
    """A solution, prepared for new rows.

    Parameters
    ----------
    solution : Solution
    columns : slice or array of int
        The columns of the problem's X from which the graph was built.
    rule : "join" or "weber"
        How a new row gets its weight vector: it joins the model as an unlabelled row (`llr_cvx.detection.joining`),
        or takes the Weber point of its neighbours' weight vectors (`llr_cvx.detection.weber`).

    Examples
    --------
    >>> from llr_cvx import Problem, solve_exact
    >>> p = Problem([[1.0], [2.0]], [1, -1], [[0, 1]], [1.0], lambda1=0.1, lambda2=1.0, sigma=1.0, n_neighbors=1)
    >>> rows = FittedRows(solve_exact(p))
    >>> found = rows.join(np.array([[2.0], [3.0], [-3.0]]))
    >>> found.W.round(3).ravel().tolist()  # the first row is one of the fitted ones
    [-0.303, -0.355, 0.371]
    >>> bool(found.relative_gap[1:].max() <= 1e-9)
    True
    """

    solution: Solution
    columns: Any = field(default_factory=lambda: slice(None))
    rule: str = "join"
    known: Joined = field(init=False, repr=False)
    n_neighbors: int = field(init=False)
    sigma: float = field(init=False)
    centre: FloatArray = field(init=False, repr=False)
    radius: float = field(init=False, repr=False)
    tree: KDTree = field(init=False, repr=False)
    own: dict[bytes, int] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        problem = self.solution.problem
        if problem.sigma is None or problem.n_neighbors is None:
            raise ValueError(
                "new rows need sigma and n_neighbors, which this problem does not have: pass both to Problem"
            )
        if self.rule not in RULES:
            raise ValueError(f"new_rows must be one of {', '.join(map(repr, RULES))}, got {self.rule!r}")
        X = problem.X[:, self.columns]
        centre = (X / len(X)).sum(axis=0)
        radius = float(np.abs(X - centre).max(initial=0.0)) or 1.0
        # Test rows come last and win, because a new row is unlabelled too; among equal ones the first row wins.
        order = np.concatenate([np.flatnonzero(problem.y > 0)[::-1], np.flatnonzero(problem.y < 0)[::-1]])
        derived = {
            "known": fitted(self.solution),
            "n_neighbors": problem.n_neighbors,
            "sigma": problem.sigma,
            "centre": centre,
            "radius": radius,
            "tree": KDTree((X - centre) / radius),
            "own": {_key(problem.X[i]): int(i) for i in order},
        }
        for name, value in derived.items():
            object.__setattr__(self, name, value)

    def join(self, X: FloatArray) -> Joined:
        """Weight and dual vectors of the rows of X, which has the columns of the problem's X.

        A row equal to a fitted one has what the fit gave it.
        """
        own = np.array([self.own.get(_key(x), -1) for x in X], dtype=np.int64)
        found = Joined(*(array[own] for array in self.known))
        new = np.flatnonzero(own < 0)
        for start in range(0, len(new), BLOCK_ROWS):
            block = new[start : start + BLOCK_ROWS]
            answers = self._joined(X[block]) if self.rule == "join" else self._weber(X[block])
            for whole, part in zip(found, answers, strict=True):
                whole[block] = part
        if new.size:
            _warn_unproved(found.relative_gap[new], JOIN_TOL if self.rule == "join" else WEBER_TOL)
        return found

    def _joined(self, X: FloatArray) -> Joined:
        problem = self.solution.problem
        if problem.lambda2 == 0:
            raise ValueError(
                "a new row cannot join a model with lambda2 = 0: far from the data it would have no optimum. "
                'Fit with lambda2 > 0, or score new rows by new_rows="weber"'
            )
        near = self._neighbours(X)
        with np.errstate(over="ignore"):  # infinitely far is as good as very far: the similarity is 0
            scaled = (X[:, None, self.columns] - problem.X[near][:, :, self.columns]) / self.sigma
            similarity = np.exp(-0.5 * (scaled * scaled).sum(axis=2))
        found = join_rows(X, self.solution.W[near], problem.lambda1 * similarity, problem.lambda2)
        return Joined(found.W, found.V, found.relative_gap)

    def _weber(self, X: FloatArray) -> Joined:
        problem, near = self.solution.problem, self._neighbours(X)
        similarity = gaussian_weights(X[:, self.columns], problem.X[near][:, :, self.columns], self.sigma)
        found = weber_points(self.solution.W[near], similarity, tol=WEBER_TOL)
        own_part = expit((found.points * X).sum(axis=1))[:, None] * X  # v without the part of the neighbours
        return Joined(found.points, own_part, found.relative_gap)

    def _neighbours(self, X: FloatArray) -> IntArray:
        """Indices of the K nearest fitted rows, independently for each row."""
        offset = X[:, self.columns] / self.radius - self.centre / self.radius
        reach = np.abs(offset).max(axis=1, keepdims=True)
        offset = np.where(reach > MAX_RADII, offset / np.maximum(reach, 1.0) * MAX_RADII, offset)
        workers = 1 if len(X) < FEW_ROWS else -1
        _, near = self.tree.query(offset, k=[*range(1, self.n_neighbors + 1)], workers=workers)
        return np.asarray(near, dtype=np.int64)


def fitted(solution: Solution) -> Joined:
    """Weight and dual vectors of the fitted rows, with the relative gap of the fit."""
    proof = solution.certificate
    V = solution.problem.dual_vectors(proof.alpha, proof.U)
    return Joined(solution.W, V, np.full(len(V), proof.relative_gap))


def _warn_unproved(relative_gap: FloatArray, tol: float) -> None:
    short = np.count_nonzero(~(relative_gap <= tol))
    if short:
        warnings.warn(
            f"{short} new row(s) are solved only to a proven relative gap of {np.max(relative_gap):.1e}, not {tol:g}",
            ConvergenceWarning,
            stacklevel=4,
        )


def _key(x: FloatArray) -> bytes:
    """Bytes that are equal for equal rows; adding 0 turns -0.0 into 0.0."""
    return np.asarray(x + 0.0).tobytes()
