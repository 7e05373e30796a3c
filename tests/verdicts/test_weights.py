"""Verdicts on a W from anywhere: right in both directions, and pointing at what is wrong."""

import numpy as np
import pytest
from sizes import thinned

import llr_cvx as llr
from llr_cvx import checker
from llr_cvx.instances import load_instance
from llr_cvx.instances.generators import chain
from llr_cvx.instances.recipes import RECIPES
from llr_cvx.proofs.ball_arithmetic import enclose
from llr_cvx.proofs.certificate import certificate
from llr_cvx.verdicts.traces import verify_trace
from llr_cvx.verdicts.weights import Reference, gap_parts, judge, verify

SMALL = [name for name in RECIPES if RECIPES[name].stored and load_instance(name).problem.shape[0] <= 64]


def contains_truth(verdict, instance, W):
    """The interval must contain J(W) - J* for every J* that the library allows."""
    J = instance.problem.objective(W)
    low, high = verdict.suboptimality
    slack = 1e-12 * J
    return low <= J - instance.lower + slack and high >= J - instance.upper - slack


@pytest.mark.parametrize("name", thinned(SMALL, 3))
def test_optimal_w_is_accepted_and_a_bad_one_rejected(name):
    instance = load_instance(name)
    p = instance.problem
    good = verify(p, instance.W, tol=1e-6)
    assert good.accepted
    assert str(good).startswith("accepted at tol 1e-06")
    assert contains_truth(good, instance, instance.W)
    rng = np.random.default_rng(0)
    bad_W = instance.W * (1 + 0.3 * rng.standard_normal(p.shape))
    bad = verify(p, bad_W, tol=1e-6)
    assert contains_truth(bad, instance, bad_W)
    relative = (p.objective(bad_W) - instance.upper) / p.objective(bad_W)
    assert bad.accepted == (relative <= 1e-6)
    if not bad.accepted:
        assert bad.suboptimality[0] > 0
        assert str(bad).startswith("rejected")


def test_interval_is_narrow():
    instance = load_instance("fused-most")
    W = instance.W * 1.05
    low, high = verify(instance.problem, W).suboptimality
    true = instance.problem.objective(W) - instance.upper
    assert low == pytest.approx(true, rel=1e-6)
    assert high == pytest.approx(true, rel=1e-6)


def test_worst_sample_is_the_corrupted_one():
    instance = load_instance("fused-some")
    for row in (3, 40, 63):
        W = instance.W.copy()
        W[row] += 1.0
        verdict = verify(instance.problem, W)
        assert verdict.worst_samples[0] == row
        assert f"worst samples: {row} (" in str(verdict)


def test_coordinate_that_should_be_zero_is_found():
    instance = load_instance("planted-clusters")
    W = instance.W.copy()
    i, k = map(int, np.argwhere(W == 0)[7])
    W[i, k] = 0.05 * np.abs(W).max()
    verdict = verify(instance.problem, W)
    assert verdict.should_be_zero.tolist() == [[i, k]]
    assert f"coordinates that should be zero: 1: ({i}, {k})" in str(verdict)


def test_a_coordinate_is_blamed_only_beyond_the_proven_bound():
    """|w*_ik| <= G / (M_i - |v_ik|), for a dual point that leaves a gap G."""
    instance = load_instance("planted-clusters")
    p, best, alpha, U = instance.problem, instance.W, 0.99 * instance.alpha, 0.99 * instance.U
    v = np.abs(p.dual_vectors(alpha, U))
    gap = p.objective(best) - certificate(p, best, alpha, U).dual
    i, k = map(int, np.argwhere(best == 0)[7])
    bound = gap / (v[i].max() - v[i, k])
    for share, blamed in ((0.99, []), (1.01, [[i, k]])):
        W = best.copy()
        W[i, k] = share * bound
        assert judge(p, W, 1e-6, Reference(best, alpha, U)).should_be_zero.tolist() == blamed


def test_nonzero_coordinates_of_an_optimum_are_never_blamed():
    """The planted optimum is the truth: no coordinate of its support may be called zero, no cut edge fused."""
    for name in ("planted-clusters", "planted-apart", "planted-fused", "planted-wide"):
        instance = load_instance(name)
        verdict = verify(instance.problem, instance.W)
        assert not len(verdict.should_be_zero)
        assert not len(verdict.should_be_fused)


def test_edge_that_should_be_fused_is_found():
    instance = load_instance("planted-fused")
    W = instance.W.copy()
    W[10] *= 1.1
    verdict = verify(instance.problem, W)
    touching = instance.problem.edges[(instance.problem.edges == 10).any(axis=1)]
    assert sorted(verdict.should_be_fused.tolist()) == touching.tolist()
    assert "edges that should be fused" in str(verdict)
    assert max(verdict.violations, key=verdict.violations.get) == "network"


