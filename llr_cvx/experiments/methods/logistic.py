"""Global logistic models of the ratio: l1-LR and kernel logistic regression, log r = f(x) + const."""

from __future__ import annotations

from typing import Any

import numpy as np
import sklearn
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from llr_cvx.arrays import FloatArray, IntArray
from llr_cvx.experiments.methods._base import Outcome, folds, gaussian, pool
from llr_cvx.experiments.protocol import Protocol, median_distance

#: Candidate lambdas of l1-LR, as fractions of the smallest lambda that gives w = 0.
L1_FRACTIONS = np.geomspace(1.0, 1e-2, 9)

#: The fixed choice of that fraction.
L1_FIXED_FRACTION = 0.1

#: Candidate lambdas of KLR.
KLR_LAMBDAS = np.geomspace(1e2, 1e-2, 5)

#: Kernel centres of KLR, drawn from the pooled samples.
KLR_CENTERS = 200

N_FOLDS = 5

#: liblinear penalises its constant; this factor reduces that penalty.
INTERCEPT_SCALING = 1e3


def l1_logistic(X_inlier: FloatArray, X_test: FloatArray, protocol: Protocol, rng: np.random.Generator) -> Outcome:
    """w.x with min_w sum_i log(1 + exp(-y_i w.x_i)) + lambda ||w||_1.

    With an unpenalised constant, like `lassoglm`, which the paper used.
    """
    X, y = pool(X_inlier, X_test)
    seed = int(rng.integers(2**31))
    lambda_max = l1_lambda_max(X, y, intercept=True)
    if protocol.l1_lambda == "cv":
        fractions = L1_FRACTIONS
        deviance = _l1_deviance(X, y, fractions * lambda_max, folds(len(y), N_FOLDS, rng), seed)
        lam = float(lambda_max * fractions[int(np.argmin(deviance))])
    else:
        lam = L1_FIXED_FRACTION * lambda_max
    w, b = fit_l1_logistic(X, y, lam, intercept=True, seed=seed)
    return Outcome(X_test @ w + b, {"lambda": lam, "selected": float(np.count_nonzero(w))}, np.abs(w * X_test))


def _l1_deviance(X: FloatArray, y: FloatArray, lambdas: FloatArray, fold: IntArray, seed: int) -> FloatArray:
    """Held-out deviance of each lambda, summed over the folds."""
    deviance = np.zeros(len(lambdas))
    for k in range(N_FOLDS):
        train, held = fold != k, fold == k
        for i, lam in enumerate(lambdas):
            w, b = fit_l1_logistic(X[train], y[train], lam, intercept=True, seed=seed, tol=1e-3)
            deviance[i] += _deviance(y[held], X[held] @ w + b)
    return deviance


def l1_lambda_max(X: FloatArray, y: FloatArray, intercept: bool) -> float:
    """The smallest lambda for which w = 0 is optimal."""
    residual = y - y.mean() if intercept else y
    # The slope of the loss at w = 0 is -y/2; at w = 0 with the best constant it is -(y - mean y)/2.
    return float(np.abs(X.T @ residual).max() / 2.0) or 1.0


def fit_l1_logistic(
    X: FloatArray, y: FloatArray, lam: float, intercept: bool, seed: int = 0, tol: float = 1e-6
) -> tuple[FloatArray, float]:
    """(w, b) by liblinear; b = 0 without intercept."""
    model = LogisticRegression(
        C=1.0 / lam,
        solver="liblinear",
        fit_intercept=intercept,
        intercept_scaling=INTERCEPT_SCALING,
        tol=tol,
        max_iter=2000,
        random_state=seed,
        **_l1_option(),
    )
    with sklearn.config_context(assume_finite=True, skip_parameter_validation=True):  # an eighth of the time
        model.fit(X, y)
    return np.asarray(model.coef_[0]), float(np.ravel(model.intercept_)[0])


def _l1_option() -> dict[str, Any]:
    """How to ask for the l1 penalty: scikit-learn renamed it in 1.8."""
    major, minor = (int(part) for part in sklearn.__version__.split(".")[:2])
    return {"l1_ratio": 1.0} if (major, minor) >= (1, 8) else {"penalty": "l1"}


def kernel_logistic(X_inlier: FloatArray, X_test: FloatArray, protocol: Protocol, rng: np.random.Generator) -> Outcome:
    """f(x) = sum_l a_l K(x, c_l) with min_a sum_i log(1 + exp(-y_i f(x_i))) + lambda/2 a'K(c,c)a.

    Width = median distance, lambda by 5-fold deviance, at most 200 centres from the pooled samples.
    """
    X, y = pool(X_inlier, X_test)
    width = median_distance(X)
    centers = X[rng.permutation(len(X))[:KLR_CENTERS]]
    Z = kernel_features(X, centers, width)
    fold = folds(len(y), N_FOLDS, rng)
    deviance = np.zeros(len(KLR_LAMBDAS))
    for k in range(N_FOLDS):
        train, held = fold != k, fold == k
        beta = np.zeros(Z.shape[1])
        for i, lam in enumerate(KLR_LAMBDAS):
            beta = ridge_logistic(Z[train], y[train], lam, beta, tol=1e-4)
            deviance[i] += _deviance(y[held], Z[held] @ beta)
    lam = float(KLR_LAMBDAS[int(np.argmin(deviance))])
    beta = ridge_logistic(Z, y, lam)
    return Outcome(Z[len(X_inlier) :] @ beta, {"width": width, "lambda": lam})


def kernel_features(X: FloatArray, centers: FloatArray, width: float) -> FloatArray:
    """Z with f = Z beta and ||beta||^2 = a'K(c,c)a: KLR becomes ridge logistic regression."""
    values, vectors = np.linalg.eigh(gaussian(centers, centers, width))
    kept = values > values[-1] * 1e-10
    return np.asarray(gaussian(X, centers, width) @ (vectors[:, kept] / np.sqrt(values[kept])))


def ridge_logistic(
    Z: FloatArray, y: FloatArray, lam: float, start: FloatArray | None = None, tol: float = 1e-10
) -> FloatArray:
    """min_b sum_i log(1 + exp(-y_i z_i.b)) + lam/2 ||b||^2 by Newton; stops on the decrement."""
    beta = np.zeros(Z.shape[1]) if start is None else start.copy()

    def value(b: FloatArray) -> float:
        return float(_deviance(y, Z @ b) + 0.5 * lam * b @ b)

    current = value(beta)
    for _ in range(100):
        p = expit(-y * (Z @ beta))
        gradient = lam * beta - Z.T @ (y * p)
        hessian = (Z.T * (p * (1.0 - p))) @ Z
        hessian[np.diag_indices_from(hessian)] += lam
        step = np.linalg.solve(hessian, -gradient)
        decrement = float(-gradient @ step)
        if decrement <= 2.0 * tol * max(1.0, current):
            return beta
        length = 1.0
        while (trial := value(beta + length * step)) > current - 1e-4 * length * decrement and length > 1e-10:
            length /= 2.0
        beta, current = beta + length * step, trial
    raise RuntimeError(f"Newton for ridge logistic regression did not reach tol = {tol:g} in 100 steps")


def _deviance(y: FloatArray, f: FloatArray) -> float:
    return float(np.logaddexp(0.0, -y * f).sum())
