"""Reading tables: columns by name, and errors that say where the fault is and what to do."""

from __future__ import annotations

import numpy as np
import pytest

from llr_cvx.detection.tables import Frame, read_frame, read_matrix, read_pair, row_name_columns


@pytest.fixture
def write(tmp_path):
    def _write(name, content):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return _write


def test_names_numbers_and_ids(write):
    frame = read_frame(write("a.csv", "id,a,b,note\nx,1,2,hello\ny,3,-4e1,\n"), id_column="id", drop=["note"])
    assert frame.columns == ("a", "b")
    assert frame.ids == ("x", "y")
    assert frame.values.tolist() == [[1.0, 2.0], [3.0, -40.0]]
    assert not frame.numbered
    frame = read_frame(write("b.csv", "a\n5\n6\n"))
    assert frame.ids == ("1", "2")
    assert frame.numbered


def test_without_a_header_where_that_is_allowed(write):
    path = write("a.csv", "1, 2.5\n-3e1,4")
    frame = read_frame(path, headerless=True)
    assert frame.columns == ("1", "2")
    assert frame.values.tolist() == [[1.0, 2.5], [-30.0, 4.0]]
    assert read_frame(path, drop=["1"], headerless=True).values.tolist() == [[2.5], [4.0]]
    assert read_frame(write("b.csv", "a,b\n1,2\n"), headerless=True).columns == ("a", "b")
    assert read_matrix(path).tolist() == frame.values.tolist()
    assert read_matrix(write("c.csv", "x\n1\n2\n")).tolist() == [[1.0], [2.0]]
    with pytest.raises(ValueError, match=r"line 2, column '1' is empty"):
        read_frame(write("d.csv", "1,2\n ,4\n"), headerless=True)


def test_a_header_in_one_file_only_is_refused(write):
    named, bare = write("a.csv", "x,y\n1,2\n"), write("b.csv", "3,4\n")
    assert read_pair(bare, bare, headerless=True)[1].values.tolist() == [[3.0, 4.0]]
    for pair in ((named, bare), (bare, named)):
        with pytest.raises(ValueError, match=r"a\.csv has a header line and .*b\.csv has none"):
            read_pair(*pair, headerless=True)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("id,a\nx,1\ny,2\nx,3\n", r"line 4, column 'id': the id 'x' is that of line 2 already: .*--drop id"),
        ("id,a\nx,1\n ,2\n", r"line 3, column 'id' is empty: give every row a unique id"),
    ],
)
def test_ids_are_there_once(write, content, message):
    with pytest.raises(ValueError, match=message):
        read_frame(write("a.csv", content), id_column="id")


