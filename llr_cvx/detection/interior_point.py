"""An interior-point method for many small problems at once: one row joining a fitted model, for every row.

With bounds t_j on ||w - a_j|| and b_k on |w_k| the problem of a row reads

    min  beta log(1 + e^{w.x}) + sum_j c_j t_j + lambda2 (sum_k b_k)^2   over  ||w - a_j|| <= t_j,  -b_k <= w_k <= b_k.

The multipliers are u_j, with ||u_j|| <= c_j, and p_k, q_k >= 0, with p_k + q_k = theta = 2 lambda2 sum_k b_k. On the
central path all complementarity products agree,

    c_j t_j - u_j.(w - a_j) = p_k (b_k - w_k) = q_k (b_k + w_k) = mu,

and stationarity reads beta alpha x + sum_j u_j + p - q = 0 with alpha = sigmoid(w.x). Each step uses Nesterov and
Todd's scaling of the cones; eliminating everything but w leaves a diagonal matrix plus K + 2 rank-one terms, solved by
Woodbury's formula. Only elementwise operations and sums within a row are used, so the answer for a row is the same to
the last bit whatever other rows are solved beside it.

Rows may have entries of 1e150, and three things keep such a row as accurate as any other. The score z = w.x is carried
along with w, since huge terms cancel in it, and so are b_k - w_k and b_k + w_k, the smaller of which may be lost beside
w_k. Where the curvature of the loss exceeds the rest of w_k's, k being the largest entry, Newton's system has z in
place of w_k (`_System.put_score_for_largest`), since a large rank-one term on a small diagonal would cancel. And z then
follows alpha, which the step changes nearly linearly, rather than the other way round (`_score_after`): z may have to
go from -1e150 to -300 or back.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, logit

from llr_cvx.arrays import FloatArray, IntArray
from llr_cvx.detection.row_problems import RowProblems, dot, norms

#: Share of the distance to the boundary of the cones that a step may go.
BOUNDARY_SHARE = 0.95
#: Smaller alpha are not told from 0.
SMALLEST_ALPHA = 1e-300
#: The loss is steep where its curvature in the largest entry's direction is this many times the rest.
STEEP = 100.0
#: The loss bends between this score and its negative; 1 to 30 serve alike.
BEND = 4.0
#: The share of mu aimed at in the next step, between these: the longer Newton's step alone, the smaller.
CENTRING, CAUTIOUS_CENTRING = (1e-4, 0.8), (0.5, 0.8)
#: mu at the start, as a multiple of J divided by the number of complementarity products. With 0.1, rows with d = 100
#: took hundreds of tiny steps; from 3 to 30 the number of steps is nearly the same.
START_SHARE = 10.0


class Iterate(NamedTuple):
    """Variables of M rows, strictly inside their cones: z = w.x, above = b - w and below = b + w."""

    w: FloatArray
    z: FloatArray
    t: FloatArray
    u: FloatArray
    above: FloatArray
    below: FloatArray
    p: FloatArray
    q: FloatArray
    theta: FloatArray

    def take(self, rows: Any) -> Iterate:
        """The variables of some of the rows."""
        return Iterate(*(array[rows] for array in self))

    def moved(self, step: Iterate, length: FloatArray) -> Iterate:
        """Every variable of row m moved by length[m] times its step."""
        lengths = (length.reshape(-1, *[1] * (array.ndim - 1)) for array in self)
        return Iterate(*(array + a * s for array, a, s in zip(self, lengths, step, strict=True)))


def start(rows: RowProblems, w: FloatArray) -> Iterate:
    """A point near w whose complementarity products all equal mu; only stationarity is left to reach."""
    K, d = rows.anchors.shape[1:]
    J = rows.objective(w)
    z, delta = dot(w, rows.x), w[:, None] - rows.anchors
    mu = START_SHARE * J / (K + 2 * d)
    half = mu[:, None] / (2.0 * rows.radii)
    t = half + np.hypot(half, norms(delta))
    theta = np.maximum(2.0 * rows.lambda2 * np.abs(w).sum(axis=1), np.sqrt(4.0 * rows.lambda2 * d * mu))
    half_b = (mu / theta)[:, None]
    b = half_b + np.hypot(half_b, w)
    above, below = _slacks(w, b, 2.0 * half_b * b)
    theta = 2.0 * rows.lambda2 * b.sum(axis=1)
    p, q = ((0.5 * theta)[:, None] * slack / b for slack in (below, above))
    return Iterate(w, z, t, (rows.radii / t)[:, :, None] * delta, above, below, p, q, theta)


def _slacks(w: FloatArray, b: FloatArray, product: FloatArray) -> tuple[FloatArray, FloatArray]:
    """b - w and b + w, whose product is given: the smaller one would be lost in a difference."""
    larger = b + np.abs(w)
    smaller = product / larger
    return np.where(w > 0.0, smaller, larger), np.where(w > 0.0, larger, smaller)


def _with_score(x: FloatArray, w: FloatArray, k: IntArray, z: FloatArray) -> FloatArray:
    """w with its entry k such that w.x = z."""
    every = np.arange(len(w))
    moved = w.copy()
    moved[every, k] = 0.0
    moved[every, k] = (z - dot(moved, x)) / x[every, k]
    return moved


def step(rows: RowProblems, now: Iterate, centring: tuple[float, float] = CENTRING) -> Iterate:
    """One step of every row: Newton's direction gives the centring, the centred direction the step."""
    system = _System(rows, now)
    newton = system.direction(np.zeros(len(rows.x)))
    share = np.clip((1.0 - np.minimum(system.longest(newton), 1.0)) ** 2, *centring)
    direction = system.direction(share * system.mu)
    low, top = system.alpha_limits()
    length = np.minimum(BOUNDARY_SHARE * system.longest(direction), 1.0)
    moved = now.moved(direction, length * _share_to_bend(now.z, now.z + length * direction.z, low))
    wanted = _score_after(now.z, moved.z, low, top)
    apart = wanted != moved.z
    apart[system.steep] = True
    at = np.flatnonzero(apart)
    if at.size:
        _set_scores(rows, moved, at, system.k[at], wanted[at])
    return moved._replace(z=wanted)


