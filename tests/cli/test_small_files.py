"""Small files as people have them, and as they should not be: the expected answer or message for each."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import json
import lzma
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from llr_cvx.cli import main
from llr_cvx.detection.pairs import TableProblems, read_pair
from llr_cvx.detection.tables import read_table
from llr_cvx.text import is_number

pd = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")
pytest.importorskip("openpyxl")

Content = Callable[["pd.DataFrame"], bytes]


def table(n: int, seed: int) -> pd.DataFrame:
    """Numbers, a category, a boolean and a date; the last row of seed 1 is an outlier in each of them."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.normal(10.0, 1.0, size=(n, 2)).round(13), columns=["width", "mean radius"])
    frame["colour"] = rng.choice(["red", "blue"], n)
    frame["tested"] = rng.random(n) < 0.5
    frame["day"] = [f"2024-01-{day:02d}" for day in rng.integers(1, 29, n)]
    if seed:
        frame.loc[n - 1] = [10.5, 99.0, "green", True, "2024-01-05"]
    return frame


GOOD, NEW = table(40, 0), table(12, 1)


def text(frame: pd.DataFrame, **how: object) -> bytes:
    return frame.to_csv(index=False, **how).encode(str(how.pop("encoding", "utf-8")))


def binary(method: str, **how: object) -> Content:
    def content(frame: pd.DataFrame) -> bytes:
        stream = io.BytesIO()
        getattr(frame, method)(stream, **how)
        return stream.getvalue()

    return content


def cell(row: int, column: str, value: object) -> Content:
    def content(frame: pd.DataFrame) -> bytes:
        frame = frame.astype(object)
        frame.loc[row, column] = value
        return text(frame)

    return content


def renamed(**names: str) -> Content:
    return lambda frame: text(frame.rename(columns=names))


def zipped(*others: str) -> Content:
    def content(frame: pd.DataFrame) -> bytes:
        stream = io.BytesIO()
        with zipfile.ZipFile(stream, "w") as archive:
            for name in others:
                archive.writestr(name, b"a,b\n1,2\n")
            archive.writestr("data/inside.csv", text(frame))
        return stream.getvalue()

    return content


def german(frame: pd.DataFrame) -> bytes:
    """As German Excel writes it: in Latin-1, 1.234,5 for 1234.5."""
    many = [f"{1000 * k + 234:,}".replace(",", ".") for k in range(len(frame))]
    return text(frame.assign(größe=many), sep=";", decimal=",").decode().encode("latin-1")


def two_sheets(frame: pd.DataFrame) -> bytes:
    stream = io.BytesIO()
    with pd.ExcelWriter(stream) as book:
        pd.DataFrame({"x": [1]}).to_excel(book, sheet_name="other", index=False)
        frame.to_excel(book, sheet_name="data", index=False)
    return stream.getvalue()


def bomb(frame: pd.DataFrame) -> bytes:
    return gzip.compress(b"a,b\n" + b"0,0\n" * 400_000)


