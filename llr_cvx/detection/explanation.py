"""Why a row is an outlier: the features behind its score, proven bounds, and the rows that share its reasons."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from llr_cvx.arrays import FloatArray, IntArray
from llr_cvx.graph import component_labels
from llr_cvx.solution import Solution

#: A weight below this fraction of the largest in its row counts as zero: conic solvers return no exact zeros.
MIN_RELATIVE_WEIGHT = 1e-4
#: So does a weight that changes no row's score by more than this.
MIN_SCORE_EFFECT = 1e-7
#: At most this many rows that share the same reasons are listed.
MAX_SHARED_ROWS = 20
#: Quantiles of the inliers that bound the typical range of a feature.
TYPICAL_QUANTILES = (0.05, 0.95)


@dataclass(frozen=True)
class Reason:
    """One selected feature of one row.

    Attributes
    ----------
    feature, column : str, int
    value : float
        The row's value, in the units shown.
    weight, contribution : float
        w_ik, and w_ik x_ik: negative pushes the row towards "outlier".
    typical : (float, float)
        5 % and 95 % quantiles of the known inliers.
    """

    feature: str
    column: int
    value: float
    weight: float
    contribution: float
    typical: tuple[float, float]

    @property
    def position(self) -> str:
        """Whether the value is "below", "above" or "within" the typical range."""
        low, high = self.typical
        return "below" if self.value < low else "above" if self.value > high else "within"

    @property
    def place(self) -> str:
        """`position` in words, with the range and its quantiles."""
        low, high = self.typical
        share = " to ".join(f"{100 * quantile:g} %" for quantile in TYPICAL_QUANTILES)
        return f"{self.position} the inliers' {share} range ({low:.4g} to {high:.4g})"

    def __str__(self) -> str:
        return f"{self.feature} = {self.value:.4g}, {self.place}, contributes {self.contribution:+.3g}"


@dataclass(frozen=True)
class NextFeature:
    """The unselected feature closest to selection.

    A feature k can have a weight only where the dual vector v_i attains its largest entry; `distance` is
    1 - |v_ik| / ||v_i||_inf: 0 on the verge of selection, 1 for a feature with no effect.
    """

    feature: str
    column: int
    distance: float


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
    reasons : tuple of Reason
        Selected features, strongest push towards "outlier" first.
    next_feature : NextFeature or None
        None if every feature is selected or the row has no weights.
    group : int
        Equal for rows that share a weight vector, exactly or within the given tolerance.
    group_size : int
        Number of explained rows in the group, including this one.
    shares_with : tuple of int
        The other explained rows of the group, worst first, at most `MAX_SHARED_ROWS`.
    """

    rank: int
    row: int
    log_ratio: float
    ratio: float
    interval: tuple[float, float]
    certain: bool
    reasons: tuple[Reason, ...]
    next_feature: NextFeature | None
    group: int
    group_size: int
    shares_with: tuple[int, ...]

    def as_dict(self) -> dict[str, Any]:
        """Plain nested values, ready for JSON; an infinite end of the interval becomes None."""
        record = asdict(self)
        record["interval"] = [float(end) if np.isfinite(end) else None for end in self.interval]
        return record

    def __str__(self) -> str:
        low, high = np.exp(self.interval)
        lines = [f"#{self.rank} row {self.row}: r = {self.ratio:.4g}, proven {low:.4g} to {high:.4g}"]
        lines += [f"    {reason}" for reason in self.reasons] or ["    no feature selected"]
        return "\n".join(lines)


