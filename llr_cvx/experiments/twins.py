"""Every convex method of the paper in a few lines of CVXPY, next to its formula.

Each function returns the model and its variable. They are the ground truth for the fast implementations in
`llr_cvx.experiments.methods`: slow, short, and easy to check by eye. LLR's own twin is `llr_cvx.solvers.exact`.

Where a library's result differs from the optimum stated here, as ``tests/experiments/test_twins.py`` shows:

- liblinear (l1-LR) penalises its constant b by lambda |b| / intercept_scaling. At the scaling of 1000 used here the
  objective is within 1e-5 of the optimum; without a constant it is the optimum to 1e-7.
- libSVM (OSVM) scales its dual by n nu; after division by that, it is the optimum to 1e-8.
- densratio's KLIEP is not used: its gradient ascent stops early, in the test 0.016 below the best mean log ratio.
- densratio's uLSIF fits the same ratio at a given width and lambda, but is not used to choose them: its
  leave-one-out score lacks a division by n - b'(H + lambda I)^-1 b and is off by 4 % and 16 % in the test; the
  score here equals refitting without each pair to 1e-12.
- uLSIF and RuLSIF, by design, clip negative coefficients of the unconstrained optimum. That is not the optimum
  under a >= 0 (`lsif` with ``nonneg``); the tables give the scores of the clipped fit.
"""

from __future__ import annotations

import cvxpy as cp
import numpy as np

from llr_cvx.arrays import FloatArray

Twin = tuple[cp.Problem, cp.Variable]


def l1_logistic(X: FloatArray, y: FloatArray, lam: float, intercept: bool = False) -> Twin:
    """min_w sum_i log(1 + exp(-y_i w.x_i)) + lambda ||w||_1; the constant, if any, is not penalised.

    >>> model, w = l1_logistic(np.array([[1.0], [-1.0]]), np.array([1.0, -1.0]), lam=1.0)
    >>> round(float(model.solve(solver="CLARABEL")), 6)  # lambda >= lambda_max: w = 0 and 2 log 2
    1.386294
    """
    w, b = cp.Variable(X.shape[1], name="w"), cp.Variable(name="b")
    f = X @ w + (b if intercept else 0)
    return cp.Problem(cp.Minimize(cp.sum(cp.logistic(-cp.multiply(y, f))) + lam * cp.norm1(w))), w


def kernel_logistic(K: FloatArray, y: FloatArray, lam: float) -> Twin:
    """min_a sum_i log(1 + exp(-y_i (K a)_i)) + lambda/2 a'Ka, in terms of f = K a.

    K must be positive definite; with its Cholesky factor L, f = L b and a'Ka = ||b||^2.
    """
    L = np.linalg.cholesky(K)
    b = cp.Variable(len(y), name="b")
    f = L @ b
    return cp.Problem(cp.Minimize(cp.sum(cp.logistic(-cp.multiply(y, f))) + 0.5 * lam * cp.sum_squares(b))), b


def kliep(A: FloatArray, b: FloatArray) -> Twin:
    """max_a mean_j log (A a)_j   subject to   b.a = 1, a >= 0.

    Row j of A holds the kernels at inlier x'_j; b is the mean of the kernels over the test samples.
    """
    a = cp.Variable(A.shape[1], nonneg=True, name="a")
    return cp.Problem(cp.Maximize(cp.sum(cp.log(A @ a)) / A.shape[0]), [b @ a == 1]), a


def lsif(H: FloatArray, h: FloatArray, lam: float, nonneg: bool = False) -> Twin:
    """min_a 1/2 a'Ha - h'a + lambda/2 a'a: uLSIF and, with its own H, RuLSIF.

    With ``nonneg``, LSIF's constraint a >= 0 is imposed; uLSIF clips a afterwards instead.
    """
    a = cp.Variable(len(h), nonneg=nonneg, name="a")
    quadratic = cp.quad_form(a, cp.psd_wrap(H + lam * np.eye(len(h))))
    return cp.Problem(cp.Minimize(0.5 * quadratic - h @ a)), a


def one_class_svm(K: FloatArray, nu: float) -> Twin:
    """min_a 1/2 a'Ka   subject to   1.a = 1, 0 <= a_i <= 1/(n nu)."""
    n = len(K)
    a = cp.Variable(n, name="a")
    constraints = [cp.sum(a) == 1, a >= 0, a <= 1.0 / (n * nu)]
    return cp.Problem(cp.Minimize(0.5 * cp.quad_form(a, cp.psd_wrap(K))), constraints), a