def excel_bomb(frame: pd.DataFrame) -> bytes:
    stream = io.BytesIO(two_sheets(frame))
    with zipfile.ZipFile(stream, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/worksheets/sheet9.xml", b"0" * 2_000_000)
    return stream.getvalue()


def parquet_bomb(frame: pd.DataFrame) -> bytes:
    return binary("to_parquet")(pd.DataFrame({"a": np.zeros(300_000)}))


def json_lines(frame: pd.DataFrame, escaped: bool = True) -> bytes:
    how = {"orient": "records", "lines": True, "double_precision": 13}
    return binary("to_json", force_ascii=escaped, **how)(frame)


SAME = "12 rows, row 12 first: mean radius"
LATIN = ["--encoding", "latin-1"]
HTML = "<script>alert(1)</script>"

#: Ending of the file, its contents, options, and what must be said, or SAME for the answer of the plain CSV.
READ: dict[str, tuple[str, Content, list[str], str]] = {
    "csv": (".csv", text, [], SAME),
    "semicolons": (".csv", lambda f: text(f, sep=";"), [], SAME),
    "decimal commas": (".csv", lambda f: text(f, sep=";", decimal=","), ["--decimal", ","], SAME),
    "tabs": (".tsv", lambda f: text(f, sep="\t"), [], SAME),
    "tabs as typed": (".txt", lambda f: text(f, sep="\t"), ["--sep", r"\t"], SAME),
    "a separator of their own": (".txt", lambda f: text(f, sep="~"), ["--sep", "~"], SAME),
    "empty cells at the end": (".csv", lambda f: text(f).replace(b"\n", b",,\n").replace(b",,", b"", 1), [], SAME),
    "byte order mark": (".csv", lambda f: b"\xef\xbb\xbf" + text(f), [], SAME),
    "utf-16": (".csv", lambda f: text(f, encoding="utf-16"), [], SAME),
    "utf-16 without its mark": (".csv", lambda f: text(f, encoding="utf-16-le"), ["--encoding", "utf-16-le"], SAME),
    "separators in quotes": (".csv", lambda f: text(f.assign(q=1)).replace(b",q", b',"q;;;;;;;"', 1), [], SAME),
    "latin-1 beside utf-8": (".csv", lambda f: text(f.assign(é="é"), encoding="latin-1"), LATIN, SAME),
    "latin-1": (".csv", lambda f: text(f.assign(é="é"), encoding="latin-1"), [*LATIN, "--drop", "é"], SAME),
    "gzip": (".csv.gz", lambda f: gzip.compress(text(f)), [], SAME),
    "bzip2": (".csv.bz2", lambda f: bz2.compress(text(f)), [], SAME),
    "xz": (".csv.xz", lambda f: lzma.compress(text(f)), [], SAME),
    "zip": (".csv.zip", zipped(), [], SAME),
    "zip of a Macintosh": (".zip", zipped("data/", "__MACOSX/data/._inside.csv"), [], SAME),
    "a workbook by another name": (".csv", binary("to_excel", index=False), [], SAME),
    "text by another name": (".xlsx", text, [], SAME),
    "a name as of an archive": (".csv", lambda f: text(f.assign(PK=1)[["PK", *f]]), [], SAME),
    "a name as of Parquet": (".csv", lambda f: text(f.assign(PAR1=1)[["PAR1", *f]]), [], SAME),
    "parquet": (".parquet", binary("to_parquet"), [], SAME),
    "feather": (".feather", binary("to_feather"), [], SAME),
    "excel": (".xlsx", binary("to_excel", index=False), [], SAME),
    "a year for a name": (".xlsx", lambda f: binary("to_excel")(f.rename_axis(2019)), [], SAME),
    "sheet by name": (".xlsx", two_sheets, ["--sheet", "data"], SAME),
    "sheet by number": (".xlsx", two_sheets, ["--sheet", "2"], SAME),
    "json lines": (".jsonl", json_lines, [], SAME),
    "json after a blank line": (".jsonl", lambda f: b"\n\n" + json_lines(f), [], SAME),
    "json with a byte order mark": (".jsonl", lambda f: b"\xef\xbb\xbf" + json_lines(f), [], SAME),
    "json in latin-1": (".jsonl", lambda f: json_lines(f.assign(e="é"), False).decode().encode("latin-1"), LATIN, SAME),
    "empty rows above": (".xlsx", binary("to_excel", index=False, startrow=3), [], SAME),
    "blank lines": (".csv", lambda f: text(f).replace(b"\n", b"\n\n"), [], SAME),
    "pandas' index": (".csv", lambda f: f.to_csv().encode(), [], SAME),
    "case and blanks": (".csv", renamed(width=" Width", **{"mean radius": "Mean  Radius"}), [], SAME),
    "an extra column": (".csv", lambda f: text(f.assign(extra=f["width"])), [], SAME),
    "all columns in reverse": (".csv", lambda f: text(f[f.columns[::-1]]), [], SAME),
    "a constant column": (".csv", lambda f: text(f.assign(same=7)), [], SAME),
    "a name in every row": (".csv", lambda f: text(f.assign(who=[f"Dr. {k}" for k in range(len(f))])), [], SAME),
    "real dates": (".parquet", lambda f: binary("to_parquet")(f.assign(day=pd.to_datetime(f["day"]))), [], SAME),
}  # fmt: skip
ON_BOTH = {
    "pandas' index",
    "decimal commas",
    "a separator of their own",
    "tabs as typed",
    "latin-1",
    "a constant column",
    "a name in every row",
}

#: One note each.
NOTES = {
    "a year for a name": ": '2019', which ",
    "pandas' index": "a column without a name, as pandas writes row numbers",
    "case and blanks": "matched up to case and blanks in ",
    "an extra column": ": 'extra', which ",
    "a name as of an archive": ": 'PK', which ",
    "a name as of Parquet": ": 'PAR1', which ",
    "latin-1 beside utf-8": ": 'é', which ",
    "json in latin-1": ": 'e', which ",
    "separators in quotes": ": 'q;;;;;;;', which ",
    "a constant column": "left out, since constant among the inliers: 'same'",
    "a name in every row": "left out, since text that differs from row to row: 'who'",
}

REFUSED: dict[str, tuple[str, Content, list[str], str]] = {
    "missing number": (".csv", cell(2, "width", None), [], "missing values in 'width' (1, first in line 4)"),
    "question mark": (".csv", cell(2, "colour", "?"), [], "missing values in 'colour' (1, first in line 4)"),
    "a word among numbers": (".csv", cell(3, "width", "abc"), [], "line 5, column 'width' holds 'abc', not a number"),
    "infinity": (".csv", cell(3, "width", "inf"), [], "line 5, column 'width' holds 'inf', not a number"),
    "no date": (".csv", cell(3, "day", "soon"), [], "line 5, column 'day' holds 'soon', not a date"),
    "decimal commas unsaid": (".csv", lambda f: text(f, sep=";", decimal=","), [], "--decimal ,"),
    "no column in common": (".csv", lambda f: text(f.add_prefix("x")), [], "has not: its columns are 'xwidth', 'x"),
    "a column less": (".csv", lambda f: text(f.drop(columns="width")), [], "has 'width', which"),
    "empty": (".csv", lambda f: b"", [], "it is empty: a header line"),
    "header only": (".csv", lambda f: text(f[:0]), [], "it has a header but no rows"),
    "no header": (".csv", lambda f: b"1,2\n3,4\n", [], "the first line holds numbers"),
    "duplicate names": (".csv", renamed(width="colour"), [], "the header names 'colour' twice"),
    "ragged": (".csv", lambda f: text(f) + b"1,2,red,True,,6\n", [], "line 14: 6 cells where the first line has 5"),
    "open quote": (".csv", lambda f: text(f) + b'"1,2\n', [], "cannot be read"),
    "nul bytes": (".csv", lambda f: text(f).replace(b"red", b"r\0d"), [], "for text, try --encoding utf-16"),
    "latin-1 unsaid": (".csv", lambda f: text(f) + "1,2,é,True,\n".encode("latin-1"), [], "try --encoding latin-1"),
    "mixed encodings": (".csv", lambda f: text(f) + "é,".encode() + "é\n".encode("latin-1"), [], "is no UTF-8 text"),
    "utf-16 unsaid": (".csv", lambda f: text(f, encoding="utf-16-le"), [], "try --encoding utf-16"),
    "two files in a zip": (".zip", zipped("other.csv"), [], "the archive holds 2 files, not one"),
    "an old workbook": (".xls", lambda f: bytes.fromhex("d0cf11e0a1b11ae1") + bytes(99), [], "no UTF-8 text, Parquet,"),
    "unknown encoding": (".csv", text, ["--encoding", "klingon"], "unknown encoding: klingon"),
    "zip bomb": (".csv.gz", bomb, [], "holds more than 1,000,000 bytes"),
    "excel bomb": (".xlsx", excel_bomb, [], "holds more than 1,000,000 bytes"),
    "parquet bomb": (".parquet", parquet_bomb, [], "holds more than 1,000,000 bytes"),
    "cut gzip": (".csv.gz", lambda f: gzip.compress(text(f))[:-20], [], "cannot be read"),
    "cut parquet": (".parquet", lambda f: binary("to_parquet")(f)[:-9], [], "cannot be read"),
    "cut excel": (".xlsx", lambda f: two_sheets(f)[:-30], [], "cannot be read"),
    "no such sheet": (".xlsx", two_sheets, ["--sheet", "none"], "its sheets are 'other', 'data'"),
    "sheet 0": (".xlsx", two_sheets, ["--sheet", "0"], "it has no sheet '0': its sheets are 'other', 'data'"),
    "json with a broken line": (".jsonl", lambda f: b'{"a": 1}\n\n{"a": tru\n', [], "line 3 is no JSON object: "),
    "json with a list": (".jsonl", lambda f: b'{"a": 1}\n[1]\n', [], "line 2 is no JSON object: "),
    "not json": (".jsonl", lambda f: b"{", [], "cannot be read"),
    "html for a table": (".xlsx", lambda f: HTML.encode(), [], "cannot be read"),
}  # fmt: skip


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., Result]:
    def detect(case: tuple[str, Content, list[str], str], both: bool, *more: str) -> Result:
        ending, content, options, _ = case
        good = tmp_path / f"good{ending if both else '.csv'}"
        good.write_bytes(content(GOOD) if both else text(GOOD))
        new = tmp_path / f"new{ending}"
        new.write_bytes(content(NEW))
        files = ["--inliers", str(good), "--test", str(new), "--out", str(tmp_path / "s.csv"), "--top", "1"]
        return CliRunner().invoke(main, ["detect", *files, "--contamination", "0.05", *options, *more])

    return detect


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> pd.DataFrame:
    folder = tmp_path_factory.mktemp("expected")
    for name, frame in (("good.csv", GOOD), ("new.csv", NEW)):
        (folder / name).write_bytes(text(frame))
    files = ["--inliers", folder / "good.csv", "--test", folder / "new.csv", "--out", folder / "s.csv"]
    done = CliRunner().invoke(main, ["detect", *map(str, files), "--contamination", "0.05"])
    assert done.exit_code == 0, done.output
    return pd.read_csv(folder / "s.csv")


