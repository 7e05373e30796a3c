"""Optima known without a solver: closed forms, limits, scalings and symmetries, against the exact solver."""

from __future__ import annotations

import numpy as np
import pytest
from builders import random_problem, slow_objective
from scipy.optimize import brentq, minimize

import llr_cvx as llr
from llr_cvx.oracles import decoupled_weight, solve_decoupled
from llr_cvx.proofs.certificate import certificate

# ---- lambda1 = 0 ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("lambda2", [1e-12, 1e-3, 1.0, 1e6])
def test_the_scalar_root_to_machine_precision(lambda2: float) -> None:
    M = np.logspace(-12, 12, 97)
    t = decoupled_weight(M, lambda2)
    for m, root in zip(M, t, strict=True):
        # brentq in u = t M on M^2 sigmoid(-u) = 2 lambda2 u, in logarithms so that nothing over- or underflows
        c = np.log(m * m / (2 * lambda2))
        u = np.exp(brentq(lambda v, c=c: v + np.logaddexp(0, np.exp(v)) - c, -800, 8, xtol=1e-15, rtol=1e-15))
        assert root * m == pytest.approx(u, rel=2e-13)


def test_the_scalar_root_where_squares_over_and_underflow() -> None:
    M = np.array([0.0, 5e-324, 1e-200, 1e200, 1.7e308])
    t = decoupled_weight(M, 1.0)
    assert np.all(np.isfinite(t))
    assert t[0] == 0.0
    assert t[2] == pytest.approx(1e-200 / 4, rel=1e-12)
    # M sigmoid(-t M) = 2 t in logarithms, with sigmoid(-u) = exp(-u) for such large u
    assert np.log(M[3:]) - t[3:] * M[3:] == pytest.approx(np.log(2 * t[3:]), rel=1e-12)


@pytest.mark.parametrize(
    ("seed", "d", "lambda2"), [(0, 1, 1.0), (1, 3, 0.1), (2, 5, 10.0), (3, 12, 0.01), (4, 4, 1e-4)]
)
def test_the_closed_form_is_optimal(seed: int, d: int, lambda2: float) -> None:
    """Proved twice: by the dual point alpha with U = 0, whose gap is zero, and by Clarabel."""
    p = random_problem(seed, N=40, d=d, lambda1=0.0, lambda2=lambda2)
    W = solve_decoupled(p)
    proof = certificate(p, W, p.alpha(W), np.zeros((len(p.edges), d)))
    assert abs(proof.relative_gap) <= 1e-14
    s = llr.solve_exact(p)
    assert s.status == "optimal"
    assert s.objective == pytest.approx(p.objective(W), rel=1e-7)
    assert p.scores(s.W) == pytest.approx(p.scores(W), abs=1e-3)


def test_the_uncoupled_score_is_a_max_norm_test() -> None:
    p = random_problem(0, N=60, d=8, lambda1=0.0)
    score = p.scores(solve_decoupled(p))
    test = p.y < 0
    by_norm = np.argsort(np.abs(p.X[test]).max(axis=1))
    assert np.all(np.diff(score[test][by_norm]) < 0)


def test_edges_of_weight_zero_decouple_too() -> None:
    p = llr.Problem([[1.0, 2.0], [0.5, 0.0]], [1, -1], [[0, 1]], [0.0], lambda1=5.0, lambda2=1.0)
    W = solve_decoupled(p)
    assert llr.solve_exact(p).objective == pytest.approx(p.objective(W), rel=1e-8)


def test_a_row_of_zeros_has_weight_zero() -> None:
    p = llr.Problem([[0.0, 0.0], [1.0, -3.0]], [1, -1], [], [], lambda2=1.0)
    W = solve_decoupled(p)
    assert W[0].tolist() == [0.0, 0.0]
    assert W[1, 1] > 0


def test_coupled_or_unpenalised_problems_have_no_closed_form() -> None:
    with pytest.raises(ValueError, match=r"lambda1 must be 0 .* got 0\.1 with \d+ edge"):
        solve_decoupled(random_problem(0))
    with pytest.raises(ValueError, match="lambda2 must be > 0"):
        solve_decoupled(llr.Problem([[1.0], [2.0]], [1, -1], [], [], lambda1=1.0, lambda2=0.0))


# ---- lambda1 large: one shared logistic regression ---------------------------------------------------


def shared_regression(p: llr.Problem) -> tuple[np.ndarray, float]:
    """min_w sum_i log(1 + exp(-y_i w.x_i)) + N lambda2 ||w||_1^2 with w = a - b, a, b >= 0: smooth with bounds."""
    N, d = p.shape

    def value_and_slope(ab: np.ndarray) -> tuple[float, np.ndarray]:
        margin = p.y * (p.X @ (ab[:d] - ab[d:]))
        total = ab.sum()
        slope = -(p.y / (1 + np.exp(margin))) @ p.X
        value = np.logaddexp(0, -margin).sum() + N * p.lambda2 * total**2
        return value, np.concatenate([slope, -slope]) + 2 * N * p.lambda2 * total

    options = {"maxiter": 20000, "maxfun": 40000, "ftol": 1e-16, "gtol": 1e-10}
    found = minimize(value_and_slope, np.full(2 * d, 1e-3), jac=True, bounds=[(0, None)] * (2 * d), options=options)
    return found.x[:d] - found.x[d:], float(found.fun)


