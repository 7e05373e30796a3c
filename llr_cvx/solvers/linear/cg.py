"""Conjugate gradients for matrices of unknowns, and solvers for a fixed sparse matrix."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.sparse import csr_array

from llr_cvx.arrays import FloatArray
from llr_cvx.solvers import settings

Operator = Callable[[FloatArray], FloatArray]
Guessed = Callable[[FloatArray, FloatArray], FloatArray]


def conjugate_gradients(
    apply: Operator, precondition: Operator, rhs: FloatArray, rtol: float, max_iter: int, x0: FloatArray | None = None
) -> tuple[FloatArray, int]:
    """Solve H x = rhs from x = 0 or x0; every iterate lowers the quadratic 0.5 x.Hx - rhs.x.

    Returns x and the number of iterations. Stops once r.M^-1.r is down to rtol^2 times its value at x = 0: that
    norm, unlike the plain residual, weighs each unknown by its own curvature, which here ranges over ten orders of
    magnitude.
    """
    r = rhs.copy()
    s = precondition(r)
    rs = start = float(np.vdot(r, s))
    x = np.zeros_like(rhs) if x0 is None else x0.copy()
    if x0 is not None:
        r -= apply(x)
        s = precondition(r)
        rs = float(np.vdot(r, s))
    p = s.copy()
    for k in range(max_iter):
        if not rtol**2 * start < rs < 1e8 * start:  # done, or rounding has taken over in a singular system
            return x, k
        Hp = apply(p)
        curvature = float(np.vdot(p, Hp))
        if not curvature > 0:  # a flat direction: H is only positive semidefinite
            return x, k
        step = rs / curvature
        x += step * p
        r -= step * Hp
        s = precondition(r)
        rs, previous = float(np.vdot(r, s)), rs
        p *= rs / previous
        p += s
    return x, max_iter


def repeated_solver(M: csr_array, rtol: float, max_iter: int) -> Guessed:
    """(right-hand side, guess) -> M^-1 rhs for a positive definite M, to be used many times.

    Small matrices are inverted; larger ones are iterated on from the guess, preconditioned by their diagonal.
    """
    if M.shape[0] <= settings.DENSE:
        inverse = np.linalg.inv(M.toarray().astype(float)).astype(M.dtype)
        return lambda rhs, _: np.asarray(inverse @ rhs)
    scale = (1.0 / M.diagonal())[:, None]
    return lambda rhs, guess: conjugate_gradients(
        lambda P: np.asarray(M @ P), lambda R: scale * R, rhs, rtol, max_iter, guess
    )[0]
