"""Verdicts on a W from anywhere: right in both directions, and pointing at what is wrong."""

import numpy as np
import pytest

import llr_cvx as llr
from llr_cvx.instances import list_instances, load_instance
from llr_cvx.verdicts.traces import verify_trace
from llr_cvx.verdicts.weights import gap_parts, verify

SMALL = [name for name in list_instances() if load_instance(name).problem.shape[0] <= 64]


def contains_truth(verdict, instance, W):
    """The interval must contain J(W) - J* for every J* that the library allows."""
    J = instance.problem.objective(W)
    low, high = verdict.suboptimality
    slack = 1e-12 * J
    return low <= J - instance.lower + slack and high >= J - instance.upper - slack


@pytest.mark.parametrize("name", SMALL)
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


def test_clarabel_is_judged_fairly():
    instance = load_instance("fused-most")
    s = llr.solve_exact(instance.problem)
    verdict = verify(instance.problem, s.W, tol=1e-6)
    assert verdict.accepted
    assert verdict.suboptimality[0] > 0  # an interior-point W is never exact ...
    assert len(verdict.should_be_fused) > 50  # ... nor exactly fused
    stopped = llr.solve_exact(instance.problem, max_iter=5)
    assert not verify(instance.problem, stopped.W).accepted


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
    p = llr.Problem(
        X, np.tile([1, -1], 6), np.column_stack([np.arange(11), np.arange(1, 12)]), np.ones(11), 2.0, 0.0
    )
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


def test_trace_of_the_fast_solver_is_monotone():
    s = llr.solve_irls(load_instance("fused-most").problem)
    verdict = verify_trace(s.trace.smoothed_objective)
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
