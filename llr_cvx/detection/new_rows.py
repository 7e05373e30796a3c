"""Weight vectors for rows that were not fitted, computed from the fitted rows alone."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field

import numpy as np
from scipy.spatial import KDTree

from llr_cvx.arrays import FloatArray
from llr_cvx.detection.weber import gaussian_weights, weber_points
from llr_cvx.solution import ConvergenceWarning, Solution

#: Relative accuracy of the Weber objective, proved for every row.
WEBER_TOL = 1e-10
#: To find its neighbours, a row farther from the data than this many radii is moved in along its direction: beyond
#: that, its distances to all fitted rows agree in double precision.
MAX_RADII = 1e6


@dataclass(frozen=True, eq=False)
class FittedRows:
    """Fitted samples with their weight vectors, from which those of new rows are computed.

    Parameters
    ----------
    X : array of shape (N, d)
        Fitted rows.
    W : array of shape (N, m)
        Their weight vectors (m = d, or d + 1 with an intercept).
    y : array of shape (N,)
        +1 for known inliers, -1 for test rows.
    n_neighbors : int
    sigma : float

    Examples
    --------
    >>> rows = FittedRows(np.array([[0.0], [1.0]]), np.array([[2.0], [4.0]]), np.array([1.0, -1.0]), 1, 1.0)
    >>> rows.weights(np.array([[1.0], [9.0], [-9.0]])).ravel().tolist()
    [4.0, 4.0, 2.0]
    """

    X: FloatArray
    W: FloatArray
    y: FloatArray
    n_neighbors: int
    sigma: float
    centre: FloatArray = field(init=False)
    radius: float = field(init=False)
    tree: KDTree = field(init=False, repr=False)
    own: dict[bytes, int] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        centre = (self.X / len(self.X)).sum(axis=0)
        radius = float(np.abs(self.X - centre).max()) or 1.0
        # Test rows come last and win, because a new row is unlabelled too; among equal ones the first row wins.
        order = np.concatenate([np.flatnonzero(self.y > 0)[::-1], np.flatnonzero(self.y < 0)[::-1]])
        derived = {
            "centre": centre,
            "radius": radius,
            "tree": KDTree((self.X - centre) / radius),
            "own": {_key(self.X[i]): int(i) for i in order},
        }
        for name, value in derived.items():
            object.__setattr__(self, name, value)

    @classmethod
    def of(cls, solution: Solution, d: int) -> FittedRows:
        """The rows of a solution whose graph was built from the first d columns."""
        problem = solution.problem
        if problem.sigma is None or problem.n_neighbors is None:
            raise ValueError(
                "new rows need sigma and n_neighbors, which this problem does not have: pass both to Problem"
            )
        return cls(problem.X[:, :d], solution.W, problem.y, problem.n_neighbors, problem.sigma)

    def weights(self, X: FloatArray) -> FloatArray:
        """The weight vector of each row of X: its own if it was fitted, else its neighbours' Weber point."""
        own = np.array([self.own.get(_key(x), -1) for x in X], dtype=np.int64)
        W = self.W[own]
        new = np.flatnonzero(own < 0)
        if new.size:
            W[new] = self._weber(X[new])
        return W

    def _weber(self, X: FloatArray) -> FloatArray:
        near = self._neighbours(X)
        found = weber_points(self.W[near], gaussian_weights(X, self.X[near], self.sigma), tol=WEBER_TOL)
        short = np.flatnonzero(found.relative_gap > WEBER_TOL)
        if short.size:
            warnings.warn(
                f"the Weber problems of {short.size} new row(s) are solved only to a proven relative gap of "
                f"{found.relative_gap.max():.1e}, not {WEBER_TOL:g}",
                ConvergenceWarning,
                stacklevel=4,
            )
        return found.points

    def _neighbours(self, X: FloatArray) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
        """Indices of the K nearest fitted rows, independently for each row."""
        offset = X / self.radius - self.centre / self.radius
        reach = np.abs(offset).max(axis=1, keepdims=True)
        offset = np.where(reach > MAX_RADII, offset / np.maximum(reach, 1.0) * MAX_RADII, offset)
        _, near = self.tree.query(offset, k=[*range(1, self.n_neighbors + 1)], workers=-1)
        return np.asarray(near, dtype=np.int64)


def _key(x: FloatArray) -> bytes:
    """Bytes that are equal for equal rows; adding 0 turns -0.0 into 0.0."""
    return np.asarray(x + 0.0).tobytes()
