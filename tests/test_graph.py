"""The similarity graph: its formula, its diagnostics, and degenerate samples."""

from __future__ import annotations

import numpy as np
import pytest

import llr_cvx as llr
from llr_cvx.graph import GraphWarning


def slow_graph(X: np.ndarray, K: int, sigma: float) -> dict[tuple[int, int], float]:
    """omega_ij = r_ij + r_ji from the definition, by sorting all distances."""
    omega: dict[tuple[int, int], float] = {}
    for i in range(len(X)):
        distance = np.linalg.norm(X - X[i], axis=1)
        distance[i] = np.inf
        for j in np.argsort(distance)[:K]:
            key = (min(i, int(j)), max(i, int(j)))
            omega[key] = omega.get(key, 0.0) + float(np.exp(-(distance[j] ** 2) / (2 * sigma**2)))
    return omega


@pytest.mark.parametrize(("N", "d", "K"), [(2, 1, 1), (20, 3, 5), (40, 12, 7), (30, 2, 29)])
def test_edges_and_weights_follow_the_definition(N: int, d: int, K: int) -> None:
    X = np.random.default_rng(N).standard_normal((N, d))
    edges, weights = llr.similarity_graph(X, n_neighbors=K, sigma=1.3)
    expected = slow_graph(X, K, 1.3)
    assert [tuple(e) for e in edges.tolist()] == sorted(expected)
    assert np.allclose(weights, [expected[tuple(e)] for e in edges.tolist()], rtol=1e-12, atol=0)


def test_a_mutual_pair_counts_twice_and_a_one_sided_one_once() -> None:
    edges, weights = llr.similarity_graph([[0.0], [1.0], [3.0]], n_neighbors=1, sigma=1.0)
    assert edges.tolist() == [[0, 1], [1, 2]]
    assert weights == pytest.approx([2 * np.exp(-0.5), np.exp(-2.0)], rel=1e-15)


def test_sigma_is_the_median_of_the_positive_neighbour_distances() -> None:
    X = np.array([[0.0], [0.0], [1.0], [3.0], [7.0]])  # distances to the nearest: 0, 0, 1, 2, 4
    p = llr.Problem.from_samples(X[:3], X[3:], n_neighbors=1)
    assert p.sigma == 2.0
    assert p.n_neighbors == 1


def test_close_rows_far_from_the_origin_keep_their_distance() -> None:
    """A search by ||x||^2 - 2 x.z + ||z||^2 would lose all digits of these distances."""
    X = 1e6 + 1e-3 * np.random.default_rng(0).standard_normal((20, 2))
    edges, weights = llr.similarity_graph(X, n_neighbors=19, sigma=1e-3)
    D2 = ((X[edges[:, 0]] - X[edges[:, 1]]) ** 2).sum(axis=1)
    assert np.allclose(weights, 2 * np.exp(-D2 / 2e-6), rtol=1e-12)


@pytest.mark.parametrize("d", [2, 40])
def test_an_offset_common_to_all_rows_changes_no_neighbour(d: int) -> None:
    X = np.round(np.random.default_rng(d).standard_normal((60, d)), 6)
    edges, _ = llr.similarity_graph(X)
    moved, _ = llr.similarity_graph(X + 1e7)
    assert np.array_equal(edges, moved)


def test_a_tiny_sigma_leaves_duplicates_connected() -> None:
    X = np.repeat(np.arange(3.0)[:, None], 3, axis=0)
    edges, weights = llr.similarity_graph(X, n_neighbors=2, sigma=1e-320)
    assert len(edges) == 9
    assert weights.tolist() == [2.0] * 9


def test_duplicates_have_weight_two_and_sigma_stays_positive() -> None:
    X = np.repeat(np.random.default_rng(0).standard_normal((4, 3)), 2, axis=0)
    edges, weights = llr.similarity_graph(X, n_neighbors=2)
    twins = [[0, 1], [2, 3], [4, 5], [6, 7]]
    assert [weights[edges.tolist().index(e)] for e in twins] == [2.0] * 4
    assert np.all((weights > 0) & (weights <= 2.0))


def test_all_equal_rows_warn_and_get_sigma_one() -> None:
    with pytest.warns(GraphWarning, match="no positive neighbour distance .* using sigma = 1"):
        p = llr.Problem.from_samples(np.ones((4, 2)), np.ones((4, 2)), n_neighbors=2)
    assert p.sigma == 1.0
    assert np.all(p.weights > 0)


def test_constant_columns_change_nothing() -> None:
    X = np.random.default_rng(0).standard_normal((15, 3))
    e1, w1 = llr.similarity_graph(X)
    e2, w2 = llr.similarity_graph(np.column_stack([X, np.full(15, 7.0)]))
    assert np.array_equal(e1, e2)
    assert np.allclose(w1, w2, rtol=1e-12)


def test_a_far_outlier_is_named_and_scored_alone() -> None:
    rng = np.random.default_rng(0)
    X_test = rng.standard_normal((6, 2))
    X_test[4] = 1e4
    with pytest.warns(GraphWarning, match=r"1 sample\(s\) lie so far away .* \(rows 14\): each is scored alone"):
        p = llr.Problem.from_samples(rng.standard_normal((10, 2)), X_test)
    report = p.graph
    assert report.isolated.tolist() == [14]
    assert report.n_components == 2
    assert len(report.underflowed) == 5
    assert np.all(report.underflowed.max(axis=1) >= 14)
    s = llr.solve_exact(p)
    assert s.status == "optimal"
    assert p.log_ratio(s.W).argmin() == 14


@pytest.mark.parametrize("c", [1e-300, 1e-8, 1e8, 1e300])
def test_scale_of_the_features_cancels_with_the_median_width(c: float) -> None:
    X = np.random.default_rng(1).standard_normal((20, 3))
    edges, weights = llr.similarity_graph(X)
    scaled_edges, scaled_weights = llr.similarity_graph(c * X)
    assert np.array_equal(edges, scaled_edges)
    assert np.allclose(weights, scaled_weights, rtol=1e-9)


def test_report_reads_well() -> None:
    p = llr.Problem.from_samples([[0.0], [1.0]], [[2.0], [3.0]], n_neighbors=1, sigma=1.0)
    assert str(p.graph) == (
        "graph: 4 samples, 3 edges (K = 1, sigma = 1)\n"
        "  connected components   1\n"
        "  isolated samples       0\n"
        "  underflowed edges      0"
    )
    by_hand = llr.Problem([[0.0], [1.0], [2.0]], [1, -1, -1], [[0, 1]], [1.0])
    assert "(given by hand)" in str(by_hand.graph)
    assert "isolated samples       1 (rows 2)" in str(by_hand.graph)


def test_many_isolated_rows_are_listed_in_short() -> None:
    X = 10.0 ** np.arange(30).reshape(15, 2)
    with pytest.warns(GraphWarning, match=r"15 sample\(s\) .* \(rows 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, \.\.\.\)"):
        llr.similarity_graph(X, sigma=1e-9)
