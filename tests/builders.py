"""Seeded problems, and the objective and dual written once more, slowly, to check the package against."""

from __future__ import annotations

from fractions import Fraction
from functools import cache

import numpy as np

import llr_cvx as llr
from llr_cvx import checker
from llr_cvx.solution import Solution
from llr_cvx.solvers.run import Step
from llr_cvx.solvers.smoothing import smoothed_objective


def random_problem(
    seed: int, N: int = 24, d: int = 3, lambda1: float = 0.1, lambda2: float = 1.0, **graph: object
) -> llr.Problem:
    """The paper's synthetic data in small: a tenth of the rows are outliers."""
    n_outlier = max(1, N // 10)
    n_test_inlier = N // 3
    sizes = (N - n_test_inlier - n_outlier, n_test_inlier, n_outlier)
    X_inlier, X_test, _ = llr.make_synthetic(d, seed, *sizes)
    return llr.Problem.from_samples(X_inlier, X_test, lambda1, lambda2, **graph)


# (seed, N, d, lambda1, lambda2): from no fused edge to all fused, from one feature to twelve.
GRID = [
    (0, 12, 1, 0.01, 0.1),
    (1, 12, 2, 10.0, 1.0),
    (2, 16, 3, 1e-4, 1.0),
    (3, 16, 3, 0.1, 0.01),
    (4, 20, 4, 0.3, 0.1),
    (5, 20, 1, 1.0, 1.0),
    (6, 24, 3, 0.03, 10.0),
    (7, 24, 3, 0.1, 1.0),
    (8, 30, 5, 0.001, 0.1),
    (9, 30, 5, 0.3, 0.01),
    (10, 36, 6, 3.0, 0.1),
    (11, 36, 2, 0.1, 0.1),
    (12, 40, 5, 1.0, 0.1),
    (13, 40, 12, 0.03, 0.3),
    (14, 48, 4, 0.3, 0.3),
    (15, 50, 8, 1.0, 1.0),
    (16, 60, 6, 10.0, 1.0),
    (17, 60, 3, 0.01, 0.01),
    (18, 64, 6, 0.3, 0.1),
    (19, 70, 2, 0.2, 0.1),
    (20, 80, 12, 0.05, 1.0),
    (21, 80, 4, 2.0, 0.3),
]


@cache
def solved(case: tuple[int, int, int, float, float]) -> Solution:
    """Clarabel's answer to a case of GRID, computed once a process."""
    return llr.solve_exact(random_problem(*case))


def slow_objective(p: llr.Problem, W: np.ndarray) -> float:
    """Eq. (5), term by term."""
    J = 0.0
    for x, y, w in zip(p.X, p.y, W, strict=True):
        J += np.logaddexp(0.0, -y * sum(a * b for a, b in zip(w, x, strict=True)))
        J += p.lambda2 * sum(abs(a) for a in w) ** 2
    for (i, j), omega in zip(p.edges, p.weights, strict=True):
        J += p.lambda1 * omega * sum((a - b) ** 2 for a, b in zip(W[i], W[j], strict=True)) ** 0.5
    return float(J)


def slow_dual_vectors(p: llr.Problem, alpha: np.ndarray, U: np.ndarray) -> np.ndarray:
    """v_i = -alpha_i y_i x_i + sum_{e=(i,j)} U_e - sum_{e=(j,i)} U_e."""
    v = -(alpha * p.y)[:, None] * p.X
    for (i, j), u in zip(p.edges, U, strict=True):
        v[i] += u
        v[j] -= u
    return v


def entropy_of(alpha: float) -> float:
    """H(alpha) of one number."""
    return float(-sum(a * np.log(a) for a in (alpha, 1.0 - alpha) if a > 0.0))


def slow_dual(p: llr.Problem, alpha: np.ndarray, U: np.ndarray) -> float:
    """D(alpha, U), term by term."""
    inner = alpha[(alpha > 0) & (alpha < 1)]
    entropy = -(inner * np.log(inner) + (1 - inner) * np.log1p(-inner)).sum()
    v = slow_dual_vectors(p, alpha, U)
    return float(entropy - (np.abs(v).max(axis=1) ** 2).sum() / (4 * p.lambda2))


def is_dual_feasible(p: llr.Problem, alpha: np.ndarray, U: np.ndarray) -> bool:
    """alpha in [0, 1] and every U_e in its ball, without any tolerance."""
    inside = np.linalg.norm(U, axis=1) <= p.lambda1 * p.weights
    return bool(np.all((alpha >= 0) & (alpha <= 1)) and np.all(inside))


def is_exactly_feasible(p: llr.Problem, alpha: np.ndarray, U: np.ndarray) -> bool:
    """The dual constraints in rational arithmetic, without any tolerance."""
    inside = all(
        sum(Fraction(x) ** 2 for x in u) <= (Fraction(p.lambda1) * Fraction(w)) ** 2
        for u, w in zip(U.tolist(), p.weights.tolist(), strict=True)
    )
    return inside and bool(np.all((alpha >= 0) & (alpha <= 1)))


def fused_share(p: llr.Problem, W: np.ndarray) -> float:
    """Share of the edges along which W is constant to a millionth of its largest entry."""
    D = np.linalg.norm(W[p.edges[:, 0]] - W[p.edges[:, 1]], axis=1)
    return float(np.mean(1e-5 * np.abs(W).max() >= D))


def recomputed(p: llr.Problem, steps: list[Step]) -> dict[str, np.ndarray]:
    """What a trace should say of the iterates that a callback was given: J, J_epsilon, and the smallest J so far."""
    J = np.array([p.objective(step.W) for step in steps])
    J_epsilon = [smoothed_objective(p, step.W, step.epsilon) if step.phase == "irls" else np.nan for step in steps]
    return {"objective": J, "smoothed_objective": np.array(J_epsilon), "best": np.minimum.accumulate(J)}


def contradictions(s: Solution, steps: list[Step]) -> list[str]:
    """The columns of a trace that the iterates contradict, to 1e-12; `dual` if the bound falls or lies above J."""
    assert s.trace is not None
    true = recomputed(s.problem, steps)
    wrong = [k for k, v in true.items() if not np.allclose(getattr(s.trace, k), v, rtol=1e-12, atol=0, equal_nan=True)]
    dual = s.trace.dual
    if np.any(np.diff(dual) < 0) or np.any(dual > true["best"] * (1.0 + 1e-12)):
        wrong.append("dual")
    return wrong


def proved(s: Solution, tol: float) -> bool:
    """Whether the checker, which imports nothing of the package, confirms W and its dual point to tol."""
    p, c = s.problem, s.certificate
    problem = {name: np.asarray(getattr(p, name), dtype=float) for name in checker.PROBLEM}
    claim = {"W": s.W, "alpha": c.alpha, "U": c.U, "primal": np.asarray(s.objective), "dual": np.asarray(c.dual)}
    return bool(checker.check(problem, claim, tol)["confirmed"])
