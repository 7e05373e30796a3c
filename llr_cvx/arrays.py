"""Array types, and the operations on rows that everything shares."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

#: Squares between these two have neither underflowed nor overflowed.
SAFE_SQUARES = 1e-200, 1e200


def row_dot(A: FloatArray, B: FloatArray) -> FloatArray:
    """a_i . b_i for each row."""
    return np.asarray(np.einsum("ij,ij->i", A, B))


def row_norms(A: FloatArray) -> FloatArray:
    """||a_i||_2 for each row, scaled by its largest entry where a square would underflow or overflow.

    >>> row_norms(np.array([[3.0, 4.0], [3e-200, 4e-200], [0.0, 0.0]])).tolist()
    [5.0, 5e-200, 0.0]
    """
    with np.errstate(over="ignore"):
        squares = row_dot(A, A)
    norms = np.sqrt(squares)
    low, high = SAFE_SQUARES
    unsafe = np.flatnonzero(~((squares > low) & (squares < high)))
    if unsafe.size:
        rows = A[unsafe]
        largest = np.abs(rows).max(axis=1, initial=0.0)
        scalable = (largest > 0) & np.isfinite(largest)
        rows = np.divide(rows, largest[:, None], out=np.zeros_like(rows), where=scalable[:, None])
        lengths = np.sqrt(row_dot(rows, rows))
        norms[unsafe] = np.multiply(largest, lengths, out=largest, where=scalable)
    return norms


def into_balls(U: FloatArray, radii: FloatArray) -> FloatArray:
    """Scale each row that is longer than its radius back onto the ball."""
    norms = row_norms(U)
    return U * np.divide(radii, norms, out=np.ones_like(norms), where=norms > radii)[:, None]


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """A view that cannot be written to: what is proved of an array holds only while it stays as it is."""
    view = np.asarray(array).view()
    view.setflags(write=False)
    return view
