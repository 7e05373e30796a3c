"""Solve a problem in an order of its rows that does not say where each row came from.

Neighbours at equal distance are chosen by position, and a solver's rounding depends on the order of the rows. Where
scores of rows from different sources must be exchangeable, the order may therefore depend on their values only.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from llr_cvx.arrays import FloatArray, IntArray
from llr_cvx.problem import Problem
from llr_cvx.solution import Solution


def canonical_order(X: FloatArray, y: FloatArray, rng: np.random.RandomState) -> IntArray:
    """Rows with y = +1 first, each group sorted by its values; equal rows in random order.

    >>> canonical_order(np.array([[3.0], [2.0], [1.0]]), np.array([-1.0, 1.0, -1.0]), np.random.RandomState(0)).tolist()
    [1, 2, 0]
    """
    shuffled = rng.permutation(len(X))
    return np.asarray(shuffled[np.lexsort([*X[shuffled].T[::-1], -y[shuffled]])], dtype=np.int64)


def restored(solution: Solution, order: IntArray) -> Solution:
    """The solution with its row k as row order[k].

    The proof stays what it is: alpha and U are the same numbers, in other places.
    """
    problem, proof = solution.problem, solution.certificate
    back = np.argsort(order)
    edges = order[problem.edges]
    swapped = edges[:, 0] > edges[:, 1]
    edges = np.sort(edges, axis=1)
    by_rows = np.lexsort([edges[:, 1], edges[:, 0]])
    U = np.where(swapped[:, None], -proof.U, proof.U)  # U_e belongs to w_i - w_j with i < j
    return replace(
        solution,
        problem=Problem(
            *(problem.X[back], problem.y[back], edges[by_rows], problem.weights[by_rows]),
            *(problem.lambda1, problem.lambda2, problem.sigma, problem.n_neighbors),
        ),
        W=solution.W[back],
        certificate=replace(proof, alpha=proof.alpha[back], U=U[by_rows], y=proof.y[back]),
    )
