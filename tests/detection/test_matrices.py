"""Plain numeric CSV without pandas: columns by name, and errors that say where the fault is."""

from __future__ import annotations

import numpy as np
import pytest

from llr_cvx.detection.matrices import read_columns, read_samples
from llr_cvx.detection.pairs import row_name_note


@pytest.fixture
def write(tmp_path):
    def _write(name, content):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return _write


def test_with_and_without_a_header(write):
    bare = write("a.csv", "1, 2.5\n-3e1,4")
    assert read_columns(bare)[0] == ["1", "2"]
    assert read_columns(bare)[1].tolist() == [[1.0, 2.5], [-30.0, 4.0]]
    assert read_columns(bare, drop=["1"])[1].tolist() == [[2.5], [4.0]]
    names, values = read_columns(write("b.csv", "id,a,note\nx,1,hello\n\ny,3,\n"), drop=["id", "note"])
    assert (names, values.tolist()) == (["a"], [[1.0], [3.0]])


@pytest.mark.parametrize("mark", [";", "\t", "|"])
def test_other_separators_byte_order_mark_quotes_and_blank_lines(write, mark):
    names, values = read_columns(write("a.csv", f'\ufeff"a {mark} a"{mark}b\r\n1{mark}2\r\n\r\n3{mark}4\r\n'))
    assert names == [f"a {mark} a", "b"]
    assert values.tolist() == [[1.0, 2.0], [3.0, 4.0]]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "has no rows"),
        ("\n\n", "has no rows"),
        ("a,b\n", "has no rows"),
        ("a,a\n1,2\n", "a name twice"),
        ("a,\n1,2\n", "a column without a name"),
        ("a,b\n1,2\n3\n", r"line 3: 1 cell\(s\) where the first line has 2"),
        ("a,b\n1,2\n3,\n", r"line 3, column 'b' is empty"),
        ("1,2\n ,4\n", r"line 2, column '1' is empty"),
        ("a,b\n1,red\n", "line 2, column 'b' holds 'red', not a finite number"),
        ("a,b\n1,inf\n", "column 'b' holds 'inf'"),
        ("a,b\n1,1_000\n", "column 'b' holds '1_000'"),
        (b"a,b\n1,\xff\n", "is not CSV in UTF-8"),
        ('a,b\n1,"2\n', "is not CSV in UTF-8"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(write, content, message):
    with pytest.raises(ValueError, match=message):
        read_columns(write("a.csv", content))


def test_missing_files_and_columns(write, tmp_path):
    with pytest.raises(FileNotFoundError, match="no such file"):
        read_columns(tmp_path / "none.csv")
    with pytest.raises(OSError, match=r"cannot read .*: Is a directory"):
        read_columns(tmp_path)
    with pytest.raises(ValueError, match="no columns left"):
        read_columns(write("a.csv", "a\n1\n"), drop=["a"])


def test_pairs_are_matched_by_name(write):
    first, second = write("a.csv", "a,b\n1,2\n"), write("b.csv", "name,b,a\nx,20,10\n")
    names, X_inlier, X_test = read_samples(first, second, ["name"])
    assert (names, X_inlier.tolist(), X_test.tolist()) == (["a", "b"], [[1.0, 2.0]], [[10.0, 20.0]])
    with pytest.raises(ValueError, match=r"c\.csv has 'z', which .*a\.csv has not: --drop NAME"):
        read_samples(first, write("c.csv", "a,b,z\n1,2,3\n"), [])
    bare = write("d.csv", "3,4\n")
    for pair in ((first, bare), (bare, first)):
        with pytest.raises(ValueError, match=r"a\.csv has a header line and .*d\.csv has none"):
            read_samples(*pair, [])


def test_parquet_is_left_to_pandas(tmp_path):
    pandas = pytest.importorskip("pandas")
    pandas.DataFrame({"name": ["x", "y"], "a": [1, 2]}).to_parquet(tmp_path / "a.parquet")
    assert read_columns(tmp_path / "a.parquet", drop=["name"])[1].tolist() == [[1.0], [2.0]]


@pytest.mark.parametrize(
    ("name", "values", "suspect"),
    [
        ("ID", [3.5, 1.0], True),
        ("sample_id", [3.0, 1.0], True),
        ("Index", [3.0, 1.0], True),
        ("Unnamed: 0", [3.0, 1.0], True),
        ("acid", [3.0, 1.0], False),
        ("refractive_index", [1.3, 1.5], False),
        ("x", [12.0, 10.0, 11.0, 14.0, 13.0], True),
        ("x", [12.0, 10.0, 11.0, 14.0, 14.0], False),
        ("x", [0.5, 1.5, 2.5, 3.5, 4.5], False),
        ("x", [1.0, 2.0, 3.0, 4.0], False),
    ],
)
def test_columns_that_look_like_row_names(name, values, suspect):
    assert bool(row_name_note({name: [np.array(values)]})) == suspect
