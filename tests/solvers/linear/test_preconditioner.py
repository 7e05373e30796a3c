"""Preconditioners against dense matrices: what each inverts exactly, symmetric and positive definite."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from builders import random_problem
from numpy.testing import assert_allclose

from llr_cvx.problem import Problem
from llr_cvx.solvers.linear.cg import Operator
from llr_cvx.solvers.linear.preconditioner import factored, rank_two_inverse, stiff_groups, with_coarse_level


class Pieces(NamedTuple):
    problem: Problem
    c: np.ndarray
    Q: np.ndarray
    p: np.ndarray
    q: np.ndarray

    @property
    def diagonal(self) -> np.ndarray:
        return self.Q + self.problem.graph.degrees(self.c)[:, None]


def pieces(seed: int = 0, N: int = 14, d: int = 4, scales: float = 0.0) -> Pieces:
    """Random curvatures; c over so many orders of magnitude, and Q too."""
    p, rng = random_problem(seed, N, d), np.random.default_rng(seed)
    c = 10.0 ** rng.uniform(-scales, 0, len(p.edges))
    Q = 10.0 ** rng.uniform(-scales, 0.5 * scales, p.shape)
    return Pieces(p, c, Q, rng.standard_normal(p.shape), rng.standard_normal(p.shape))


def dense(solve: Operator, shape: tuple[int, int]) -> np.ndarray:
    """The matrix of an operator, column by column."""
    columns = [solve(e.reshape(shape)).ravel() for e in np.eye(shape[0] * shape[1])]
    return np.array(columns).T


def matrix(at: Pieces) -> np.ndarray:
    """Laplacian(c) x I + diag(Q) + blocks p_i p_i^T + q_i q_i^T."""
    N, d = at.problem.shape
    H = np.zeros((N, d, N, d))
    for (i, j), c in zip(at.problem.edges, at.c, strict=True):
        for k in range(d):
            H[i, k, i, k] += c
            H[j, k, j, k] += c
            H[i, k, j, k] -= c
            H[j, k, i, k] -= c
    for i in range(N):
        H[i, :, i] += np.diag(at.Q[i]) + np.outer(at.p[i], at.p[i]) + np.outer(at.q[i], at.q[i])
    return H.reshape(N * d, N * d)


def operators(at: Pieces) -> dict[str, Operator]:
    jacobi = rank_two_inverse(at.diagonal, at.p, at.q)
    alone = np.arange(len(at.Q))
    strong, grouped = factored(at.problem, jacobi, alone, *at[1:]), factored(at.problem, jacobi, alone // 3, *at[1:])
    assert strong is not None
    assert grouped is not None
    coarse = with_coarse_level(at.problem, jacobi, stiff_groups(at.problem, at.c), *at[1:])
    return {"jacobi": jacobi, "coarse": coarse, "grouped": grouped, "factored": strong}


@pytest.mark.parametrize("name", ["jacobi", "coarse", "grouped", "factored"])
@pytest.mark.parametrize("scales", [0.0, 2.0, 6.0])
def test_each_is_symmetric_and_positive_definite(name: str, scales: float) -> None:
    at = pieces(scales=scales)
    M = dense(operators(at)[name], at.problem.shape)
    assert_allclose(M, M.T, atol=1e-8 * np.abs(M).max())
    scale = np.sqrt(np.diag(M))
    assert np.linalg.eigvalsh((M + M.T) / np.outer(scale, scale) / 2).min() > 0


def test_block_jacobi_inverts_the_block_of_each_sample() -> None:
    at = pieces()
    N, d = at.problem.shape
    M = dense(rank_two_inverse(at.diagonal, at.p, at.q), (N, d)).reshape(N, d, N, d)
    for i in range(N):
        block = np.diag(at.diagonal[i]) + np.outer(at.p[i], at.p[i]) + np.outer(at.q[i], at.q[i])
        assert_allclose(M[i, :, i], np.linalg.inv(block), rtol=1e-5, atol=1e-6)
        assert not M[i, :, np.arange(N) != i].any()


def test_block_jacobi_survives_a_diagonal_that_vanishes() -> None:
    rng = np.random.default_rng(0)
    p = rng.standard_normal((3, 4))
    solve = rank_two_inverse(np.zeros((3, 4)), p, 2.0 * p)
    R = rng.standard_normal((3, 4))
    assert np.isfinite(solve(R)).all()
    assert np.all((solve(R) * R).sum(axis=1) >= 0)


def test_factors_are_exact_without_free_directions() -> None:
    at = pieces()
    M = dense(operators(at)["factored"], at.problem.shape)
    assert_allclose(M @ matrix(at), np.eye(len(M)), atol=1e-9)


def unused(R: np.ndarray) -> np.ndarray:
    return 0.0 * R


def test_factors_among_groups_are_exact_for_what_is_constant_within_them() -> None:
    """P (P^T H P)^-1 P^T, where P spreads a value per group over its samples."""
    at, groups = pieces(), np.array([0, 1, 1, 2, 3, 3, 3, 3, 3, 3, 4, 4, 0, 2])  # of sizes below and above d / 2
    solve = factored(at.problem, unused, groups, *at[1:])
    assert solve is not None
    P = np.kron(np.eye(5)[groups], np.eye(4))
    expected = P @ np.linalg.inv(P.T @ matrix(at) @ P) @ P.T
    assert_allclose(dense(solve, at.problem.shape), expected, atol=1e-9)


def test_factors_are_exact_for_weights_of_large_curvature() -> None:
    """Q_ik a million times its coupling."""
    at = pieces()
    held = np.random.default_rng(1).random(at.Q.shape) < 0.5
    held[:, 0] = True
    at = at._replace(Q=np.where(held, 1e6 * at.diagonal, at.Q))
    M, H = dense(operators(at)["factored"], at.problem.shape), matrix(at)
    scale = np.sqrt(np.diag(H))
    assert_allclose(M * np.outer(scale, scale), np.linalg.inv(H / np.outer(scale, scale)), atol=1e-9)


def test_factors_that_rounding_makes_indefinite_are_not_used() -> None:
    at = pieces()
    alone = np.arange(len(at.Q))
    assert factored(at.problem, unused, alone, -at.c, at.Q, at.p, at.q) is None
    assert factored(at.problem, unused, alone, at.c, -10.0 * at.diagonal, at.p, at.q) is None


def test_the_coarse_level_solves_for_groups_of_stiff_edges() -> None:
    """A path of two stiff chains with a soft edge between: two groups, each with one dense block."""
    rng = np.random.default_rng(0)
    edges = [(i, i + 1) for i in range(9)]
    p = Problem(rng.standard_normal((10, 3)), np.tile([1, -1], 5), edges, np.ones(9))
    c = np.where(np.arange(9) == 4, 1.0, 1e4)
    Q, a, b = rng.random((10, 3)), rng.standard_normal((10, 3)), rng.standard_normal((10, 3))
    difference = dense(with_coarse_level(p, unused, stiff_groups(p, c), c, Q, a, b), (10, 3)).reshape(10, 3, 10, 3)
    for group in (np.arange(5), np.arange(5, 10)):
        block = np.diag(Q[group].sum(axis=0) + 1.0) + a[group].T @ a[group] + b[group].T @ b[group]
        for i in group:
            for j in group:
                assert_allclose(difference[i, :, j], np.linalg.inv(block), rtol=1e-6)
    assert not difference[:5, :, 5:].any()


def test_without_a_large_group_the_coarse_level_is_the_smoother_itself() -> None:
    at = pieces(N=14, d=4)

    def smoother(R: np.ndarray) -> np.ndarray:
        return R

    nothing = Problem(at.problem.X, at.problem.y, [], [], 0.0, 1.0)
    assert with_coarse_level(nothing, smoother, np.arange(14), np.zeros(0), at.Q, at.p, at.q) is smoother
