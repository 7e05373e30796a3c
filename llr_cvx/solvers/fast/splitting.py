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
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from itertools import count
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from scipy.sparse import csr_array, diags_array

from llr_cvx.arrays import BoolArray, FloatArray, into_balls, row_dot
from llr_cvx.graph import Graph
from llr_cvx.problem import Problem
from llr_cvx.solvers.best import Best
from llr_cvx.solvers.fast.face import face_of
from llr_cvx.solvers.fast.samples import Precision, Samples
from llr_cvx.solvers.linear.cg import conjugate_gradients

RELAX = 1.7  # of a round; it converges below 2
SHARE = 0.3  # rho_i as a share of the sum of r_e at sample i
ADAPT = 4, 10  # rounds whose difference says what gamma should be
LOOK = 4  # rounds from one lower bound to the next
RISE = 2.0  # multiple of tol by which it may have risen where W is worth a look
PATIENCE = 24  # rounds after which W is looked at in any case,
BUDGET = 80  # and rounds that may be left to do, at the rate since the last such look
DENSE = 700  # samples up to which the matrix is inverted
INNER = 3  # conjugate gradient iterations where it is not, from the phi before
NEGLIGIBLE = 1e-15  # share of the largest r_e up to which an edge does not couple
TINY = 1e-30

Solve = Callable[[FloatArray, FloatArray], FloatArray]


def applies(problem: Problem) -> bool:
    """Whether there are edges, both penalties, and numbers whose squares and ratios can be computed."""
    sizes = [problem.lambda1, problem.lambda2, np.abs(problem.X).max(), problem.weights.max(initial=0.0)]
    return bool(min(sizes) > 1e-6 and max(sizes) < 1e6)


class Metric(NamedTuple):
    """What the rounds of all problems on one graph share; phi is then lambda1 times the one above."""

    rho: FloatArray  # for lambda1 = 1
    flow: csr_array  # diag(omega) B
    gather: csr_array  # B^T
    solve: Solve  # (right-hand side, guess) -> phi


_METRICS: WeakKeyDictionary[Graph, dict[Precision, Metric]] = WeakKeyDictionary()


def metric(problem: Problem, dtype: Precision) -> Metric:
    """Made once for a graph, and kept while the graph lives."""
    of_graph = _METRICS.setdefault(problem.graph, {})
    if dtype not in of_graph:
        of_graph[dtype] = _metric(problem, dtype)
    return of_graph[dtype]


def _metric(problem: Problem, dtype: Precision) -> Metric:
    flow, gather = diags_array(problem.weights) @ problem.incidence, problem.incidence_T
    L = (gather @ flow).tocsr()
    degree = L.diagonal()
    rho = SHARE * np.maximum(degree, 1e-3 * degree.mean())  # an isolated sample has no edge to go by
    M = (L + diags_array(rho)).tocsr()
    solve = _by_inverse(M, dtype) if len(rho) <= DENSE else _by_iterations(M.astype(dtype))
    return Metric(rho.astype(dtype)[:, None], flow.tocsr().astype(dtype), gather.astype(dtype), solve)


def _by_inverse(M: csr_array, dtype: Precision) -> Solve:
    inverse = np.linalg.inv(M.toarray()).astype(dtype)
    return lambda rhs, _: np.asarray(inverse @ rhs)


def _by_iterations(M: csr_array) -> Solve:
    scale = (1.0 / M.diagonal())[:, None]
    return lambda rhs, guess: conjugate_gradients(
        lambda P: np.asarray(M @ P), lambda R: scale * R, rhs, 0.0, INNER, guess
    )[0]


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
        radii, coupled = problem.radii, problem.radii > NEGLIGIBLE * problem.radii.max()
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
        self.z_edge += RELAX * (self.out - self.metric.flow @ self.phi)
        self.z_row += RELAX * (pull + self.metric.rho * self.phi)
        self.find()

    def offer(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """W, alpha and U for a proof, in double precision."""
        U = into_balls(self.U.astype(float), self.problem.radii)
        return self.samples.W.astype(float), self.samples.sigma.astype(float), U

    def rounded(self) -> tuple[FloatArray, FloatArray]:
        """W with exact clusters, and u."""
        W, _, U = self.offer()
        return face_of(self.problem, W, self.fused).W, U / np.maximum(self.problem.radii, TINY)[:, None]


def split(rounds: Rounds, best: Best, tol: float) -> Generator[None, None, None]:
    """Rounds until tol or until they do not pay, a few at a time; what is found is kept in `best`."""
    gap, looked, bound = best.relative_gap, 0, -np.inf
    for k in count(1):
        with np.errstate(all="ignore"):
            rounds.advance()
            if k == ADAPT[0]:
                before = rounds.pair()
            elif k == ADAPT[1]:
                rounds.retune(before)
        if k % LOOK:
            continue
        W, alpha, U = rounds.offer()
        if not np.isfinite(W).all() or not np.isfinite(U).all():
            return
        last, bound = bound, best.bound(alpha, U)
        late = k - looked >= PATIENCE
        settled = bound - last <= RISE * tol * best.objective
        if late or settled:
            _look(rounds, best)
        try:
            yield
        except GeneratorExit:  # a limit was reached
            _look(rounds, best)
            raise
        if best.relative_gap <= tol:
            return
        if late:
            rate = np.log(gap / best.relative_gap) / PATIENCE
            if np.log(best.relative_gap / tol) > BUDGET * rate:
                return
            gap, looked = best.relative_gap, k


def _look(rounds: Rounds, best: Best) -> None:
    W, _ = rounds.rounded()
    best.primal(W, rounds.problem.objective(W))
