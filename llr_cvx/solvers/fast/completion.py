"""The dual point that belongs to a point on a face.

Edges between clusters have U_e = lambda1 omega_e d_e / ||d_e||. Inside a fused cluster U_e is not determined by W:
it has to carry the differences of the v_i, so that at every sample of the cluster

    v_ik = -2 lambda2 ||w||_1 sign(w_k)  on the support,      |v_ik| <= 2 lambda2 ||w||_1  off it,

and ||U_e|| <= lambda1 omega_e. With U and v as unknowns these are two convex sets: v = A U + b, an affine space,
and balls for U with intervals for v. Projecting onto the first is one Laplacian system, onto the second a scaling
and a clipping; Douglas-Rachford iterations find a common point where there is one.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import diags_array

from llr_cvx.arrays import FloatArray, IntArray, into_balls, row_dot
from llr_cvx.proofs.certificate import lower_bound
from llr_cvx.solvers import settings
from llr_cvx.solvers.face import Face
from llr_cvx.solvers.linear.cg import repeated_solver


def complete_dual(face: Face, U: FloatArray, target: float) -> tuple[FloatArray, FloatArray]:
    """(alpha, U) for the face's W, inside clusters starting from the given U; stops once D reaches `target`."""
    p = face.problem
    W = face.W
    alpha = p.alpha(W)
    D = p.incidence @ W
    norms = np.sqrt(row_dot(D, D))
    fused = norms == 0.0
    outer = p.radii[:, None] * np.divide(D, norms[:, None], out=np.zeros_like(D), where=~fused[:, None])
    U = into_balls(np.where(fused[:, None], U, outer), p.radii)
    inside = np.flatnonzero(fused & (p.radii > 0))
    if inside.size:
        U[inside] = _inside_clusters(face, alpha, U, inside, target - lower_bound(p, alpha, U, W))
    return alpha, U


def _inside_clusters(face: Face, alpha: FloatArray, U: FloatArray, inside: IntArray, missing: float) -> FloatArray:
    """The U_e of the edges inside clusters, improved until D has grown by what is missing."""
    p, W = face.problem, face.W
    radii = p.radii[inside]
    rows = np.unique(p.edges[inside])
    B = p.incidence[inside][:, rows].tocsr()
    A = B.T.tocsr()
    best = U_in = U[inside]
    outer = U.copy()
    outer[inside] = 0.0
    b = p.dual_vectors(alpha, outer)[rows]
    level = 2.0 * p.lambda2 * np.abs(W[rows]).sum(axis=1, keepdims=True)
    sign = np.sign(W[rows])
    low, high = np.where(sign < 0, level, -level), np.where(sign > 0, -level, level)
    L = (A @ diags_array(radii) @ B).tocsr()
    clusters = face.clusters[rows]
    mean = (np.bincount(clusters, L.diagonal()) / np.maximum(np.bincount(clusters), 1))[clusters]
    loose = mean * np.minimum(1.0, settings.SMALL_CLUSTER / face.sizes[clusters])
    # Weights of v against U. On the support v is given: it is kept almost exactly, and few rounds are needed.
    tight, given = settings.GIVEN_WEIGHT * loose, sign != 0.0
    weight = np.where(given, tight[:, None], loose[:, None])
    solve_given, solve_free = (
        repeated_solver((L + diags_array(w)).tocsr(), rtol=1e-10, max_iter=200) for w in (tight, loose)
    )

    def loss(U_in: FloatArray) -> float:
        """What these samples take from D."""
        v_max = np.abs(A @ U_in + b).max(axis=1)
        return float(((v_max / (2.0 * np.sqrt(p.lambda2))) ** 2).sum())

    first = least = loss(U_in)
    v, phi = np.clip(A @ U_in + b, low, high), np.zeros_like(b)
    distances: list[float] = []
    rounds = settings.COMPLETION_ROUNDS // (1 if len(rows) <= settings.DENSE else 6)
    for k in range(rounds):
        U_ball, v_clipped = into_balls(U_in, radii), np.clip(v, low, high)
        U_over, v_over = 2.0 * U_ball - U_in, 2.0 * v_clipped - v
        rhs = A @ U_over + b - v_over
        phi = np.where(given, solve_given(rhs, phi), solve_free(rhs, phi))  # all of a cluster has the same support
        U_new, v_new = U_over - radii[:, None] * (B @ phi), v_over + weight * phi
        dU, dv = U_new - U_ball, v_new - v_clipped
        U_in, v = U_in + dU, v + dv
        candidate = into_balls(U_new, radii)
        value = loss(candidate)
        if value < least:
            best, least = candidate, value
        distances.append(float(np.sum(row_dot(dU, dU) / radii) + np.sum(dv**2 / weight)) ** 0.5)
        stuck = k % 25 == 0 and k > 0 and distances[k] > max(0.9 * distances[k - 25], settings.MAX_APART * distances[0])
        if first - least >= missing or stuck:
            break
    return best
