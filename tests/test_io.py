"""Reading samples and weights names file, line and column of what is wrong; writing is whole or not at all."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from llr_cvx import io


def written(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("text", "values", "columns"),
    [
        ("1,2\n3,4\n", [[1, 2], [3, 4]], None),
        ("a,b\n1,2\n", [[1, 2]], ("a", "b")),
        ("a,b\r\n1,2\r\n3,4", [[1, 2], [3, 4]], ("a", "b")),
        ("\ufeffa,b\n1e-3, -2.5 \n", [[1e-3, -2.5]], ("a", "b")),
        ('"first, with comma",b\n"1",2\n\n\n', [[1, 2]], ("first, with comma", "b")),
        ("x\n1\n2\n", [[1], [2]], ("x",)),
        ("7\n", [[7]], None),
        (",b\n1,2\n", [[1, 2]], ("", "b")),
    ],
)
def test_tables_are_read(
    tmp_path: Path, text: str, values: list[list[float]], columns: tuple[str, ...] | None
) -> None:
    table = io.read_table(written(tmp_path, "t.csv", text))
    assert np.array_equal(table.values, values)
    assert table.values.dtype == np.float64
    assert table.columns == columns


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b\n1,2\n3,\n", "t.csv, line 3, column 2 ('b'): the cell is missing"),
        ("1,2\n ,4\n", "t.csv, line 2, column 1: the cell is missing"),
        ("a,b\n1,2,3\n", "t.csv, line 2 has 3 cell(s) but 2 are expected"),
        ("1,2\n3\n", "t.csv, line 2 has 1 cell(s) but 2 are expected"),
        ("a,b\n1,x\n", "t.csv, line 2, column 2 ('b'): 'x' is not a number"),
        ("1,x\n3,4\n", "t.csv, line 1, column 2: 'x' is not a number"),
        ("1,2\n3,nan\n", "t.csv, line 2, column 2: 'nan' is not finite"),
        ("1,2\n-inf,4\n", "t.csv, line 2, column 1: '-inf' is not finite"),
        ("1,2\n1e999,4\n", "t.csv, line 2, column 1: '1e999' is not finite"),
        ("1,2\n1_000,4\n", "t.csv, line 2, column 1: '1_000' is not a number"),
        ("1,2\n1+2j,4\n", "t.csv, line 2, column 1: '1+2j' is not a number"),
        ("x\n1;2\n", "t.csv, line 2, column 1 ('x'): '1;2' is not a number; cells must be separated by commas"),
        ("1,2\n\n3,4\n", "t.csv, line 2 is blank: fill it in or remove it"),
        ("a,a\n1,2\n", "t.csv, line 1: the header names 'a' twice"),
        ("a,b\n", "t.csv has a header but no line of numbers"),
        ("", "t.csv is empty: at least one line of numbers is needed"),
        ("\n\n", "t.csv is empty"),
        ('1,"2\n', "t.csv, line 1: not valid CSV"),
    ],
)
def test_what_is_wrong_with_a_table_is_named(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        io.read_table(written(tmp_path, "t.csv", text))


def test_files_that_are_not_text_or_not_there(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"none\.csv does not exist"):
        io.read_table(tmp_path / "none.csv")
    (tmp_path / "binary.csv").write_bytes(b"\xff\xfe\x00\x01")
    with pytest.raises(ValueError, match=r"binary\.csv is not a text file in UTF-8"):
        io.read_table(tmp_path / "binary.csv")
    with pytest.raises(OSError, match=r"cannot read .*: Is a directory"):
        io.read_table(tmp_path)


def test_samples_need_the_same_columns_in_the_same_order(tmp_path: Path) -> None:
    a = written(tmp_path, "a.csv", "x,y\n1,2\n")
    assert io.read_samples(a, written(tmp_path, "b.csv", "x,y\n3,4\n"))[1].values.tolist() == [[3, 4]]
    assert io.read_samples(a, written(tmp_path, "b.csv", "3,4\n"))[1].columns is None
    with pytest.raises(ValueError, match=r"a\.csv has 2 column\(s\) but .*b\.csv has 3: same features, same order"):
        io.read_samples(a, written(tmp_path, "b.csv", "x,y,z\n1,2,3\n"))
    with pytest.raises(ValueError, match=r"column 1 is 'x' in .*a\.csv but 'y' in .*b\.csv: same features"):
        io.read_samples(a, written(tmp_path, "b.csv", "y,x\n1,2\n"))


def test_weights_in_three_formats(tmp_path: Path) -> None:
    W = np.random.default_rng(0).standard_normal((3, 2))
    np.save(tmp_path / "W.npy", W)
    np.savez(tmp_path / "W.npz", W=W, other=np.ones(1))
    np.savetxt(tmp_path / "W.csv", W, delimiter=",", fmt="%.17g")
    for name in ("W.npy", "W.npz", "W.csv"):
        assert np.array_equal(io.read_weights(tmp_path / name), W)


def test_what_is_wrong_with_weights_is_named(tmp_path: Path) -> None:
    np.save(tmp_path / "flat.npy", np.ones(3))
    np.save(tmp_path / "nan.npy", [[1.0, np.nan]])
    np.save(tmp_path / "complex.npy", [[1j]])
    np.save(tmp_path / "object.npy", np.array([[print]], dtype=object), allow_pickle=True)
    np.savez(tmp_path / "other.npz", V=np.ones((1, 1)))
    (tmp_path / "cut.npy").write_bytes((tmp_path / "nan.npy").read_bytes()[:-4])
    (tmp_path / "archive.npy").write_bytes((tmp_path / "other.npz").read_bytes())
    cases = {
        "flat.npy": (ValueError, r"W in .*flat\.npy must have 2 dimension\(s\), got shape \(3,\)"),
        "nan.npy": (ValueError, r"W in .*nan\.npy has a non-finite value nan at row 0, column 1"),
        "complex.npy": (TypeError, r"W in .*complex\.npy is complex"),
        "object.npy": (ValueError, r"object\.npy is not a readable \.npy file"),
        "cut.npy": (ValueError, r"cut\.npy is not a readable \.npy file \(truncated or foreign\)"),
        "archive.npy": (ValueError, r"archive\.npy is an \.npz archive named \.npy"),
        "other.npz": (ValueError, r"other\.npz is an \.npz of something else: it has no W"),
        "none.npy": (FileNotFoundError, r"none\.npy does not exist"),
        "none.npz": (FileNotFoundError, r"none\.npz does not exist"),
        "W.txt": (ValueError, r"W must be a \.npy, \.npz or \.csv file, got '\.txt'"),
        "W": (ValueError, "got 'no suffix'"),
    }
    for name, (error, message) in cases.items():
        with pytest.raises(error, match=message):
            io.read_weights(tmp_path / name)


def test_json_is_plain_and_replaces_the_file_whole(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    io.write_json(
        path, {"a": np.float64(1.5), "b": np.arange(2), "c": (np.nan, np.inf), "d": None, 3: np.bool_(True)}
    )
    assert json.loads(path.read_text()) == {"a": 1.5, "b": [0, 1], "c": [None, None], "d": None, "3": True}
    before = path.read_bytes()
    with pytest.raises(TypeError):
        io.write_json(path, {"a": object()})
    assert path.read_bytes() == before
    assert [f.name for f in tmp_path.iterdir()] == ["r.json"]
