"""The dual point that belongs to a point on a face.

Edges between clusters have U_e = lambda1 omega_e d_e / ||d_e||. Inside a fused cluster U_e is not determined by W:
it has to carry the differences of the v_i, so that at every sample of the cluster

    v_ik = -2 lambda2 ||w||_1 sign(w_k)  on the support,      |v_ik| <= 2 lambda2 ||w||_1  off it,

and ||U_e|| <= lambda1 omega_e. These are two convex sets, flows and balls. Projecting onto the first is one
Laplacian system, onto the second a scaling; Douglas-Rachford iterations find a common point, where there is one,
in a few rounds.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import diags_array

from llr_cvx._cg import Operator, conjugate_gradients
from llr_cvx._face import Face
from llr_cvx._validation import FloatArray
from llr_cvx.certificate import lower_bound
from llr_cvx.smoothing import row_dot


def complete_dual(face: Face, U: FloatArray, target: float, max_rounds: int = 60) -> tuple[FloatArray, FloatArray]:
    """(alpha, U) for the face's W, inside clusters starting from the given U; stops once D reaches `target`."""
    p = face.problem
    W = face.W
    alpha = p.alpha(W)
    D = p.incidence @ W
    norms = np.sqrt(row_dot(D, D))
    inside = norms == 0.0
    outer = p.radii[:, None] * np.divide(D, norms[:, None], out=np.zeros_like(D), where=~inside[:, None])
    U = into_balls(np.where(inside[:, None], U, outer), p.radii)
    if not (inside & (p.radii > 0)).any():
        return alpha, U
    onto_flows = _projection_onto_flows(face, alpha, inside)
    best_U, best, first = U, lower_bound(p, alpha, U, W), np.inf
    point = U
    for k in range(max_rounds):
        ball = into_balls(point, p.radii)
        flow = onto_flows(2.0 * ball - point)
        point = point + flow - ball
        candidate = into_balls(flow, p.radii)
        value = lower_bound(p, alpha, candidate, W)
        if value > best:
            best_U, best = candidate, value
        if best >= target:
            break
        if k % 10 == 0:  # give up where ten rounds do not halve what is missing: the face is wrong
            if target - best > 0.5 * first:
                break
            first = target - best
    return alpha, best_U


def into_balls(U: FloatArray, radii: FloatArray) -> FloatArray:
    """Scale each U_e into its ball."""
    norms = np.sqrt(row_dot(U, U))
    return U * np.divide(radii, norms, out=np.ones_like(norms), where=norms > radii)[:, None]


def _projection_onto_flows(face: Face, alpha: FloatArray, inside: NDArray[np.bool_]) -> Operator:
    """U -> the nearest U, in the norm weighted by 1/radius, whose v satisfies the conditions of each cluster."""
    p = face.problem
    conductance = np.where(inside, p.radii, 0.0)
    L = (p.incidence_T @ diags_array(conductance) @ p.incidence).tocsr()
    diagonal = L.diagonal()
    member = (diagonal > 0)[:, None]
    inverse = np.divide(1.0, diagonal, out=np.zeros_like(diagonal), where=diagonal > 0)[:, None]

    def project(U: FloatArray) -> FloatArray:
        v = p.dual_vectors(alpha, U)
        residual = np.where(member, _wanted(face, v) - v, 0.0)
        phi, _ = conjugate_gradients(lambda P: np.asarray(L @ P), lambda R: inverse * R, residual, 1e-10, 200)
        return np.asarray(U + conductance[:, None] * (p.incidence @ phi))

    return project


def _wanted(face: Face, v: FloatArray) -> FloatArray:
    """The nearest v with the same sum over each cluster that satisfies the conditions there.

    On the support that is the mean. Off it, it is clip(v + shift) with one shift for each cluster and feature,
    found by Newton's method between bounds: the mean of the clipped values grows with the shift.
    """
    big = np.flatnonzero(face.sizes > 1)
    rows = np.argsort(face.clusters, kind="stable")
    rows = rows[face.sizes[face.clusters[rows]] > 1]
    c = np.searchsorted(big, face.clusters[rows])
    starts = np.flatnonzero(np.diff(c, prepend=-1))

    def average(values: FloatArray) -> FloatArray:
        return np.asarray(np.add.reduceat(values, starts, axis=0) / face.sizes[big, None])

    inner, support = v[rows], face.w[big] != 0.0
    mean = average(inner)
    level = (2.0 * face.problem.lambda2 * np.abs(face.w[big]).sum(axis=1))[:, None]
    bound = level[c]
    spread = ~support & (np.abs(mean) < level)  # elsewhere every member gets the mean
    low = np.broadcast_to(-2.0 * (np.abs(inner).max(initial=0.0) + level.max(initial=0.0)), mean.shape)
    high, shift = -low, np.zeros_like(mean)
    for _ in range(60):
        moved = inner + shift[c]
        inside = np.abs(moved) < bound
        clipped = np.clip(moved, -bound, bound)
        missing = np.where(spread, mean - average(clipped), 0.0)
        if np.all(np.abs(missing) <= 1e-12 * level):
            break
        low, high = np.where(missing > 0, shift, low), np.where(missing < 0, shift, high)
        slope = average(inside.astype(float))
        newton = shift + np.divide(missing, slope, out=np.full_like(mean, np.inf), where=slope > 0)
        shift = np.where((low < newton) & (newton < high), newton, 0.5 * (low + high))
    wanted = v.copy()
    wanted[rows] = np.where(spread[c], clipped + missing[c], mean[c])
    return wanted