@pytest.mark.parametrize("name", READ)
def test_read(name: str, run: Callable[..., Result], expected: pd.DataFrame, tmp_path: Path) -> None:
    """Not only an answer, but the very scores of the plain CSV file."""
    done = run(READ[name], name in ON_BOTH)
    assert done.exit_code == 0, done.output
    pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "s.csv"), expected, check_exact=True)
    assert expected["rank"].tolist()[-1] == 1
    assert "mean radius = 99, above 100 % of the inliers" in expected["reasons"].tolist()[-1]
    notes = [line for line in done.stderr.splitlines() if line.startswith("note:")]
    assert sum(NOTES.get(name, "note") in note for note in notes) == (1 if name in NOTES else len(notes))
    assert len(notes) == 2 + (name in NOTES)  # two are about the rows themselves


def test_one_workbook_can_hold_both_tables(tmp_path: Path, expected: pd.DataFrame) -> None:
    with pd.ExcelWriter(tmp_path / "book.xlsx") as book:
        GOOD.to_excel(book, sheet_name="good", index=False)
        NEW.to_excel(book, sheet_name="new", index=False)
    file = str(tmp_path / "book.xlsx")
    command = ["detect", "--inliers", file, "--test", file, "--sheet", "good", "--contamination", "0.05", "--sheet"]
    done = CliRunner().invoke(main, [*command, "new", "--out", str(tmp_path / "s.csv")])
    assert done.exit_code == 0, done.output
    pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "s.csv"), expected, check_exact=True)
    assert "book.xlsx, sheet new has no column 'x'" in CliRunner().invoke(main, [*command, "new", "--id", "x"]).stderr
    wrong = CliRunner().invoke(main, [*command[:6], "neither", "--sheet", "nor"]).stderr
    assert "no sheet 'neither'" in wrong
    assert "no sheet 'nor'" in wrong
    for sheets in ([], ["--sheet", "good"], ["--sheet", "good", "--sheet", "good"]):
        same = CliRunner().invoke(main, [*command[:5], *sheets])
        assert same.exit_code == 2
        assert "--inliers and --test are one file" in same.stderr
    assert "--sheet can be given twice" in CliRunner().invoke(main, [*command, "new", "--sheet", "more"]).stderr


