"""One step of IRLS on J_epsilon, with the dual unknowns updated beside W.

Plain IRLS ("lagged diffusivity") freezes the weights 1/a_e and 1/b_ik. Near a solution where edges fuse and
coordinates vanish its convergence becomes slow. Chan, Golub and Mulet (1999) keep U_e = lambda1 omega_e u_e and the
signs z_ik as unknowns of their own and linearise u_e a_e = d_e and z_ik b_ik = w_ik instead. Eliminating du and dz
leaves, for dW,

    per edge    lambda1 omega_e / a_e [I - (u_e d_e^T + d_e u_e^T) / (2 a_e)]
    per sample  s_i x_i x_i^T + 2 lambda2 w_hat_i w_hat_i^T + 2 lambda2 diag(S_i (1 - z_ik w_hat_ik) / b_ik),

with s_i = alpha_i (1 - alpha_i). Both are positive semidefinite while ||u_e|| <= 1 and |z_ik| <= 1; u = z = 0 gives
the curvature of IRLS.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from llr_cvx.arrays import FloatArray, row_dot
from llr_cvx.problem import Problem
from llr_cvx.solvers.linear.newton_system import Curvature, solve_system
from llr_cvx.solvers.smoothing import Smoothed, smoothed


@dataclass(frozen=True, eq=False)
class Duals:
    """The separate unknowns of the primal-dual Newton step: u_e in the unit ball, z_ik in [-1, 1]."""

    u: FloatArray
    z: FloatArray


def newton_step(problem: Problem, at: Smoothed, duals: Duals, rtol: float) -> tuple[FloatArray, Duals]:
    """Direction dW, and the dual unknowns after the full step (in their balls)."""
    u, z, d_hat, w_hat, two_lambda2 = duals.u, duals.z, at.d_hat, at.w_hat, 2.0 * problem.lambda2
    H = Curvature(
        c=problem.radii / at.a,
        u=u,
        d=d_hat,
        s=at.alpha * (1.0 - at.alpha),
        sigma=np.sqrt(two_lambda2) * w_hat,
        Q=(two_lambda2 * at.S)[:, None] * (1.0 - z * w_hat) / at.b,
    )
    stiff = bool(np.count_nonzero(row_dot(d_hat, d_hat) < 0.8) > len(at.W) // 2)
    dW, _ = solve_system(problem, H, -at.gradient, rtol, stiff)
    u_new = problem.incidence @ dW
    u_new -= u * row_dot(d_hat, u_new)[:, None]
    u_new /= at.a[:, None]
    u_new += d_hat
    u_new /= np.maximum(1.0, np.sqrt(row_dot(u_new, u_new)))[:, None]
    z_new = np.clip(w_hat + dW * (1.0 - z * w_hat) / at.b, -1.0, 1.0)
    return dW, Duals(u_new, z_new)


def line_search(problem: Problem, at: Smoothed, dW: FloatArray) -> Smoothed:
    """The longest of the steps 1, 1/2, ... with sufficient decrease of J_epsilon; none if there is none."""
    slope = float(np.vdot(at.gradient, dW))
    t = 1.0
    while t > 1e-7:
        trial = smoothed(problem, at.W + t * dW, at.epsilon)
        if trial.value <= at.value + 1e-4 * t * slope and trial.value <= at.value:
            return trial
        t *= 0.5
    return at
