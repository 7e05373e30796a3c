"""Read weights and write JSON; samples are read by `llr_cvx.detection`. Every error names the file."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np

from llr_cvx import archive
from llr_cvx import validation as check
from llr_cvx.arrays import FloatArray
from llr_cvx.detection.matrices import read_columns
from llr_cvx.inputs import contents, is_special


def read_weights(path: str | Path) -> FloatArray:
    """Read a matrix W, one weight vector per row, from .npy, .npz (array W) or .csv; from a pipe, by its first bytes.

    Raises FileNotFoundError or OSError if it cannot be opened, ValueError or TypeError if it holds no such matrix.
    """
    suffix, stream = Path(path).suffix.lower(), None
    if is_special(path):
        stream = io.BufferedReader(io.BytesIO(contents(path)))
        suffix = {b"PK": ".npz", b"\x93N": ".npy"}.get(stream.peek(2)[:2], ".csv")
    if suffix == ".csv":
        return read_columns(path, stream=stream)[1]
    if suffix not in (".npz", ".npy"):
        raise ValueError(f"{path}: W must be a .npy, .npz or .csv file, got {suffix or 'no suffix'!r}")
    W = archive.load(path, ("W",), stream=stream)["W"] if suffix == ".npz" else archive.load_array(path, stream)
    return check.real_array(W, f"W in {path}", ndim=2)


def as_json(data: Any) -> bytes:
    """JSON; arrays become lists, and non-finite numbers become null."""
    plain = json.loads(json.dumps(data, default=_as_list), parse_constant=lambda _: None)
    return json.dumps(plain, indent=2).encode() + b"\n"


def write_json(path: str | Path, data: Any) -> None:
    """Write `as_json` atomically."""
    with archive.replacing(path) as stream:
        stream.write(as_json(data))


def _as_list(value: Any) -> Any:
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} is nothing that JSON can hold")
