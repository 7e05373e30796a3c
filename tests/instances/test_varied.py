"""The generator of varied problems, and both solvers on two of every kind."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from builders import proved
from sizes import thinned

import llr_cvx as llr
from llr_cvx.instances.varied import KINDS, varied_problem
from llr_cvx.problem import Problem


def problems(n: int) -> list[Problem]:
    return [varied_problem(seed) for seed in range(n)]


def test_a_seed_makes_the_same_problem_again_and_another_seed_another() -> None:
    for seed in range(3):
        p, q = varied_problem(seed), varied_problem(seed)
        for name in ("X", "y", "edges", "weights", "lambda1", "lambda2"):
            assert np.array_equal(getattr(p, name), getattr(q, name))
    assert len({p.lambda1 for p in problems(20)}) == 20


def test_every_kind_has_its_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[str] = []
    for name, draw in list(KINDS.items()):
        monkeypatch.setitem(KINDS, name, lambda *a, name=name, draw=draw: drawn.append(name) or draw(*a))
    problems(2 * len(KINDS))
    assert drawn == 2 * list(KINDS)


def test_each_kind_is_what_it_says() -> None:
    rng = np.random.default_rng(0)
    X = {name: draw(rng, 400, 16) for name, draw in KINDS.items()}
    assert len(X) == 7
    for sample in X.values():
        assert sample.shape == (400, 16)
        assert np.isfinite(sample).all()
    assert len(np.unique(X["duplicates"], axis=0)) <= 100
    assert set(np.unique(X["sparse binary"])) == {0.0, 1.0}
    assert X["sparse binary"].mean() < 0.2
    assert np.array_equal(X["counts"], np.round(X["counts"]))
    assert X["counts"].min() >= 0
    spread = np.linalg.svd(X["correlated"] - X["correlated"].mean(axis=0), compute_uv=False)
    assert spread[2] < 0.2 * spread[1]  # two factors
    assert np.abs(X["heavy-tailed"]).max() > 10 > np.abs(X["gaussian"]).max()
    assert X["clustered"].std() > 2


def test_sizes_and_penalties_fill_the_stated_ranges() -> None:
    found = problems(200)
    N, d = np.array([p.shape for p in found]).T
    assert 20 <= N.min() < 30
    assert 300 < N.max() <= 400
    assert 2 <= d.min() < 4
    assert 40 < d.max() <= 60
    for name in ("lambda1", "lambda2"):
        exponents = np.log10([getattr(p, name) for p in found])
        assert -4 <= exponents.min() < -3.5
        assert 2.5 < exponents.max() <= 3
    K = np.array([p.n_neighbors for p in found])
    assert (K.min(), K.max() > 25, K.max() <= 30) == (1, True, True)
    for p in found:
        assert set(np.unique(p.y)) == {-1.0, 1.0}
    scales = np.array([np.ptp(np.log10(np.abs(p.X).max(axis=0) + 1e-300)) for p in found])
    assert 0.1 < np.mean(scales > 1.5) < 0.4  # columns of mixed scale


@pytest.mark.parametrize("seed", thinned(range(14), 7))
def test_two_of_every_kind_are_solved_and_no_optimum_is_wrong(seed: int) -> None:
    p = varied_problem(seed)
    found = [solve(p, 1e-6) for solve in (llr.solve_fast, llr.solve_irls)]
    for s in found:
        assert s.status == "optimal"
        assert proved(s, 1e-6)
        assert s.objective == p.objective(s.W)
        assert s.trace is not None
        assert s.trace.is_monotone()
    low = max(s.certificate.dual for s in found)
    assert all(low <= s.objective for s in found)


def test_the_checker_of_these_tests_can_reject() -> None:
    s = llr.solve_fast(varied_problem(1))
    assert proved(s, 1e-6)
    assert not proved(s, 1e-18)
    assert not proved(replace(s, W=1.1 * s.W + 0.01), 1e-6)
