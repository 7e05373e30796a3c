"""Algorithm 1 as the paper prints it: to be read, taught and compared with.

    repeat   W(t+1) = argmin_W  J~(W) = sum_i log(1 + exp(-y_i w_i.x_i)) + lambda1 tr(W^T C_g W)
                                        + lambda2 1^T (W o C_e o W) 1                                  Eq. (6)
             update C_g and C_e

with rows of W as weight vectors (the paper has columns). Here epsilon > 0 is fixed, and C_g, C_e are those for
which the descent proof is exact (with omega_e = r_ij + r_ji):

    C_g   the graph Laplacian of omega_e / (2 a_e),    a_e  = sqrt(||w_i - w_j||^2 + epsilon^2)
    C_e   S_i / b_ik,   S_i = sum_k b_ik,              b_ik = sqrt(w_ik^2 + epsilon^2).

J~ plus a constant majorises J_epsilon and touches it at W(t): by concavity of the square root
a <= (||d||^2 + epsilon^2) / (2 a(t)) + a(t) / 2, and by Cauchy-Schwarz S_i^2 <= S_i(t) sum_k b_ik^2 / b_ik(t).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.sparse import csr_array, diags_array
from scipy.special import expit

from llr_cvx import validation as check
from llr_cvx.arrays import FloatArray, row_dot
from llr_cvx.problem import Problem
from llr_cvx.solvers.smoothing import smoothed_objective


@dataclass(frozen=True, eq=False)
class Record:
    """Every value that Lemma 1, Lemma 2 and Theorem 1 speak of; entry t belongs to step t -> t + 1.

    Attributes
    ----------
    W : array
        The last iterate.
    objective, smoothed_objective : arrays of length T + 1
        J and J_epsilon at W(0), ..., W(T).
    surrogate_before, surrogate_after : arrays of length T
        J~ with the weights of step t, at W(t) and at W(t+1).
    epsilon : float
    """

    W: FloatArray
    objective: FloatArray
    smoothed_objective: FloatArray
    surrogate_before: FloatArray
    surrogate_after: FloatArray
    epsilon: float

    def lemma1(self, rtol: float = 1e-12) -> bool:
        """J~(W(t+1)) <= J~(W(t)) at every step."""
        return bool(np.all(self.surrogate_after <= self.surrogate_before * (1.0 + rtol)))

    def lemma2(self, rtol: float = 1e-12) -> bool:
        """J_epsilon falls at least as much as J~ at every step."""
        fall = np.diff(self.smoothed_objective)
        bound = self.surrogate_after - self.surrogate_before
        return bool(np.all(fall <= bound + rtol * self.smoothed_objective[:-1]))

    def theorem1(self, rtol: float = 1e-12) -> bool:
        """J_epsilon never rises."""
        values = self.smoothed_objective
        return bool(np.all(values[1:] <= values[:-1] * (1.0 + rtol)))


def smoothing_bound(problem: Problem, W: FloatArray, epsilon: float) -> float:
    """J_epsilon(W) - J(W): how far J itself may rise in one step of a monotone J_epsilon."""
    return smoothed_objective(problem, W, epsilon) - problem.objective(W)


def algorithm1(problem: Problem, n_steps: int = 20, epsilon: float = 1e-3, cg_iterations: int = 200) -> Record:
    """Run Algorithm 1 from W = 0 for a number of steps.

    Parameters
    ----------
    problem : Problem
    n_steps : int
    epsilon : float
        Fixed smoothing.
    cg_iterations : int
        Limit of the nonlinear conjugate gradients that minimise J~; stopped early they still decrease it.

    Examples
    --------
    >>> p = Problem([[1.0], [2.0]], [1, -1], [[0, 1]], [1.0], lambda1=0.1, lambda2=1.0)
    >>> record = algorithm1(p, n_steps=5)
    >>> record.lemma1(), record.lemma2(), record.theorem1()
    (True, True, True)
    """
    n_steps = check.whole_number(n_steps, "n_steps")
    epsilon = check.real_number(epsilon, "epsilon", strict=True)
    cg_iterations = check.whole_number(cg_iterations, "cg_iterations")
    W = np.zeros(problem.shape)
    J, J_epsilon = [problem.objective(W)], [smoothed_objective(problem, W, epsilon)]
    before, after = [], []
    for _ in range(n_steps):
        C_g, C_e = weights(problem, W, epsilon)
        before.append(surrogate(problem, W, C_g, C_e)[0])
        W = minimise_surrogate(problem, W, C_g, C_e, cg_iterations)
        after.append(surrogate(problem, W, C_g, C_e)[0])
        J.append(problem.objective(W))
        J_epsilon.append(smoothed_objective(problem, W, epsilon))
    return Record(W, np.array(J), np.array(J_epsilon), np.array(before), np.array(after), epsilon)


def weights(problem: Problem, W: FloatArray, epsilon: float) -> tuple[csr_array, FloatArray]:
    """C_g (N x N, sparse) and C_e (N x d) at W."""
    B = problem.incidence
    D = B @ W
    a = np.sqrt(row_dot(D, D) + epsilon**2)
    b = np.sqrt(W**2 + epsilon**2)
    C_g = (B.T @ diags_array(problem.weights / (2.0 * a)) @ B).tocsr()
    C_e = b.sum(axis=1, keepdims=True) / b
    return C_g, C_e


def surrogate(problem: Problem, W: FloatArray, C_g: csr_array, C_e: FloatArray) -> tuple[float, FloatArray]:
    """J~(W), Eq. (6), and its gradient."""
    margins = problem.y * row_dot(problem.X, W)
    C_gW, C_eW = C_g @ W, C_e * W
    value = np.logaddexp(0.0, -margins).sum() + problem.lambda1 * np.vdot(W, C_gW) + problem.lambda2 * np.vdot(W, C_eW)
    slope = -(problem.y * expit(-margins))[:, None] * problem.X
    return float(value), np.asarray(slope + 2.0 * problem.lambda1 * C_gW + 2.0 * problem.lambda2 * C_eW)


def minimise_surrogate(
    problem: Problem, W: FloatArray, C_g: csr_array, C_e: FloatArray, cg_iterations: int
) -> FloatArray:
    """Conjugate gradients on J~ from W, in the variables W sqrt(diagonal), where J~ is round."""
    curvature = 2.0 * (problem.lambda1 * C_g.diagonal()[:, None] + problem.lambda2 * C_e) + 0.25 * problem.X**2
    root = np.sqrt(np.maximum(curvature, 1e-300))

    def value_and_gradient(scaled: FloatArray) -> tuple[float, FloatArray]:
        value, gradient = surrogate(problem, scaled.reshape(W.shape) / root, C_g, C_e)
        return value, (gradient / root).ravel()

    result = minimize(
        value_and_gradient,
        (W * root).ravel(),
        method="CG",
        jac=True,
        options={"maxiter": cg_iterations, "gtol": 1e-9},
    )
    return np.asarray(result.x.reshape(W.shape) / root)
