"""Why a row is an outlier: the features behind its score, proven bounds, and the rows that share its reasons."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from llr_cvx.arrays import BoolArray, IntArray
from llr_cvx.detection.encoding import by_owner
from llr_cvx.detection.features import Column, FeatureValue
from llr_cvx.detection.ranking import selected_features, selection_distance
from llr_cvx.graph import component_labels
from llr_cvx.solution import Solution

#: At most this many rows that share the same reasons are listed.
MAX_SHARED_ROWS = 20
#: At most this many unselected features are listed as "also unusual".
MAX_ALSO_UNUSUAL = 3


@dataclass(frozen=True)
class Explanation:
    """Why a fitted row has its score.

    Attributes
    ----------
    rank, row : int
        Rank (1 for the lowest score) and index of the row as given to `fit`.
    log_ratio, ratio : float
        log r and r.
    interval : (float, float)
        Proven interval of log r at the exact optimum: it bounds numerical error, not sampling error.
    certain : bool
        Whether the whole interval lies on the same side of the threshold as the score.
    reasons : tuple of FeatureValue
        Selected features, strongest push towards "outlier" first.
    next_feature : FeatureValue or None
        The unselected feature closest to selection; None if every feature is selected or the row has no weights.
    group, group_size, shares_with : int, int, tuple of int
        A label of the rows with the same weight vector, within the given tolerance; how many of the explained rows
        have it; and the others of these, worst first, at most `MAX_SHARED_ROWS`.
    also_unusual : tuple of FeatureValue
        Unselected features outside their typical range, closest to selection first, at most `MAX_ALSO_UNUSUAL`.
    """

    rank: int
    row: int
    log_ratio: float
    ratio: float
    interval: tuple[float, float]
    certain: bool
    reasons: tuple[FeatureValue, ...]
    next_feature: FeatureValue | None
    group: int
    group_size: int
    shares_with: tuple[int, ...]
    also_unusual: tuple[FeatureValue, ...] = ()

    def details(self) -> list[str]:
        """A line for each reason, and for each feature that is also unusual."""
        lines = [f"    {reason}" for reason in self.reasons] or ["    no feature selected"]
        return lines + [f"    also unusual: {feature}" for feature in self.also_unusual]

    def __str__(self) -> str:
        low, high = np.exp(self.interval)
        head = f"#{self.rank} row {self.row}: r = {self.ratio:.4g}, proven {low:.4g} to {high:.4g}"
        return "\n".join([head, *self.details()])


class Features:
    """The features of the rows of a solution: selected and contributing, or how far from it.

    `columns` are the features to show, and `owner` says to which of them each column of the problem's X belongs.
    """

    def __init__(self, solution: Solution, columns: list[Column], owner: IntArray) -> None:
        X, d = solution.problem.X, len(columns)
        self.solution, self.columns = solution, columns
        self.contribution = by_owner(solution.W * X, owner, d)
        self.selected = by_owner(selected_features(X, solution.W, X), owner, d, np.logical_or)
        proof = solution.certificate
        V = solution.problem.dual_vectors(proof.alpha, proof.U)
        self.distance = by_owner(selection_distance(V), owner, d, np.fmin)

    def reasons(self, i: int) -> tuple[FeatureValue, ...]:
        """Selected features of a row, strongest push towards "outlier" first."""
        return self._ordered(i, self.selected[i], "contribution")

    def unselected(self, i: int) -> tuple[FeatureValue, ...]:
        """The other features, closest to selection first."""
        return self._ordered(i, ~self.selected[i] & np.isfinite(self.distance[i]), "distance")

    def _ordered(self, i: int, which: BoolArray, by: str) -> tuple[FeatureValue, ...]:
        values = getattr(self, by)[i]
        order = [k for k in np.argsort(values, kind="stable").tolist() if which[k]]
        return tuple(self.columns[k].of(i, column=k, **{by: float(values[k])}) for k in order)


def explain_rows(features: Features, rows: IntArray, offset: float, group_rtol: float = 1e-3) -> list[Explanation]:
    """Explain the given rows, lowest score first; scores below `offset` are outliers. `group_rtol`: see `groups`.

    >>> from llr_cvx import Problem, solve_exact
    >>> from llr_cvx.detection.features import describe
    >>> p = Problem([[1.0, 0.0], [-4.0, 0.0]], [1, -1], [], [], lambda1=0.0, lambda2=1.0)
    >>> features = Features(solve_exact(p), describe(p.X, ["a", "b"], p.y > 0), np.arange(2))
    >>> print(explain_rows(features, np.array([1]), offset=0.0)[0])
    #1 row 1: r = 0.2273, proven 0.2273 to 0.2273
        a = -4, below the inliers' 5 % to 95 % range (1 to 1), contributes -1.48
    """
    solution, log_ratio = features.solution, features.solution.log_ratio
    rows = rows[np.argsort(log_ratio[rows], kind="stable")]
    low, high = (solution.problem.base + end for end in solution.certificate.score_bounds)
    label = groups(solution, group_rtol)

    def explained(rank: int, i: int) -> Explanation:
        others, alike = features.unselected(i), rows[label[rows] == label[i]].tolist()
        return Explanation(
            rank=rank,
            row=int(i),
            log_ratio=float(log_ratio[i]),
            ratio=float(np.exp(log_ratio[i])),
            interval=(float(low[i]), float(high[i])),
            certain=bool(high[i] < offset if log_ratio[i] < offset else low[i] >= offset),
            reasons=features.reasons(i),
            next_feature=next(iter(others), None),
            also_unusual=tuple(f for f in others if f.position != "within")[:MAX_ALSO_UNUSUAL],
            group=int(label[i]),
            group_size=len(alike),
            shares_with=tuple(j for j in alike[: MAX_SHARED_ROWS + 1] if j != i)[:MAX_SHARED_ROWS],
        )

    return [explained(rank, i) for rank, i in enumerate(rows, start=1)]


def groups(solution: Solution, rtol: float = 1e-3) -> IntArray:
    """A label for each row: equal for rows joined by edges with ||w_i - w_j|| <= rtol max(||w_i||, ||w_j||).

    rtol = 0 gives `Solution.clusters`: exactly equal weight vectors.
    """
    edges = solution.problem.edges[solution.problem.weights > 0]
    i, j = edges.T
    norm = np.linalg.norm(solution.W, axis=1)
    alike = np.linalg.norm(solution.W[i] - solution.W[j], axis=1) <= rtol * np.maximum(norm[i], norm[j])
    return component_labels(len(solution.W), edges[alike])
