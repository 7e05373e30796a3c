"""Eq. (5) in the conic benchmark format (CBF), which MOSEK, JuMP's MathOptInterface, SCIP-SDP and others read.

With W row by row as the first N d variables:

    minimise   sum_i t_i + lambda1 sum_e omega_e s_e + lambda2 sum_i q_i
    subject to p_ik >= |w_ik|,  2 q_i (1/2) >= (sum_k p_ik)^2,  s_e >= ||w_i - w_j||_2,
               a_i >= exp(-y_i w_i.x_i - t_i),  b_i >= exp(-t_i),  a_i + b_i <= 1
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from llr_cvx.problem import Problem


def cbf_lines(problem: Problem) -> Iterator[str]:
    """The lines of the CBF file of a problem."""
    N, d = problem.shape
    n_edges = len(problem.edges)
    W = np.arange(N * d).reshape(N, d)
    P = W + N * d
    q, t, a, b = (2 * N * d + block * N + np.arange(N) for block in range(4))
    s = 2 * N * d + 4 * N + np.arange(n_edges)
    yield from (
        "# Localized logistic regression, Eq. (5); the first N*d variables are W, row by row.",
        "VER",
        "3",
        "",
    )
    yield from (
        "OBJSENSE",
        "MIN",
        "",
        "VAR",
        f"{2 * N * d + 4 * N + n_edges} 1",
        f"F {2 * N * d + 4 * N + n_edges}",
        "",
    )

    cones: list[str] = []
    A: list[tuple[int, int, float]] = []
    constants: list[tuple[int, float]] = []
    row = 0
    for sign in (-1.0, 1.0):  # p - w >= 0 and p + w >= 0
        for w, p in zip(W.ravel().tolist(), P.ravel().tolist(), strict=True):
            A += [(row, p, 1.0), (row, w, sign)]
            row += 1
    for i in range(N):  # 1 - a - b >= 0
        A += [(row, int(a[i]), -1.0), (row, int(b[i]), -1.0)]
        constants.append((row, 1.0))
        row += 1
    cones.append(f"L+ {row}")
    for i in range(N):  # (q, 1/2, sum p) in the rotated cone
        A += [(row, int(q[i]), 1.0), *((row + 2, int(p), 1.0) for p in P[i])]
        constants.append((row + 1, 0.5))
        cones.append("QR 3")
        row += 3
    for i in range(N):  # (u, 1, r) in EXP means u >= exp(r)
        slope = -problem.y[i] * problem.X[i]
        A += [(row, int(a[i]), 1.0), (row + 2, int(t[i]), -1.0)]
        A += [(row + 2, int(w), float(x)) for w, x in zip(W[i], slope, strict=True) if x]
        A += [(row + 3, int(b[i]), 1.0), (row + 5, int(t[i]), -1.0)]
        constants += [(row + 1, 1.0), (row + 4, 1.0)]
        cones += ["EXP 3", "EXP 3"]
        row += 6
    for e, (i, j) in enumerate(problem.edges.tolist()):
        A.append((row, int(s[e]), 1.0))
        for k in range(d):
            A += [(row + 1 + k, int(W[i, k]), 1.0), (row + 1 + k, int(W[j, k]), -1.0)]
        cones.append(f"Q {d + 1}")
        row += d + 1

    yield from ("CON", f"{row} {len(cones)}", *cones, "")
    costs = [(int(x), 1.0) for x in t] + [(int(x), problem.lambda2) for x in q if problem.lambda2]
    costs += [(int(x), float(r)) for x, r in zip(s, problem.radii, strict=True) if r]
    yield from ("OBJACOORD", str(len(costs)), *(f"{j} {value!r}" for j, value in costs), "")
    yield from ("ACOORD", str(len(A)), *(f"{i} {j} {value!r}" for i, j, value in A), "")
    yield from ("BCOORD", str(len(constants)), *(f"{i} {value!r}" for i, value in constants))
