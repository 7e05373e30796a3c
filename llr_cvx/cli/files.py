"""Read weights and write JSON; samples are read by `llr_cvx.detection.tables`. Every error names the file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from llr_cvx import archive
from llr_cvx import validation as check
from llr_cvx.arrays import FloatArray
from llr_cvx.detection.tables import read_matrix


def read_weights(path: str | Path) -> FloatArray:
    """Read a matrix W, one weight vector per row, from .npy, .npz (array W) or .csv."""
    suffix = Path(path).suffix.lower()
    if suffix == ".csv":
        return read_matrix(path)
    if suffix == ".npz":
        W = archive.load(path, required=("W",))["W"]
    elif suffix == ".npy":
        try:
            W = np.load(path, allow_pickle=False)
        except FileNotFoundError:
            raise FileNotFoundError(f"{path} does not exist") from None
        except (OSError, ValueError, EOFError) as error:
            raise ValueError(f"{path} is not a readable .npy file (truncated or foreign): {error}") from error
        if not isinstance(W, np.ndarray):
            W.close()
            raise ValueError(f"{path} is an .npz archive named .npy: rename it to .npz")
    else:
        raise ValueError(f"{path}: W must be a .npy, .npz or .csv file, got {suffix or 'no suffix'!r}")
    return check.real_array(W, f"W in {path}", ndim=2)


def write_json(path: str | Path, data: Any) -> None:
    """Write JSON atomically; arrays become lists, and non-finite numbers become null."""
    text = json.dumps(_plain(data), indent=2, allow_nan=False) + "\n"
    with archive.replacing(path, "w", encoding="utf-8") as stream:
        stream.write(text)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, (np.ndarray, np.generic)):
        return _plain(value.tolist())
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value
