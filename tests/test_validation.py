"""Bad input to Problem: the message names the argument, and the row or the value."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

import llr_cvx as llr

GOOD: dict[str, Any] = {
    "X": [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]],
    "y": [1, -1, 1],
    "edges": [[0, 1], [1, 2]],
    "weights": [1.0, 2.0],
    "lambda1": 0.1,
    "lambda2": 1.0,
}

BAD = [
    ("X", [[1.0, np.nan], [3.0, 4.0], [5.0, 6.0]], ValueError, "X has a non-finite value nan at row 0, column 1"),
    ("X", [[1.0, 2.0], [3.0, np.inf], [5.0, 6.0]], ValueError, "X has a non-finite value inf at row 1, column 1"),
    ("X", [[1.0, 2.0], [3.0, 4.0], [-np.inf, 6.0]], ValueError, "X has a non-finite value -inf at row 2, column 0"),
    ("X", [["a", "b"], ["c", "d"], ["e", "f"]], TypeError, "X has dtype <U1: real numbers expected"),
    ("X", [["1", "2"], ["3", "4"], ["5", "6"]], TypeError, "X has dtype <U1: real numbers expected"),
    ("X", np.array([[1, "a"], [3, 4], [5, 6]], dtype=object), TypeError, "X holds something that is not a real"),
    ("X", np.ones((3, 2)) * 1j, TypeError, "X is complex (complex128): real numbers expected"),
    ("X", csr_array(np.eye(3)), TypeError, "X is a sparse matrix: pass a dense array, for example X.toarray()"),
    ("X", [[1.0, 2.0], [3.0], [5.0, 6.0]], ValueError, "X is not a rectangular array of numbers"),
    ("X", [1.0, 2.0, 3.0], ValueError, "X must have 2 dimension(s), got shape (3,)"),
    ("X", np.ones((3, 2, 2)), ValueError, "X must have 2 dimension(s), got shape (3, 2, 2)"),
    ("X", np.empty((0, 2)), ValueError, "X is empty: shape (0, 2), at least one row"),
    ("X", np.empty((3, 0)), ValueError, "X has no columns: shape (3, 0), at least one feature"),
    ("y", [1, -1], ValueError, "y has 2 entries but X has 3 rows"),
    ("y", [[1], [-1], [1]], ValueError, "y must have 1 dimension(s), got shape (3, 1)"),
    ("y", [1, 0, -1], ValueError, "got 0 at row 1"),
    ("y", [1, -1, 2], ValueError, "got 2 at row 2"),
    ("y", [1, -1, np.nan], ValueError, "y has a non-finite value nan at row 2"),
    ("y", ["1", "-1", "1"], TypeError, "y has dtype <U2"),
    ("y", [1, 1, 1], ValueError, "y holds only +1 in its 3 row(s): the density ratio needs both classes"),
    ("y", [-1, -1, -1], ValueError, "add at least one row labelled +1 (known inlier)"),
    ("edges", [[0, 1], [1, 1]], ValueError, "edges row 1, (1, 1), is a self-loop"),
    ("edges", [[0, 1], [2, 1]], ValueError, "edges row 1, (2, 1), is reversed: write each undirected edge once"),
    (
        "edges",
        [[0, 1], [0, 1]],
        ValueError,
        "edges row 1, (0, 1), is a duplicate: merge the two and add their weights",
    ),
    ("edges", [[0, 1], [1, 3]], ValueError, "edges row 1, (1, 3), is outside 0..2"),
    ("edges", [[-1, 1], [1, 2]], ValueError, "edges row 0, (-1, 1), is outside 0..2"),
    ("edges", [[0, 1], [1, 1.5]], ValueError, "edges row 1, (1, 1.5), is not a pair of whole numbers"),
    ("edges", [[0, 1], [1, 1e300]], ValueError, "edges row 1, (1, 1e+300), is not a pair of whole numbers"),
    ("edges", [[0, 1, 2]], ValueError, "edges must have two columns (i, j), got shape (1, 3)"),
    ("edges", [0, 1], ValueError, "edges must have 2 dimension(s), got shape (2,)"),
    ("weights", [1.0], ValueError, "weights has 1 entries but edges has 2 rows"),
    ("weights", [1.0, -0.5], ValueError, "weights must be >= 0, got -0.5 at row 1"),
    ("weights", [np.nan, 1.0], ValueError, "weights has a non-finite value nan at row 0"),
    ("weights", [1.0, np.inf], ValueError, "weights has a non-finite value inf at row 1"),
    ("lambda1", -0.1, ValueError, "lambda1 must be a finite number >= 0, got -0.1"),
    ("lambda1", np.nan, ValueError, "lambda1 must be a finite number >= 0, got nan"),
    ("lambda2", np.inf, ValueError, "lambda2 must be a finite number >= 0, got inf"),
    ("lambda2", -1, ValueError, "lambda2 must be a finite number >= 0, got -1"),
    ("lambda2", "1", TypeError, "lambda2 must be a real number >= 0, got '1'"),
    ("lambda2", 1j, TypeError, "lambda2 must be a real number >= 0, got 1j"),
    ("lambda2", [1.0], TypeError, "lambda2 must be a real number >= 0, got [1.0]"),
    ("lambda2", True, TypeError, "lambda2 must be a real number >= 0, got True"),
    ("lambda2", None, TypeError, "lambda2 must be a real number >= 0, got None"),
    ("sigma", 0.0, ValueError, "sigma must be a finite number > 0, got 0.0"),
    ("n_neighbors", 2.5, TypeError, "n_neighbors must be a whole number >= 1, got 2.5"),
]


@pytest.mark.parametrize(("name", "value", "error", "message"), BAD)
def test_problem_names_what_is_wrong(name: str, value: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=re.escape(message)):
        llr.Problem(**(GOOD | {name: value}))


def test_the_good_case_is_good() -> None:
    assert llr.Problem(**GOOD).shape == (3, 2)


def test_both_lambdas_zero_are_refused() -> None:
    with pytest.raises(ValueError, match=r"lambda1 and lambda2 are both 0: .* not attained"):
        llr.Problem(**(GOOD | {"lambda1": 0.0, "lambda2": 0.0}))


def test_one_sample_alone_is_a_single_class() -> None:
    with pytest.raises(ValueError, match=r"y holds only \+1 in its 1 row\(s\)"):
        llr.Problem([[1.0]], [1], [], [])


def test_no_edges_is_fine_in_any_empty_shape() -> None:
    for empty in ([], np.empty((0, 2)), np.empty((0, 2), dtype=int)):
        p = llr.Problem(**(GOOD | {"edges": empty, "weights": []}))
        assert p.edges.shape == (0, 2)


def test_integers_booleans_and_foreign_float_types_are_numbers() -> None:
    for X in (
        np.array(GOOD["X"], dtype=np.float32),
        np.array(GOOD["X"], dtype=np.int8),
        np.array(GOOD["X"], dtype=object),
    ):
        p = llr.Problem(**(GOOD | {"X": X}))
        assert p.X.dtype == np.float64
        assert np.array_equal(p.X, GOOD["X"])


W_BAD = [
    (np.zeros((2, 2)), ValueError, "W has shape (2, 2) but the problem needs (3, 2): one row per sample"),
    (np.zeros(6), ValueError, "W must have 2 dimension(s), got shape (6,)"),
    ([[0, 0], [0, np.nan], [0, 0]], ValueError, "W has a non-finite value nan at row 1, column 1"),
    (np.zeros((3, 2), dtype=complex), TypeError, "W is complex"),
    ([["a", "b"]] * 3, TypeError, "W has dtype <U1"),
]


@pytest.mark.parametrize(("W", "error", "message"), W_BAD)
def test_a_bad_W_is_named_by_all_that_take_one(W: Any, error: type[Exception], message: str) -> None:
    p = llr.Problem(**GOOD)
    for take in (p.objective, p.parts, p.scores, p.log_ratio, p.alpha, lambda W: llr.certify(p, W)):
        with pytest.raises(error, match=re.escape(message)):
            take(W)


FROM_SAMPLES_BAD = [
    ({"X_test": np.ones((2, 3))}, ValueError, "X_inlier has 2 columns but X_test has 3: same features, same order"),
    ({"X_inlier": np.empty((0, 2))}, ValueError, "X_inlier is empty"),
    ({"X_test": [[np.nan, 1.0]]}, ValueError, "X_test has a non-finite value nan at row 0, column 0"),
    (
        {"n_neighbors": 6},
        ValueError,
        "n_neighbors must be smaller than the number of pooled samples: got 6 for 6 rows",
    ),
    ({"n_neighbors": 0}, ValueError, "n_neighbors must be a whole number >= 1, got 0"),
    ({"n_neighbors": 2.0}, TypeError, "n_neighbors must be a whole number >= 1, got 2.0"),
    ({"n_neighbors": True}, TypeError, "n_neighbors must be a whole number >= 1, got True"),
    ({"sigma": 0}, ValueError, "sigma must be a finite number > 0, got 0"),
    ({"sigma": -1.0}, ValueError, "sigma must be a finite number > 0, got -1.0"),
    ({"sigma": np.nan}, ValueError, "sigma must be a finite number > 0, got nan"),
    ({"sigma": "mean"}, ValueError, "sigma must be a positive number or \"median\", got 'mean'"),
    ({"lambda1": -1.0}, ValueError, "lambda1 must be a finite number >= 0, got -1.0"),
]


@pytest.mark.parametrize(("change", "error", "message"), FROM_SAMPLES_BAD)
def test_from_samples_names_what_is_wrong(change: dict[str, Any], error: type[Exception], message: str) -> None:
    rng = np.random.default_rng(0)
    good = {"X_inlier": rng.standard_normal((4, 2)), "X_test": rng.standard_normal((2, 2)), "n_neighbors": 2}
    with pytest.raises(error, match=re.escape(message)):
        llr.Problem.from_samples(**(good | change))


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"d": 0}, ValueError, "d must be a whole number >= 1, got 0"),
        ({"d": 2.0}, TypeError, "d must be a whole number >= 1, got 2.0"),
        ({"n_inlier": 0}, ValueError, "n_inlier must be a whole number >= 1, got 0"),
        ({"n_test_inlier": 0, "n_outlier": 0}, ValueError, "n_test_inlier and n_outlier are both 0"),
    ],
)
def test_make_synthetic_names_what_is_wrong(change: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=re.escape(message)):
        llr.make_synthetic(**change)
