"""certify: a proof for any W of unknown origin."""

from __future__ import annotations

from importlib import import_module

import numpy as np
import pytest
from builders import GRID, is_dual_feasible, random_problem, slow_dual, solved
from sizes import thinned

import llr_cvx as llr
from llr_cvx.graph import GraphWarning

Case = tuple[int, int, int, float, float]
each_case = pytest.mark.parametrize("case", GRID, ids=lambda c: f"N{c[1]}-d{c[2]}-{c[3]}-{c[4]}")


@each_case
def test_tight_for_clarabels_W_alone(case: Case) -> None:
    """Fused edges and zero coordinates included; the solver's own dual point is not used."""
    s = solved(case)
    p = random_problem(*case)
    c = llr.certify(p, s.W)
    assert is_dual_feasible(p, c.alpha, c.U)
    assert c.primal == s.objective
    assert c.dual == pytest.approx(slow_dual(p, c.alpha, c.U), rel=1e-12)
    assert -1e-9 <= c.gap
    assert c.relative_gap <= 1e-6


@each_case
def test_with_the_solvers_dual_point_it_is_tighter_and_searches_nothing(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    s = solved(case)

    def no_search(*_args: object, **_options: object) -> None:
        raise AssertionError("a dual point was given: nothing is to be searched for")

    monkeypatch.setattr(import_module("llr_cvx.verdicts.dual_search"), "search", no_search)
    c = llr.certify(s.problem, s.W, s.certificate.alpha, s.certificate.U)
    assert c.relative_gap <= 1e-8


@pytest.mark.parametrize("case", GRID[::5])
@pytest.mark.parametrize("size", thinned([0.0, 1e-300, 1e-3, 1.0, 1e3, 1e8], 3))
def test_valid_for_every_finite_W(case: Case, size: float) -> None:
    best = solved(case).objective
    p = random_problem(*case)
    W = size * np.random.default_rng(0).standard_normal(p.shape)
    c = llr.certify(p, W)
    assert np.isfinite(c.dual)
    assert c.dual <= best * (1 + 1e-12)
    assert c.primal == p.objective(W)
    assert c.gap >= 0
    low, high = c.score_bounds
    scores = p.scores(solved(case).W)
    assert np.all((low <= scores + 1e-6) & (scores - 1e-6 <= high))


def test_a_W_whose_objective_overflows_is_proved_nothing_but_not_refused() -> None:
    p = random_problem(7)
    c = llr.certify(p, np.full(p.shape, 1e200))
    assert c.primal == np.inf
    assert c.relative_gap == np.inf
    assert not c.proves(1.0)
    assert c.dual <= solved(GRID[7]).objective * (1 + 1e-12)


def test_a_perturbed_W_is_rejected_with_its_true_distance() -> None:
    s = solved(GRID[12])
    W = s.W + 1e-3
    c = llr.certify(s.problem, W)
    assert not c.proves(1e-6)
    true_distance = s.problem.objective(W) - s.objective
    assert c.gap == pytest.approx(true_distance, abs=1e-6 * s.objective)


def test_duplicates_isolated_rows_and_components() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((12, 2))
    with pytest.warns(GraphWarning, match=r"rows 23"):
        p = llr.Problem.from_samples(np.vstack([X, X[:8]]), np.vstack([X[:3], [[1e4, 1e4]]]), n_neighbors=3)
    assert llr.certify(p, llr.solve_exact(p).W).relative_gap <= 1e-6


def test_lambda2_zero_proves_what_it_can_and_says_why() -> None:
    X = np.random.default_rng(0).standard_normal((40, 2))
    p = llr.Problem.from_samples(X[:20], X[20:], lambda1=10.0, lambda2=0.0, sigma=10.0)
    c = llr.certify(p, llr.solve_exact(p).W)
    assert c.dual == 0.0
    assert c.bounded_dual is not None
    assert c.bounded_dual <= c.primal
    assert "lambda2 = 0: an unconditional bound needs v_i = 0" in str(c)


def test_lambda2_zero_is_solved_by_both_solvers_alike() -> None:
    """The bound for lambda2 = 0 holds up to a radius that grows with W: one taken at W = 0 must not be kept."""
    X_inlier, X_test, _ = llr.make_synthetic(4, 0, 30, 15, 2)
    p = llr.Problem.from_samples(X_inlier, X_test, lambda1=0.3, lambda2=0.0)
    a, b = llr.solve_exact(p), llr.solve_irls(p)
    assert a.status == b.status == "uncertified"
    assert a.objective == pytest.approx(b.objective, rel=1e-6)
    assert b.certificate.bounded_relative_gap <= 1e-6
