"""Linear separability, decided without error: is there a v with z_i.v >= 0 for all rows and > 0 for one?

A linear programme in floating point answers first. Its answer counts where no rounding error can change it: a v
whose signs are checked exactly, or weights mu > 0 with sum_i mu_i z_i = 0, which exclude every such v (Stiemke).
What is left, such as columns that are almost dependent, is decided by the simplex method in integers: doubles are
binary fractions, so nothing has to be rounded.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog
from scipy.sparse import csr_array, eye_array, hstack

from llr_cvx.arrays import FloatArray

#: A dictionary of the simplex method: basic variables = (T @ nonbasic variables) / q, in Python integers.
Table = NDArray[np.object_]


def separable(Z: FloatArray) -> bool:
    """Whether some direction has z_i.v >= 0 for all rows and > 0 for one.

    >>> separable(np.array([[1.0, 1e-10], [-1.0, 1e-10]])), separable(np.array([[1.0], [-1e-300]]))
    (True, False)
    """
    robust = _robustly(Z)
    return _exactly(Z) if robust is None else robust


def _robustly(Z: FloatArray) -> bool | None:
    """The answer, or None where rounding errors might change it."""
    (n, d), live, eps = Z.shape, Z != 0, np.finfo(float).eps
    for axis in (0, 1, 0, 1):  # columns and rows in turn, by powers of two: exact as long as nothing underflows
        Z = np.ldexp(Z, -np.frexp(np.abs(Z).max(axis=axis, keepdims=True))[1])
        if np.abs(Z[live]).min(initial=1.0) < 1e-100:
            return None
    # maximise the sum of t with Z v >= t, 0 <= t <= 1, |v| <= 1e3
    answer = linprog(
        np.r_[np.zeros(d), -np.ones(n)],
        A_ub=hstack([csr_array(-Z), eye_array(n)]),
        b_ub=np.zeros(n),
        bounds=[(-1e3, 1e3)] * d + [(0, 1)] * n,
    )
    if answer.status != 0:
        return None
    v, mu = answer.x[:d], -answer.ineqlin.marginals
    v = np.where(np.abs(v) < 1e-9 * np.abs(v).max(), 0.0, v)
    margin, error = Z @ v, (d + 2) * eps * (np.abs(Z) @ np.abs(v)) + 1e-150
    for i in np.flatnonzero(np.abs(margin) <= error):
        margin[i] = sum(Fraction(a) * Fraction(b) for a, b in zip(Z[i].tolist(), v.tolist(), strict=True))
    if margin.min() >= 0 and margin.max() > 0:
        return True
    # Z^T c = Z^T mu has a solution with |c| <= |Z^T mu| / (least singular value), and then Z^T (mu - c) = 0.
    values = np.linalg.svd(Z, compute_uv=False)
    residual = np.linalg.norm(np.abs(Z.T @ mu) + (n + 2) * eps * (np.abs(Z).T @ np.abs(mu)))
    proved = n >= d and residual < mu.min() * (values[-1] - 1e-12 * n * values[0])
    return False if proved else None


def _exactly(Z: FloatArray) -> bool:
    """Maximise sum_i z_i.v with z_i.v >= 0, or >= -1 for rows outside the first basis: unbounded if separable."""
    T, q = _integers(Z), 1
    basic, nonbasic, columns = list(range(len(T))), list[int](), list[int]()
    for column in range(T.shape[1]):  # exchange each entry of v for a row of Z; columns without any are dependent
        k = len(nonbasic)
        if not T[:, k].any():
            T = np.delete(T, k, axis=1)
            continue
        i = int(np.flatnonzero(T[:, k])[0])
        T, q = _pivot(T, q, i, k)
        T = np.delete(T, i, axis=0)
        nonbasic.append(basic.pop(i))
        columns.append(column)
    if len(columns) < Z.shape[1]:
        return separable(Z[:, columns]) if columns else False
    T, moved = np.column_stack([T, np.full(len(T), q, dtype=object)]), True  # the last column: constants
    while True:
        slopes = q + T[:, :-1].sum(axis=0)
        rising = np.flatnonzero(slopes > 0).tolist()
        if not rising:
            return False
        # The steepest, or after a step of length 0 the first (Bland): such steps cannot cycle.
        k = max(rising, key=lambda c: slopes[c]) if moved else min(rising, key=lambda c: nonbasic[c])
        falling = np.flatnonzero(T[:, k] < 0).tolist()
        if not falling:
            return True
        i = min(falling, key=lambda r: (Fraction(T[r, -1], -T[r, k]), basic[r]))
        moved = T[i, -1] > 0
        T, q = _pivot(T, q, i, k)
        basic[i], nonbasic[k] = nonbasic[k], basic[i]


def _integers(Z: FloatArray) -> Table:
    """Z with each column, and then each row, scaled by a positive number that makes it integer and small."""
    columns = []
    for column in Z.T.tolist():
        ratios = [x.as_integer_ratio() for x in column]
        whole = max(q for _, q in ratios)
        columns.append([p * (whole // q) for p, q in ratios])
    return np.array([[x // (math.gcd(*row) or 1) for x in row] for row in zip(*columns, strict=True)], dtype=object)


def _pivot(T: Table, q: int, i: int, k: int) -> tuple[Table, Any]:
    """Exchange basic variable i and nonbasic variable k; the divisions leave no remainder (Bareiss)."""
    p, row, column = T[i, k], T[i].copy(), T[:, k].copy()
    T = (T * p - np.outer(column, row)) // q
    T[i], T[:, k], T[i, k] = -row, column, q
    return (T, p) if p > 0 else (-T, -p)