def read(folder: Path, good: str, new: str, **how: object) -> list[list[object]]:
    (folder / "good.csv").write_bytes(good.encode("latin-1"))
    (folder / "new.csv").write_bytes(new.encode("latin-1"))
    pair = read_pair(folder / "good.csv", folder / "new.csv", decimal=",", encoding="latin-1", **how)[:2]
    return [[*map(str, values)] for table in pair for _, values in table.items()]


def test_sheets_are_found_by_name_before_their_number(tmp_path: Path) -> None:
    with pd.ExcelWriter(tmp_path / "book.xlsx") as book:
        for name in ("a", "1", "2024"):
            pd.DataFrame({"x": [name]}).to_excel(book, sheet_name=name, index=False)
    found = [read_table(tmp_path / "book.xlsx", sheet)["x"].tolist() for sheet in (None, "1", "2", "3", "2024")]
    assert found == [["a"], ["1"], ["1"], ["2024"], ["2024"]]


def test_a_decimal_comma_unsaid_is_one_problem_for_all_columns(tmp_path: Path) -> None:
    for name, count in (("good", 40), ("new", 12)):
        commas = pd.DataFrame(np.random.default_rng(0).normal(size=(count, 30)).round(3)).add_prefix("c")
        commas.to_csv(tmp_path / name, sep=";", decimal=",", index=False)
    with pytest.raises(
        TableProblems, match=r"good, columns 'c0', .* hold numbers such as .*: '--decimal ,' or"
    ) as said:
        read_pair(tmp_path / "good", tmp_path / "new")
    assert len(str(said.value).splitlines()) == 1


