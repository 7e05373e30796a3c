"""Read weights and write JSON; samples are read by `llr_cvx.detection`. Every error names the file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import IO, Any

import numpy as np

from llr_cvx import archive
from llr_cvx import validation as check
from llr_cvx.arrays import FloatArray
from llr_cvx.detection.matrices import read_columns
from llr_cvx.inputs import is_special, opened


def read_weights(path: str | Path) -> FloatArray:
    """Read a matrix W, one weight vector per row, from .npy, .npz (array W) or .csv; from a pipe, by its first bytes.

    Raises FileNotFoundError or OSError if it cannot be opened, ValueError or TypeError if it holds no such matrix.
    """
    if not is_special(path):
        return _weights(path, Path(path).suffix.lower(), None)
    with opened(path) as stream:
        start = stream.read(2)
        stream.seek(0)
        return _weights(path, {b"PK": ".npz", b"\x93N": ".npy"}.get(start, ".csv"), stream)


def _weights(path: str | Path, suffix: str, stream: IO[bytes] | None) -> FloatArray:
    if suffix == ".csv":
        return read_columns(path, stream=stream)[1]
    if suffix == ".npz":
        W = archive.load(path, required=("W",), stream=stream)["W"]
    elif suffix == ".npy":
        W = archive.load_array(path, stream)
    else:
        raise ValueError(f"{path}: W must be a .npy, .npz or .csv file, got {suffix or 'no suffix'!r}")
    return check.real_array(W, f"W in {path}", ndim=2)


def as_json(data: Any) -> bytes:
    """JSON; arrays become lists, and non-finite numbers become null."""
    plain = json.loads(json.dumps(data, default=_as_list), parse_constant=lambda _: None)
    return json.dumps(plain, indent=2).encode() + b"\n"


def write_json(path: str | Path, data: Any) -> None:
    """Write `as_json` atomically."""
    text = as_json(data)
    with archive.replacing(path) as stream:
        stream.write(text)


def _as_list(value: Any) -> Any:
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} is nothing that JSON can hold")
