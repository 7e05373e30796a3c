"""Newton's method on a face: its system against dense matrices, groups of clusters, the dual inside clusters."""

from __future__ import annotations

import numpy as np
import pytest
from builders import random_problem
from numpy.testing import assert_allclose

import llr_cvx as llr
from llr_cvx.benchmarks import measure as bench
from llr_cvx.proofs.certificate import certificate
from llr_cvx.solvers.fast import completion, face_system
from llr_cvx.solvers.fast.completion import complete_dual, into_balls
from llr_cvx.solvers.fast.descent import descend
from llr_cvx.solvers.fast.face import Face, face_of
from llr_cvx.solvers.fast.face_system import PATIENCE, FaceSystem, paired


def a_face(seed: int = 0, N: int = 20, d: int = 4) -> Face:
    """Random rows with zeros, on clusters of one to four samples."""
    p = random_problem(seed, N, d, lambda1=0.3)
    rng = np.random.default_rng(seed)
    clusters = np.unique(rng.integers(N // 2, size=N), return_inverse=True)[1]
    n = int(clusters.max()) + 1
    free = rng.random((n, d)) < 0.7
    return Face(p, clusters, np.where(free, rng.standard_normal((n, d)), 0.0), free)


def with_short_links(face: Face, n_short: int) -> Face:
    """Rows moved together along some links that do not touch, to a millionth of their distance."""
    w, free, taken = face.w.copy(), face.free.copy(), set()
    for i, j in face.links[0].indices.reshape(-1, 2):
        if len(taken) < 2 * n_short and not {i, j} & taken:
            taken |= {i, j}
            free[j] = free[i]
            w[j] = np.where(free[i], w[i] + 1e-6 * (w[j] - w[i]), 0.0)
    assert len(taken) == 2 * n_short
    return Face(face.problem, face.clusters, w, free)


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


def test_the_system_is_the_one_of_its_definition() -> None:
    system = system_of(a_face())
    H = dense_matrix(system)
    rhs = np.random.default_rng(2).standard_normal(system.face.w.shape) * system.face.free
    assert_allclose(system.apply(rhs).ravel(), H @ rhs.ravel(), rtol=1e-12, atol=1e-12)
    x, n = system.solve(rhs, 1e-12, 500, stiff=False)
    assert 0 < n < 500
    assert_allclose(x.ravel(), np.linalg.solve(H, rhs.ravel()), rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("n_groups", [2, 3, 5])
def test_groups_are_inverted_whole(n_groups: int) -> None:
    system = system_of(a_face())
    n, d = system.face.w.shape
    groups = np.random.default_rng(n_groups).integers(n_groups, size=n)
    solve, H = system.inverse_of_blocks(groups), dense_matrix(system).reshape(n, d, n, d)
    R = np.random.default_rng(3).standard_normal((n, d)) * system.face.free
    out = solve(R)
    for g in np.unique(groups):
        rows = np.flatnonzero(groups == g)
        block = H[np.ix_(rows, range(d), rows, range(d))].reshape(len(rows) * d, -1)
        inner = np.isin(system.B.indices.reshape(-1, 2), rows).all(axis=1)
        # Links that leave a group count with c I: the block is no smaller than that of H.
        leaving = np.zeros((n, d, d))
        for (i, j), c, u in zip(
            system.B.indices.reshape(-1, 2)[~inner], system.c[~inner], system.d_hat[~inner], strict=True
        ):
            for k in (i, j):
                leaving[k] += c * np.outer(u, u)
        for k, row in enumerate(rows):
            mask = np.outer(system.face.free[row], system.face.free[row])
            block[k * d : (k + 1) * d, k * d : (k + 1) * d] += leaving[row] * mask
        assert_allclose(out[rows].ravel(), np.linalg.solve(block, R[rows].ravel()), rtol=1e-6, atol=1e-9)


def test_short_links_are_found_and_make_the_system_easy() -> None:
    plain, stiff = system_of(a_face(N=60)), system_of(with_short_links(a_face(N=60), 6))
    assert len(np.unique(stiff.groups())) <= len(stiff.face.w) - 6
    assert len(np.unique(plain.groups())) > len(np.unique(stiff.groups()))
    rhs = np.random.default_rng(4).standard_normal(stiff.face.w.shape) * stiff.face.free
    exact = np.linalg.solve(dense_matrix(stiff), rhs.ravel())
    x, n = stiff.solve(rhs, 1e-6, 200, stiff=True)
    assert n <= 30
    assert_allclose(x.ravel(), exact, rtol=1e-3, atol=1e-4 * np.abs(exact).max())
    _, patient = stiff.solve(rhs, 1e-6, 200, stiff=False)
    assert PATIENCE < patient <= PATIENCE + 30


def test_groups_of_many_features_are_not_made_at_any_price(monkeypatch: pytest.MonkeyPatch) -> None:
    system = system_of(with_short_links(a_face(N=60), 6))
    n, d = system.face.w.shape
    monkeypatch.setattr(face_system, "WORK", 2.0 * (2 * d) ** 3)
    labels = system.groups()
    assert n - len(np.unique(labels)) in (1, 2)
    i, j = system.B.indices.reshape(-1, 2)[np.argmax(system.c)]
    assert labels[i] == labels[j]


def test_pairs_are_mutual_first_choices() -> None:
    rng = np.random.default_rng(0)
    links = np.array([(i, j) for i in range(12) for j in range(i + 1, 12) if rng.random() < 0.4])
    c = rng.random(len(links))
    labels = paired(links, c, 12)
    assert np.bincount(labels).max() == 2
    i, j = links[np.argmax(c)]
    assert labels[i] == labels[j]  # the largest of all is everybody's first choice
    linked = {frozenset(map(int, link)) for link in links}
    for label in np.flatnonzero(np.bincount(labels) == 2):
        assert frozenset(np.flatnonzero(labels == label).tolist()) in linked


def test_what_depends_on_clusters_alone_is_kept() -> None:
    face = a_face()
    links, other = face.links, face.at(2.0 * face.w, face.free)
    assert other.links is links
    assert_allclose(other.W, 2.0 * face.W)


@pytest.mark.parametrize("seed", range(3))
def test_descent_from_a_disturbed_optimum_comes_back(seed: int) -> None:
    p = random_problem(seed, 40, 5, lambda1=0.2)
    s = llr.solve_irls(p, tol=1e-12)
    fused = np.all(s.W[p.edges[:, 0]] == s.W[p.edges[:, 1]], axis=1)
    face = face_of(p, s.W, fused)
    noise = np.random.default_rng(seed).uniform(-1e-6, 1e-6, face.w.shape)
    disturbed = face.at(face.w * (1.01 + noise), face.free)  # no link turns over
    assert p.objective(disturbed.W) > s.objective * (1 + 1e-6)
    found, done = descend(disturbed, budget=400, accuracy=1e-13)
    assert done
    assert_allclose(p.objective(found.W), s.objective, rtol=1e-13)


@pytest.mark.parametrize(("seed", "lambda1"), [(0, 0.1), (1, 0.1), (2, 1.0), (3, 10.0), (5, 0.1)])
def test_the_dual_of_the_right_face_is_found_from_nothing(seed: int, lambda1: float) -> None:
    p = bench.instance(310, 10, seed, lambda1)
    s = llr.solve_irls(p, tol=1e-12)
    face = face_of(p, s.W, np.all(s.W[p.edges[:, 0]] == s.W[p.edges[:, 1]], axis=1))
    assert face.sizes.max() >= 3
    alpha, U = complete_dual(face, np.zeros_like(s.certificate.U), target=s.objective * (1 - 1e-10))
    proof = certificate(p, s.W, alpha, U)
    assert -1e-13 <= proof.relative_gap <= 1.1e-10


def test_the_dual_of_a_wrong_face_is_given_up_and_no_worse_than_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    p = bench.instance(93, 10, 0)
    s = llr.solve_irls(p, tol=1e-12)
    fused = np.all(s.W[p.edges[:, 0]] == s.W[p.edges[:, 1]], axis=1)
    fused[np.flatnonzero(~fused)[:5]] = True
    face, U = face_of(p, s.W, fused), s.certificate.U
    rounds = []
    monkeypatch.setattr(completion, "into_balls", lambda *a, f=into_balls: rounds.append(1) or f(*a))
    after = certificate(p, face.W, *complete_dual(face, U, target=p.objective(face.W)))
    assert len(rounds) < completion.ROUNDS / 2
    monkeypatch.setattr(completion, "ROUNDS", 0)
    before = certificate(p, face.W, *complete_dual(face, U, target=p.objective(face.W)))
    assert before.dual <= after.dual < s.certificate.dual * (1 - 1e-6)


def test_large_and_small_systems_inside_clusters_have_the_same_solution(monkeypatch: pytest.MonkeyPatch) -> None:
    p = bench.instance(93, 10, 1, lambda1=0.3)
    s = llr.solve_irls(p, tol=1e-12)
    face = face_of(p, s.W, np.all(s.W[p.edges[:, 0]] == s.W[p.edges[:, 1]], axis=1))
    start = np.zeros_like(s.certificate.U)
    inverted = complete_dual(face, start, target=s.objective * (1 - 1e-10))
    monkeypatch.setattr(completion, "DENSE", 0)
    iterated = complete_dual(face, start, target=s.objective * (1 - 1e-10))
    assert_allclose(iterated[1], inverted[1], atol=1e-6 * p.radii.max())


@pytest.mark.parametrize("seed", range(5))
def test_the_finish_succeeds_in_the_paper_setting(seed: int) -> None:
    """It is asked for by tol = 1e-9, and goes on to rounding error."""
    X_inlier, X_test, _ = llr.make_synthetic(10, seed)
    s = llr.solve_irls(llr.Problem.from_samples(X_inlier, X_test), tol=1e-9)
    assert abs(s.certificate.relative_gap) <= 1e-13