def test_points_between_thousands_are_no_decimal_points(tmp_path: Path) -> None:
    known = read(tmp_path, german(GOOD).decode("latin-1"), german(NEW).decode("latin-1"))
    assert [*map(float, known[5])] == [1000.0 * k + 234 for k in range(40)]
    assert [*map(float, known[0])] == GOOD["width"].tolist()
    assert read(tmp_path, "a;b\n1.234;0.123\n", "a;b\n1.234.567;0.5\n") == [["1234"], ["0.123"], ["1234567"], ["0.5"]]


def test_what_a_point_is_all_cells_of_both_files_say(tmp_path: Path) -> None:
    """1.105 beside 2.25 is no thousand, in whichever file; where commas are there too, there is no saying."""
    known, new = read(tmp_path, "x\n1.100\n2.101\n", "x\n1.105\n2.25\n")
    assert [*map(float, known + new)] == [1.1, 2.101, 1.105, 2.25]
    for good, test in (
        ("1.100;1\n10,5;1", "2.25;1"),
        ("2.25;1\n1,5;1\n2,5;1", "1.100;1"),
        ("2.25;1\n3.7;1\n4.5;1", "1.100;1\n2,5;1"),
    ):
        with pytest.raises(TableProblems, match=r"column 'x' holds .*(write plain numbers|correct it,) or --drop x"):
            read(tmp_path, f"x;y\n{good}\n", f"x;y\n{test}\n")


def test_codes_among_words_and_ids_keep_their_points(tmp_path: Path) -> None:
    codes = read(tmp_path, "a;b\n192.168.001;1\nx;2\ny;3\nz;4\n", "a;b\n192.168.001;1\n")
    assert (codes[0], codes[2]) == (["192.168.001", "x", "y", "z"], ["192.168.001"])
    (tmp_path / "c.csv").write_text("X;y\n1.234;10,5\n1.235;1,5\n")
    named = read_pair(tmp_path / "c.csv", tmp_path / "c.csv", decimal=",", id_column="x")[1]
    assert named.index.tolist() == ["1.234", "1.235"]


def test_ids_are_kept_as_they_are_written(tmp_path: Path) -> None:
    names = ["007", "7", "1E5", "1.10", "1.1", "NA", "None", "null", " a b ", "x", "y", "z"]
    (tmp_path / "good.csv").write_bytes(text(GOOD))
    (tmp_path / "new.csv").write_bytes(text(NEW.assign(Serial=names)))
    files = ["--inliers", str(tmp_path / "good.csv"), "--test", str(tmp_path / "new.csv"), "--out", "-"]
    done = CliRunner().invoke(main, ["detect", *files, "--id", "serial", "--contamination", "0.05"])
    assert done.exit_code == 0, done.output
    ids = [line[0] for line in csv.reader(io.StringIO(done.stdout))][1:]
    assert ids == [name.strip() for name in names]