@pytest.mark.parametrize(("seed", "N", "d", "lambda2"), [(0, 24, 3, 0.1), (1, 30, 1, 0.01), (2, 40, 6, 0.001)])
def test_strong_coupling_gives_one_shared_logistic_regression(seed: int, N: int, d: int, lambda2: float) -> None:
    p = random_problem(seed, N=N, d=d, lambda1=1e3, lambda2=lambda2, sigma=10.0)
    assert p.graph.n_components == 1
    w, value = shared_regression(p)
    s = llr.solve_exact(p)
    assert s.status == "optimal"
    assert s.objective == pytest.approx(value, rel=1e-7)
    assert s.W == pytest.approx(np.tile(w, (N, 1)), abs=1e-4 * np.abs(w).max() + 1e-7)


# ---- scalings and symmetries ------------------------------------------------------------------------------


def remade(p: llr.Problem, **changes: object) -> llr.Problem:
    names = ("X", "y", "edges", "weights", "lambda1", "lambda2")
    return llr.Problem(**({name: getattr(p, name) for name in names} | changes))


CASES = [(0, 24, 3, 0.1, 1.0), (1, 30, 5, 0.3, 0.1), (2, 20, 2, 0.02, 0.01)]


def assert_same_optimum(p: llr.Problem, q: llr.Problem) -> tuple[np.ndarray, np.ndarray]:
    a, b = llr.solve_exact(p), llr.solve_exact(q)
    assert a.status == b.status == "optimal"
    assert a.objective == pytest.approx(b.objective, rel=1e-7)
    return a.W, b.W


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("c", [0.01, 3.0, 100.0])
def test_scaling_law(case: tuple[int, int, int, float, float], c: float) -> None:
    """X -> cX, lambda1 -> c lambda1, lambda2 -> c^2 lambda2 gives W / c and the same J."""
    p = random_problem(*case)
    q = remade(p, X=c * p.X, lambda1=c * p.lambda1, lambda2=c * c * p.lambda2)
    W, V = assert_same_optimum(p, q)
    assert p.objective(c * V) == pytest.approx(p.objective(W), rel=1e-7)
    assert p.scores(W) == pytest.approx(q.scores(V), abs=1e-3)
    R = np.random.default_rng(0).standard_normal(p.shape)
    assert q.objective(R / c) == pytest.approx(p.objective(R), rel=1e-13)


@pytest.mark.parametrize("case", CASES)
def test_flipping_the_labels_flips_W(case: tuple[int, int, int, float, float]) -> None:
    p = random_problem(*case)
    q = remade(p, y=-p.y)
    W, V = assert_same_optimum(p, q)
    assert p.scores(W) == pytest.approx(-q.scores(V), abs=1e-3)
    assert p.objective(-V) == pytest.approx(p.objective(W), rel=1e-7)


@pytest.mark.parametrize("case", CASES)
def test_permuting_samples_and_features_permutes_W(case: tuple[int, int, int, float, float]) -> None:
    p = random_problem(*case)
    rng = np.random.default_rng(9)
    rows, columns = rng.permutation(p.shape[0]), rng.permutation(p.shape[1])
    where = np.argsort(rows)  # sample i of p is sample where[i] of q
    q = remade(p, X=p.X[rows][:, columns], y=p.y[rows], edges=np.sort(where[p.edges], axis=1))
    W, V = assert_same_optimum(p, q)
    assert p.scores(W)[rows] == pytest.approx(q.scores(V), abs=1e-3)
    R = rng.standard_normal(p.shape)
    assert q.objective(R[rows][:, columns]) == pytest.approx(p.objective(R), rel=1e-13)


def test_flipping_a_feature_flips_its_column() -> None:
    p = random_problem(1, 30, 5, 0.3, 0.1)
    sign = np.array([1.0, -1.0, 1.0, 1.0, -1.0])
    W, V = assert_same_optimum(p, remade(p, X=p.X * sign))
    assert p.objective(V * sign) == pytest.approx(p.objective(W), rel=1e-7)


def test_a_constant_zero_column_gets_no_weight() -> None:
    p = random_problem(1, 24, 3, 0.1, 0.1)
    W, V = assert_same_optimum(p, remade(p, X=np.column_stack([p.X, np.zeros(24)])))
    assert W.shape[1] == 3
    assert np.abs(V[:, 3]).max() <= 1e-6


def test_components_add_up() -> None:
    p, q = random_problem(0, 20, 3, 0.1, 0.3), random_problem(5, 24, 3, 0.1, 0.3)
    both = llr.Problem(
        X=np.vstack([p.X, q.X]),
        y=np.r_[p.y, q.y],
        edges=np.vstack([p.edges, q.edges + 20]),
        weights=np.r_[p.weights, q.weights],
        lambda1=0.1,
        lambda2=0.3,
    )
    assert both.graph.n_components == p.graph.n_components + q.graph.n_components
    apart = [llr.solve_exact(p), llr.solve_exact(q)]
    together = llr.solve_exact(both)
    assert together.objective == pytest.approx(sum(s.objective for s in apart), rel=1e-7)
    assert both.objective(np.vstack([s.W for s in apart])) == pytest.approx(together.objective, rel=1e-7)


def test_one_feature_two_samples_against_a_fine_grid() -> None:
    p = llr.Problem([[1.0], [2.0]], [1, -1], [[0, 1]], [1.0], lambda1=0.1, lambda2=0.2)
    s = llr.solve_exact(p)
    around = s.W + 1e-3 * np.stack(np.meshgrid(*[np.linspace(-1, 1, 21)] * 2), axis=-1).reshape(-1, 2, 1)
    assert min(slow_objective(p, W) for W in around) >= s.objective - 1e-9
