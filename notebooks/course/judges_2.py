"""Judges of notebook 2, two extremes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import llr_cvx as llr
from course.exercises import answered, close, judge, require
from course.problems import paper
from llr_cvx.oracles import decoupled_weight, solve_decoupled


@judge("2.1")
def score_grows_with_the_norm(squared_norm: Callable[[float, float], float]) -> str:
    """M^2 = 2 lambda2 u (1 + exp(u)) for the score u = t M."""
    for lambda2 in (0.1, 1.0, 3.0):
        M = np.linspace(0.1, 6.0, 60)
        u = M * decoupled_weight(M, lambda2)
        found = np.array([answered(squared_norm(x, lambda2)) for x in u])
        close(
            found,
            M**2,
            f"at λ2 = {lambda2:g} this is not M² for the score u that solves the equation of 2.1",
        )
        require(np.all(np.diff(found) > 0), "it should grow with u")
    return "M² grows with the score, so the score grows with M, and ranking by either is the same"


@judge("2.2")
def ten_times_feature_7(feature: int) -> str:
    """The feature that most samples select without coupling."""
    p = paper()
    scale = np.where(np.arange(10) == 6, 10.0, 1.0)
    alone = llr.Problem(p.X * scale, p.y, p.edges, p.weights, lambda1=0.0)
    chosen = np.abs(solve_decoupled(alone)).argmax(axis=1) + 1
    share = np.mean(chosen == feature)
    require(
        share > 0.5,
        f"only {share:.0%} of the samples select feature {feature}: which one has the largest values?",
    )
    return f"{share:.0%} of the samples select it, whatever makes them unusual: scale the features first"


@judge("2.3")
def when_two_samples_fuse(threshold: float) -> str:
    """The smallest lambda1 at which both rows are equal."""
    two = llr.Problem([[1.0], [-3.0]], [1, -1], [[0, 1]], [1.0], lambda1=1.0, lambda2=0.1)
    for factor, fused in ((0.999, False), (1.001, True)):
        lambda1 = factor * float(threshold)
        W = llr.solve_fast(two.with_lambdas(lambda1=lambda1), tol=1e-12).W
        word = "already equal" if W[0, 0] == W[1, 0] else "still apart"
        require(
            (W[0, 0] == W[1, 0]) == fused,
            f"at λ1 = {lambda1:.6f} the two weights are {word}",
        )
    return "the weights are apart just below it and equal just above it"


@judge("2.4")
def no_edges_between_the_classes(n_vectors: int) -> str:
    """One weight vector per component of the graph."""
    p = paper()
    same = p.y[p.edges[:, 0]] == p.y[p.edges[:, 1]]
    cut = llr.Problem(p.X, p.y, p.edges[same], p.weights[same], lambda1=100.0)
    truth = len(np.unique(llr.solve_fast(cut, tol=1e-9).clusters))
    require(
        n_vectors == truth,
        "that is not what is left at λ1 = 100: how many components does the graph have now?",
    )
    return "each component of the graph keeps one weight vector of its own"