def test_numbers_are_read_to_the_last_bit(tmp_path: Path) -> None:
    values = np.random.default_rng(0).normal(size=1000) * 10.0 ** np.random.default_rng(1).integers(-9, 9, 1000)
    (tmp_path / "a.csv").write_text("x\n" + "\n".join(map(repr, values.tolist())))
    assert read_table(tmp_path / "a.csv")["x"].tolist() == values.tolist()


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str, run: Callable[..., Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("llr_cvx.detection.tables.MAX_BYTES", 1_000_000)
    done = run(REFUSED[name], name in ("decimal commas unsaid", "utf-16 unsaid"))
    assert done.exit_code == 1
    assert REFUSED[name][3] in done.stderr
    assert "Traceback" not in done.output
    assert sorted(path.name.partition(".")[0] for path in tmp_path.iterdir()) == ["good", "new"]


@pytest.mark.parametrize(
    ("missing", "said"),
    [
        ("drop", "left out for missing values: 0 inliers, and 2 test rows '1', '3'"),
        ("median", ""),
        ("indicator", "missing, seen in 0 % of the inliers"),
    ],
)
def test_missing_values(missing: str, said: str, run: Callable[..., Result], tmp_path: Path) -> None:
    holes = NEW.astype(object)
    holes.loc[0, "width"], holes.loc[2, "colour"] = None, None
    done = run((".csv", lambda f: text(f if len(f) > 12 else holes), [], ""), True, "--missing", missing)
    assert done.exit_code == 0, done.output
    scores = pd.read_csv(tmp_path / "s.csv")
    assert len(scores) == (10 if missing == "drop" else 12)
    assert said in done.stderr + " ".join(scores["reasons"])


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_rows_keep_their_numbers_where_others_are_dropped(ending: str, tmp_path: Path) -> None:
    holes = NEW.astype({"tested": object})
    holes.loc[0, "width"], holes.loc[2] = None, None
    for name, frame in (("good", GOOD), ("new", holes)):
        (tmp_path / name).write_bytes(text(frame) if ending == "csv" else binary("to_parquet")(frame))
    files = ["--inliers", str(tmp_path / "good"), "--test", str(tmp_path / "new"), "--missing", "drop", "--json", "-"]
    done = CliRunner().invoke(main, ["detect", *files, "--contamination", "0.05"])
    (found,) = json.loads(done.stdout)["outliers"]
    assert (found["id"], found["test_row"]) == ("12", 12)


@pytest.mark.parametrize("ending", [".xls", ".xlsm", ".pq", ".json", ".csv.gz", ".txt"])
def test_scores_in_unknown_forms_are_refused(ending: str) -> None:
    done = CliRunner().invoke(main, ["detect", "--inliers", "a", "--test", "b", "--out", f"scores{ending}"])
    assert done.exit_code == 2
    assert f"scores{ending} must end in .csv, .parquet or .xlsx" in " ".join(done.stderr.split())


def test_graph_columns_are_found_up_to_case_and_blanks(run: Callable[..., Result], tmp_path: Path) -> None:
    scores = []
    for name in ("mean radius", "Mean  Radius"):
        assert run((".csv", text, [], ""), True, "--graph-column", name).exit_code == 0
        scores.append((tmp_path / "s.csv").read_text())
    assert scores[0] == scores[1]


def test_all_problems_of_both_files_in_one_message(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x,y,z,day\n1,,red,2024-01-01\n2,3,blue,2024-01-02\nq,4,red,2024-01-03\n")
    (tmp_path / "b.csv").write_text("x,y,day\n1,,2024-01-01\nw,2,never\n")
    done = CliRunner().invoke(main, ["detect", "--inliers", str(tmp_path / "a.csv"), "--test", str(tmp_path / "b.csv")])
    assert done.exit_code == 1
    lines = done.stderr.replace(f"{tmp_path}/", "").splitlines()
    assert lines[0] == "Error: 6 problems"
    for line in (
        "  - a.csv has 'z', which b.csv has not: --drop z",
        "  - a.csv, line 4, column 'x' holds 'q', not a number: correct it, or --drop x",
        "  - b.csv, line 3, column 'x' holds 'w', not a number: correct it, or --drop x",
        "  - b.csv, line 3, column 'day' holds 'never', not a date: correct it, or --drop day",
        "  - a.csv has missing values in 'y' (1, first in line 2): --missing median, indicator or drop",
        "  - b.csv has missing values in 'y' (1, first in line 2): --missing median, indicator or drop",
    ):
        assert line in lines
    unreadable = ["detect", "--inliers", str(tmp_path / "none.csv"), "--test", str(tmp_path / "gone.csv")]
    assert CliRunner().invoke(main, unreadable).stderr.count("no such file") == 2


def test_standard_input(tmp_path: Path, expected: pd.DataFrame) -> None:
    (tmp_path / "good.csv").write_bytes(text(GOOD))
    command = [
        "detect",
        "--inliers",
        str(tmp_path / "good.csv"),
        "--test",
        "-",
        "--contamination",
        "0.05",
        "--out",
        "-",
    ]
    lines = json_lines(NEW)
    packed = [pack(text(NEW)) for pack in (gzip.compress, bz2.compress, lzma.compress)]
    for data in (text(NEW), lines, *packed, zipped()(NEW), *(binary(f"to_{to}")(NEW) for to in ("parquet", "feather"))):
        done = CliRunner().invoke(main, command, input=data)
        assert done.exit_code == 0, done.output
        pd.testing.assert_frame_equal(pd.read_csv(io.StringIO(done.stdout)), expected, check_exact=True)
    both = CliRunner().invoke(main, ["detect", "--inliers", "-", "--test", "-"])
    assert "cannot both be standard input" in both.stderr


@pytest.mark.parametrize("ending", ["csv", "parquet", "xlsx"])
def test_scores_by_ending_hold_no_formula(ending: str, tmp_path: Path) -> None:
    new = NEW.assign(name=["=1+1", "@SUM(A1)", HTML, "a\x07", *"bcdefghi"])
    (tmp_path / "good.csv").write_bytes(text(GOOD))
    (tmp_path / "new.csv").write_bytes(text(new))
    out = tmp_path / f"s.{ending}"
    files = ["--inliers", str(tmp_path / "good.csv"), "--test", str(tmp_path / "new.csv"), "--id", "name"]
    done = CliRunner().invoke(main, ["detect", *files, "--out", str(out), "--contamination", "0.05"])
    assert done.exit_code == 0, done.output
    scores = {"csv": pd.read_csv, "parquet": pd.read_parquet, "xlsx": pd.read_excel}[ending](out)
    assert list(scores) == ["id", "log_ratio", "pvalue", "outlier", "rank", "reasons"]
    assert scores["id"].tolist()[:3] == (
        new["name"][:3].tolist() if ending == "parquet" else ["'=1+1", "'@SUM(A1)", HTML]
    )
    assert scores["id"][3] == (r"a\x07" if ending == "xlsx" else "a\x07")  # workbooks hold no control characters
    if ending == "xlsx":
        import openpyxl

        sheet = openpyxl.load_workbook(out).active
        assert {one.data_type for row in sheet.iter_rows(min_row=2) for one in row} <= {
            "s",
            "n",
            "inlineStr",
        }  # not "f"


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_names_are_no_formulas_whatever_separates_cells(separator: str, tmp_path: Path) -> None:
    """Where the semicolon is the custom, spreadsheets cut the lines there."""
    names = {"mean radius": "radius;=1+1"}
    new = NEW.assign(name=["a;=1+1", "b\t@SUM(A1)", "c\n+1+cmd", *"defghijkl"])
    (tmp_path / "good.csv").write_bytes(text(GOOD.rename(columns=names)))
    (tmp_path / "new.csv").write_bytes(text(new.rename(columns=names)))
    files = ["--inliers", str(tmp_path / "good.csv"), "--test", str(tmp_path / "new.csv"), "--id", "name"]
    done = CliRunner().invoke(main, ["detect", *files, "--out", str(tmp_path / "s.csv"), "--contamination", "0.05"])
    assert done.exit_code == 0, done.output
    written = (tmp_path / "s.csv").read_text()
    assert "radius;" in written
    cells = [cell for row in csv.reader(io.StringIO(written), delimiter=separator) for cell in row]
    assert [cell for cell in cells if cell.startswith(("=", "+", "-", "@")) and not is_number(cell)] == []
