"""What the paper may mean, as functions from known inliers and test rows to scores of all pooled rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import NamedTuple

import numpy as np
from scipy.sparse import coo_array, csr_array, diags_array, eye_array
from sklearn.neighbors import NearestNeighbors

from llr_cvx.arrays import FloatArray, row_dot
from llr_cvx.detection.settings import DETECTION
from llr_cvx.experiments.benchmarks import BENCHMARKS
from llr_cvx.experiments.methods._base import pool
from llr_cvx.experiments.methods.localized import MAX_ITER, llr_problem, tied
from llr_cvx.experiments.plans import FACTORS
from llr_cvx.experiments.protocol import Protocol
from llr_cvx.experiments.trials import Draw, Measure, Task, Trial, auc, draw
from llr_cvx.graph import build_graph
from llr_cvx.problem import Problem
from llr_cvx.solvers.algorithm1 import minimise_surrogate, weights
from llr_cvx.solvers.fast.solver import solve_fast

#: The penalties tried, each with each.
LAMBDAS = (0.01, 0.1, 1.0, 10.0)

#: Conjugate-gradient steps in each iteration of Algorithm 1.
CG_ITERATIONS = 30

#: What a reading is judged by: test rows, as it should be, or the leak: all pooled rows, where the known inliers count
#: as rows that were rightly found normal.
TEST, POOLED = "test rows", "leak: pooled rows"
MEASURES = (TEST, POOLED)

#: Scores of the pooled rows, known inliers first; nan for rows that get none.
Score = Callable[[FloatArray, FloatArray, Protocol], FloatArray]


class Reading(NamedTuple):
    """One reading of the paper: how samples are drawn and scaled (by `protocol`) and how they are scored."""

    label: str  # its kind and its name, unique among the readings of a draw
    protocol: Protocol
    score: Score

    @property
    def draw(self) -> str:
        """What the samples depend on, beside the set."""
        return f"{self.protocol.n_outliers}/{self.protocol.scaling}"


def readings(default: Protocol) -> list[Reading]:
    """All readings: draws and scalings, penalties under three draws, the rest under the default draw."""
    found = []
    for scaling, n_outliers, intercept in product(FACTORS["scaling"], FACTORS["n_outliers"], (False, True)):
        protocol = replace(default, scaling=scaling, n_outliers=n_outliers, intercept=intercept)
        found.append(Reading(f"draw: {'with a constant' if intercept else 'as written'}", protocol, optimum))
    for base in (default, replace(default, n_outliers="ten"), replace(default, scaling="minmax")):
        pairs = [*product(LAMBDAS, LAMBDAS), (DETECTION["lambda1"], DETECTION["lambda2"])]
        for lambda1, lambda2 in pairs:
            if (lambda1, lambda2) != (default.lambda1, default.lambda2):
                protocol = replace(base, lambda1=lambda1, lambda2=lambda2)
                found.append(Reading(f"penalties: λ1 = {lambda1:g}, λ2 = {lambda2:g}", protocol, optimum))
    found += [Reading(f"graph: K = {K}", replace(default, n_neighbors=K), optimum) for K in (3, 10, 20)]
    found.append(Reading("graph: σ = median distance", replace(default, sigma="pairwise"), optimum))
    rest: dict[str, Score] = {
        "graph: σ halved": partial(optimum, width=0.5),
        "graph: σ doubled": partial(optimum, width=2.0),
        "graph: R = 1 on the edges": partial(optimum, width=1e6),
        "model: each pair counted once": partial(optimum, coupling=0.5),
        "model: C_g without its factor 1/2": partial(optimum, coupling=2.0),
        "model: sums over test rows only": test_rows_only,
        "model: labels swapped, ratio as printed": swapped,
        "model: score -‖w‖₁, as in Fig. 1(b)": weight_size,
        "algorithm: C_e by the norm of a feature's row": partial(iterate, steps=10, exclusive="features"),
        "algorithm: C_g of the directed graph, as printed": partial(iterate, steps=10, directed=True),
        "algorithm: penalty ‖W‖² in the first step, ε = 1e-9, 10 steps": partial(
            iterate, steps=10, epsilon=1e-9, identity=True
        ),
        "algorithm: penalty ‖W‖² in the first step, ε = 1e-9, ridge 0.001, 10 steps": partial(
            iterate, steps=10, epsilon=1e-9, identity=True, ridge=1e-3
        ),
    }
    for start, spread, stops in (("", 0.0, (1, 2, 5, 20)), (" from a random W", 1.0, (1, 5, 20))):
        for steps in stops:
            label = f"algorithm: Algorithm 1{start} after {steps} step{'s' * (steps > 1)}"
            rest[label] = partial(iterate, steps=steps, spread=spread)
    return found + [Reading(label, default, score) for label, score in rest.items()]


# ---- the model, solved ----------------------------------------------------------------------------


def optimum(
    X_inlier: FloatArray, X_test: FloatArray, protocol: Protocol, width: float = 1.0, coupling: float = 1.0
) -> FloatArray:
    """log r at the optimum, with the graph's width and the weights of its edges multiplied."""
    return _log_ratio(*_solved(X_inlier, X_test, protocol, width, coupling))


