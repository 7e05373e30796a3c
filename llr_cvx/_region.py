"""Newton steps on the few samples that still hold the gap open, with all others fixed.

J(W) - D(alpha, U) is a sum over samples and edges, and after the first iterations a few samples carry nearly all of
it: those whose edges are short but not fused. More accuracy is needed there and nowhere else, so the same Newton
step is taken on that region alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse import csr_array

from llr_cvx._system import Duals, newton_step
from llr_cvx._validation import FloatArray, IntArray
from llr_cvx.graph import component_labels
from llr_cvx.problem import Problem
from llr_cvx.smoothing import Smoothed, row_dot, smoothed


@dataclass(frozen=True, eq=False)
class Region:
    """Some samples of a problem and all their edges; the far end of an edge that leaves is -1 and fixed."""

    X: FloatArray
    y: FloatArray
    edges: IntArray
    radii: FloatArray
    lambda2: float
    incidence: csr_array
    incidence_T: csr_array
    samples: IntArray
    edge_ids: IntArray

    @property
    def shape(self) -> tuple[int, int]:
        """Samples and features."""
        return self.X.shape[0], self.X.shape[1]

    def degrees(self, values: FloatArray) -> FloatArray:
        """For one value an edge: its sum over the edges at each sample."""
        return np.asarray(abs(self.incidence_T) @ values)

    @classmethod
    def around(cls, problem: Problem, samples: IntArray) -> Region:
        """The region of the given samples."""
        local = np.full(problem.shape[0], -1, dtype=np.int64)
        local[samples] = np.arange(len(samples))
        ends = local[problem.edges]
        edge_ids = np.flatnonzero((ends >= 0).any(axis=1) & (problem.radii > 0))
        B = problem.incidence[edge_ids][:, samples]
        return cls(
            *(problem.X[samples], problem.y[samples], ends[edge_ids], problem.radii[edge_ids], problem.lambda2),
            *(B, B.T.tocsr(), samples, edge_ids),
        )


def refine(problem: Problem, at: Smoothed, duals: Duals, tol: float, max_rounds: int = 8) -> tuple[Smoothed, Duals]:
    """Newton steps on the worst samples until the rest carries most of the gap, or none is left worth it."""
    if problem.lambda2 == 0:
        return at, duals
    N = problem.shape[0]
    W, u, z = at.W, duals.u, duals.z
    for _ in range(max_rounds):
        samples = worst_samples(problem, at, Duals(u, z), tol)
        if not 0 < len(samples) <= N // 5:
            break
        W, u, z = W.copy(), u.copy(), z.copy()
        _step(problem, at, samples, W, u, z)
        at = smoothed(problem, W, at.epsilon)
    return at, Duals(u, z)


def gap_shares(problem: Problem, W: FloatArray, alpha: FloatArray, U: FloatArray) -> FloatArray:
    """What each sample adds to the gap: lambda2 ||w_i||_1^2 + ||v_i||_inf^2 / (4 lambda2) + w_i.v_i >= 0."""
    v = problem.dual_vectors(alpha, U)
    largest, l1 = np.abs(v).max(axis=1), np.abs(W).sum(axis=1)
    if problem.lambda2 == 0:
        return np.asarray(l1 * largest + row_dot(W, v))
    return np.asarray(problem.lambda2 * l1**2 + largest**2 / (4.0 * problem.lambda2) + row_dot(W, v))


def worst_samples(problem: Problem, at: Smoothed, duals: Duals, tol: float) -> IntArray:
    """The fewest samples outside which the gap is below a third of the whole, or of what tol asks for."""
    share = gap_shares(problem, at.W, at.alpha, problem.radii[:, None] * duals.u)
    order = np.argsort(-share)
    outside = share.sum() - np.cumsum(share[order])
    allowed = max(0.3 * share.sum(), 0.3 * tol * at.objective)
    count = 0 if share.sum() <= allowed else int(np.searchsorted(-outside, -allowed)) + 1
    chosen = np.zeros(problem.shape[0], dtype=bool)
    chosen[order[:count]] = True
    short = row_dot(at.d_hat, at.d_hat) < 0.99  # the ends of a short edge move together
    for _ in range(2):
        i, j = problem.edges[short & chosen[problem.edges].any(axis=1)].T
        chosen[i] = chosen[j] = True
    return np.flatnonzero(chosen)


def _step(problem: Problem, at: Smoothed, samples: IntArray, W: FloatArray, u: FloatArray, z: FloatArray) -> None:
    """One Newton step on the region, with its own line search, written into W, u and z."""
    region = Region.around(problem, samples)
    e = region.edge_ids
    here = replace(
        at,
        W=at.W[samples],
        alpha=at.alpha[samples],
        a=at.a[e],
        b=at.b[samples],
        S=at.S[samples],
        d_hat=at.d_hat[e],
        w_hat=at.w_hat[samples],
        gradient=at.gradient[samples],
    )
    stiff = (row_dot(here.d_hat, here.d_hat) < 0.8) & (region.edges >= 0).all(axis=1)
    clusters = component_labels(len(samples), region.edges[stiff])
    dW, duals, _ = newton_step(region, here, Duals(u[e], z[samples]), clusters, rtol=1e-4, max_cg=300)
    slope = float(np.vdot(here.gradient, dW))
    D, dD = here.d_hat * here.a[:, None], region.incidence @ dW
    before = _local_objective(region, here.W, D, at.epsilon)
    for t in (1.0, 0.5, 0.25, 0.125, 0.03):
        value = _local_objective(region, here.W + t * dW, D + t * dD, at.epsilon)
        if value <= before + 1e-4 * t * slope and value <= before:
            W[samples] += t * dW
            break
    u[e], z[samples] = duals.u, duals.z


def _local_objective(region: Region, W: FloatArray, D: FloatArray, epsilon: float) -> float:
    S = np.sqrt(W * W + epsilon**2).sum(axis=1)
    logistic = np.logaddexp(0.0, -region.y * row_dot(region.X, W)).sum()
    return float(logistic + region.radii @ np.sqrt(row_dot(D, D) + epsilon**2) + region.lambda2 * (S @ S))
