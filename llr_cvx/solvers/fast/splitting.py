"""Douglas-Rachford splitting of the dual: from a solution nearby to a proof, in rounds without a Newton system.

With F_i(w) = log(1 + exp(-y_i w.x_i)) + lambda2 ||w||_1^2 and r_e = lambda1 omega_e the dual of Eq. (5) is

    min over U and V    sum_i F_i*(-V_i)    with ||U_e|| <= r_e    and    V = B^T U.

The sum and the balls fall apart into samples and edges; what remains is a linear space. A round goes to the one and
then to the other, in a metric that stays the same:

    U_e = z_e, shortened to length r_e          w_i = argmin F_i(w) + gamma rho_i / 2 ||w + z_i / (gamma rho_i)||^2
                                                V_i = z_i + gamma rho_i w_i
    phi = (B^T diag(r) B + diag(rho))^-1 (B^T (2 U - z) - (2 V - z))
    z_e += RELAX (U_e - z_e - r_e (B phi)_e)    z_i += RELAX (V_i - z_i + rho_i phi_i).

The matrix belongs to the graph: one inverse serves a whole path. w_i is exactly sparse, edges with ||z_e|| <= r_e
fuse, and U lies in its balls, so that every round offers a W, rounded to clusters, and a dual point. Single
precision halves the time of a round and is enough for gaps down to 1e-7; proofs are in double precision. It is the
alternating direction method of multipliers for D = B W, P = W (Eckstein and Bertsekas, 1992).

The samples' part, for s_i = gamma rho_i and t_i = 2 lambda2 / s_i: w_i = shrink((alpha_i y_i x_i - z_i) / s_i) with
alpha_i = sigmoid(-y_i w_i.x_i), where shrink takes t_i ||w_i||_1 off every |entry|, but not more than it has. The two
unknown numbers, ||w_i||_1 and alpha_i, change little from round to round: Newton steps go on from the round before.
"""

from __future__ import annotations

from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from scipy.sparse import csr_array, diags_array
from scipy.special import expit

from llr_cvx.arrays import BoolArray, FloatArray, IntArray, into_balls, row_dot
from llr_cvx.graph import Graph
from llr_cvx.problem import Problem
from llr_cvx.solvers import settings
from llr_cvx.solvers.linear.cg import Guessed, repeated_solver
from llr_cvx.solvers.rounding import fused_rows
from llr_cvx.solvers.run import Best, Iterate

Precision = type[Any]  # np.float32 or np.float64


