"""Input validation: every message names the argument, what is wrong and what is expected."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from llr_cvx.arrays import FloatArray, IntArray

#: Magnitudes between 1 / MAX_MAGNITUDE and MAX_MAGNITUDE can be squared without leaving the range of doubles.
MAX_MAGNITUDE = 1e150
#: How to rescale a problem.
RESCALING_RULE = "with the same graph, c X, c lambda1 and c^2 lambda2 are the same problem"


def real_array(value: ArrayLike, name: str, ndim: int) -> FloatArray:
    """Return a copy of `value` as a finite, contiguous float64 array of `ndim` dimensions."""
    array = _as_real(value, name)
    if array.ndim != ndim:
        raise ValueError(f"{name} must have {ndim} dimension(s), got shape {array.shape}")
    if array.size and not np.isfinite(array).all():
        first = tuple(int(k) for k in np.argwhere(~np.isfinite(array))[0])
        where = f"row {first[0]}" + (f", column {first[1]}" if len(first) > 1 else "")
        raise ValueError(f"{name} has a non-finite value {array[first]} at {where}: fill or remove that entry first")
    return array


def _as_real(value: ArrayLike, name: str) -> FloatArray:
    if hasattr(value, "toarray"):
        raise TypeError(f"{name} is a sparse matrix: pass a dense array, for example {name}.toarray()")
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise ValueError(f"{name} is not a rectangular array of numbers: {error}") from None
    if np.iscomplexobj(array):
        raise TypeError(f"{name} is complex ({array.dtype}): real numbers expected")
    if array.dtype.kind not in "iufbO":
        raise TypeError(f"{name} has dtype {array.dtype}: real numbers expected")
    try:
        return np.array(array, dtype=np.float64, order="C", copy=True)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} holds something that is not a real number: {error}") from None


def samples(value: ArrayLike, name: str) -> FloatArray:
    """A non-empty matrix with one sample per row and one feature per column."""
    X = real_array(value, name, ndim=2)
    if X.shape[0] == 0:
        raise ValueError(f"{name} is empty: shape {X.shape}, at least one row is needed")
    if X.shape[1] == 0:
        raise ValueError(f"{name} has no columns: shape {X.shape}, at least one feature is needed")
    return X


def squarable(X: FloatArray, name: str) -> FloatArray:
    """The samples, if their squares, which every solver and bound needs, stay in the range of doubles."""
    size = np.abs(X)
    largest = float(size.max())
    if largest == 0 or 1.0 / MAX_MAGNITUDE <= largest <= MAX_MAGNITUDE:
        return X
    i, k = np.unravel_index(int(size.argmax()), X.shape)
    raise ValueError(
        f"the largest value of {name} is {X[i, k]:g} (row {i}, column {k}), not between "
        f"{1 / MAX_MAGNITUDE:g} and {MAX_MAGNITUDE:g} in size: its square leaves the range of doubles; rescale the "
        f"features ({RESCALING_RULE})"
    )


def labels(value: ArrayLike, n_samples: int) -> FloatArray:
    """The vector y: +1 for known inliers, -1 for test samples, both present."""
    y = real_array(value, "y", ndim=1)
    if y.shape[0] != n_samples:
        raise ValueError(f"y has {y.shape[0]} entries but X has {n_samples} rows")
    wrong = np.flatnonzero(np.abs(y) != 1.0)
    if wrong.size:
        i = int(wrong[0])
        raise ValueError(f"y must hold +1 (known inlier) or -1 (test sample) only, got {y[i]:g} at row {i}")
    if np.all(y == y[0]):
        missing = "-1 (test sample)" if y[0] > 0 else "+1 (known inlier)"
        raise ValueError(
            f"y holds only {y[0]:+g} in its {n_samples} row(s): the density ratio needs both classes, "
            f"add at least one row labelled {missing}"
        )
    return y


def edge_list(value: ArrayLike, n_samples: int) -> IntArray:
    """The (E, 2) array of undirected edges, each listed once with i < j."""
    array = _as_real(value, "edges")
    if array.size == 0:
        return np.empty((0, 2), dtype=np.int64)
    floats = real_array(array, "edges", ndim=2)
    if floats.shape[1] != 2:
        raise ValueError(f"edges must have two columns (i, j), got shape {floats.shape}")
    edges = np.clip(floats, -(2.0**53), 2.0**53).astype(np.int64)
    _refuse(floats != edges, edges, floats, "is not a pair of whole numbers")
    _refuse((edges < 0) | (edges >= n_samples), edges, floats, f"is outside 0..{n_samples - 1}")
    i, j = edges.T
    _refuse(i == j, edges, floats, "is a self-loop: remove it, it adds nothing to the objective")
    _refuse(i > j, edges, floats, "is reversed: write each undirected edge once with i < j")
    keys = i * n_samples + j
    order = np.argsort(keys, kind="stable")
    repeated = np.zeros(len(keys), dtype=bool)
    repeated[order[1:]] = keys[order[1:]] == keys[order[:-1]]
    _refuse(repeated, edges, floats, "is a duplicate: merge the two and add their weights")
    return edges


def _refuse(bad: NDArray[np.bool_], edges: IntArray, shown: FloatArray, why: str) -> None:
    rows = np.flatnonzero(bad.reshape(len(edges), -1).any(axis=1))
    if rows.size:
        e = int(rows[0])
        i, j = shown[e]
        raise ValueError(f"edges row {e}, ({i:g}, {j:g}), {why}")


def edge_weights(value: ArrayLike, n_edges: int) -> FloatArray:
    """One finite weight >= 0 per edge."""
    weights = real_array(value, "weights", ndim=1)
    if weights.shape[0] != n_edges:
        raise ValueError(f"weights has {weights.shape[0]} entries but edges has {n_edges} rows")
    negative = np.flatnonzero(weights < 0)
    if negative.size:
        e = int(negative[0])
        raise ValueError(f"weights must be >= 0, got {weights[e]:g} at row {e}")
    if weights.max(initial=0.0) > MAX_MAGNITUDE:
        e = int(weights.argmax())
        raise ValueError(f"weights must be at most {MAX_MAGNITUDE:g}, got {weights[e]:g} at row {e}: scale them down")
    return weights


def real_number(value: Any, name: str, *, minimum: float = 0.0, strict: bool = False) -> float:
    """A finite real scalar >= minimum (> minimum if `strict`)."""
    bound = f"{'>' if strict else '>='} {minimum:g}"
    if isinstance(value, (bool, str, bytes, complex)) or np.ndim(value) != 0:
        raise TypeError(f"{name} must be a real number {bound}, got {value!r}")
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be a real number {bound}, got {value!r}") from None
    if not np.isfinite(number) or number < minimum or (strict and number == minimum):
        raise ValueError(f"{name} must be a finite number {bound}, got {value!r}")
    return number


def penalty(value: Any, name: str) -> float:
    """A lambda: a finite number >= 0 whose products do not overflow."""
    number = real_number(value, name)
    if number > MAX_MAGNITUDE:
        raise ValueError(
            f"{name} must be at most {MAX_MAGNITUDE:g}, got {number:g}: its products leave the range of doubles; "
            f"take a smaller one, or rescale the features ({RESCALING_RULE})"
        )
    return number


def whole_number(value: Any, name: str, *, minimum: int = 1) -> int:
    """An integer >= minimum."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)):
        raise TypeError(f"{name} must be a whole number >= {minimum}, got {value!r}")
    if value < minimum:
        raise ValueError(f"{name} must be a whole number >= {minimum}, got {value!r}")
    return int(value)


