"""IRLS and nothing else: Algorithm 1 in primal-dual form, with a proof at every step.

Algorithm 1 alternates between weights taken from W and the minimiser of Eq. (6) for these weights. Smoothed by
epsilon (see `smoothing`), with d_e = w_i - w_j, the weights are 1/a_e and S_i/b_ik,

    a_e = sqrt(||d_e||^2 + epsilon^2),    b_ik = sqrt(w_ik^2 + epsilon^2),    S_i = sum_k b_ik,

and what decreases is J_epsilon. A step solves a linear system that is weighted by the current W:

* The primal-dual step (Chan, Golub and Mulet, 1999). Frozen weights converge slowly where edges fuse and weights
  vanish. Instead u_e = d_e/a_e and z_ik = w_ik/b_ik become unknowns of their own, and u_e a_e = d_e, z_ik b_ik = w_ik
  are linearised. The step is taken only if it lowers J_epsilon enough; nearly all steps are of this kind.
* Otherwise the plain step of Algorithm 1, with the logistic loss bounded by the quadratic of Jaakkola and Jordan.
  Its quadratic lies above J_epsilon and touches it at W (Lemma 1), and every conjugate gradient iterate lowers it
  (Lemma 2): J_epsilon cannot rise.

epsilon shrinks once the duality gap is down to about what smoothing costs, J_epsilon - J, or after a few steps that
did not get it there. Since J_epsilon falls with epsilon, J_epsilon(W) never rises from one step to the next
(Theorem 1); where its decrease is lost in rounding, W stays and only u and z move on. All u_e lie in the unit ball, so
that U_e = lambda1 omega_e u_e is dual feasible: every step proves a lower bound of the optimum.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from llr_cvx.arrays import FloatArray, row_dot, row_norms
from llr_cvx.problem import Problem
from llr_cvx.proofs.certificate import ROUNDING
from llr_cvx.solution import Solution
from llr_cvx.solvers import settings
from llr_cvx.solvers.linear.newton_system import Curvature, Level, solve_system
from llr_cvx.solvers.rounding import fused_rows
from llr_cvx.solvers.run import Best, Iterate, Run, Step, begin, one_blas_thread
from llr_cvx.solvers.smoothing import Smoothed, smoothed
from llr_cvx.solvers.starts import Duals, Start, typical_weight


def solve_irls(
    problem: Problem,
    tol: float = 1e-6,
    *,
    W0: ArrayLike | Solution | Sequence[Solution] | None = None,
    max_iter: int = 300,
    time_limit: float | None = None,
    callback: Callable[[Step], object] | None = None,
    progress: bool = False,
) -> Solution:
    """Solve Eq. (5) by IRLS until the certificate proves a relative gap of at most `tol`.

    J_epsilon never rises (`Trace.is_monotone`); where lambda1 omega_e is enormous, that is J_epsilon of an equivalent
    problem with smaller ones (`llr_cvx.solvers.run.capped`), while J is always that of `problem`. For
    lambda2 = 0 the gap is that among bounded W. Best for up to about a thousand samples; for more, see `solve_fast`.

    Parameters
    ----------
    problem : Problem
    tol : float
        Relative duality gap to prove.
    W0 : array-like of shape (N, d), Solution or list of Solution, optional
        Where to start. A `Solution` for nearby lambdas is better than its W alone: its dual point is used too. The
        last two solutions of a path, in a list, are better still.
    max_iter : int
    time_limit : float, optional
        Seconds. Either limit gives the best W found, with a status and a `ConvergenceWarning`.
    callback : callable, optional
        Called with a `Step` after each iteration.
    progress : bool
        Print a line for each iteration to standard error.

    Returns
    -------
    Solution
        With exact zeros and exactly equal rows (`support`, `clusters`) where rounding to them does not raise J.

    Examples
    --------
    >>> from llr_cvx.datasets import make_synthetic
    >>> X_inlier, X_test, _ = make_synthetic(d=5, random_state=0)
    >>> s = solve_irls(Problem.from_samples(X_inlier, X_test), tol=1e-9)
    >>> s.status, s.certificate.relative_gap <= 1e-9, s.trace.is_monotone()
    ('optimal', True, True)
    """
    run = begin(problem, tol, W0, max_iter, time_limit, callback, progress)
    with one_blas_thread():
        irls = Irls(run.problem, run.start, run.best)
        run.record(irls.name, irls.iterate)
        run.follow(irls, lambda: rounding_proves(run, irls))
        round_off(run, irls)
    return run.solution("IRLS", f"epsilon = {irls.at.epsilon:.1e}: a smaller one is lost in rounding")


class Irls:
    """Algorithm 1: `at` is W with J_epsilon, `duals` are u and z."""

    name = "irls"

    def __init__(self, problem: Problem, start: Start, best: Best) -> None:
        self.problem, self.best, self.duals = problem, best, start.duals
        self.at = smoothed(problem, start.W, start.epsilon)
        self.W_before = start.W  # when epsilon shrank last
        self.last_epsilon = settings.LAST_EPSILON * typical_weight(problem)
        self.rtol, self.held, self.gap, self.level = settings.CG_LOOSEST, 0, np.inf, Level.JACOBI
        self.n_cg, self.J, self.D = 0, np.inf, 0.0
        self._offer()

    @property
    def done(self) -> bool:
        """epsilon is so small that rounding hides what it changes."""
        return self.at.epsilon < self.last_epsilon

    def step(self) -> Iterate:
        """W(t) -> W(t+1), u and z: shrink epsilon if it is time, solve one system, and lower J_epsilon."""
        self._schedule()
        at, problem = self.at, self.problem
        H = primal_dual_curvature(problem, at, self.duals)
        dW, self.n_cg, self.level = solve_system(problem, H, -at.gradient, self.rtol, self.level)
        self.duals = dual_step(problem, at, self.duals, dW)
        self.at = line_search(problem, at, dW) or plain_step(problem, at, self.rtol, self.level) or at
        self._offer()
        return self.iterate

    def _offer(self) -> None:
        """Keep what is the best of the run, and note J and the lower bound D of what IRLS itself has found."""
        self.best.primal(self.at.W, self.at.objective)
        self.J = min(self.J, self.at.objective)
        self.D = max(self.D, self.best.bound(self.at.alpha, self.U))
        self.rounding = self._rounding()

    def _schedule(self) -> None:
        """A smaller epsilon once the gap is down to the cost of smoothing; accurate systems where it is not falling."""
        falls = self.J - self.D <= settings.MIN_PROGRESS * self.gap
        factor = settings.CG_RELAX if falls else settings.CG_TIGHTEN
        self.rtol = float(np.clip(factor * self.rtol, settings.CG_TIGHTEST, settings.CG_LOOSEST))
        self.gap, self.held = self.J - self.D, self.held + 1
        settled = self.gap <= settings.SETTLED * (self.at.value - self.at.objective)
        if (settled and not self.rounding) or self.held > settings.MAX_HELD:
            self.held, self.W_before = 0, self.at.W
            self.at = smoothed(self.problem, self.at.W, settings.EPSILON_SHRINK * self.at.epsilon)

    def _rounding(self) -> Iterate | None:
        """W rounded, if that does not raise J at a tiny epsilon: a smaller one would save nothing."""
        if self.at.epsilon > settings.TINY_EPSILON * self.last_epsilon:
            return None
        W = self.rounded()
        objective = self.problem.objective(W)
        return Iterate(W, objective) if objective <= self.at.objective else None

    @property
    def iterate(self) -> Iterate:
        """W(t) as it is."""
        return Iterate(self.at.W, self.at.objective, self.at.value, self.at.epsilon)

    @property
    def point(self) -> Start:
        """Where another method, or another run, may go on."""
        return Start(self.at.W, self.duals, self.at.epsilon)

    @property
    def U(self) -> FloatArray:
        """The dual point U_e = lambda1 omega_e u_e."""
        return self.problem.radii[:, None] * self.duals.u

    def rounded(self, share: float = 1.0) -> FloatArray:
        """W with zeros and equal rows where smoothing alone keeps weights from zero and rows apart.

        Such lengths are not much longer than epsilon; those that are shrink with it. `share` of the limits applies.
        """
        size, unit = np.abs(self.at.W), share * self.at.epsilon
        shrinks = (size <= settings.SHORT_WEIGHT * unit) & (size < settings.SHRINKS * np.abs(self.W_before))
        zero = ((size <= settings.ZERO_WEIGHT * unit) | shrinks) & (self.problem.lambda2 > 0)
        equal = row_norms(self.problem.incidence @ self.at.W) <= settings.EQUAL_ROWS * unit
        return fused_rows(self.problem, np.where(zero, 0.0, self.at.W), equal)


def rounding_proves(run: Run, irls: Irls) -> bool:
    """Whether W would prove the gap if it were rounded now."""
    return irls.rounding is not None and run.best.relative_gap_of(irls.rounding.objective) <= run.tol


def round_off(run: Run, irls: Irls) -> None:
    """As a last step, exact zeros and exactly equal rows, if that does not raise J: as many as give the lowest J.

    Too wide a limit takes small weights for zeros, too narrow a one zeros for small weights, and J can hardly tell.
    Only zeros shrink with epsilon: while the widest limit and the narrowest disagree, it shrinks for a few steps more.
    """
    kept = None
    steps = settings.MAX_STEPS_TO_ROUND if run.tol <= settings.SUPPORT_TOL else 0
    for steps_left in range(steps, -1, -1):
        offers = [Iterate(W, run.problem.objective(W)) for W in map(irls.rounded, (1.0, *settings.ROUNDING_SHARES))]
        lowest = min(offers, key=lambda at: at.objective)
        if lowest.objective > (run.best.objective if kept is None else (1.0 + ROUNDING) * kept.objective):
            break
        kept = lowest
        clear = np.array_equal(offers[0].W != 0.0, offers[-1].W != 0.0)
        if clear or irls.done or run.limited or not steps_left:
            break
        irls.held = settings.MAX_HELD  # epsilon shrinks at the next step
        run.record(irls.name, irls.step())
    if kept is not None and kept.objective <= run.best.objective:
        run.record("rounding", kept)


def primal_dual_curvature(problem: Problem, at: Smoothed, duals: Duals) -> Curvature:
    """The matrix for dW after du and dz are eliminated.

    per edge    lambda1 omega_e / a_e [I - (u_e d_e^T + d_e u_e^T) / (2 a_e)]
    per sample  s_i x_i x_i^T + 2 lambda2 w_hat_i w_hat_i^T + 2 lambda2 diag(S_i (1 - z_ik w_hat_ik) / b_ik)

    with s_i = alpha_i (1 - alpha_i) and w_hat = w / b. Both are positive semidefinite while ||u_e|| <= 1, |z_ik| <= 1.
    """
    two_lambda2 = 2.0 * problem.lambda2
    return Curvature(
        c=problem.radii / at.a,
        u=duals.u,
        d=at.d_hat,
        s=at.alpha * (1.0 - at.alpha),
        sigma=np.sqrt(two_lambda2) * at.w_hat,
        Q=(two_lambda2 * at.S)[:, None] * (1.0 - duals.z * at.w_hat) / at.b,
    )


def dual_step(problem: Problem, at: Smoothed, duals: Duals, dW: FloatArray) -> Duals:
    """u and z after the full step dW, put back into their balls.

    The linearised u_e is d_hat + [I - (u d_hat^T + d_hat u^T) / 2] (B dW)_e / a_e: symmetric like the matrix, so that
    the dual residual is the residual of the system.
    """
    flow = problem.incidence @ dW
    along_d, along_u = 0.5 * row_dot(at.d_hat, flow), 0.5 * row_dot(duals.u, flow)
    u = flow - along_d[:, None] * duals.u - along_u[:, None] * at.d_hat
    u /= at.a[:, None]
    u += at.d_hat
    u /= np.maximum(1.0, np.sqrt(row_dot(u, u)))[:, None]
    return Duals(u, np.clip(at.w_hat + dW * (1.0 - duals.z * at.w_hat) / at.b, -1.0, 1.0))


def line_search(problem: Problem, at: Smoothed, dW: FloatArray) -> Smoothed | None:
    """The longest of the steps 1, 1/2, ... with a sufficient decrease of J_epsilon; None if all are too short.

    Where the decrease to be expected is lost in rounding, the full step if it does not raise J_epsilon, else none.
    """
    slope = float(np.vdot(at.gradient, dW))
    if abs(slope) <= ROUNDING * at.value:
        trial = smoothed(problem, at.W + dW, at.epsilon)
        return trial if trial.value <= at.value else at
    t = 1.0
    while t >= settings.SMALLEST_STEP:
        trial = smoothed(problem, at.W + t * dW, at.epsilon)
        if trial.value < at.value and trial.value <= at.value + 1e-4 * t * slope:
            return trial
        t *= 0.5
    return None


def plain_step(problem: Problem, at: Smoothed, rtol: float, level: Level = Level.JACOBI) -> Smoothed | None:
    """The step of Algorithm 1, Eq. (6); None where rounding hides its decrease.

    The weights are C_g (edges lambda1 omega_e / a_e) and C_e (2 lambda2 S_i / b_ik); log(1 + exp(-m)) has the
    quadratic upper bound of curvature tanh(m / 2) / (2 m).
    """
    m = problem.y * problem.scores(at.W)
    bend = np.divide(np.tanh(0.5 * m), 2.0 * m, out=np.full_like(m, 0.25), where=np.abs(m) > 1e-6)
    none = np.zeros_like(at.d_hat)
    C_e = (2.0 * problem.lambda2 * at.S)[:, None] / at.b
    H = Curvature(c=problem.radii / at.a, u=none, d=none, s=bend, sigma=np.zeros_like(at.W), Q=C_e)
    dW, _, _ = solve_system(problem, H, -at.gradient, rtol, level)
    trial = smoothed(problem, at.W + dW, at.epsilon)
    return trial if trial.value <= at.value else None