def _share_to_bend(z: FloatArray, linear: FloatArray, low: FloatArray) -> FloatArray:
    """The share of a step from z to `linear` that ends at 0 if the step would leap over the bend of the loss there.

    The model on either side knows nothing of the bend: steps would leap to and fro.
    """
    edge = np.maximum(BEND, -logit(low))
    leaps = (z * linear < 0.0) & (np.minimum(np.abs(z), np.abs(linear)) > edge)
    return np.divide(z, z - linear, out=np.ones_like(z), where=leaps)


def _score_after(z: FloatArray, linear: FloatArray, low: FloatArray, top: FloatArray) -> FloatArray:
    """The score after a step that takes it from z to `linear` by the linear model.

    Where alpha is between low and 1 - low the loss is steep: stationarity then fixes alpha, so the score is that of
    the linear model's alpha. Elsewhere the loss is nearly straight, and the score is that of the linear model.
    """
    edge = logit(low)
    tangent = np.clip(z, edge, -edge)
    alpha = expit(tangent) + expit(tangent) * expit(-tangent) * (linear - tangent)
    wanted = logit(np.clip(alpha, low, 1.0 - low))
    wanted = np.where(alpha <= low, np.minimum(linear, edge), wanted)
    wanted = np.where(alpha >= 1.0 - low, np.maximum(linear, -edge), wanted)
    return np.asarray(np.minimum(np.where(low < 0.5, wanted, linear), logit(top)))


def _set_scores(rows: RowProblems, now: Iterate, at: IntArray, k: IntArray, z: FloatArray) -> None:
    """Give some rows the scores z by their entries k of w; t and b follow, so that the point stays inside its cones."""
    anchors, before, t, product = rows.anchors[at], now.w[at], now.t[at], now.above[at, k] * now.below[at, k]
    w = now.w[at] = _with_score(rows.x[at], before, k, z)
    new = w[np.arange(len(at)), k]
    rho, moved = norms(before[:, None] - anchors), norms(w[:, None] - anchors)
    now.t[at] = np.sqrt((t - rho) * (t + rho) + moved * moved)
    now.above[at, k], now.below[at, k] = _slacks(new, np.sqrt(product + new * new), product)


