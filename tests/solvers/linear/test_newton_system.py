"""Newton systems at every level of preconditioning against dense solves, and conjugate gradients themselves."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from builders import random_problem
from numpy.testing import assert_allclose
from scipy.sparse import csr_array

from llr_cvx.problem import Problem
from llr_cvx.solvers import settings
from llr_cvx.solvers.linear import newton_system
from llr_cvx.solvers.linear.cg import Operator, conjugate_gradients, repeated_solver
from llr_cvx.solvers.linear.newton_system import Curvature, Level, _operator, solve_system, stages, worth_of_factors
from llr_cvx.solvers.linear.preconditioner import few_terms, stiff_groups


def curvature(p: Problem, seed: int = 0, c_scales: float = 0.0, free: bool = True) -> Curvature:
    """Random pieces that are positive semidefinite; `free` says whether edges leave a direction free."""
    rng = np.random.default_rng(seed)
    shape = len(p.edges), p.shape[1]
    u, d = (v / np.linalg.norm(v, axis=1, keepdims=True) for v in rng.standard_normal((2, *shape)))
    return Curvature(
        c=10.0 ** rng.uniform(-c_scales, 0, shape[0]),
        u=u if free else 0.0 * u,
        d=0.9 * d if free else 0.0 * d,
        s=rng.uniform(0.01, 0.25, p.shape[0]),
        sigma=rng.standard_normal(p.shape),
        Q=0.1 * rng.random(p.shape),
    )


def dense(p: Problem, H: Curvature) -> np.ndarray:
    """The matrix, piece by piece."""
    N, d = p.shape
    M = np.zeros((N, d, N, d))
    for (i, j), c, u, v in zip(p.edges, H.c, H.u, H.d, strict=True):
        piece = c * (np.eye(d) - (np.outer(u, v) + np.outer(v, u)) / 2)
        M[i, :, i] += piece
        M[j, :, j] += piece
        M[i, :, j] -= piece
        M[j, :, i] -= piece
    for i in range(N):
        M[i, :, i] += H.s[i] * np.outer(p.X[i], p.X[i]) + np.outer(H.sigma[i], H.sigma[i]) + np.diag(H.Q[i])
    return M.reshape(N * d, N * d)


def solved(p: Problem, H: Curvature, rhs: np.ndarray, rtol: float, level: Level) -> tuple[np.ndarray, int]:
    """With the preconditioner of this level alone."""
    _, _, precondition = list(stages(p, H, Level.JACOBI))[level]
    return conjugate_gradients(_operator(p, H), precondition, rhs, rtol, settings.MAX_CG)


def with_patience(monkeypatch: pytest.MonkeyPatch, *patience: int) -> None:
    def impatient(p: Problem, H: Curvature, level: Level) -> Iterator[tuple[Level, int, Operator]]:
        for (stage, _, precondition), n in zip(stages(p, H, level), patience[level:], strict=True):
            yield stage, n, precondition

    monkeypatch.setattr(newton_system, "stages", impatient)


def test_the_operator_is_the_matrix_of_its_pieces() -> None:
    p = random_problem(0, 16, 4)
    H = curvature(p)
    P = np.random.default_rng(1).standard_normal(p.shape)
    assert_allclose(_operator(p, H)(P).ravel(), dense(p, H) @ P.ravel(), atol=1e-12)


@pytest.mark.parametrize("level", list(Level))
@pytest.mark.parametrize(("seed", "N", "d"), [(0, 12, 3), (1, 20, 5), (2, 30, 1)])
def test_every_level_solves_the_system(level: Level, seed: int, N: int, d: int) -> None:
    p = random_problem(seed, N, d)
    H, rhs = curvature(p, seed), np.random.default_rng(seed).standard_normal(p.shape)
    x, n = solved(p, H, rhs, 1e-12, level)
    assert 0 < n < 200
    exact = np.linalg.solve(dense(p, H), rhs.ravel())
    assert_allclose(x.ravel(), exact, rtol=1e-8, atol=1e-9 * np.abs(exact).max())


def test_factors_solve_at_once_where_no_direction_is_free() -> None:
    p = random_problem(0, 20, 4)
    H, rhs = curvature(p, free=False, c_scales=4), np.random.default_rng(0).standard_normal(p.shape)
    x, n = solved(p, H, rhs, 1e-8, Level.FACTORED)
    assert n == 1
    assert_allclose(x.ravel(), np.linalg.solve(dense(p, H), rhs.ravel()), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_edges_on_many_scales_are_easy_with_factors_only(seed: int) -> None:
    """c_e from 1e-10 to 1, as with omega over ten orders of magnitude."""
    base = random_problem(seed, 80, 4)
    omega = np.logspace(-10, 0, len(base.edges))[np.random.default_rng(seed).permutation(len(base.edges))]
    p = Problem(base.X, base.y, base.edges, omega, 1.0, 1.0)
    rng = np.random.default_rng(seed)
    none = np.zeros((len(omega), 4))
    H = Curvature(
        1e4 * omega, none, none, np.full(80, 0.1), 0.1 * rng.standard_normal(p.shape), 1e-6 * np.ones(p.shape)
    )
    rhs = rng.standard_normal(p.shape)
    spent = {}
    for level in Level:
        x, spent[level] = solved(p, H, rhs, 1e-8, level)
        if level is Level.FACTORED:
            exact = np.linalg.solve(dense(p, H), rhs.ravel())
            assert_allclose(x.ravel(), exact, atol=1e-4 * np.abs(exact).max())
    assert spent[Level.FACTORED] <= 3
    assert min(spent[Level.JACOBI], spent[Level.COARSE]) > 20 * spent[Level.FACTORED]


def test_levels_follow_each_other_where_patience_ends_and_the_last_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    base = random_problem(0, 80, 4)
    rng = np.random.default_rng(0)
    omega = np.logspace(-10, 0, len(base.edges))[rng.permutation(len(base.edges))]
    p = Problem(base.X, base.y, base.edges, omega, 1.0, 1.0)
    none = np.zeros((len(omega), 4))
    H = Curvature(
        1e4 * omega, none, none, np.full(80, 0.1), 0.1 * rng.standard_normal(p.shape), 1e-6 * np.ones(p.shape)
    )
    rhs = rng.standard_normal(p.shape)
    with_patience(monkeypatch, 20, 20, 500)
    x, n, level = solve_system(p, H, rhs, 1e-8)
    assert level == Level.FACTORED
    assert 40 < n <= 45
    again, n, level = solve_system(p, H, rhs, 1e-8, level)
    assert (level, n <= 3) == (Level.FACTORED, True)
    assert_allclose(again, x, atol=1e-4 * np.abs(x).max())
    easy_H = curvature(p)
    assert solve_system(p, easy_H, rhs, 0.1)[2] == Level.JACOBI


def test_each_level_goes_on_where_the_one_before_has_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    p = random_problem(0, 30, 4)
    H, rhs, values = curvature(p, c_scales=6), np.ones(p.shape), [0.0]
    M = dense(p, H)

    def watched(apply, precondition, b, rtol, max_iter, x0=None):  # type: ignore[no-untyped-def]
        before = 0.0 if x0 is None else float(0.5 * x0.ravel() @ M @ x0.ravel() - b.ravel() @ x0.ravel())
        assert before == pytest.approx(values[-1])
        x, n = conjugate_gradients(apply, precondition, b, rtol, max_iter, x0)
        values.append(float(0.5 * x.ravel() @ M @ x.ravel() - b.ravel() @ x.ravel()))
        return x, n

    monkeypatch.setattr(newton_system, "conjugate_gradients", watched)
    with_patience(monkeypatch, 3, 3, 3)
    assert solve_system(p, H, rhs, 1e-14)[2] is Level.JACOBI  # none has come to an end: begin anew
    assert len(values) == 1 + len(Level)
    assert np.all(np.diff(values) < 0)


def test_factors_are_for_few_samples_or_few_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    p, alone = random_problem(0, 40, 4), np.arange(40)
    pairs, H, among = alone // 2, curvature(p), []

    def factored(problem: Problem, smoother: Operator, groups: np.ndarray, *_: np.ndarray) -> None:
        among.append(groups)

    def kinds(groups: np.ndarray) -> list[Level]:
        among.clear()
        monkeypatch.setattr(newton_system, "stiff_groups", lambda *_: groups)
        monkeypatch.setattr(newton_system, "factored", factored)
        return [level for level, _, _ in stages(p, H, Level.JACOBI)]

    def groups_are_used_where_samples_are_too_many() -> None:
        assert kinds(pairs) == list(Level)
        assert_allclose(among, [pairs])
        assert kinds(alone) == [Level.JACOBI, Level.COARSE]
        assert [level for level, _, _ in stages(p, H, Level.FACTORED)] == [Level.COARSE]

    assert kinds(pairs) == list(Level)
    assert_allclose(among, [alone])
    worth = 40 + (40**3 + 5 * 80**2) / (settings.FACTOR_COST * (40 + len(p.edges)))
    patience = [n for _, n, _ in stages(p, H, Level.JACOBI)]
    assert patience == [settings.EASY_CG, int(worth), settings.MAX_CG]
    monkeypatch.setattr(settings, "MAX_FACTORS", 4 * 40**2 + 80**2 - 1)
    groups_are_used_where_samples_are_too_many()
    monkeypatch.undo()
    monkeypatch.setattr(settings, "MAX_CG", int(worth_of_factors(p, alone)) - 1)
    groups_are_used_where_samples_are_too_many()


def two_scales(seed: int, n_groups: int = 12) -> tuple[Problem, Curvature]:
    """Groups of five samples each, joined within by edges 1e8 times as stiff as between; hardly any other curvature."""
    rng, N, d = np.random.default_rng(seed), 5 * n_groups, 6
    groups = np.arange(N) // 5
    i, j = np.triu_indices(N, 1)
    joined = (groups[i] == groups[j]) | (rng.random(len(i)) < 0.1)
    edges = np.stack([i, j], axis=1)[joined]
    c = np.where(np.equal(*groups[edges.T]), 1e8, 1.0) * rng.uniform(0.5, 1, len(edges))
    p = Problem(rng.standard_normal((N, d)), rng.permutation(np.repeat([1, -1], [N // 2, N - N // 2])), edges, c, 1, 1)
    none = np.zeros((len(edges), d))
    return p, Curvature(c, none, none, np.full(N, 0.01), 0.1 * rng.standard_normal((N, d)), np.full((N, d), 1e-6))


@pytest.mark.parametrize("seed", range(3))
def test_groups_that_pull_on_each_other_are_easy_with_factors_among_them(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    p, H = two_scales(seed)
    assert_allclose(stiff_groups(p, H.c), np.arange(len(p.y)) // 5)
    rhs = np.random.default_rng(seed).standard_normal(p.shape)
    monkeypatch.setattr(settings, "MAX_FACTORS", 1e4)  # enough for twelve groups
    _, coarse = solved(p, H, rhs, 1e-10, Level.COARSE)
    x, grouped = solved(p, H, rhs, 1e-10, Level.FACTORED)
    assert 3 * grouped < coarse
    exact = np.linalg.solve(dense(p, H), rhs.ravel())
    assert_allclose(x.ravel(), exact, atol=1e-6 * np.abs(exact).max())


def test_few_terms_have_the_same_sum_in_every_group() -> None:
    rng, groups = np.random.default_rng(0), np.array([2, 0, 1, 0, 0, 2, 0])
    p, q = rng.standard_normal((2, 7, 3))
    Y, at = few_terms(groups, p, q)
    assert len(Y) == 3 + 2 + 3
    for g in range(3):
        of = groups == g
        assert_allclose(Y[at == g].T @ Y[at == g], p[of].T @ p[of] + q[of].T @ q[of], atol=1e-12)


def test_factors_that_fail_are_replaced_by_block_jacobi(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(newton_system, "factored", lambda *_: None)
    p = random_problem(0, 20, 4)
    H, rhs = curvature(p), np.ones(p.shape)
    x, _, _ = solve_system(p, H, rhs, 1e-10, Level.FACTORED)
    assert_allclose(x.ravel(), np.linalg.solve(dense(p, H), rhs.ravel()), rtol=1e-5, atol=1e-6)


# ---- conjugate gradients -----------------------------------------------------------------------------------


def spd(n: int, seed: int = 0) -> np.ndarray:
    A = np.random.default_rng(seed).standard_normal((n, n))
    return A @ A.T + 0.1 * np.eye(n)


@pytest.mark.parametrize("warm", [False, True])
def test_every_iterate_of_conjugate_gradients_lowers_the_quadratic(warm: bool) -> None:
    H, rng = spd(12), np.random.default_rng(1)
    b = rng.standard_normal((12, 1))
    x0 = rng.standard_normal((12, 1)) if warm else None
    values = [0.0 if x0 is None else float((0.5 * x0.T @ H @ x0 - b.T @ x0).item())]
    for k in range(1, 13):
        x, n = conjugate_gradients(lambda P: H @ P, lambda R: R / np.diag(H)[:, None], b, 1e-14, k, x0)
        assert n <= k
        values.append(float((0.5 * x.T @ H @ x - b.T @ x).item()))
    assert np.all(np.diff(values) <= 1e-12)
    assert_allclose(x, np.linalg.solve(H, b), rtol=1e-6)


def test_conjugate_gradients_stop_at_the_accuracy_asked_for() -> None:
    H = spd(40)
    b = np.random.default_rng(1).standard_normal((40, 1))
    spent = [conjugate_gradients(lambda P: H @ P, lambda R: R, b, rtol, 500)[1] for rtol in (0.5, 1e-2, 1e-6, 1e-10)]
    assert spent == sorted(set(spent))
    assert conjugate_gradients(lambda P: H @ P, lambda R: R, 0.0 * b, 1e-6, 500) == (pytest.approx(0.0 * b), 0)


def test_flat_directions_end_conjugate_gradients() -> None:
    H = np.diag([1.0, 0.0])
    x, _ = conjugate_gradients(lambda P: H @ P, lambda R: R, np.array([[0.0], [1.0]]), 1e-8, 50)
    assert not x.any()
    x, n = conjugate_gradients(lambda P: -H @ P, lambda R: R, np.array([[1.0], [0.0]]), 1e-8, 50)
    assert (n, x.any()) == (0, False)


@pytest.mark.parametrize("limit", [100, 0], ids=["inverted", "iterated"])
def test_a_fixed_matrix_is_solved_with_many_times(limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "DENSE", limit)
    M, rng = spd(15), np.random.default_rng(2)
    solve = repeated_solver(csr_array(M), rtol=1e-12, max_iter=200)
    for _ in range(3):
        rhs, guess = rng.standard_normal((2, 15, 3))
        assert_allclose(solve(rhs, guess), np.linalg.solve(M, rhs), rtol=1e-6, atol=1e-8)