@pytest.mark.parametrize("mark", [";", "\t", "|"])
def test_other_separators_byte_order_mark_quotes_and_blank_lines(write, mark):
    content = f'\ufeff"a {mark} a"{mark}b\r\n1{mark}2\r\n\r\n3{mark}4\r\n'
    frame = read_frame(write("a.csv", content))
    assert frame.columns == (f"a {mark} a", "b")
    assert frame.values.tolist() == [[1.0, 2.0], [3.0, 4.0]]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is empty: a header line with column names"),
        ("\n\n", "is empty"),
        ("a,b\n", "has a header but no rows"),
        ("1,2\n3,4\n", "the first line holds numbers"),
        ("a,a\n1,2\n", "the header names 'a' twice"),
        ("a,\n1,2\n", "column 2 has no name"),
        ("a,b\n1,2\n3\n", r"line 3: 1 cell\(s\) where the first line has 2"),
        ("a,b\n1,2,3\n", r"line 2: 3 cell\(s\)"),
        ("a,b\n1,2\n3,\n4,\n", r"line 3, column 'b' is empty \(2 such cells"),
        ("a,b\n1,red\n", "line 2, column 'b' holds 'red', not a finite number: .* leave the column out"),
        ("a,b\n1,NA\n", "column 'b' holds 'NA'"),
        ("a,b\n1,inf\n", "column 'b' holds 'inf'"),
        ("a,b\n1,1_000\n", "column 'b' holds '1_000'"),
        (b"a,b\n1,\xff\n", "is not UTF-8 text"),
        ('a,b\n1,"2\n', "is not a readable CSV file"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(write, content, message):
    with pytest.raises(ValueError, match=message):
        read_frame(write("a.csv", content))


def test_missing_files_and_columns(write, tmp_path):
    path = write("a.csv", "a,b\n1,2\n")
    with pytest.raises(FileNotFoundError, match="no such file"):
        read_frame(tmp_path / "none.csv")
    with pytest.raises(OSError, match=r"cannot read .*: Is a directory"):
        read_frame(tmp_path)
    with pytest.raises(ValueError, match="has no column 'c'; its columns are 'a', 'b'"):
        read_frame(path, drop=["c"])
    with pytest.raises(ValueError, match="no columns left"):
        read_frame(path, id_column="a", drop=["b"])


def test_pairs_are_matched_by_name(write):
    first = write("a.csv", "a,b\n1,2\n")
    second = write("b.csv", "name,b,a,remark\nx,20,10,good\n")
    known, checked = read_pair(first, second, id_column="name", drop=["remark"])
    assert known.columns == checked.columns == ("a", "b")
    assert checked.values.tolist() == [[10.0, 20.0]]
    assert checked.ids == ("x",)


def test_unequal_columns_are_listed(write):
    first, second = write("a.csv", "a,b,c\n1,2,3\n"), write("b.csv", "a,b,d\n1,2,3\n")
    with pytest.raises(ValueError, match=r"a\.csv has 'c', which .*b\.csv has not; .*b\.csv has 'd'"):
        read_pair(first, second)
    known, checked = read_pair(first, second, drop=["c", "d"])
    assert known.columns == checked.columns == ("a", "b")
    with pytest.raises(ValueError, match="no column 'z' to drop"):
        read_pair(first, second, drop=["z"])


def test_parquet(tmp_path):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    frame = pandas.DataFrame({"name": ["x", "y"], "a": [1, 2], "b": [0.5, None]})
    frame.to_parquet(tmp_path / "a.parquet")
    read = read_frame(tmp_path / "a.parquet", id_column="name", drop=["b"])
    assert read.ids == ("x", "y")
    assert np.array_equal(read.values, [[1.0], [2.0]])
    with pytest.raises(ValueError, match="row 2, column 'b' holds 'nan'"):
        read_frame(tmp_path / "a.parquet", id_column="name")
    (tmp_path / "b.parquet").write_bytes(b"PAR1 no")
    with pytest.raises(ValueError, match="not a readable Parquet file"):
        read_frame(tmp_path / "b.parquet")


def test_a_text_column_is_refused_with_the_options_that_help(write):
    with pytest.raises(ValueError, match=r"\(--id NAME to name rows by it, --drop NAME to ignore it\)"):
        read_frame(write("a.csv", "a,b\n1,red\n"))


def test_a_wrong_id_name_is_reported_before_the_text_it_leaves_in(write):
    first, second = write("a.csv", "id,a\nx,1\n"), write("b.csv", "id,a\ny,2\n")
    with pytest.raises(ValueError, match=r"b\.csv has no column 'ID'; its columns are 'id', 'a'"):
        read_pair(first, second, id_column="ID")


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
        ("x", [12.0, 10.0, 11.0, 14.0, 15.0], False),
        ("x", [0.5, 1.5, 2.5, 3.5, 4.5], False),
        ("x", [1.0, 2.0, 3.0, 4.0], False),
    ],
)
def test_columns_that_look_like_row_names(name, values, suspect):
    frame = Frame("a.csv", (name,), np.array(values)[:, None], ("",) * len(values))
    assert row_name_columns(frame) == ([name] if suspect else [])
