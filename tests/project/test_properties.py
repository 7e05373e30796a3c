"""Metamorphic laws on random problems (Hypothesis, its profiles in conftest.py): what changes the problem in a known
way must change the certified answer in that way and no other.

Answers are compared by what is proved about them: two optimal values must agree to within their certified gaps, and
two proven intervals of the same score must meet.
"""

import warnings
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import llr_cvx as llr
from llr_cvx import checker
from llr_cvx.instances.generators import chain, complete, ring, star
from llr_cvx.oracles import decoupled_weight
from llr_cvx.proofs.ball_arithmetic import enclose
from llr_cvx.proofs.certificate import entropy
from llr_cvx.proofs.files import certificate_arrays, problem_arrays
from llr_cvx.solution import ConvergenceWarning
from llr_cvx.validation import MAX_MAGNITUDE
from llr_cvx.verdicts.weights import verify

TOL = 1e-8


@st.composite
def problems(draw, exponent=1.0):
    """N from 2 to 14, d from 1 to 4, any graph; lambdas and samples of size up to 10^(+-exponent)."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    N, d = draw(st.integers(2, 14)), draw(st.integers(1, 4))
    kind = draw(st.sampled_from(["normal", "binary", "integers", "duplicates", "zeros"]))
    X = {
        "normal": lambda: rng.standard_normal((N, d)),
        "binary": lambda: rng.choice([-1.0, 1.0], size=(N, d)),
        "integers": lambda: rng.integers(-2, 3, size=(N, d)).astype(float),
        "duplicates": lambda: rng.standard_normal((2, d))[rng.integers(0, 2, N)],
        "zeros": lambda: rng.standard_normal((N, d)) * (rng.random((N, d)) < 0.5),
    }[kind]()
    size = st.floats(-exponent, exponent)
    X = X * 10.0 ** draw(size)
    y = rng.permutation(np.where(np.arange(N) < draw(st.integers(1, N - 1)), 1.0, -1.0))
    graphs = {
        "none": lambda: np.empty((0, 2), dtype=int),
        "chain": lambda: chain(N),
        "ring": lambda: ring(N) if N > 2 else chain(N),
        "star": lambda: star(N),
        "complete": lambda: complete(N),
        "random": lambda: complete(N)[rng.random(N * (N - 1) // 2) < 0.3],
    }
    edges = graphs[draw(st.sampled_from(sorted(graphs)))]()
    weights = rng.exponential(size=len(edges)) * (rng.random(len(edges)) < draw(st.sampled_from([1.0, 0.6])))
    lambda1 = draw(st.sampled_from([0.0, 1.0, 1.0, 1.0])) * 10.0 ** draw(size)
    return llr.Problem(X, y, edges, weights, lambda1, 10.0 ** draw(size))


@dataclass
class Answer:
    """What is proved about a problem: an interval of J*, and one of each score."""

    problem: llr.Problem
    solution: llr.solution.Solution
    low: float
    high: float
    scores: tuple

    @classmethod
    def of(cls, problem, W0=None):
        """By both solvers, whose answers must agree; the less certain one is kept."""
        irls, fast = (cls.by(solve, problem, W0) for solve in (llr.solve_irls, llr.solve_fast))
        assert irls.solution.trace.is_monotone()
        assert same_value(irls, fast)
        assert same_scores(irls, fast)
        return fast if irls.optimal else irls

    @classmethod
    def by(cls, solve, problem, W0):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            s = solve(problem, tol=TOL, W0=W0)
        result = checker.check(problem_arrays(problem), certificate_arrays(s.certificate, s.W))
        assert result["confirmed"], result["reasons"]
        return cls(problem, s, result["dual_low"], result["primal_high"], s.certificate.score_bounds)

    @property
    def optimal(self):
        return self.solution.status == "optimal"


def same_value(a, b, offset=0.0):
    """Two proven intervals of the same number must meet; `offset` is added to a."""
    slack = 1e-12 * (abs(a.high) + abs(b.high))
    return a.low + offset <= b.high + slack and b.low <= a.high + offset + slack


def same_scores(a, b, rows=slice(None), sign=1.0):
    """The proven intervals of the scores must meet, row by row; b's rows are taken in the order of a's."""
    low, high = a.scores
    other_low, other_high = (s[rows] for s in b.scores)
    if sign < 0:
        other_low, other_high = -other_high, -other_low
    slack = 1e-9 * (1.0 + np.abs(np.where(np.isfinite(low), low, 0.0)))
    return bool(np.all(low <= other_high + slack) and np.all(other_low <= high + slack))


def changed(p, X=None, y=None, edges=None, weights=None, lambda1=None, lambda2=None):
    """The problem with some of its parts replaced."""
    parts = {"X": X, "y": y, "edges": edges, "weights": weights, "lambda1": lambda1, "lambda2": lambda2}
    return llr.Problem(**{name: getattr(p, name) if part is None else part for name, part in parts.items()})


def permuted(p, order):
    """The samples in another order: row k of the new problem is row order[k] of the old one."""
    place = np.argsort(order)
    edges = np.sort(place[p.edges], axis=1) if len(p.edges) else p.edges
    return changed(p, X=p.X[order], y=p.y[order], edges=edges)


# ---- the laws -----------------------------------------------------------------------------------------------


@pytest.mark.long
@given(problems(), st.randoms(use_true_random=False))
def test_permuting_samples_permutes_the_scores(p, random):
    order = np.array(random.sample(range(p.shape[0]), p.shape[0]))
    a, b = Answer.of(p), Answer.of(permuted(p, order))
    assert a.optimal
    assert b.optimal
    assert same_value(a, b)
    assert same_scores(b, a, rows=order)


@pytest.mark.long
@given(problems(), st.randoms(use_true_random=False))
def test_permuting_and_flipping_features_keeps_the_scores(p, random):
    order = np.array(random.sample(range(p.shape[1]), p.shape[1]))
    signs = np.array([random.choice([-1.0, 1.0]) for _ in order])
    a, b = Answer.of(p), Answer.of(changed(p, X=p.X[:, order] * signs))
    assert a.optimal
    assert b.optimal
    assert same_value(a, b)
    assert same_scores(a, b)


@given(problems())
def test_flipping_labels_flips_the_scores(p):
    a, b = Answer.of(p), Answer.of(changed(p, y=-p.y))
    assert a.optimal
    assert b.optimal
    assert same_value(a, b)
    assert same_scores(a, b, sign=-1.0)


@given(problems(), st.floats(-3.0, 3.0))
def test_scaling_law(p, exponent):
    """X c, lambda1 c, lambda2 c^2 has the same J* and the same scores."""
    c = 10.0**exponent
    a, b = Answer.of(p), Answer.of(changed(p, X=c * p.X, lambda1=c * p.lambda1, lambda2=c * c * p.lambda2))
    assert a.optimal
    assert b.optimal
    assert same_value(a, b)
    assert same_scores(a, b)


@pytest.mark.long
@given(problems(), problems())
def test_the_optimum_of_a_union_is_the_sum(p, q):
    d = max(p.shape[1], q.shape[1])
    pad = [np.pad(r.X, ((0, 0), (0, d - r.shape[1]))) for r in (p, q)]
    q = changed(q, lambda1=p.lambda1, lambda2=p.lambda2)
    union = llr.Problem(
        np.vstack(pad),
        np.concatenate([p.y, q.y]),
        np.vstack([p.edges, q.edges + p.shape[0]]),
        np.concatenate([p.weights, q.weights]),
        p.lambda1,
        p.lambda2,
    )
    a, b, both = Answer.of(p), Answer.of(q), Answer.of(union)
    assert a.optimal
    assert b.optimal
    assert both.optimal
    slack = 1e-12 * both.high
    assert a.low + b.low <= both.high + slack
    assert both.low <= a.high + b.high + slack
    low, high = both.scores
    n = p.shape[0]
    assert np.all(low[:n] <= a.scores[1] + 1e-9)
    assert np.all(a.scores[0] <= high[:n] + 1e-9)
    assert np.all(low[n:] <= b.scores[1] + 1e-9)
    assert np.all(b.scores[0] <= high[n:] + 1e-9)


@pytest.mark.long
@given(problems(), st.floats(-5.0, 5.0), st.sampled_from([1.0, -1.0]))
def test_an_isolated_sample_adds_its_closed_form(p, x, label):
    assume(x == 0 or max(abs(x), np.abs(p.X).max()) >= 1 / MAX_MAGNITUDE)  # a smaller problem is refused
    row = np.zeros(p.shape[1])
    row[-1] = x
    bigger = changed(p, X=np.vstack([p.X, row]), y=np.append(p.y, label))
    t = float(decoupled_weight(np.array([abs(x)]), p.lambda2)[0])
    alone = float(np.logaddexp(0.0, -t * abs(x)) + p.lambda2 * t**2)
    a, b = Answer.of(p), Answer.of(bigger)
    assert a.optimal
    assert b.optimal
    assert same_value(a, b, offset=alone)
    low, high = (bound[-1] for bound in b.scores)
    assert low - 1e-9 <= label * t * abs(x) <= high + 1e-9


@pytest.mark.long
@given(problems(), st.integers(0, 2**32 - 1))
def test_warm_start_ends_where_cold_start_ends(p, seed):
    W0 = np.random.default_rng(seed).standard_normal(p.shape)
    a, b = Answer.of(p), Answer.of(p, W0=W0)
    c = Answer.of(p, W0=a.solution.W)
    assert a.optimal
    assert b.optimal
    assert c.optimal
    assert same_value(a, b)
    assert same_value(a, c)
    assert same_scores(a, b)


@pytest.mark.long
@given(problems())
def test_merging_an_edge_of_weight_zero_changes_nothing(p):
    live = p.weights > 0
    a, b = Answer.of(p), Answer.of(changed(p, edges=p.edges[live], weights=p.weights[live]))
    assert a.optimal
    assert b.optimal
    assert same_value(a, b)
    assert same_scores(a, b)


@pytest.mark.long
@given(problems(), st.floats(0.1, 10.0))
def test_the_optimum_grows_with_either_penalty(p, factor):
    heavier = changed(p, lambda1=p.lambda1 * (1 + factor), lambda2=p.lambda2 * (1 + factor))
    a, b = Answer.of(p), Answer.of(heavier)
    assert a.optimal
    assert b.optimal
    assert a.low <= b.high * (1 + 1e-12)
    assert b.low <= a.high * (1 + factor) * (1 + 1e-12)  # J of the heavier is at most (1 + factor) J
    assert a.high <= p.shape[0] * np.log(2.0) * (1 + 1e-12)  # W = 0 is always allowed


# ---- duality, at any scale ------------------------------------------------------------------------------------


@given(problems(exponent=8.0), st.integers(0, 2**32 - 1))
def test_no_dual_point_ever_exceeds_an_objective(p, seed):
    """Random W and random dual points, samples and lambdas from 1e-8 to 1e8."""
    rng = np.random.default_rng(seed)
    W = rng.standard_normal(p.shape) * 10.0 ** rng.uniform(-8, 2) / (np.abs(p.X).max() or 1.0)
    alpha = rng.uniform(-0.2, 1.2, p.shape[0])
    U = rng.standard_normal((len(p.edges), p.shape[1])) * p.radii[:, None] * rng.uniform(0, 2)
    c = llr.certify(p, W, alpha, U)
    proof = enclose(p, W, alpha, U)
    assert c.dual <= c.primal * (1 + 1e-12)
    assert proof.dual_low <= proof.primal_high
    assert c.primal <= proof.primal_high * (1 + 1e-12)
    result = checker.check(problem_arrays(p), certificate_arrays(c, W))
    assert result["confirmed"], result["reasons"]
    assert result["dual_low"] <= proof.dual_low + 1e-12 * entropy(c.alpha).sum()


@given(problems(exponent=8.0))
def test_claims_hold_at_any_scale(p):
    """Whatever the scales: a proof or an honest status, confirmed by the checker and by ball arithmetic."""
    a = Answer.of(p)
    c = a.solution.certificate
    proof = enclose(p, a.solution.W, c.alpha, c.U)
    if a.optimal:
        assert proof.primal_high - proof.dual_low <= 1.001 * TOL * proof.primal_high + 1e-11 * a.high
    else:
        assert a.solution.status in llr.solution.STATUSES
    assert a.low <= proof.primal_high
    assert proof.dual_low <= a.high


@given(problems(exponent=4.0), st.integers(0, 2**32 - 1))
def test_verdicts_contain_the_truth(p, seed):
    rng = np.random.default_rng(seed)
    a = Answer.of(p)
    W = a.solution.W * (1 + 10.0 ** rng.uniform(-8, 0) * rng.standard_normal(p.shape))
    verdict = verify(p, W)
    low, high = verdict.suboptimality
    J = p.objective(W)
    slack = 1e-11 * (J + a.high)
    assert 0.0 <= low <= high
    assert low <= J - a.low + slack
    assert high >= J - a.high - slack
    assert verdict.accepted == (high <= verdict.tol * J)


@given(problems(exponent=3.0), st.integers(0, 2**32 - 1))
def test_the_objective_is_convex_and_nonnegative(p, seed):
    rng = np.random.default_rng(seed)
    V, W = (rng.standard_normal(p.shape) * 10.0 ** rng.uniform(-2, 2) for _ in range(2))
    middle = p.objective(0.5 * (V + W))
    assert 0.0 <= middle <= 0.5 * (p.objective(V) + p.objective(W)) * (1 + 1e-12)