def weight_size(X_inlier: FloatArray, X_test: FloatArray, protocol: Protocol) -> FloatArray:
    """-||w_i||_1: the paper remarks that outliers have larger weights."""
    _, W = _solved(X_inlier, X_test, protocol)
    return tied(-np.abs(W).sum(axis=1))


def swapped(X_inlier: FloatArray, X_test: FloatArray, protocol: Protocol) -> FloatArray:
    """Sec. 2.3 labels test rows +1; with r as printed, every score changes its sign."""
    return -optimum(X_inlier, X_test, protocol)


def test_rows_only(X_inlier: FloatArray, X_test: FloatArray, protocol: Protocol) -> FloatArray:
    """Penalties over i <= n: known inliers, free of penalties, fit themselves and leave the test rows alone."""
    graph = build_graph(X_test, protocol.n_neighbors, protocol.graph_width(X_test))
    X, y = pool(X_inlier, X_test)
    edges = graph.edges + len(X_inlier)  # known inliers have no edges: whatever they do, the test rows do not notice
    problem = Problem(X, y, edges, graph.weights, protocol.lambda1, protocol.lambda2)
    scores = _log_ratio(problem, _solve(problem, protocol))
    scores[: len(X_inlier)] = np.nan
    return scores


def _solved(
    X_inlier: FloatArray, X_test: FloatArray, protocol: Protocol, width: float = 1.0, coupling: float = 1.0
) -> tuple[Problem, FloatArray]:
    problem = llr_problem(X_inlier, X_test, protocol)
    if width != 1.0:
        graph = build_graph(problem.X, protocol.n_neighbors, width * float(problem.sigma or 1.0))
        problem = Problem(problem.X, problem.y, graph.edges, graph.weights, problem.lambda1, problem.lambda2)
    problem = problem.with_lambdas(coupling * problem.lambda1)
    return problem, _solve(problem, protocol)


def _solve(problem: Problem, protocol: Protocol) -> FloatArray:
    return solve_fast(problem, tol=protocol.tol, max_iter=MAX_ITER).W


def _log_ratio(problem: Problem, W: FloatArray) -> FloatArray:
    """w_i . x_i: n/n' changes no ranking."""
    return tied(row_dot(problem.X, W))


# ---- Algorithm 1, stopped early or taken literally ------------------------------------------------