def weight_matrix(value: ArrayLike, shape: tuple[int, int], name: str = "W") -> FloatArray:
    """A finite matrix with one weight vector per row."""
    W = real_array(value, name, ndim=2)
    if W.shape != shape:
        raise ValueError(f"{name} has shape {W.shape} but the problem needs {shape}: one row per sample")
    return W


def columns(value: Any, n_features: int, names: Sequence[str] | None, name: str) -> IntArray:
    """Positions of the columns given by position or by name; all of them for None."""
    if value is None:
        return np.arange(n_features)
    if isinstance(value, (str, bytes)) or np.ndim(value) != 1 or not len(value):
        raise TypeError(f"{name} must be a non-empty list of column positions or names, got {value!r}")
    place = {column: k for k, column in enumerate(names if names is not None else ())}
    found = [
        place.get(column) if isinstance(column, str) else whole_number(column, name, minimum=0) for column in value
    ]
    for column, k in zip(value, found, strict=True):
        if k is None:
            known = f"the columns are {', '.join(map(repr, place))}" if place else "X came without column names"
            raise ValueError(f"{name} holds {column!r}, but {known}")
        if k >= n_features:
            raise ValueError(f"{name} holds {column!r}, but X has {n_features} columns, counted from 0")
    return np.array(found, dtype=np.int64)