def test_violations_add_up_to_the_gap():
    instance = load_instance("fused-some")
    rng = np.random.default_rng(1)
    for W in (instance.W, np.zeros_like(instance.W), rng.standard_normal(instance.W.shape)):
        verdict = verify(instance.problem, W)
        total = sum(verdict.violations.values())
        assert total == pytest.approx(verdict.certificate.gap, rel=1e-9, abs=1e-12)
        assert verdict.sample_gaps.sum() == pytest.approx(total)
        parts = gap_parts(instance.problem, W, verdict.certificate)
        assert all((part >= 0).all() for part in parts.values())


def test_which_condition_is_violated():
    """Scaling every row of an all-fused optimum leaves the differences zero: only fit and selection suffer."""
    instance = load_instance("planted-fused")
    verdict = verify(instance.problem, 1.2 * instance.W)
    assert verdict.violations["network"] == pytest.approx(0, abs=1e-10)
    assert "violated stationarity" in str(verdict)


@pytest.mark.long
def test_clarabel_is_judged_fairly():
    instance = load_instance("fused-most")
    s = llr.solve_exact(instance.problem)
    verdict = verify(instance.problem, s.W, tol=1e-6)
    assert verdict.accepted
    assert verdict.suboptimality[0] > 0  # an interior-point W is never exact ...
    assert len(verdict.should_be_fused) > 50  # ... nor exactly fused
    stopped = llr.solve_exact(instance.problem, max_iter=5)
    assert not verify(instance.problem, stopped.W).accepted


def mixed_scales(seed):
    """Columns of size 10^U(-4, 4): products x_ik w_ik far larger than a small J."""
    rng = np.random.default_rng([7, seed])
    N, d = int(rng.integers(4, 40)), int(rng.integers(1, 9))
    X = rng.standard_normal((N, d)) * 10.0 ** rng.uniform(-4, 4, d)
    y = rng.permutation(np.where(np.arange(N) < rng.integers(1, N), 1.0, -1.0))
    weights = np.exp(rng.standard_normal(N - 1))
    return llr.Problem(X, y, chain(N), weights, 10.0 ** rng.uniform(-3, 2), 10.0 ** rng.uniform(-3, 2))


def checked_interval(p, W):
    """The checker's interval of J(W)."""
    return checker.primal(tuple(getattr(p, name) for name in checker.PROBLEM), W)


@pytest.mark.parametrize("seed", [*thinned(range(50, 90), 8), 109, 205, 292])
def test_what_the_solver_proves_for_features_of_mixed_scale_is_accepted(seed):
    p = mixed_scales(seed)
    s = llr.solve_irls(p, tol=1e-9)
    assert s.status == "optimal"
    verdict = verify(p, s.W, tol=1e-9)
    assert verdict.accepted, str(verdict)
    proof = enclose(p, s.W, verdict.certificate.alpha, verdict.certificate.U)
    low, high = checked_interval(p, s.W)
    assert low <= proof.primal_low <= proof.primal_high <= high
    assert high - low <= 1e-11 * high
    assert verdict.suboptimality[1] >= proof.primal_high - proof.dual_high


@pytest.mark.parametrize("size", [1.0, 1e4, 1e8, 1e12, 1e16])
def test_the_interval_holds_where_products_cancel(size):
    """Sums of products of the given size that cancel to margins of any sign and size below."""
    rng = np.random.default_rng(int(np.log10(size)))
    for _ in range(40):
        p = llr.Problem(rng.standard_normal((6, 4)), np.tile([1, -1], 3), chain(6), np.ones(5), 1e-20, 1e-40)
        W = size * rng.standard_normal(p.shape)
        rest = size ** rng.uniform(-1, 1, 6) * rng.standard_normal(6)
        W[:, 3] = (rest - (p.X[:, :3] * W[:, :3]).sum(axis=1)) / p.X[:, 3]
        proof = enclose(p, W, np.zeros(6), np.zeros((5, 4)))
        low, high = checked_interval(p, W)
        assert low <= proof.primal_low <= proof.primal_high <= high


def test_the_interval_holds_where_radii_underflow():
    """lambda1 omega_e is 0 in doubles, all losses vanish, and J(W) = 1e-197 is what is left."""
    rng = np.random.default_rng(0)
    p = llr.Problem(1e-149 * np.ones((4, 2)), [1, 1, -1, -1], chain(4), np.full(3, 1e-150), 1e-200, 0.0)
    W = 1e153 * p.y[:, None] * (1 + rng.random(p.shape))
    proof = enclose(p, W, np.zeros(4), np.zeros((3, 2)))
    assert proof.primal_low > p.objective(W) == 0.0
    low, high = checked_interval(p, W)
    assert low <= proof.primal_low <= proof.primal_high <= high
    c = llr.certify(p, W, np.zeros(4), np.zeros((3, 2)))
    assert c.primal - c.rounding <= proof.primal_low <= proof.primal_high <= c.primal + c.rounding