def iterate(
    X_inlier: FloatArray,
    X_test: FloatArray,
    protocol: Protocol,
    steps: int,
    epsilon: float = 1e-3,
    exclusive: str = "samples",
    directed: bool = False,
    identity: bool = False,
    ridge: float = 0.0,
    spread: float = 0.0,
) -> FloatArray:
    """log r after some steps of Algorithm 1.

    `identity` with a `ridge` of 0.001 and an `epsilon` of 1e-9 for 10 steps are the settings of the authors' published
    code for the Localized Lasso, https://github.com/myamada0321/Localizedlasso.

    Parameters
    ----------
    exclusive : {"samples", "features"}
        Whose norm is in C_e. The printed [C_e]_ij = ||w_i||_1 / |W_ij| with W of shape (d, N) names row i, a feature.
    directed : bool
        C_g as printed: degrees and weights of the K-nearest-neighbour relation, which is not symmetric.
    identity : bool
        Whether the first step has the penalty ||W||_F^2 in place of those that follow from W.
    ridge : float
        This multiple of the identity is added to C_g.
    spread : float
        Standard deviation of W at the start.
    """
    problem = llr_problem(X_inlier, X_test, protocol)
    W = spread * np.random.default_rng(0).standard_normal(problem.shape)
    one = csr_array(eye_array(len(W)))
    for step in range(steps):
        C_g, C_e = weights(problem, W, epsilon)
        if directed:
            C_g = directed_laplacian(problem, W, epsilon)
        if exclusive == "features":
            b = np.sqrt(W**2 + epsilon**2)
            C_e = b.sum(axis=0, keepdims=True) / b
        C_g = C_g + ridge * one
        if identity and step == 0:
            C_g, C_e = 0.0 * one, np.full_like(W, 1.0 / problem.lambda2)
        W = minimise_surrogate(problem, W, C_g, C_e, CG_ITERATIONS)
    return _log_ratio(problem, W)


def directed_laplacian(problem: Problem, W: FloatArray, epsilon: float) -> csr_array:
    """The symmetric part of diag(sum_j c_ij) - c with c_ij = r_ij / ||w_i - w_j||, all that a quadratic form sees."""
    K, sigma = int(problem.n_neighbors or 1), float(problem.sigma or 1.0)
    distance, j = NearestNeighbors(n_neighbors=K).fit(problem.X).kneighbors()
    i = np.repeat(np.arange(len(W)), K)
    gap = np.sqrt(((W[i] - W[j.ravel()]) ** 2).sum(axis=1) + epsilon**2)
    c = coo_array((np.exp(-0.5 * (distance.ravel() / sigma) ** 2) / gap, (i, j.ravel())), shape=(len(W),) * 2).tocsr()
    return csr_array(diags_array(np.asarray(c.sum(axis=1)).ravel()) - 0.5 * (c + c.T))


# ---- trials: all readings of a draw on the same samples --------------------------------------------


@dataclass(frozen=True)
class Examination(Trial):
    """The readings of a draw on a set, judged on test rows and, as a leak, on all pooled rows."""

    seed: int
    source: str
    readings: tuple[Reading, ...]

    def measures(self) -> Mapping[str, Measure]:
        """What each reading gives. The draws are those of Table 2."""
        protocol = self.readings[0].protocol
        samples = draw(Task("table2", self.source, self.trial, self.seed, self.source, protocol, ()))
        return {reading.label: partial(_judge, reading, samples) for reading in self.readings}


def plan(
    trials: Sequence[int], seed: int, every: Sequence[Reading], sets: Sequence[str] = BENCHMARKS
) -> list[Examination]:
    """Trial by trial; readings that share a draw share its samples."""
    draws: dict[str, list[Reading]] = {}
    for reading in every:
        draws.setdefault(reading.draw, []).append(reading)
    return [
        Examination("forensics", f"{s}/{drawn}", t, seed, s, tuple(group))
        for t in trials
        for s in sets
        for drawn, group in draws.items()
    ]


def _judge(reading: Reading, samples: Draw) -> dict[str, float]:
    X_inlier, X_test, is_outlier = samples
    scores = reading.score(X_inlier, X_test, reading.protocol)
    known, test = np.split(scores, [len(X_inlier)])
    found = {TEST: auc(test, is_outlier)}
    if np.isfinite(known).all():
        found[POOLED] = auc(scores, np.concatenate([np.zeros(len(known), bool), is_outlier]))
    return found
