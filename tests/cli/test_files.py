"""Reading weights names the file and the fault; writing is all or nothing."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from llr_cvx.cli import files


def test_weights_in_three_formats(tmp_path: Path) -> None:
    W = np.random.default_rng(0).standard_normal((3, 2))
    np.save(tmp_path / "W.npy", W)
    np.savez(tmp_path / "W.npz", W=W, other=np.ones(1))
    np.savetxt(tmp_path / "W.csv", W, delimiter=",", fmt="%.17g")
    for name in ("W.npy", "W.npz", "W.csv"):
        assert np.array_equal(files.read_weights(tmp_path / name), W)
    np.savetxt(tmp_path / "named.csv", W, delimiter=",", fmt="%.17g", header="w0,w1", comments="")
    assert np.array_equal(files.read_weights(tmp_path / "named.csv"), W)


def test_what_is_wrong_with_weights_is_named(tmp_path: Path) -> None:
    np.save(tmp_path / "flat.npy", np.ones(3))
    np.save(tmp_path / "nan.npy", [[1.0, np.nan]])
    np.save(tmp_path / "complex.npy", [[1j]])
    np.save(tmp_path / "object.npy", np.array([[print]], dtype=object), allow_pickle=True)
    np.savez(tmp_path / "other.npz", V=np.ones((1, 1)))
    (tmp_path / "cut.npy").write_bytes((tmp_path / "nan.npy").read_bytes()[:-4])
    (tmp_path / "hole.csv").write_text("1,2\n3,\n")
    (tmp_path / "archive.npy").write_bytes((tmp_path / "other.npz").read_bytes())
    cases = {
        "flat.npy": (ValueError, r"W in .*flat\.npy must have 2 dimension\(s\), got shape \(3,\)"),
        "nan.npy": (ValueError, r"W in .*nan\.npy has a non-finite value nan at row 0, column 1"),
        "complex.npy": (TypeError, r"W in .*complex\.npy is complex"),
        "object.npy": (ValueError, r"object\.npy is not a readable \.npy file"),
        "cut.npy": (
            ValueError,
            r"cut\.npy is not a readable \.npy file \(truncated, damaged or foreign\): it ends after 12 of 16",
        ),
        "archive.npy": (ValueError, r"archive\.npy is not a readable .*: it is an \.npz archive named \.npy"),
        "other.npz": (ValueError, r"other\.npz is an \.npz of something else: it has no W"),
        "hole.csv": (ValueError, r"hole\.csv, line 2, column '2' is empty: fill or remove such rows$"),
        "none.csv": (FileNotFoundError, r"none\.csv: no such file"),
        "none.npy": (FileNotFoundError, r"none\.npy does not exist"),
        "none.npz": (FileNotFoundError, r"none\.npz does not exist"),
        "W.txt": (ValueError, r"W must be a \.npy, \.npz or \.csv file, got '\.txt'"),
        "W": (ValueError, "got 'no suffix'"),
    }
    for name, (error, message) in cases.items():
        with pytest.raises(error, match=message):
            files.read_weights(tmp_path / name)


def test_json_is_plain_and_replaces_the_file_whole(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    files.write_json(
        path, {"a": np.float64(1.5), "b": np.arange(2), "c": (np.nan, np.inf), "d": None, 3: np.bool_(True)}
    )
    assert json.loads(path.read_text()) == {"a": 1.5, "b": [0, 1], "c": [None, None], "d": None, "3": True}
    before = path.read_bytes()
    with pytest.raises(TypeError):
        files.write_json(path, {"a": object()})
    assert path.read_bytes() == before
    assert [f.name for f in tmp_path.iterdir()] == ["r.json"]
