"""An interior-point method for many small problems at once: one row joining a fitted model, for every row.

With bounds t_j on ||w - a_j|| and b_k on |w_k| the problem of a row reads

    min  log(1 + e^{w.x}) + sum_j c_j t_j + lambda2 (sum_k b_k)^2    over  ||w - a_j|| <= t_j,  -b_k <= w_k <= b_k.

The multipliers are u_j, with ||u_j|| <= c_j, and p_k, q_k >= 0, with p_k + q_k = theta = 2 lambda2 sum_k b_k. On the
central path all complementarity products agree,

    c_j t_j - u_j.(w - a_j) = p_k (b_k - w_k) = q_k (b_k + w_k) = mu,

and stationarity reads alpha x + sum_j u_j + p - q = 0 with alpha = sigmoid(w.x), which is linearised as
log(alpha / (1 - alpha)) = w.x: Newton's method then also copes with scores far from those of the optimum. Each step
uses Nesterov and Todd's scaling of the cones; eliminating everything but w leaves a diagonal matrix plus K + 2
rank-one terms, solved by Woodbury's formula. Only elementwise operations and sums within a row are used, so the
answer for a row is the same to the last bit whatever other rows are solved beside it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, logit

from llr_cvx.arrays import FloatArray
from llr_cvx.proofs.certificate import entropy

#: Share of the distance to the boundary of the cones that a step may go.
BOUNDARY_SHARE = 0.95
#: alpha starts inside the first of these intervals, and stays inside the second so that its logit is finite.
START_ALPHA, SAFE_ALPHA = (1e-3, 1.0 - 1e-3), (1e-300, 1.0 - 1e-16)
#: The share of mu aimed at in the next step, between these: the longer Newton's step alone, the smaller.
CENTRING, CAUTIOUS_CENTRING = (1e-4, 0.8), (0.5, 0.8)
#: mu at the start, as a share of J divided by the number of complementarity products.
START_SHARE = 0.1


class RowProblems(NamedTuple):
    """M problems: x (M, d), anchors a_j (M, K, d), radii c_j > 0 (M, K) and lambda2 > 0 (M,)."""

    x: FloatArray
    anchors: FloatArray
    radii: FloatArray
    lambda2: FloatArray

    def take(self, rows: Any) -> RowProblems:
        """The problems of some of the rows."""
        return RowProblems(*(array[rows] for array in self))

    def objective(self, w: FloatArray) -> FloatArray:
        """J of each row at w."""
        coupling = dot(self.radii, norms(w[:, None] - self.anchors))
        return np.asarray(np.logaddexp(0.0, dot(w, self.x)) + coupling + self.lambda2 * np.abs(w).sum(axis=1) ** 2)


class Iterate(NamedTuple):
    """Primal and dual variables of M rows, strictly inside their cones, theta, and alpha in (0, 1)."""

    w: FloatArray
    t: FloatArray
    u: FloatArray
    b: FloatArray
    p: FloatArray
    q: FloatArray
    theta: FloatArray
    alpha: FloatArray

    def take(self, rows: Any) -> Iterate:
        """The variables of some of the rows."""
        return Iterate(*(array[rows] for array in self))

    def moved(self, step: Iterate, length: FloatArray) -> Iterate:
        """Every variable of row m moved by length[m] times its step."""
        lengths = (length.reshape(-1, *[1] * (array.ndim - 1)) for array in self)
        return Iterate(*(array + a * s for array, a, s in zip(self, lengths, step, strict=True)))


def dot(a: FloatArray, b: FloatArray) -> FloatArray:
    """Inner products along the last axis."""
    return np.asarray((a * b).sum(axis=-1))


def norms(a: FloatArray) -> FloatArray:
    """Euclidean norms along the last axis."""
    return np.asarray(np.sqrt((a * a).sum(axis=-1)))


def start(rows: RowProblems, w: FloatArray) -> Iterate:
    """The point above w whose complementarity products all equal mu; only stationarity is left to reach."""
    K, d = rows.anchors.shape[1:]
    mu = START_SHARE * rows.objective(w) / (K + 2 * d)
    delta = w[:, None] - rows.anchors
    half = mu[:, None] / (2.0 * rows.radii)
    t = half + np.sqrt(half * half + (delta * delta).sum(axis=2))
    theta = np.maximum(2.0 * rows.lambda2 * np.abs(w).sum(axis=1), np.sqrt(4.0 * rows.lambda2 * d * mu))
    half_b = (mu / theta)[:, None]
    b = half_b + np.sqrt(half_b * half_b + w * w)
    theta = 2.0 * rows.lambda2 * b.sum(axis=1)
    p, q = 0.5 * theta[:, None] * (1.0 + w / b), 0.5 * theta[:, None] * (1.0 - w / b)
    alpha = np.clip(expit(dot(w, rows.x)), *START_ALPHA)
    return Iterate(w, t, (rows.radii / t)[:, :, None] * delta, b, p, q, theta, alpha)


def step(rows: RowProblems, now: Iterate, centring: tuple[float, float] = CENTRING) -> Iterate:
    """One step of every row: Newton's direction gives the centring, the centred direction the step."""
    system = _System(rows, now)
    newton = system.direction(np.zeros(len(rows.x)))
    share = np.clip((1.0 - np.minimum(system.longest(newton), 1.0)) ** 2, *centring)
    direction = system.direction(share * system.mu)
    moved = now.moved(direction, np.minimum(BOUNDARY_SHARE * system.longest(direction), 1.0))
    # alpha, which may have to fall from 1/2 to e^-1000, keeps its own pace and does not hold up the others.
    alpha, change = now.alpha, direction.alpha
    length = np.minimum(BOUNDARY_SHARE * np.minimum(_to_zero(alpha, change), _to_zero(1.0 - alpha, -change)), 1.0)
    return moved._replace(alpha=np.clip(alpha + length * change, *SAFE_ALPHA))


