"""Newton's method on a face: its system against dense matrices, descent, and the dual inside clusters."""

from __future__ import annotations

import numpy as np
import pytest
from builders import proved, random_problem
from numpy.testing import assert_allclose

import llr_cvx as llr
from llr_cvx.arrays import into_balls
from llr_cvx.benchmarks.measure import instance
from llr_cvx.problem import Problem
from llr_cvx.proofs.certificate import certificate
from llr_cvx.solvers import settings
from llr_cvx.solvers.face import Face, face_of
from llr_cvx.solvers.fast import completion, finish
from llr_cvx.solvers.fast.completion import complete_dual
from llr_cvx.solvers.fast.finish import FaceSystem, Finish, descend
from llr_cvx.solvers.linear.cg import conjugate_gradients
from llr_cvx.solvers.run import Best


def a_face(seed: int = 0, N: int = 20, d: int = 4) -> Face:
    """Random rows with zeros, on clusters of one to four samples."""
    p = random_problem(seed, N, d, lambda1=0.3)
    rng = np.random.default_rng(seed)
    clusters = np.unique(rng.integers(N // 2, size=N), return_inverse=True)[1]
    n = int(clusters.max()) + 1
    free = rng.random((n, d)) < 0.7
    return Face(p, clusters, np.where(free, rng.standard_normal((n, d)), 0.0), free)


def face_at(s: llr.Solution, W: np.ndarray | None = None) -> Face:
    """The face of a solution: edges along which its rows are equal."""
    p = s.problem
    i, j = p.edges.T
    return face_of(p, s.W if W is None else W, np.all(s.W[i] == s.W[j], axis=1))


def exact(p: Problem) -> llr.Solution:
    return llr.solve_fast(p, tol=1e-12)


# ---- the system ---------------------------------------------------------------------------------------------


def system_of(face: Face) -> FaceSystem:
    s = np.random.default_rng(1).uniform(0.05, 0.25, face.problem.shape[0])
    return FaceSystem(face, np.sign(face.w), s)


def dense_matrix(system: FaceSystem) -> np.ndarray:
    """H, piece by piece from its definition; the identity on coordinates that are not free."""
    face, p = system.face, system.face.problem
    n, d = face.w.shape
    H = np.zeros((n, d, n, d))
    for i, c in enumerate(face.clusters):
        H[c, :, c] += system.s[i] * np.outer(p.X[i], p.X[i])
    for c in range(n):
        H[c, :, c] += 2.0 * p.lambda2 * face.sizes[c] * np.outer(system.sigma[c], system.sigma[c])
    for (i, j), radius in zip(p.edges, p.radii, strict=True):
        a, b = face.clusters[[i, j]]
        length = np.linalg.norm(face.w[a] - face.w[b])
        if a != b and length > 0:
            direction = (face.w[a] - face.w[b]) / length
            piece = radius / length * (np.eye(d) - np.outer(direction, direction))
            H[a, :, a] += piece
            H[b, :, b] += piece
            H[a, :, b] -= piece
            H[b, :, a] -= piece
    free = face.free.ravel()
    H = H.reshape(n * d, n * d) * np.outer(free, free)
    H[~free, ~free] = 1.0
    return H


@pytest.mark.parametrize("seed", range(3))
def test_the_system_is_the_one_of_its_definition(seed: int) -> None:
    system = system_of(a_face(seed))
    H = dense_matrix(system)
    rhs = np.random.default_rng(2).standard_normal(system.face.w.shape) * system.face.free
    assert_allclose(system.apply(rhs).ravel(), H @ rhs.ravel(), rtol=1e-12, atol=1e-12)
    x, n = conjugate_gradients(system.apply, system.inverse_of_blocks(), rhs, 1e-12, 500)
    assert 0 < n < 500
    assert_allclose(x.ravel(), np.linalg.solve(H, rhs.ravel()), rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("seed", range(3))
def test_the_block_of_each_cluster_is_inverted(seed: int) -> None:
    """Links count with c I, so that a block is no smaller than that of H."""
    system = system_of(a_face(seed))
    face, (n, d) = system.face, system.face.w.shape
    H = dense_matrix(system).reshape(n, d, n, d)
    R = np.random.default_rng(3).standard_normal((n, d)) * face.free
    out = system.inverse_of_blocks()(R)
    assert not out[~face.free].any()
    ends = system.B.indices.reshape(-1, 2)
    for k in range(n):
        block = H[k, :, k].copy()
        for c, u in zip(system.c[(ends == k).any(axis=1)], system.d_hat[(ends == k).any(axis=1)], strict=True):
            block += c * np.outer(u, u) * np.outer(face.free[k], face.free[k])
        assert_allclose(out[k], np.linalg.solve(block, R[k]), rtol=1e-5, atol=1e-7)


def test_a_budget_ends_the_system() -> None:
    system = system_of(a_face(N=60))
    rhs = np.where(system.face.free, 1.0, 0.0)
    assert conjugate_gradients(system.apply, system.inverse_of_blocks(), rhs, 1e-14, 3)[1] == 3


# ---- descent -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_descent_from_a_disturbed_optimum_comes_back(seed: int) -> None:
    p = random_problem(seed, 40, 5, lambda1=0.2)
    s = exact(p)
    face = face_at(s)
    noise = np.random.default_rng(seed).uniform(-1e-6, 1e-6, face.w.shape)
    disturbed = face.at(face.w * (1.01 + noise), face.free)  # no link turns over
    assert p.objective(disturbed.W) > s.objective * (1 + 1e-6)
    found, done = descend(disturbed, budget=400, accuracy=1e-13)
    assert done
    assert_allclose(p.objective(found.W), s.objective, rtol=1e-13)
    assert np.array_equal(found.free, face.free)


def test_one_step_of_descent_is_newtons(monkeypatch: pytest.MonkeyPatch) -> None:
    """From a point near the optimum of its face, with the system solved exactly: the dense Newton step."""
    s = exact(random_problem(1, 30, 4, lambda1=0.2))
    face, p = face_at(s), s.problem
    face = face.at(1.001 * face.w, face.free)
    n, d = face.w.shape

    def gradient(w: np.ndarray) -> np.ndarray:
        """Of F, by central differences."""
        g = np.zeros(n * d)
        for k in np.flatnonzero(face.free):
            h = np.zeros(n * d)
            h[k] = 1e-6
            up, down = (p.objective((w + sign * h.reshape(n, d))[face.clusters]) for sign in (1, -1))
            g[k] = (up - down) / 2e-6
        return g

    alpha = p.alpha(face.W)
    H = dense_matrix(FaceSystem(face, np.sign(face.w), alpha * (1 - alpha)))
    newton = face.w - np.linalg.solve(H, gradient(face.w)).reshape(n, d)
    taken: list[np.ndarray] = []
    honest = finish._line_search

    def seen(at, step, sigma, best):  # type: ignore[no-untyped-def]
        taken.append(at.w + step)
        return honest(at, step, sigma, best)

    monkeypatch.setattr(finish, "_line_search", seen)
    monkeypatch.setattr(settings, "FACE_LOOSE", 1e-10)
    descend(face, 400, 1e-13)
    assert_allclose(taken[0], newton, atol=1e-6 * np.abs(newton).max())


def test_descent_never_raises_J_and_says_when_the_budget_ends_it() -> None:
    face = a_face(N=40)
    before = face.problem.objective(face.W)
    for budget in (1, 5, 20, 400):
        found, _ = descend(face, budget, 1e-13)
        after = face.problem.objective(found.W)
        assert after < before
    assert not descend(face, 1, 1e-13)[1]


def test_descent_frees_what_should_not_be_zero_and_drops_what_should() -> None:
    s = exact(random_problem(0, 40, 5, lambda1=0.01))
    face = face_at(s)
    rng = np.random.default_rng(0)
    second = np.sort(np.abs(face.w), axis=1)[:, -2]
    k = int(second.argmax())
    missing = int(np.flatnonzero(np.abs(face.w[k]) == second[k])[0])
    free, w = face.free.copy(), face.w.copy()
    free[k, missing], w[k, missing] = False, 0.0  # the second of a row is held at zero
    extra = ~face.free & (rng.random(free.shape) < 0.1)
    assert extra.any()
    free |= extra
    w[extra] = 1e-3 * rng.standard_normal(extra.sum())  # and some that should vanish are free
    found, done = descend(face.at(w, free), budget=2000, accuracy=1e-13)
    assert done
    assert_allclose(s.problem.objective(found.W), s.objective, rtol=1e-12)
    assert found.free[k, missing]
    assert np.array_equal(found.W != 0.0, s.support)


def test_links_that_turn_over_are_fused() -> None:
    s = exact(random_problem(0, 40, 5, lambda1=3.0))
    assert len(np.unique(s.clusters)) < 40
    p = s.problem
    apart = s.W + 1e-4 * np.random.default_rng(0).standard_normal(p.shape) * s.support
    face = face_of(p, apart, np.zeros(len(p.edges), dtype=bool))
    found, _ = descend(face, budget=2000, accuracy=1e-13)
    assert len(found.w) < len(face.w)
    assert p.objective(found.W) < p.objective(apart)


# ---- the dual point ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("seed", "lambda1"), [(0, 0.1), (1, 0.1), (2, 1.0), (3, 10.0), (5, 0.1)])
def test_the_dual_of_the_right_face_is_found_from_nothing(seed: int, lambda1: float) -> None:
    s = exact(instance(310, 10, seed, lambda1))
    face = face_at(s)
    assert face.sizes.max() >= 3
    alpha, U = complete_dual(face, np.zeros_like(s.certificate.U), target=s.objective * (1 - 1e-10))
    proof = certificate(s.problem, s.W, alpha, U)
    assert -1e-13 <= proof.relative_gap <= 1.1e-10


def test_the_dual_of_a_wrong_face_is_given_up_and_no_worse_than_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    s = exact(instance(93, 10, 0))
    p = s.problem
    fused = np.all(s.W[p.edges[:, 0]] == s.W[p.edges[:, 1]], axis=1)
    fused[np.flatnonzero(~fused)[:5]] = True
    face, U = face_of(p, s.W, fused), s.certificate.U
    calls: list[int] = []
    monkeypatch.setattr(completion, "into_balls", lambda *a: calls.append(1) or into_balls(*a))
    after = certificate(p, face.W, *complete_dual(face, U, target=p.objective(face.W)))
    assert len(calls) < settings.COMPLETION_ROUNDS  # two per round
    monkeypatch.setattr(settings, "COMPLETION_ROUNDS", 0)
    before = certificate(p, face.W, *complete_dual(face, U, target=p.objective(face.W)))
    assert before.dual <= after.dual < s.certificate.dual * (1 - 1e-6)


def test_large_and_small_systems_inside_clusters_have_the_same_solution(monkeypatch: pytest.MonkeyPatch) -> None:
    s = exact(instance(93, 10, 1, lambda1=0.3))
    face, start = face_at(s), np.zeros_like(s.certificate.U)
    inverted = complete_dual(face, start, target=s.objective * (1 - 1e-10))
    monkeypatch.setattr(settings, "DENSE", 0)
    monkeypatch.setattr(settings, "COMPLETION_ROUNDS", 6 * settings.COMPLETION_ROUNDS)  # a sixth of it for many
    iterated = complete_dual(face, start, target=s.objective * (1 - 1e-10))
    assert_allclose(iterated[1], inverted[1], atol=1e-6 * s.problem.radii.max())


# ---- the phase -----------------------------------------------------------------------------------------------


def test_the_finish_goes_from_a_rough_point_on_the_right_face_to_rounding_error_in_one_step() -> None:
    s = exact(instance(150, 10, 0))
    p, face = s.problem, face_at(s)
    best = Best(p, s.W)
    rough = face.at(1.001 * face.w, face.free)
    best.primal(rough.W, p.objective(rough.W))
    method = Finish(rough, s.certificate.U, best)
    at = method.step()
    assert method.done
    assert at.objective == p.objective(at.W)
    assert np.isnan(at.smoothed_objective)
    assert best.W is at.W
    assert certificate(p, best.W, best.alpha, best.U).relative_gap <= 1e-12


def test_a_finish_on_a_wrong_face_leaves_the_best_points_alone() -> None:
    s = exact(instance(93, 10, 0))
    p = s.problem
    best = Best(p, s.W)
    best.primal(s.W, s.objective)
    best.bound(s.certificate.alpha, s.certificate.U)
    dual = best.dual
    wrong = face_of(p, s.W, np.ones(len(p.edges), dtype=bool))  # everything fused
    at = Finish(wrong, s.certificate.U, best).step()
    assert at.objective > s.objective * (1 + 1e-6)
    assert best.W is s.W
    assert best.dual == dual


@pytest.mark.parametrize("seed", range(5))
def test_the_finish_succeeds_in_the_paper_setting(seed: int) -> None:
    """It is asked for by tol = 1e-9, and goes on to rounding error."""
    s = llr.solve_fast(instance(310, 10, seed), tol=1e-9)
    assert s.trace is not None
    assert "finish" in s.trace.phase
    assert abs(s.certificate.relative_gap) <= 1e-13


@pytest.mark.parametrize(("d", "lambda1"), [(10, 0.01), (10, 0.1), (10, 1.0), (50, 0.1)])
@pytest.mark.parametrize("seed", [0, 3])
def test_support_and_clusters_at_1e_9_are_those_at_1e_13(d: int, lambda1: float, seed: int) -> None:
    p = instance(150, d, seed, lambda1)
    found, reference = llr.solve_fast(p, tol=1e-9), llr.solve_fast(p, tol=1e-13)
    assert found.status == reference.status == "optimal"
    assert np.array_equal(found.support, reference.support)
    assert np.array_equal(found.clusters, reference.clusters)
    assert_allclose(found.W, reference.W, atol=1e-8)


@pytest.mark.parametrize(
    ("d", "lambda1", "lambda2"),
    [
        (10, 0.001, 0.01),
        (10, 0.1, 1.0),
        (10, 0.1, 0.1),
        (10, 1.0, 10.0),
        (10, 10.0, 0.1),
        (50, 0.01, 1.0),
        (50, 0.1, 1.0),
    ],
)
def test_machine_precision_on_cells_of_the_plane(d: int, lambda1: float, lambda2: float) -> None:
    s = llr.solve_fast(instance(310, d, 1, lambda1, lambda2), tol=1e-12)
    assert s.status == "optimal"
    assert proved(s, 1e-12)


def test_what_is_proved_to_vanish_or_to_fuse_does_so_exactly() -> None:
    s = llr.solve_fast(instance(310, 10, 0, lambda1=1.0, lambda2=0.1), tol=1e-9)
    p = s.problem
    G = s.certificate.gap + 1e-12 * s.objective
    v = p.dual_vectors(s.certificate.alpha, s.certificate.U)
    M = np.abs(v).max(axis=1, keepdims=True)
    # every optimum has |w_ik| <= G / (M_i - |v_ik|)
    vanish = G < 1e-6 * (M - np.abs(v)) * np.abs(s.W).max()
    assert vanish.any()
    assert np.all(s.W[vanish] == 0.0)
    slack = p.radii - np.linalg.norm(s.certificate.U, axis=1)
    i, j = p.edges[G < 1e-6 * slack * np.abs(s.W).max()].T
    assert len(i) > 100
    assert np.array_equal(s.W[i], s.W[j])
    assert np.array_equal(s.clusters[i], s.clusters[j])
    assert 1 < s.clusters.max() + 1 < p.shape[0]


def test_everything_fused_is_one_cluster() -> None:
    s = llr.solve_fast(instance(310, 10, 0, lambda1=10.0, lambda2=0.1), tol=1e-9)
    assert np.all(s.clusters == 0)
    assert np.all(s.W == s.W[0])
