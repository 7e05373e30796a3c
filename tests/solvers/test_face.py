"""Faces: clusters and zeros, the contracted graph, and J on it."""

from __future__ import annotations

import numpy as np
import pytest
from builders import random_problem
from numpy.testing import assert_allclose

from llr_cvx.problem import Problem
from llr_cvx.solvers.face import Face, face_of


def a_face(seed: int = 0, N: int = 20, d: int = 4) -> Face:
    """Random rows with zeros, on clusters of one to four samples."""
    p = random_problem(seed, N, d, lambda1=0.3)
    rng = np.random.default_rng(seed)
    clusters = np.unique(rng.integers(N // 2, size=N), return_inverse=True)[1]
    n = int(clusters.max()) + 1
    free = rng.random((n, d)) < 0.7
    return Face(p, clusters, np.where(free, rng.standard_normal((n, d)), 0.0), free)


@pytest.mark.parametrize("seed", range(3))
def test_J_on_a_face_is_F_of_its_rows(seed: int) -> None:
    face = a_face(seed)
    p, w = face.problem, face.w
    B, BT, weight = face.links
    F = np.logaddexp(0.0, -p.y * (p.X * w[face.clusters]).sum(axis=1)).sum()
    F += weight @ np.linalg.norm(B @ w, axis=1)
    F += p.lambda2 * face.sizes @ (np.sign(w) * w).sum(axis=1) ** 2
    assert p.objective(face.W) == pytest.approx(F, rel=1e-13)
    assert (B.T != BT).nnz == 0
    assert len(np.unique(B.indices.reshape(-1, 2), axis=0)) == len(weight)  # parallel edges are one link


def test_membership_sums_over_clusters() -> None:
    face = a_face()
    values = np.random.default_rng(1).standard_normal(face.problem.shape)
    for c, total in enumerate(face.membership @ values):
        assert_allclose(total, values[face.clusters == c].sum(axis=0), atol=1e-14)
    assert face.sizes.sum() == face.problem.shape[0]


def test_what_depends_on_clusters_alone_is_kept() -> None:
    face = a_face()
    links, other = face.links, face.at(2.0 * face.w, face.free)
    assert other.links is links
    assert_allclose(other.W, 2.0 * face.W)


def test_marked_edges_make_clusters_at_their_means_with_the_zeros_of_most() -> None:
    X = np.eye(5)[:, :3]
    p = Problem(X, [1, 1, 1, -1, -1], [[0, 1], [1, 2], [2, 3], [3, 4]], [1.0, 1.0, 1.0, 0.0], 0.5, 1.0)
    W = np.array([[1.0, 0, 3], [2.0, 0, 0], [3.0, 6, 0], [4.0, 4, 4], [4.0, 4, 4]])
    face = face_of(p, W, np.array([True, True, False, True]))
    assert face.clusters.tolist() == [0, 0, 0, 1, 2]  # the last edge has no weight
    assert_allclose(face.W, [[2.0, 0, 0]] * 3 + [[4.0, 4, 4]] * 2)
    assert np.array_equal(face.free, face.w != 0.0)
    assert_allclose(face.links[2], [0.5])


def test_without_a_marked_edge_W_is_its_own_face() -> None:
    p = random_problem(0, 12, 3)
    W = np.random.default_rng(0).standard_normal(p.shape)
    W[W < 0] = 0.0
    face = face_of(p, W, np.zeros(len(p.edges), dtype=bool))
    assert np.array_equal(face.W, W)
    assert np.array_equal(face.free, W != 0.0)


def test_without_the_exclusive_penalty_every_coordinate_is_free() -> None:
    p = random_problem(0, 12, 3, lambda2=0.0)
    W = np.zeros(p.shape)
    W[0] = 1.0
    face = face_of(p, W, np.zeros(len(p.edges), dtype=bool))
    assert face.free.all()
    assert np.array_equal(face.W, W)
