"""Two files, one meaning: how a file happens to be stored must not tell its rows from those of the other."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pd = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")
pytest.importorskip("openpyxl")

from llr_cvx.detection.encoding import TableEncoder  # noqa: E402
from llr_cvx.detection.pairs import TableProblems, read_pair  # noqa: E402

RNG = np.random.default_rng(0)


def column(values: list[object], n: int) -> list[object]:
    """Every value at least once, in random order."""
    return RNG.permutation(np.array([*values, *RNG.choice(np.array(values, object), n - len(values))], object)).tolist()


def pair(folder: Path, good: list[object], new: list[object], ending: str = ".csv", **how: object):  # type: ignore[no-untyped-def]
    names = []
    for name, values in (("good", good), ("new", new)):
        frame = pd.DataFrame({"q": values, "x": RNG.normal(size=len(values))})
        names.append(folder / f"{name}{ending}")
        write = {".csv": frame.to_csv, ".xlsx": frame.to_excel}.get(ending, frame.to_parquet)
        write(names[-1], index=False)
    return read_pair(*names, **how)


@pytest.mark.parametrize(
    ("good", "new", "ending", "missing"),
    [
        (["TRUE", "FALSE", "unknown"], ["TRUE", "FALSE"], ".csv", "refuse"),
        (["01", "02", "A1", "B1", "C1", "D1"], ["01", "02"], ".csv", "refuse"),
        (["1", "2", "A", "B", "C", "D"], ["1", "2", None], ".csv", "median"),
        (["1", "2", "A", "B", "C", "D"], [1, 2, None], ".xlsx", "median"),
    ],
)
def test_a_level_is_the_same_in_both_files(
    tmp_path: Path, good: list[object], new: list[object], ending: str, missing: str
) -> None:
    known, test, _ = pair(tmp_path, column(good, 40), column(new, 12), ending, missing=missing)
    encoder = TableEncoder("median").fit(known)
    assert encoder.kinds_["q"] == "category"
    unseen = encoder.get_feature_names_out().tolist().index("q = (not seen)")
    assert not encoder.transform(test)[:, unseen].any()
    assert encoder.transform(pd.DataFrame({"q": ["B7"], "x": [0.0]}))[0, unseen] > 0


def test_one_enormous_cell_does_not_switch_a_column_off(tmp_path: Path) -> None:
    known, test, _ = pair(tmp_path, list(range(40)), [*range(11), 10**25])
    encoder = TableEncoder().fit(pd.concat([known, test]), np.repeat([1, -1], [40, 12]))
    assert (encoder.kinds_["q"], encoder.left_out_) == ("number", {})
    assert encoder.transform(test)[-1, 0] == 1e25


def test_decimal_points_beside_decimal_commas(tmp_path: Path) -> None:
    points, commas = [f"{v:.2f}" for v in RNG.normal(100, 9, 40)], [f"{v:.2f}".replace(".", ",") for v in range(12)]
    for good, new in ((points, commas), (commas * 4, points)):
        with pytest.raises(TableProblems, match="--decimal ,"):
            pair(tmp_path, good, new)
        known, test, _ = pair(tmp_path, good, new, decimal=",")
        assert TableEncoder().fit(known).kinds_["q"] == "number"
        assert TableEncoder().fit(test).kinds_["q"] == "number"


@pytest.mark.parametrize(
    ("template", "said"),
    [
        ("€ {:.2f}", "numbers such as '€ "),
        ("{:,.2f}", "numbers such as '2,"),
        ("{:.1f}%", "numbers such as '2"),
        ("{:.2f} EUR", "numbers such as '2"),
    ],
)
def test_numbers_in_disguise_are_refused_not_left_out(tmp_path: Path, template: str, said: str) -> None:
    values = [template.format(v) for v in np.linspace(2000, 2900, 40)]
    with pytest.raises(TableProblems, match="column 'q' holds ") as caught:
        pair(tmp_path, values, values[:12])
    assert said in str(caught.value)
    assert "--drop q" in str(caught.value)


@pytest.mark.parametrize("template", ["{}.12.2024", "12/{}/2024"])
def test_dates_in_other_forms_are_refused_not_left_out(tmp_path: Path, template: str) -> None:
    with pytest.raises(TableProblems, match=r"column 'q' holds dates .* write them like 2024-12-31"):
        pair(tmp_path, [template.format(1 + k % 28) for k in range(40)], [template.format(3)] * 12)


def test_one_cell_that_is_no_date_is_named(tmp_path: Path) -> None:
    dates = [f"2024-01-{1 + k % 28:02d}" for k in range(39)]
    with pytest.raises(TableProblems, match=r"good\.csv, line 41, column 'q' holds 'unknown', not a date"):
        pair(tmp_path, [*dates, "unknown"], dates[:12])


@pytest.mark.parametrize("text", ['a,b\n1,2\n""\n3,\n4,5\n', f"a,b\n1,{'x' * 140_000}\n2,\n3,y\n"])
def test_lines_that_the_csv_module_reads_otherwise_are_no_traceback(tmp_path: Path, text: str) -> None:
    for name in ("good.csv", "new.csv"):
        (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(TableProblems):
        read_pair(tmp_path / "good.csv", tmp_path / "new.csv")


def test_columns_that_are_alike_are_not_matched_by_guessing(tmp_path: Path) -> None:
    (tmp_path / "good.csv").write_text("mean x,y\n1,2\n3,5\n")
    (tmp_path / "new.csv").write_text("Mean x,mean  x,y\n1,2,3\n")
    with pytest.raises(TableProblems, match=r"good\.csv has 'mean x', which .*new\.csv has not: --drop 'mean x'"):
        read_pair(tmp_path / "good.csv", tmp_path / "new.csv")


@pytest.mark.parametrize("cell", ["20240105", "2024-03", "2024", "2024-W05", "05.03.2024"])
def test_dates_in_other_forms_among_the_rows_to_check_are_refused(tmp_path: Path, cell: str) -> None:
    dates = [f"2024-01-{1 + k % 28:02d}" for k in range(40)]
    with pytest.raises(TableProblems, match=rf"new\.csv, line 3, column 'q' holds '{cell}', not a date"):
        pair(tmp_path, dates, ["2024-01-05", cell, "2024-01-05"])
    with pytest.raises(TableProblems, match=r"new\.csv, line 2, column 'q' holds '2024', not a date"):
        pair(tmp_path, dates, ["2024"] * 3)


@pytest.mark.parametrize("wrong", ["good", "new"])
@pytest.mark.parametrize("cell", ['"unknown"', "[1]"])
def test_a_cell_among_booleans_that_is_none_is_refused_whatever_the_seed(tmp_path: Path, cell: str, wrong: str) -> None:
    for name, count in (("good", 40), ("new", 12)):
        cells = [["true", "false"][k % 2] for k in range(count)]
        cells[3] = cell if name == wrong else cells[3]
        (tmp_path / name).write_text("".join(f'{{"b": {b}, "x": {k}}}\n' for k, b in enumerate(cells)))
    with pytest.raises(TableProblems, match=rf"{wrong}, line 4, column 'b' holds '.*', not a boolean: correct it"):
        read_pair(tmp_path / "good", tmp_path / "new")


def test_booleans_beside_decimal_commas_may_be_missing(tmp_path):
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text("x;t\n" + "1,5;True\n2,5;False\n3,5;\n", encoding="utf-8")
    good, new, _ = read_pair(tmp_path / "a.csv", tmp_path / "b.csv", missing="median", decimal=",")
    assert good["x"].tolist() == new["x"].tolist() == [1.5, 2.5, 3.5]
    assert good["t"].tolist()[:2] == [True, False]