def explain_rows(
    solution: Solution,
    rows: IntArray,
    names: Sequence[str],
    values: FloatArray,
    offset: float,
    group_rtol: float = 1e-3,
) -> list[Explanation]:
    """Explain the given rows of a solution, lowest score first.

    Parameters
    ----------
    solution : Solution
    rows : array of int
    names : sequence of str
        Names of the columns of the problem's X.
    values : array of the shape of X
        Values to show: the problem's X, or the same rows in other units.
    offset : float
        Scores below it are outliers.
    group_rtol : float
        See `groups`.

    Examples
    --------
    >>> from llr_cvx import Problem, solve_exact
    >>> p = Problem([[1.0, 0.0], [-4.0, 0.0]], [1, -1], [], [], lambda1=0.0, lambda2=1.0)
    >>> print(explain_rows(solve_exact(p), np.array([1]), ["a", "b"], p.X, offset=0.0)[0])
    #1 row 1: r = 0.2273, proven 0.2273 to 0.2273
        a = -4, below the inliers' 5 % to 95 % range (1 to 1), contributes -1.48
    """
    problem, log_ratio = solution.problem, solution.log_ratio
    rows = rows[np.argsort(log_ratio[rows], kind="stable")]
    low, high = (problem.base + end for end in solution.certificate.score_bounds)
    typical = np.quantile(values[problem.y > 0], TYPICAL_QUANTILES, axis=0)
    selected = selected_features(problem.X, solution.W)
    distance = selection_distance(solution)
    label = groups(solution, group_rtol)
    members: dict[int, list[int]] = {}
    for i in rows:
        members.setdefault(int(label[i]), []).append(int(i))

    def reasons(i: int) -> tuple[Reason, ...]:
        contribution = solution.W[i] * problem.X[i]
        columns = np.flatnonzero(selected[i])
        return tuple(
            Reason(
                feature=names[k],
                column=int(k),
                value=float(values[i, k]),
                weight=float(solution.W[i, k]),
                contribution=float(contribution[k]),
                typical=(float(typical[0, k]), float(typical[1, k])),
            )
            for k in columns[np.argsort(contribution[columns], kind="stable")]
        )

    def next_feature(i: int) -> NextFeature | None:
        away = np.where(selected[i], np.inf, distance[i])
        k = int(np.argmin(away))
        return NextFeature(names[k], k, float(away[k])) if np.isfinite(away[k]) else None

    return [
        Explanation(
            rank=rank,
            row=int(i),
            log_ratio=float(log_ratio[i]),
            ratio=float(np.exp(log_ratio[i])),
            interval=(float(low[i]), float(high[i])),
            certain=bool(high[i] < offset if log_ratio[i] < offset else low[i] >= offset),
            reasons=reasons(i),
            next_feature=next_feature(i),
            group=int(label[i]),
            group_size=len(members[int(label[i])]),
            shares_with=tuple(j for j in members[int(label[i])][: MAX_SHARED_ROWS + 1] if j != i)[:MAX_SHARED_ROWS],
        )
        for rank, i in enumerate(rows, start=1)
    ]


def selected_features(X: FloatArray, W: FloatArray) -> NDArray[np.bool_]:
    """Where W is not zero; negligible weights, which conic solvers return instead of zeros, count as zero.

    >>> selected_features(np.ones((1, 3)), np.array([[0.5, 1e-9, 0.0]])).tolist()
    [[True, False, False]]
    """
    size = np.abs(W)
    effect = size * np.abs(X).max(axis=0)
    return np.asarray((size > MIN_RELATIVE_WEIGHT * size.max(axis=1, keepdims=True)) & (effect > MIN_SCORE_EFFECT))


def selection_distance(solution: Solution) -> FloatArray:
    """1 - |v_ik| / ||v_i||_inf from the certificate's dual point; NaN in rows whose v_i is zero."""
    proof = solution.certificate
    v = np.abs(solution.problem.dual_vectors(proof.alpha, proof.U))
    largest = v.max(axis=1, keepdims=True)
    return np.asarray(1.0 - np.divide(v, largest, out=np.full_like(v, np.nan), where=largest > 0))


def groups(solution: Solution, rtol: float = 1e-3) -> IntArray:
    """A label for each row: equal for rows joined by edges with ||w_i - w_j|| <= rtol max(||w_i||, ||w_j||).

    rtol = 0 gives `Solution.clusters`: exactly equal weight vectors.
    """
    edges = solution.problem.edges[solution.problem.weights > 0]
    i, j = edges.T
    norm = np.linalg.norm(solution.W, axis=1)
    alike = np.linalg.norm(solution.W[i] - solution.W[j], axis=1) <= rtol * np.maximum(norm[i], norm[j])
    return component_labels(len(solution.W), edges[alike])


def records(explanations: Sequence[Explanation]) -> list[dict[str, Any]]:
    """One flat record per selected feature, ready for a data frame or a CSV file."""
    return [
        {
            "rank": e.rank,
            "row": e.row,
            "log_ratio": e.log_ratio,
            "ratio": e.ratio,
            "lower": e.interval[0],
            "upper": e.interval[1],
            "group": e.group,
            "feature": r.feature,
            "value": r.value,
            "weight": r.weight,
            "contribution": r.contribution,
            "typical_low": r.typical[0],
            "typical_high": r.typical[1],
        }
        for e in explanations
        for r in e.reasons
    ]
