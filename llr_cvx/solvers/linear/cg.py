"""Preconditioned conjugate gradients for matrices of unknowns, stopped in the preconditioner's own norm."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from llr_cvx.arrays import FloatArray

Operator = Callable[[FloatArray], FloatArray]


def conjugate_gradients(
    apply: Operator,
    precondition: Operator,
    rhs: FloatArray,
    rtol: float,
    max_iter: int,
    x0: FloatArray | None = None,
) -> tuple[FloatArray, int]:
    """Solve H x = rhs from x = 0 or x0; every iterate lowers the quadratic 0.5 x.Hx - rhs.x.

    Returns x and the number of iterations. Stops once r.M^-1.r is down to rtol^2 times its value at x = 0: that
    norm, unlike the plain residual, weighs each unknown by its own curvature, which here ranges over ten orders of
    magnitude.
    """
    r = rhs.copy()
    s = precondition(r)
    rs = start = float(np.vdot(r, s))
    if x0 is None:
        x = np.zeros_like(rhs)
    else:
        x = x0.copy()
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
