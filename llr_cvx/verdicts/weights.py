"""A verdict on a W from anywhere: how far from optimal at most, how far at least, and where it fails.

With a dual point (alpha, U) the gap J(W) - D is a sum of terms none of which is negative:

    fit        sum_i  log(1 + exp(-s_i)) + alpha_i s_i - H(alpha_i),     s_i = y_i w_i.x_i
    network    sum_e  lambda1 omega_e ||d_e|| - U_e.d_e,                 d_e = w_i - w_j
    selection  sum_i  lambda2 ||w_i||_1^2 + ||v_i||_inf^2 / (4 lambda2) + w_i.v_i

They vanish where W and the dual point satisfy the optimality conditions, so each says how much of the gap is
due to which condition and which sample. The same terms bound every optimal W*: with the gap G of the best W
known and M_i = ||v_i||_inf,

    |w*_ik| <= G / (M_i - |v_ik|),     ||w*_i - w*_j|| <= G / (lambda1 omega_e - ||U_e||).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from llr_cvx import checker
from llr_cvx import validation as check
from llr_cvx.arrays import FloatArray, IntArray
from llr_cvx.problem import Problem
from llr_cvx.proofs.certificate import Certificate, certificate, entropy, shown_gap
from llr_cvx.verdicts.dual_search import search
from llr_cvx.verdicts.residuals import Residuals, residuals

#: How many samples, coordinates and edges a verdict spells out.
LISTED = 5


@dataclass(frozen=True, eq=False)
class Verdict:
    """What is proved about a W; `str()` says it in words.

    Attributes
    ----------
    accepted : bool
        Whether J(W) - J* <= tol J(W) is proved.
    suboptimality : (low, high)
        Proven interval of J(W) - J*, rounding errors included.
    objective, tol : float
        J(W), and the relative tolerance asked for.
    certificate : Certificate
        The dual point behind the upper end.
    reference : float
        J of the best W known, behind the lower end.
    violations : mapping
        The share of the gap due to each optimality condition: "fit", "network", "selection". Empty for
        lambda2 = 0.
    sample_gaps : array of shape (N,)
        The share of each sample; an edge is shared equally by its two ends.
    should_be_zero : array of shape (m, 2)
        Coordinates (i, k) of W that are proved to be larger than in any optimal W and are zero in the best one
        known; the worst first.
    should_be_fused : array of shape (m, 2)
        Edges (i, j) whose rows are proved to be farther apart than in any optimal W and are equal in the best.
    residuals : Residuals
        Relative KKT residuals of W and the dual point: `fit`, `network`, `selection`, and the `largest` of them. For
        comparison with other papers; they prove nothing about J(W) - J*.
    """

    accepted: bool
    suboptimality: tuple[float, float]
    objective: float
    tol: float
    reference: float
    certificate: Certificate = field(repr=False)
    violations: Mapping[str, float] = field(repr=False)
    sample_gaps: FloatArray = field(repr=False)
    should_be_zero: IntArray = field(repr=False)
    should_be_fused: IntArray = field(repr=False)
    residuals: Residuals = field(repr=False)

    @property
    def worst_samples(self) -> IntArray:
        """Rows by their share of the gap, the worst first."""
        order = np.argsort(-self.sample_gaps, kind="stable")
        return np.asarray(order[self.sample_gaps[order] > 0], dtype=np.int64)

    def __str__(self) -> str:
        low, high = self.suboptimality
        relative = high / self.objective if 0 < self.objective < np.inf else float("inf")
        lines = [
            f"{'accepted' if self.accepted else 'rejected'} at tol {self.tol:g}: "
            f"J(W) = {self.objective:.12g} is above the optimum by at least {low:.3g} and at most {high:.3g} "
            f"(relative {relative:.2e})",
        ]
        bounded = self.certificate.bounded_dual
        if bounded is not None:
            lines.append(
                "lambda2 = 0: no unconditional proof is possible; among all W with ||w_i||_1 <= "
                f"{self.certificate.radius:.3g} the relative gap is " + shown_gap(self.certificate.bounded_relative_gap)
            )
        if not self.accepted and self.violations:
            lines += self._failures()
        if len(self.should_be_zero):
            lines.append(f"coordinates that should be zero: {len(self.should_be_zero)}{_list(self.should_be_zero)}")
        if len(self.should_be_fused):
            lines.append(f"edges that should be fused: {len(self.should_be_fused)}{_list(self.should_be_fused)}")
        return "\n".join(lines)

    def _failures(self) -> list[str]:
        total = sum(self.violations.values())
        if not 0 < total < np.inf:
            return []
        meaning = {
            "fit": "alpha_i = sigmoid(-y_i w_i.x_i)",
            "network": "U_e along w_i - w_j",
            "selection": "||v_i||_inf = 2 lambda2 ||w_i||_1, attained where w_ik != 0",
        }
        shares = [f"{name} ({meaning[name]}) {value / total:.0%}" for name, value in self.violations.items()]
        rows = ", ".join(f"{i} ({self.sample_gaps[i] / total:.0%})" for i in self.worst_samples[:LISTED])
        return [f"violated stationarity: {'; '.join(shares)} of the gap", f"worst samples: {rows}"]


def _list(pairs: IntArray) -> str:
    shown = ", ".join(f"({i}, {k})" for i, k in pairs[:LISTED].tolist())
    return f": {shown}{', ...' if len(pairs) > LISTED else ''}"


def verify(problem: Problem, W: ArrayLike, tol: float = 1e-6, *, time_limit: float | None = None) -> Verdict:
    """Judge a W, whoever made it.

    Parameters
    ----------
    problem : Problem
    W : array-like of shape (N, d)
    tol : float
        W is accepted if J(W) - J* <= tol J(W) is proved.
    time_limit : float, optional
        Seconds for the search of a proof, as in `certify`; what is not proved by then is not accepted.

    Returns
    -------
    Verdict

    Examples
    --------
    >>> p = Problem([[1.0], [-1.0]], [1, -1], [[0, 1]], [1.0], lambda1=0.5, lambda2=1.0)
    >>> v = verify(p, [[0.2], [0.3]])
    >>> v.accepted, v.should_be_fused.tolist()
    (False, [[0, 1]])
    """
    W = check.weight_matrix(W, problem.shape)
    tol = check.real_number(tol, "tol", strict=True)
    best = search(problem, W, time_limit)
    return judge(problem, W, tol, Reference(best.W, best.alpha, best.U))


class Reference(NamedTuple):
    """What W is judged by: the best W known, a dual point, and where they are known already, bounds of J*."""

    W: FloatArray
    alpha: FloatArray
    U: FloatArray
    lower: float = 0.0
    upper: float = np.inf


def judge(problem: Problem, W: FloatArray, tol: float, by: Reference) -> Verdict:
    """The verdict on a finite W that the reference allows; nothing is searched for."""
    proof = certificate(problem, W, by.alpha, by.U)
    data = tuple(getattr(problem, name) for name in checker.PROBLEM)
    with np.errstate(all="ignore"):
        low, high = checker.primal(data, W)
        upper = min(by.upper, checker.primal(data, by.W)[1])
        lower = max(by.lower, checker.dual(data, proof.alpha, proof.U)[0])
    objective = problem.objective(W)
    suboptimality = (max(low - upper, 0.0), high - lower)
    parts = gap_parts(problem, W, proof) if problem.lambda2 > 0 and np.isfinite(objective) else {}
    zero, fused = _excess(problem, W, by.W, proof, max(upper - lower, 0.0))
    return Verdict(
        accepted=bool(suboptimality[1] <= tol * low),
        suboptimality=suboptimality,
        objective=objective,
        tol=tol,
        reference=problem.objective(by.W),
        certificate=proof,
        violations={name: float(part.sum()) for name, part in parts.items()},
        sample_gaps=_by_sample(problem, parts),
        should_be_zero=zero,
        should_be_fused=fused,
        residuals=residuals(problem, W, proof.alpha, proof.U),
    )


def gap_parts(problem: Problem, W: FloatArray, proof: Certificate) -> dict[str, FloatArray]:
    """The terms of the gap J(W) - D: "fit" and "selection" for each sample, "network" for each edge."""
    alpha, U, lambda2 = proof.alpha, proof.U, problem.lambda2
    v = problem.dual_vectors(alpha, U)
    M = np.abs(v).max(axis=1)
    size = np.abs(W).sum(axis=1)
    s = problem.y * problem.scores(W)
    D = problem.incidence @ W
    # (sqrt(l2) ||w||_1 - M / (2 sqrt(l2)))^2 + sum_k (|w_k| M + w_k v_k): the same as above, without cancellation.
    selection = (np.sqrt(lambda2) * size - M / (2.0 * np.sqrt(lambda2))) ** 2
    selection += (np.abs(W) * M[:, None] + W * v).sum(axis=1)
    return {
        "fit": np.maximum(np.logaddexp(0.0, -s) + alpha * s - entropy(alpha), 0.0),
        "network": np.maximum(problem.radii * np.linalg.norm(D, axis=1) - np.einsum("ij,ij->i", U, D), 0.0),
        "selection": np.maximum(selection, 0.0),
    }


def _by_sample(problem: Problem, parts: Mapping[str, FloatArray]) -> FloatArray:
    N = problem.shape[0]
    if not parts:
        return np.zeros(N)
    ends = np.bincount(problem.edges.ravel(), np.repeat(0.5 * parts["network"], 2), minlength=N)
    return np.asarray(parts["fit"] + parts["selection"] + ends)


def _excess(
    problem: Problem, W: FloatArray, best: FloatArray, proof: Certificate, gap: float
) -> tuple[IntArray, IntArray]:
    """Coordinates and edges of W that exceed the proven bound of every optimal W*, the worst first."""
    empty = np.empty((0, 2), dtype=np.int64)
    if problem.lambda2 == 0 or not np.isfinite(gap):
        return empty, empty
    v = np.abs(problem.dual_vectors(proof.alpha, proof.U))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        beyond = np.where(best == 0, np.abs(W) - gap / (v.max(axis=1, keepdims=True) - v), 0.0)
        apart = np.linalg.norm(problem.incidence @ W, axis=1)
        apart -= gap / np.maximum(problem.radii - np.linalg.norm(proof.U, axis=1), 0.0)
    equal = ~(problem.incidence @ best).any(axis=1)
    coordinates = np.argwhere(beyond > 0)
    coordinates = coordinates[np.argsort(-beyond[beyond > 0], kind="stable")]
    edges = np.flatnonzero(equal & (apart > 0))
    return coordinates, problem.edges[edges[np.argsort(-apart[edges], kind="stable")]]
