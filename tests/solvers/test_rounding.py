"""Equal rows and zeros: what `fused_rows` does to W."""

from __future__ import annotations

import numpy as np
import pytest

from llr_cvx.problem import Problem
from llr_cvx.solvers.rounding import fused_rows

W = np.array([[1.0, 0.0], [3.0, 0.0], [2.0, 6.0], [5.0, 5.0]])


def chain(lambda2: float = 1.0, weights: tuple[float, ...] = (1.0, 1.0, 1.0)) -> Problem:
    X = np.array([[1.0, 0.5], [-1.0, 2.0], [0.3, -1.0], [1.0, 1.0]])
    return Problem(X, [1, -1, 1, -1], [[0, 1], [1, 2], [2, 3]], weights, 1.0, lambda2)


def test_marked_edges_join_rows_at_their_mean_and_the_majority_decides_what_is_zero() -> None:
    found = fused_rows(chain(), W, np.array([True, True, False]))
    assert np.array_equal(found, [[2.0, 0.0]] * 3 + [[5.0, 5.0]])
    assert np.array_equal(W[2], [2.0, 6.0])  # W itself is left alone


def test_without_lambda2_nothing_is_set_to_zero() -> None:
    found = fused_rows(chain(lambda2=0.0), W, np.array([True, True, False]))
    assert np.array_equal(found[:3], [[2.0, 2.0]] * 3)


@pytest.mark.parametrize("fused", [[False, False, False], [True, False, False]])
def test_an_edge_that_does_not_couple_joins_nothing(fused: list[bool]) -> None:
    assert np.array_equal(fused_rows(chain(weights=(0.0, 1.0, 1.0)), W, np.array(fused)), W)