class _System:
    """Newton's linear system at an iterate, eliminated down to w.

    For a cone with s = (t, delta) and multiplier (c, -u) the scaling matrix is kappa (2 omega omega^T - J) with
    J = diag(1, -I). Since c is fixed, eliminating dt leaves kappa (I - 2 omega_1 omega_1^T / (2 omega_0^2 - 1)).
    """

    def __init__(self, rows: RowProblems, now: Iterate) -> None:
        self.rows, self.now = rows, now
        c, (w, z, t, u, above, below, p, q, theta) = rows.radii, now
        K, d = rows.anchors.shape[1:]
        self.delta = w[:, None] - rows.anchors
        rho, size = norms(self.delta), norms(u)
        self.det_s, self.det_u = (t - rho) * (t + rho), (c - size) * (c + size)
        products = c * t - dot(self.delta, u)
        self.mu = (products.sum(axis=1) + (p * above + q * below).sum(axis=1)) / (K + 2 * d)

        root_s, root_u = np.sqrt(self.det_s), np.sqrt(self.det_u)
        gamma = np.sqrt(0.5 * (1.0 + products / (root_s * root_u)))
        omega_0 = (t / root_s + c / root_u) / (2.0 * gamma)
        self.omega = (self.delta / root_s[:, :, None] + u / root_u[:, :, None]) / (2.0 * gamma)[:, :, None]
        self.kappa = root_u / root_s
        self.curvature_t = self.kappa * (2.0 * omega_0 * omega_0 - 1.0)
        self.cross = -2.0 * self.kappa * omega_0
        self.deficit = 2.0 * self.kappa / (2.0 * omega_0 * omega_0 - 1.0)

        self.P, self.Q = p / above, q / below
        self.PQ = self.P + self.Q
        self.phi = (self.P - self.Q) / self.PQ
        self.stiffness = 1.0 + 2.0 * rows.lambda2 * (1.0 / self.PQ).sum(axis=1)

        alpha = rows.beta * expit(z)
        slope = alpha * expit(-z)
        self.residual = alpha[:, None] * rows.x + u.sum(axis=1) + (p - q)
        self.residual_theta = rows.lambda2 * (above + below).sum(axis=1) - theta
        self.diagonal = 4.0 * self.P * (self.Q / self.PQ) + self.kappa.sum(axis=1)[:, None]
        loss = np.sqrt(slope)[:, None] * rows.x
        penalty = np.sqrt(2.0 * rows.lambda2 / self.stiffness)[:, None] * self.phi
        cones = np.sqrt(self.deficit)[:, :, None] * self.omega
        vectors = np.concatenate([loss[:, None], penalty[:, None], cones], axis=1)
        self.put_score_for_largest(slope, vectors)
        self.solved = vectors / self.diagonal[:, None]
        self.small = _factorised(vectors, self.solved, np.where(np.arange(K + 2) < 2, 1.0, -1.0))

    def put_score_for_largest(self, slope: FloatArray, vectors: FloatArray) -> None:
        """Where the loss is steep, z / x_k becomes the unknown in place of w_k: their diagonal entries change roles."""
        every = np.arange(len(slope))
        self.k, self.largest = self.rows.largest()
        self.rest = self.diagonal[every, self.k].copy()
        curvature = slope * np.abs(self.largest) * np.abs(self.largest)
        self.steep = np.flatnonzero(curvature > STEEP * self.rest)
        at, k = self.steep, self.k[self.steep]
        self.ratios = self.rows.x[at] / self.largest[at, None]
        self.ratios[np.arange(len(at)), k] = 0.0
        self.diagonal[at, k] = curvature[at]
        vectors[at] -= vectors[at, :, k][:, :, None] * self.ratios[:, None]
        root = np.sqrt(self.rest[at])
        vectors[at, 0] = -root[:, None] * self.ratios
        vectors[at, 0, k] = root

    def alpha_limits(self) -> tuple[FloatArray, FloatArray]:
        """The alpha above which the loss is steep, at most 1/2, and twice the one that stationarity allows."""
        size, bound = np.abs(self.largest), 2.0 * (self.now.theta + self.rows.radii.sum(axis=1))
        slope = np.clip(STEEP * self.rest / size / size / self.rows.beta, SMALLEST_ALPHA, 0.25)
        return 2.0 * slope / (1.0 + np.sqrt(1.0 - 4.0 * slope)), bound / np.maximum(bound, self.rows.beta * size)

    def direction(self, target: FloatArray) -> Iterate:
        """The step towards complementarity products equal to `target`, one per row."""
        (_, _, t, u, above, below, p, q, _), lambda2 = self.now, self.rows.lambda2
        r_t = target[:, None] * t / self.det_s - self.rows.radii
        pull = (r_t / self.curvature_t * self.cross)[:, :, None] * self.omega - u
        pull += (target[:, None] / self.det_s)[:, :, None] * self.delta
        r_p, r_q = target[:, None] / above - p, target[:, None] / below - q
        both = (r_p + r_q) / self.PQ
        r_theta = (2.0 * lambda2 * both.sum(axis=1) + self.residual_theta) / self.stiffness
        right = -self.residual - pull.sum(axis=1) - (r_p - r_q + self.phi * (r_theta[:, None] - r_p - r_q))

        at, k = self.steep, self.k[self.steep]
        right[at] -= right[at, k][:, None] * self.ratios
        dw = right / self.diagonal - _combined(_substituted(self.small, dot(self.solved, right[:, None])), self.solved)
        dz = dot(dw, self.rows.x)
        dz[at] = self.largest[at] * dw[at, k]
        dw[at, k] -= dot(self.ratios, dw[at])
        along = dot(self.omega, dw[:, None])
        dt = (r_t - self.cross * along) / self.curvature_t
        du = self.kappa[:, :, None] * dw[:, None] - (self.deficit * along)[:, :, None] * self.omega + pull
        dtheta = r_theta + 2.0 * lambda2 * dot(self.phi, dw) / self.stiffness
        middle = both - dtheta[:, None] / self.PQ
        d_above, d_below = middle - 2.0 * self.Q / self.PQ * dw, middle + 2.0 * self.P / self.PQ * dw
        dp, dq = r_p - self.P * d_above, r_q - self.Q * d_below
        return Iterate(dw, dz, dt, du, d_above, d_below, dp, dq, dtheta)

    def longest(self, step: Iterate) -> FloatArray:
        """How far each row can go along `step` before it leaves a cone."""
        (_, _, t, u, *now, _), (dw, _, dt, du, *changes, _) = self.now, step
        # (t + a dt)^2 - ||delta + a dw||^2 = det_s + 2 a inner + a^2 outer, and the same for c and u.
        inner, outer = t * dt - dot(self.delta, dw[:, None]), dt * dt - dot(dw, dw)[:, None]
        lengths = [_first_root(self.det_s, inner, outer), _first_root(self.det_u, -dot(u, du), -dot(du, du))]
        lengths.extend(map(_to_zero, now, changes))
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