def minimisers(
    yX: FloatArray, two_lambda2: float, z: FloatArray, s: FloatArray, alpha: FloatArray, l1: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """w_i, ||w_i||_1, sigma_i = sigmoid(-y_i w_i.x_i) and d(alpha_i - sigma_i) / d alpha_i for given alpha_i.

    By Newton steps from a guess of ||w_i||_1; s is a column.
    """
    target = alpha[:, None] * yX
    target -= z
    target /= s
    size, t, one = np.abs(target), two_lambda2 / s[:, 0], np.ones_like(yX[0])
    rounding = 10.0 * float(np.finfo(yX.dtype).eps)
    for _ in range(settings.L1_STEPS):
        left = np.maximum(size - (t * l1)[:, None], 0.0)
        n = np.sign(left) @ one
        before, l1 = l1, (left @ one + n * t * l1) / (1.0 + t * n)
        if np.all(np.abs(l1 - before) <= rounding * l1):
            break
    W = np.copysign(np.maximum(size - (t * l1)[:, None], 0.0), target)
    sigma: FloatArray = expit(-row_dot(yX, W))
    sign = np.sign(W)
    on = np.abs(sign)
    x, n = yX * on, on @ one
    gain = (row_dot(x, x) - t * row_dot(x, sign) ** 2 / (1.0 + t * n)) / s[:, 0]  # d(y_i w_i.x_i) / d alpha_i
    return W, l1, sigma, 1.0 + sigma * (1.0 - sigma) * gain


class Samples:
    """w_i and sigma_i, and the alpha_i and ||w_i||_1 to go on from."""

    def __init__(self, problem: Problem, W: FloatArray, dtype: Precision) -> None:
        self.yX, self.two_lambda2 = (problem.y[:, None] * problem.X).astype(dtype), 2.0 * problem.lambda2
        self.alpha, self.l1 = problem.alpha(W).astype(dtype), np.abs(W).sum(axis=1).astype(dtype)

    def minimise(self, z: FloatArray, s: FloatArray) -> None:
        """w_i for z_i and s_i, and the next alpha_i: one Newton step for the root of alpha_i - sigma_i."""
        found = minimisers(self.yX, self.two_lambda2, z, s, self.alpha, self.l1)
        coarse = np.flatnonzero(np.abs(found[2] - self.alpha) > settings.COARSE_ALPHA)
        if coarse.size:
            self._bracket(coarse, z, s)
            found = minimisers(self.yX, self.two_lambda2, z, s, self.alpha, self.l1)
        self.W, self.l1, self.sigma, slope = found
        self.alpha = self.alpha + (self.sigma - self.alpha) / slope

    def _bracket(self, rows: IntArray, z: FloatArray, s: FloatArray) -> None:
        """The roots alpha_i of some samples, by Newton steps inside an interval that holds them, or its middle."""
        yX, z, s, alpha, l1 = self.yX[rows], z[rows], s[rows], self.alpha[rows], self.l1[rows]
        low, high = np.zeros_like(alpha), np.ones_like(alpha)
        for _ in range(settings.MAX_BISECTIONS):
            _, l1, sigma, slope = minimisers(yX, self.two_lambda2, z, s, alpha, l1)
            error = sigma - alpha
            if np.abs(error).max() <= 0.01 * settings.COARSE_ALPHA:
                break
            low, high = np.where(error > 0.0, alpha, low), np.where(error > 0.0, high, alpha)
            newton = alpha + error / slope
            alpha = np.where((low < newton) & (newton < high), newton, 0.5 * (low + high))
        self.alpha[rows], self.l1[rows] = alpha, l1


def applies(problem: Problem) -> bool:
    """Whether there are edges, both penalties, and numbers whose squares and ratios can be computed."""
    sizes = [problem.lambda1, problem.lambda2, np.abs(problem.X).max(), problem.weights.max(initial=0.0)]
    return bool(min(sizes) > 1e-6 and max(sizes) < 1e6)


TINY = 1e-30  # keeps quotients finite in single precision


class Metric(NamedTuple):
    """What the rounds of all problems on one graph share; phi is then lambda1 times the one above."""

    rho: FloatArray  # for lambda1 = 1
    flow: csr_array  # diag(omega) B
    gather: csr_array  # B^T
    solve: Guessed  # (right-hand side, guess) -> phi


_METRICS: WeakKeyDictionary[Graph, dict[Precision, Metric]] = WeakKeyDictionary()


def metric(problem: Problem, dtype: Precision) -> Metric:
    """Made once for a graph, and kept while the graph lives."""
    of_graph = _METRICS.setdefault(problem.graph, {})
    if dtype not in of_graph:
        flow, gather = (diags_array(problem.weights) @ problem.incidence).tocsr(), problem.incidence_T
        L = (gather @ flow).tocsr()
        degree = L.diagonal()
        rho = settings.RHO_SHARE * np.maximum(degree, 1e-3 * degree.mean())  # an isolated sample has no edge to go by
        solve = repeated_solver((L + diags_array(rho)).tocsr().astype(dtype), rtol=0.0, max_iter=settings.INNER_CG)
        of_graph[dtype] = Metric(rho.astype(dtype)[:, None], flow.astype(dtype), gather.astype(dtype), solve)
    return of_graph[dtype]


class Pair(NamedTuple):
    """A dual point (U, V), and the differences and weights (D, W) that pull at it."""

    U: FloatArray
    V: FloatArray
    D: FloatArray
    W: FloatArray


class Rounds:
    """z and gamma, and what was found from them: U - z, ||z_e||, W and sigma_i = sigmoid(-y_i w_i.x_i)."""

    def __init__(self, problem: Problem, W: FloatArray, U: FloatArray, dtype: Precision = np.float32) -> None:
        self.problem, self.metric = problem, metric(problem, dtype)
        radii, coupled = problem.radii, problem.radii > settings.NEGLIGIBLE_EDGE * problem.radii.max()
        self.r = np.where(coupled, radii, 0.0).astype(dtype)
        self.inverse_r = np.divide(1.0, radii, out=np.zeros_like(radii), where=coupled).astype(dtype)
        self.rho = problem.lambda1 * self.metric.rho
        self.samples = Samples(problem, W, dtype)
        own, level = problem.dual_vectors(problem.alpha(W), 0.0 * U), 2.0 * problem.lambda2 * np.abs(W).sum(axis=1)
        V = np.clip(problem.incidence_T @ U + own, -level[:, None], level[:, None]) - own  # as at an optimum
        start = Pair(*(np.asarray(a, dtype) for a in (U, V, problem.incidence @ W, W)))
        self.phi, self.gamma = -problem.lambda1 * start.W, 1.0
        with np.errstate(all="ignore"):
            self.place(start, self.balance(start))

    def place(self, at: Pair, gamma: float) -> None:
        """z from which the next round finds this pair, with another gamma."""
        self.z_edge = at.U + (gamma * self.r)[:, None] * at.D
        self.z_row = at.V - gamma * self.rho * at.W
        self.phi, self.gamma = gamma / self.gamma * self.phi, gamma
        self.find()

    def balance(self, of: Pair) -> float:
        """||(U, V)|| / ||(D, W)||, each in its own norm: with this gamma both are found equally well."""
        dual = float(self.inverse_r @ row_dot(of.U, of.U) + np.sum(of.V**2 / self.rho))
        primal = float(self.r @ row_dot(of.D, of.D) + np.sum(self.rho * of.W**2))
        return float(np.sqrt(dual / primal)) if dual > 0 and primal > 0 else self.gamma

    def retune(self, before: Pair) -> None:
        """gamma from how far the rounds have come since."""
        now = self.pair()
        self.place(now, self.balance(Pair(*(new - old for new, old in zip(now, before, strict=True)))))

    def pair(self) -> Pair:
        """What was found last."""
        D = (self.inverse_r / -self.gamma)[:, None] * self.out
        return Pair(self.U, self.z_row + self.gamma * self.rho * self.samples.W, D, self.samples.W)

    @property
    def fused(self) -> BoolArray:
        """Edges with ||z_e|| <= r_e, if they couple at all."""
        return np.asarray((self.norms <= self.r) & (self.r > 0.0))

    @property
    def U(self) -> FloatArray:
        """z_e, shortened to length r_e."""
        return np.asarray(self.z_edge + self.out)

    def find(self) -> None:
        """The part of a round that falls apart into edges and samples."""
        self.norms = np.sqrt(np.square(self.z_edge) @ np.ones_like(self.z_edge[0]))
        longest = np.maximum(np.maximum(self.norms, self.r), TINY)
        self.out = self.z_edge * (self.r / longest - 1.0)[:, None]
        self.samples.minimise(self.z_row, self.gamma * self.rho)

    def advance(self) -> None:
        """To the linear space, to the next z and to what it offers."""
        pull = self.gamma * self.rho * self.samples.W  # V - z
        rhs = self.metric.gather @ (2.0 * self.out + self.z_edge)
        rhs -= 2.0 * pull + self.z_row
        self.phi = self.metric.solve(rhs, self.phi)
        self.z_edge += settings.RELAX * (self.out - self.metric.flow @ self.phi)
        self.z_row += settings.RELAX * (pull + self.metric.rho * self.phi)
        self.find()

    def offer(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """W, alpha and U for a proof, in double precision."""
        U = into_balls(self.U.astype(float), self.problem.radii)
        return self.samples.W.astype(float), self.samples.sigma.astype(float), U


class Splitting:
    """Rounds until they do not pay; a step ends where W is worth a look."""

    name = "splitting"

    def __init__(self, rounds: Rounds, best: Best, tol: float, rounds_left: int) -> None:
        self.rounds, self.best, self.tol, self.rounds_left, self.done = rounds, best, tol, rounds_left, False
        self.k, self.looked, self.gap, self.dual = 0, 0, best.relative_gap, -np.inf

    def step(self) -> Iterate:
        """Rounds until the bound has settled, or for MAX_BLIND rounds; then W, rounded to clusters."""
        settled = False
        while not settled and self.k - self.looked < settings.MAX_BLIND:
            for _ in range(settings.ROUNDS_PER_BOUND):
                self._advance()
            W, alpha, U = self.rounds.offer()
            if not np.isfinite(W).all() or not np.isfinite(U).all():
                self.done = True
                return Iterate(self.best.W, self.best.objective)
            last, self.dual = self.dual, self.best.bound(alpha, U)
            settled = self.dual - last <= settings.SETTLED_RISE * self.tol * self.best.objective
        W = self.W
        found = Iterate(W, self.rounds.problem.objective(W))
        self.best.primal(*found[:2])
        self.done = self.best.relative_gap <= self.tol
        if not self.done and self.k - self.looked >= settings.MAX_BLIND:
            rate = np.log(self.gap / self.best.relative_gap) / settings.MAX_BLIND
            self.done = bool(np.log(self.best.relative_gap / self.tol) > self.rounds_left * rate)
            self.gap, self.looked = self.best.relative_gap, self.k
        return found

    @property
    def failed(self) -> bool:
        """Whether numbers left the range of single precision."""
        return not np.isfinite(self.rounds.z_row).all()

    @property
    def W(self) -> FloatArray:
        """With exact zeros, and with equal rows where ||z_e|| <= r_e."""
        return fused_rows(self.rounds.problem, self.rounds.samples.W.astype(float), self.rounds.fused)

    def _advance(self) -> None:
        self.k += 1
        first, last = settings.TUNING_ROUNDS
        with np.errstate(all="ignore"):
            self.rounds.advance()
            if self.k == first:
                self.before = self.rounds.pair()
            elif self.k == last:
                self.rounds.retune(self.before)