class _System:
    """Newton's linear system at an iterate, eliminated down to w.

    For a cone with s = (t, delta) and multiplier (c, -u) the scaling matrix is kappa (2 omega omega^T - J) with
    J = diag(1, -I). Since c is fixed, eliminating dt leaves kappa (I - 2 omega_1 omega_1^T / (2 omega_0^2 - 1)).
    """

    def __init__(self, rows: RowProblems, now: Iterate) -> None:
        self.rows, self.now = rows, now
        c, (w, t, u, b, p, q, theta, alpha) = rows.radii, now
        K, d = rows.anchors.shape[1:]
        self.delta = w[:, None] - rows.anchors
        rho, size = norms(self.delta), norms(u)
        self.det_s, self.det_u = (t - rho) * (t + rho), (c - size) * (c + size)
        products = c * t - dot(self.delta, u)
        z = dot(w, rows.x)
        mismatch = np.logaddexp(0.0, z) - alpha * z - entropy(alpha)  # >= 0, and 0 where alpha = sigmoid(z)
        total = products.sum(axis=1) + (p * (b - w) + q * (b + w)).sum(axis=1) + np.maximum(mismatch, 0.0)
        self.mu = total / (K + 2 * d + 1)

        root_s, root_u = np.sqrt(self.det_s), np.sqrt(self.det_u)
        gamma = np.sqrt(0.5 * (1.0 + products / (root_s * root_u)))
        omega_0 = (t / root_s + c / root_u) / (2.0 * gamma)
        self.omega = (self.delta / root_s[:, :, None] + u / root_u[:, :, None]) / (2.0 * gamma)[:, :, None]
        self.kappa = root_u / root_s
        self.curvature_t = self.kappa * (2.0 * omega_0 * omega_0 - 1.0)
        self.cross = -2.0 * self.kappa * omega_0
        self.deficit = 2.0 * self.kappa / (2.0 * omega_0 * omega_0 - 1.0)

        self.P, self.Q = p / (b - w), q / (b + w)
        self.PQ = self.P + self.Q
        self.phi = (self.P - self.Q) / self.PQ
        self.stiffness = 1.0 + 2.0 * rows.lambda2 * (1.0 / self.PQ).sum(axis=1)

        self.slope = alpha * (1.0 - alpha)
        self.residual_alpha = self.slope * (z - logit(alpha))
        self.residual = (alpha + self.residual_alpha)[:, None] * rows.x + u.sum(axis=1) + (p - q)
        self.residual_theta = 2.0 * rows.lambda2 * b.sum(axis=1) - theta
        self.diagonal = 4.0 * self.P * self.Q / self.PQ + self.kappa.sum(axis=1)[:, None]
        loss = np.sqrt(self.slope)[:, None] * rows.x
        penalty = np.sqrt(2.0 * rows.lambda2 / self.stiffness)[:, None] * self.phi
        cones = np.sqrt(self.deficit)[:, :, None] * self.omega
        vectors = np.concatenate([loss[:, None], penalty[:, None], cones], axis=1)
        self.solved = vectors / self.diagonal[:, None]
        self.small = _factorised(vectors, self.solved, np.where(np.arange(K + 2) < 2, 1.0, -1.0))

    def direction(self, target: FloatArray) -> Iterate:
        """The step towards complementarity products equal to `target`, one per row."""
        (w, t, u, b, p, q, *_), lambda2 = self.now, self.rows.lambda2
        r_t = target[:, None] * t / self.det_s - self.rows.radii
        pull = (r_t / self.curvature_t * self.cross)[:, :, None] * self.omega - u
        pull += (target[:, None] / self.det_s)[:, :, None] * self.delta
        r_p, r_q = target[:, None] / (b - w) - p, target[:, None] / (b + w) - q
        both = (r_p + r_q) / self.PQ
        r_theta = (2.0 * lambda2 * both.sum(axis=1) + self.residual_theta) / self.stiffness
        right = -self.residual - pull.sum(axis=1) - (r_p - r_q + self.phi * (r_theta[:, None] - r_p - r_q))

        dw = right / self.diagonal - _combined(_substituted(self.small, dot(self.solved, right[:, None])), self.solved)
        along = dot(self.omega, dw[:, None])
        dt = (r_t - self.cross * along) / self.curvature_t
        du = self.kappa[:, :, None] * dw[:, None] - (self.deficit * along)[:, :, None] * self.omega + pull
        dtheta = r_theta + 2.0 * lambda2 * dot(self.phi, dw) / self.stiffness
        db = both + self.phi * dw - dtheta[:, None] / self.PQ
        dalpha = self.slope * dot(dw, self.rows.x) + self.residual_alpha
        return Iterate(dw, dt, du, db, r_p - self.P * (db - dw), r_q - self.Q * (db + dw), dtheta, dalpha)

    def longest(self, step: Iterate) -> FloatArray:
        """How far each row can go along `step` before it leaves a cone."""
        (w, t, u, b, p, q, *_), (dw, dt, du, db, dp, dq, *_) = self.now, step
        # (t + a dt)^2 - ||delta + a dw||^2 = det_s + 2 a inner + a^2 outer, and the same for c and u.
        inner, outer = t * dt - dot(self.delta, dw[:, None]), dt * dt - dot(dw, dw)[:, None]
        lengths = [_first_root(self.det_s, inner, outer), _first_root(self.det_u, -dot(u, du), -dot(du, du))]
        for value, change in ((b - w, db - dw), (b + w, db + dw), (p, dp), (q, dq)):
            lengths.append(_to_zero(value, change))
        return np.asarray(np.concatenate(lengths, axis=1).min(axis=1))


