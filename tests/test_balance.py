"""Dual points improved without a linear system."""

from __future__ import annotations

import numpy as np

import llr_cvx as llr
from llr_cvx import bench
from llr_cvx._balance import balanced
from llr_cvx.certificate import dual_objective


def test_balancing_never_leaves_a_ball_and_never_lowers_the_bound() -> None:
    for seed in range(5):
        p = bench.instance(48, 8, seed, lambda1=0.3)
        rng = np.random.default_rng(seed)
        W = rng.normal(size=p.shape) * (rng.random(p.shape) < 0.4)
        U = rng.normal(size=(len(p.edges), p.shape[1]))
        U *= (p.radii * rng.random(len(U)) / np.linalg.norm(U, axis=1))[:, None]
        given = U.copy()
        alpha = p.alpha(W)
        better = balanced(p, W, alpha, U)
        assert np.array_equal(U, given)
        assert np.all(np.linalg.norm(better, axis=1) <= p.radii * (1 + 1e-14))
        assert dual_objective(p, alpha, better) >= dual_objective(p, alpha, U)
        s = llr.solve_irls(p, 1e-9)  # nothing to gain there, and levels that are too low push the wrong way
        alpha, U = s.certificate.alpha, s.certificate.U
        assert dual_objective(p, alpha, balanced(p, 0.5 * s.W, alpha, U)) >= dual_objective(p, alpha, U)


def test_balancing_recovers_most_of_what_a_few_wrong_multipliers_cost() -> None:
    p = bench.instance(310, 10, seed=0, lambda1=1.0)
    s = llr.solve_irls(p, 1e-9)
    U = s.certificate.U.copy()
    inside = np.flatnonzero(np.linalg.norm(U, axis=1) < 0.5 * p.radii)[:5]
    U[inside, 0] += 0.3 * p.radii[inside]
    lost = s.objective - dual_objective(p, s.certificate.alpha, U)
    left = s.objective - dual_objective(p, s.certificate.alpha, balanced(p, s.W, s.certificate.alpha, U))
    assert len(inside) == 5
    assert lost > 1e-4 * s.objective
    assert left < 0.5 * lost
