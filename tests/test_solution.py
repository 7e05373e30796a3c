"""Traces and solutions: what monotone means, and what is read off W."""

from __future__ import annotations

import numpy as np
import pytest
from builders import random_problem

import llr_cvx as llr
from llr_cvx.solution import STATUSES, Solution, Trace, first_rise


def trace(phases: list[str], values: list[float]) -> Trace:
    """J_epsilon as given, other columns of no interest."""
    column = np.array(values)
    return Trace(np.array(phases), column, column, column, column, column, column)


# ---- monotone ---------------------------------------------------------------------------------------------


def test_a_rise_is_found_however_small_beyond_rounding() -> None:
    irls = ["irls"] * 4
    assert trace(irls, [3.0, 2.0, 2.0 * (1 + 1e-13), 1.0]).is_monotone()
    assert not trace(irls, [3.0, 2.0, 2.0 * (1 + 1e-11), 1.0]).is_monotone()
    assert trace(irls, [3.0, 2.0, 2.0 * (1 + 1e-11), 1.0]).is_monotone(rtol=1e-10)


@pytest.mark.parametrize("k", range(5))
def test_one_raised_entry_among_irls_steps_is_enough(k: int) -> None:
    values = [5.0, 4.0, 3.0, 2.0, 1.0]
    assert trace(["irls"] * 5, values).is_monotone()
    values[k] += 10.0
    assert trace(["irls"] * 5, values).is_monotone() == (k == 0)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("k", range(3))
def test_what_is_not_a_number_is_not_monotone(k: int, value: float) -> None:
    values = [3.0, 2.0, 1.0]
    values[k] = value
    assert not trace(["irls"] * 3, values).is_monotone()


def test_a_single_irls_step_must_be_a_number() -> None:
    assert trace(["irls"], [1.0]).is_monotone()
    assert not trace(["irls"], [np.nan]).is_monotone()


@pytest.mark.parametrize("phase", ["splitting", "rounding"])
@pytest.mark.parametrize("value", [9.0, np.nan])
def test_nothing_is_said_of_other_phases(phase: str, value: float) -> None:
    assert trace(["irls", "irls", phase, phase], [3.0, 2.0, value, 5.0]).is_monotone()
    assert trace([phase, "irls", "irls"], [value, 3.0, 2.0]).is_monotone()
    assert trace([phase, phase], [1.0, value]).is_monotone()  # no IRLS step: nothing to violate
    assert not trace(["irls", "irls", phase], [2.0, 3.0, value]).is_monotone()


def test_stretches_of_irls_are_judged_apart() -> None:
    """What another phase does in between may begin anew; inside each stretch a rise counts."""
    phases = ["irls", "irls", "splitting", "irls", "irls"]
    assert trace(phases, [3.0, 2.0, np.nan, 8.0, 7.0]).is_monotone()
    assert not trace(phases, [3.0, 2.0, np.nan, 7.0, 8.0]).is_monotone()
    assert not trace(phases, [2.0, 3.0, np.nan, 2.0, 1.0]).is_monotone()


def test_without_an_entry_there_is_nothing_to_violate() -> None:
    assert trace([], []).is_monotone()


def test_first_rise() -> None:
    assert first_rise(np.array([3.0, 2.0, 2.0, 1.0])) is None
    assert first_rise(np.array([3.0, 2.0, 2.5, 9.0])) == 2
    assert first_rise(np.array([3.0, np.nan, 1.0])) == 1
    assert first_rise(np.array([-1.0, -2.0, -1.5])) == 2
    assert first_rise(np.array([])) is None


def test_a_trace_cannot_be_changed() -> None:
    with pytest.raises(ValueError, match="read-only"):
        trace(["irls"] * 2, [2.0, 1.0]).smoothed_objective[1] = 3.0


# ---- solutions ----------------------------------------------------------------------------------------------


def with_W(p: llr.Problem, W: np.ndarray) -> Solution:
    return Solution(p, W, p.objective(W), "inaccurate", "by hand", llr.certify(p, W), "NONE", 0.0)


def test_support_and_clusters_read_exact_zeros_and_exact_ties() -> None:
    p = llr.Problem(np.eye(4), [1, 1, -1, -1], [[0, 1], [1, 2], [2, 3]], [1.0, 1.0, 0.0])
    W = np.array([[1.0, 0, 0, 0], [1.0, 0, 0, 0], [0, 0, 2.0, 0], [0, 0, 2.0, 0]])
    s = with_W(p, W)
    assert np.array_equal(s.support, W != 0)
    # rows 2 and 3 are equal, but the edge between them has no weight
    assert s.clusters[0] == s.clusters[1]
    assert len(set(s.clusters.tolist())) == 3


def test_W_and_what_is_read_off_it_cannot_be_changed() -> None:
    p = random_problem(0, 12, 2)
    s = with_W(p, np.ones(p.shape))
    for array in (s.W, s.support, s.clusters):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


def test_a_solution_reads_well() -> None:
    p = random_problem(0, 24, 3)
    for solve, name in ((llr.solve_irls, "IRLS"), (llr.solve_fast, "FAST")):
        s = solve(p)
        assert s.status in STATUSES
        assert s.objective == p.objective(s.W) == s.certificate.primal
        assert np.array_equal(s.log_ratio, p.log_ratio(s.W))
        assert str(s).startswith(f"{name}: optimal (relative gap ")
        assert f"{s.n_iter} iterations" in s.message
