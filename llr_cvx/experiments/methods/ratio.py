"""Kernel estimates of the ratio r = p'/p itself: KLIEP, uLSIF and RuLSIF.

All three use r(x) = sum_l a_l exp(-||x - c_l||^2 / (2 s^2)) with at most 100 centres c_l drawn from the inliers
(the numerator), as their authors do. The fits here are exact optima: KLIEP by an interior-point method with a
certificate, uLSIF and RuLSIF in closed form.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import eigh

from llr_cvx.arrays import FloatArray, IntArray
from llr_cvx.experiments.methods._base import Outcome, folds, gaussian, pool, solve_positive, squared_distances
from llr_cvx.experiments.protocol import Protocol, median_distance

N_CENTERS = 100
N_FOLDS = 5

#: Candidate widths of KLIEP, in units of the median distance of the pooled samples.
KLIEP_WIDTHS = np.array([0.2, 0.4, 0.6, 0.8, 1.0, 1.5, 2.0, 5.0])

#: A kernel value below this counts as zero: the ratio would be decided by rounding.
MIN_KERNEL = 1e-100

#: Candidates of uLSIF: the defaults of the authors' own software.
ULSIF_WIDTHS = np.logspace(-3, 1, 9)
ULSIF_LAMBDAS = np.logspace(-3, 1, 9)

#: Candidates of RuLSIF: the authors' defaults, widths in units of the median distance / sqrt(2).
RULSIF_WIDTHS = np.array([0.6, 0.8, 1.0, 1.2, 1.4])
RULSIF_LAMBDAS = np.logspace(-3, 1, 5)

#: The mixture in RuLSIF's denominator; at 1/2 the two conventions in the literature (and in the paper) agree.
RULSIF_BETA = 0.5


def kliep(X_inlier: FloatArray, X_test: FloatArray, protocol: Protocol, rng: np.random.Generator) -> Outcome:
    """max_a sum_j log r(x'_j) subject to mean_i r(x_i) = 1, a >= 0; width by 5-fold likelihood."""
    centers = _centers(X_inlier, rng)
    nu, de = squared_distances(X_inlier, centers), squared_distances(X_test, centers)
    fold = folds(len(nu), N_FOLDS, rng)
    widths = KLIEP_WIDTHS * median_distance(pool(X_inlier, X_test)[0])
    scores = [_kliep_likelihood(_kernels(nu, s), _kernels(de, s), fold) for s in widths]
    width = float(widths[int(np.argmax(scores))])
    A, B = _kernels(nu, width), _kernels(de, width)
    alpha, gap = fit_kliep(A, B.mean(axis=0))
    return Outcome(B @ alpha, {"width": width, "fit_gap": gap})


def _kliep_likelihood(A: FloatArray, B: FloatArray, fold: IntArray) -> float:
    """Mean held-out log ratio; minus infinity if a row is out of reach of every centre."""
    b = B.mean(axis=0)
    if not (b.min() > MIN_KERNEL and A.max(axis=1).min() > MIN_KERNEL):
        return -np.inf
    total = 0.0
    for k in range(N_FOLDS):
        alpha, _ = fit_kliep(A[fold != k], b, tol=1e-4)
        with np.errstate(divide="ignore"):
            total += float(np.log(A[fold == k] @ alpha).sum())
    return total / len(A)


def fit_kliep(A: FloatArray, b: FloatArray, tol: float = 1e-8, max_iter: int = 200) -> tuple[FloatArray, float]:
    """max_a mean_j log (A a)_j subject to b.a = 1, a >= 0, by a primal-dual interior-point method.

    Returns
    -------
    a : array
        Feasible.
    gap : float
        Proven distance from the optimal value: with g_l = mean_j A_jl / (A a)_j it is at most
        log max_l (g_l / b_l), since log is concave.

    Examples
    --------
    >>> a, gap = fit_kliep(np.eye(2), np.array([0.5, 0.25]))
    >>> a.round(6).tolist(), gap <= 1e-8
    ([1.0, 2.0], True)
    """
    # In beta = a b >= 0 this is min -mean log(P beta) + sum(beta), and the sum is 1 at the optimum. Scaling the
    # rows of P does not change the solution; with a largest entry of 1 in each row, no square overflows.
    P = A / b
    P /= P.max(axis=1, keepdims=True)
    n, m = P.shape
    beta = np.full(m, 1.0 / m)
    slack = np.full(m, 1.0)
    for _ in range(max_iter):
        u = 1.0 / (P @ beta)
        g = P.T @ u / n
        # At beta / sum(beta), which is feasible, g is larger by the factor sum(beta).
        gap = float(np.log(max(g.max() * beta.sum(), 1.0)))
        if gap <= tol:
            break
        hessian = (P.T * (u**2 / n)) @ P
        hessian[np.diag_indices(m)] += slack / beta
        mu = 0.1 * float(slack @ beta) / m
        step = solve_positive(hessian, g - 1.0 + mu / beta)
        slack_step = mu / beta - slack - slack * step / beta
        length = min(_reach(beta, step), _reach(slack, slack_step))
        beta, slack = beta + length * step, slack + length * slack_step
    else:
        raise RuntimeError(f"KLIEP's fit did not reach tol = {tol:g}: gap {gap:.2e} after {max_iter} steps")
    return beta / beta.sum() / b, gap


def _reach(x: FloatArray, step: FloatArray) -> float:
    """The step length that keeps x positive."""
    down = step < 0
    return min(1.0, 0.99 * float((-x[down] / step[down]).min())) if down.any() else 1.0


def ulsif(X_inlier: FloatArray, X_test: FloatArray, protocol: Protocol, rng: np.random.Generator) -> Outcome:
    """a = max(0, (H + lambda I)^-1 h); width and lambda by analytic leave-one-out."""
    centers = _centers(X_inlier, rng)
    # Leave-one-out pairs the i-th inlier with the i-th test row, so their order must be random.
    nu = squared_distances(rng.permutation(X_inlier), centers)
    de = squared_distances(rng.permutation(X_test), centers)
    table = np.array([leave_one_out(_kernels(nu, s), _kernels(de, s), ULSIF_LAMBDAS) for s in ULSIF_WIDTHS])
    width, lam = _best(table, ULSIF_WIDTHS, ULSIF_LAMBDAS)
    B = gaussian(X_test, centers, width)
    alpha = np.maximum(fit_lsif(*lsif_moments(_kernels(nu, width), B, 0.0), lam), 0.0)
    return Outcome(B @ alpha, {"width": width, "lambda": lam})


def rulsif(X_inlier: FloatArray, X_test: FloatArray, protocol: Protocol, rng: np.random.Generator) -> Outcome:
    """uLSIF for the relative ratio p' / ((1 - beta) p + beta p'), width and lambda by 5 folds."""
    centers = _centers(X_inlier, rng)
    nu, de = squared_distances(X_inlier, centers), squared_distances(X_test, centers)
    widths = RULSIF_WIDTHS * median_distance(pool(X_inlier, X_test)[0]) / np.sqrt(2.0)
    fold_nu, fold_de = folds(len(nu), N_FOLDS, rng), folds(len(de), N_FOLDS, rng)
    table = np.zeros((len(widths), len(RULSIF_LAMBDAS)))
    for i, s in enumerate(widths):
        A, B = _kernels(nu, s), _kernels(de, s)
        for k in range(N_FOLDS):
            H, h = lsif_moments(A[fold_nu != k], B[fold_de != k], RULSIF_BETA)
            H_held, h_held = lsif_moments(A[fold_nu == k], B[fold_de == k], RULSIF_BETA)
            for j, lam in enumerate(RULSIF_LAMBDAS):
                alpha = np.maximum(fit_lsif(H, h, lam), 0.0)
                table[i, j] += 0.5 * alpha @ H_held @ alpha - h_held @ alpha
    width, lam = _best(table, widths, RULSIF_LAMBDAS)
    A, B = _kernels(nu, width), _kernels(de, width)
    alpha = np.maximum(fit_lsif(*lsif_moments(A, B, RULSIF_BETA), lam), 0.0)
    return Outcome(B @ alpha, {"width": width, "lambda": lam})


def lsif_moments(A: FloatArray, B: FloatArray, beta: float) -> tuple[FloatArray, FloatArray]:
    """H = (1 - beta) mean_i b_i b_i' + beta mean_j a_j a_j' and h = mean_j a_j; a_j inlier rows, b_i test rows."""
    H = (1.0 - beta) * (B.T @ B) / len(B)
    if beta:
        H += beta * (A.T @ A) / len(A)
    return H, A.mean(axis=0)


def fit_lsif(H: FloatArray, h: FloatArray, lam: float) -> FloatArray:
    """argmin_a 1/2 a'Ha - h'a + lam/2 a'a = (H + lam I)^-1 h."""
    M = H.copy()
    M[np.diag_indices_from(M)] += lam
    return solve_positive(M, h)


def leave_one_out(A: FloatArray, B: FloatArray, lambdas: FloatArray) -> FloatArray:
    """uLSIF's leave-one-out score for each lambda (Kanamori, Hido and Sugiyama 2009, Sec. 3.3).

    The i-th inlier row and the i-th test row are left out together. Removing b_i from H is a rank-one change, so
    all refitted a^(i) follow from one eigendecomposition by the Sherman-Morrison formula.
    """
    n_nu, n_de = len(A), len(B)
    n = min(n_nu, n_de)
    H, h = lsif_moments(A, B, 0.0)
    values, V = eigh(H)
    VA, VB, Vh = V.T @ A[:n].T, V.T @ B[:n].T, V.T @ h
    scores = np.empty(len(lambdas))
    for k, lam in enumerate(lambdas):
        inverse = 1.0 / (np.maximum(values, 0.0) + lam * (n_de - 1) / n_de)
        MB = inverse[:, None] * VB  # (H + ..)^-1 b_i in the eigenbasis
        left = n_de - np.einsum("li,li->i", VB, MB)
        base = (inverse * Vh)[:, None] + MB * ((Vh @ MB) / left)
        own = inverse[:, None] * VA + MB * (np.einsum("li,li->i", VA, MB) / left)
        alpha = np.maximum(V @ ((n_nu * base - own) * ((n_de - 1) / (n_de * (n_nu - 1)))), 0.0)
        r_de = np.einsum("il,li->i", B[:n], alpha)
        r_nu = np.einsum("il,li->i", A[:n], alpha)
        scores[k] = np.mean(0.5 * r_de**2 - r_nu)
    return scores


def _centers(X_inlier: FloatArray, rng: np.random.Generator) -> FloatArray:
    return np.asarray(X_inlier[rng.permutation(len(X_inlier))[:N_CENTERS]])


def _kernels(squared: FloatArray, width: float) -> FloatArray:
    """Gaussians of squared distances."""
    return np.asarray(np.exp(-0.5 * squared / width**2))


def _best(table: FloatArray, widths: FloatArray, lambdas: FloatArray) -> tuple[float, float]:
    """The width and lambda of the smallest entry."""
    i, j = np.unravel_index(np.argmin(table), table.shape)
    return float(widths[i]), float(lambdas[j])