def _to_zero(value: FloatArray, change: FloatArray) -> FloatArray:
    """The a > 0 with value + a change = 0, or inf; the value is positive."""
    return np.divide(-value, change, out=np.full_like(value, np.inf), where=change < 0.0)


def _first_root(constant: FloatArray, half_linear: FloatArray, quadratic: FloatArray) -> FloatArray:
    """The smallest a > 0 with constant + 2 a half_linear + a^2 quadratic = 0, or inf; the constant is positive."""
    discriminant = half_linear * half_linear - quadratic * constant
    divisor = np.sqrt(np.maximum(discriminant, 0.0)) - half_linear
    crosses = (discriminant >= 0.0) & (divisor > 0.0)
    return np.divide(constant, divisor, out=np.full_like(constant, np.inf), where=crosses)


def _factorised(vectors: FloatArray, solved: FloatArray, signs: FloatArray) -> list[list[FloatArray]]:
    """L D L^T of diag(signs) + vectors solved^T: row i holds D_i and then the multipliers below it.

    The matrix is quasi-definite (the terms with sign -1 are bounded by the diagonal), so it needs no pivoting.
    """
    R = len(signs)
    G = [[dot(solved[:, i], vectors[:, j]) for j in range(i, R)] for i in range(R)]
    factors = []
    for i in range(R):
        pivot = G[i][0] + signs[i]
        multipliers = [G[i][j - i] / pivot for j in range(i + 1, R)]
        for k in range(i + 1, R):
            for j in range(k, R):
                G[k][j - k] = G[k][j - k] - multipliers[k - i - 1] * G[i][j - i]
        factors.append([pivot, *multipliers])
    return factors


def _substituted(factors: list[list[FloatArray]], right: FloatArray) -> list[FloatArray]:
    """The solution of L D L^T y = right."""
    R = len(factors)
    y = [right[:, i] for i in range(R)]
    for i in range(R):
        for k in range(i + 1, R):
            y[k] = y[k] - factors[i][k - i] * y[i]
    for i in reversed(range(R)):
        y[i] = y[i] / factors[i][0]
        for k in range(i + 1, R):
            y[i] = y[i] - factors[i][k - i] * y[k]
    return y


def _combined(y: list[FloatArray], vectors: FloatArray) -> FloatArray:
    """sum_r y_r vectors_r for each row."""
    total = y[0][:, None] * vectors[:, 0]
    for r in range(1, len(y)):
        total = total + y[r][:, None] * vectors[:, r]
    return np.asarray(total)