def test_overflowing_w_is_rejected():
    instance = load_instance("pair-fused")
    verdict = verify(instance.problem, np.full((2, 1), 1e200))
    assert not verdict.accepted
    assert verdict.suboptimality[1] == np.inf
    assert "rejected" in str(verdict)


def test_without_the_exclusive_penalty():
    """lambda2 = 0 has no unconditional proof: never accepted, and the words say what holds instead."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((12, 2))
    p = llr.Problem(X, np.tile([1, -1], 6), np.column_stack([np.arange(11), np.arange(1, 12)]), np.ones(11), 2.0, 0.0)
    verdict = verify(p, llr.solve_irls(p).W)
    assert not verdict.accepted
    assert "lambda2 = 0" in str(verdict)


@pytest.mark.parametrize(
    ("W", "tol", "error"),
    [
        (np.zeros((3, 1)), 1e-6, ValueError),
        (np.full((2, 1), np.nan), 1e-6, ValueError),
        ("text", 1e-6, TypeError),
        (np.zeros((2, 1)), 0.0, ValueError),
        (np.zeros((2, 1)), "small", TypeError),
    ],
)
def test_bad_input(W, tol, error):
    with pytest.raises(error):
        verify(load_instance("pair-fused").problem, W, tol)


# ---- traces -------------------------------------------------------------------------------------------------


def test_trace_of_irls_is_monotone():
    s = llr.solve_irls(load_instance("fused-most").problem)
    verdict = verify_trace(s.trace.smoothed_objective[s.trace.phase == "irls"])
    assert verdict.monotone
    assert verdict.accepted
    assert verdict.matches is None
    assert str(verdict).startswith("monotone")


def test_iterates_are_recomputed():
    p = load_instance("fused-some").problem
    steps = []
    llr.solve_irls(p, callback=steps.append)
    iterates, values = [s.W for s in steps], [s.objective for s in steps]
    verdict = verify_trace(iterates, p, reported=values)
    assert verdict.matches
    assert verdict.first_mismatch is None
    np.testing.assert_allclose(verdict.values, values, rtol=1e-12)
    values[3] *= 1 + 1e-9
    verdict = verify_trace(iterates, p, reported=values)
    assert verdict.matches is False
    assert verdict.first_mismatch == 3
    assert not verdict.accepted
    assert "reported value 3 differs" in str(verdict)


@pytest.mark.parametrize(
    ("values", "first"),
    [
        ([3.0, 2.0, 1.0], None),
        ([3.0, 2.0, 2.0 * (1 + 1e-13)], None),
        ([3.0, 2.0, 2.0 * (1 + 1e-11)], 2),
        ([3.0, np.nan, 1.0], 1),
        ([np.nan, 1.0], 0),
        ([np.inf, 1.0], 0),
        ([1.0, np.inf], 1),
        ([5.0], None),
        ([-1.0, -0.5], 1),
    ],
)
def test_first_violation(values, first):
    verdict = verify_trace(values)
    assert verdict.first_violation == first
    assert verdict.monotone == (first is None)
    assert ("not monotone" in str(verdict)) == (first is not None)


def test_rising_iterates_are_noticed():
    instance = load_instance("fused-some")
    verdict = verify_trace([0 * instance.W, instance.W, 0.9 * instance.W], instance.problem)
    assert verdict.first_violation == 2


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        (([],), ValueError, "non-empty"),
        (([[1.0], [2.0]],), ValueError, "verify_trace\\(iterates, problem\\)"),
        ((["a", "b"],), TypeError, "sequence of numbers"),
        ((["a"], "problem"), TypeError, "must be a Problem"),
        (([1.0, 2.0], "own"), ValueError, "leave problem out"),
        (([np.zeros((3, 3))], "own"), ValueError, "shape"),
        (([1.0, 2.0], None, 1e-12, [1.0]), ValueError, "compared only with iterates"),
        (([np.zeros((2, 1))], "own", 1e-12, [1.0, 2.0]), ValueError, "2 values but there are 1"),
        (([1.0], None, -1.0), ValueError, "rtol"),
    ],
)
def test_bad_traces(arguments, error, words):
    p = load_instance("pair-fused").problem
    with pytest.raises(error, match=words):
        verify_trace(*(p if a is not None and isinstance(a, str) and a == "own" else a for a in arguments))
