"""Where results go: "-" is standard output in every command, and what is for people then goes to standard error."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from sizes import in_long

from llr_cvx import checker
from llr_cvx.cli import main
from llr_cvx.datasets import make_synthetic
from llr_cvx.instances import load_instance
from llr_cvx.proofs.files import save_certificate

NAMES = ["inlet flow", "=cmd|' /C calc'!A0", "red\x1b[31m", "a, b"]


@pytest.fixture
def tables(tmp_path: Path) -> Path:
    """Two tables whose ids and columns mean harm."""
    inlier, test, _ = make_synthetic(4, 0, 50, 20, 4)
    ids = [f"S{k}" for k in range(24)]
    ids[20:] = ["=1+1", "@SUM(A1)", "evil\x1b]0;owned\x07", "-5"]
    for name, X, first in (("good.csv", inlier, None), ("new.csv", test, ids)):
        with (tmp_path / name).open("w", newline="") as stream:
            writer = csv.writer(stream)
            writer.writerow([*(["id"] if first else []), *NAMES])
            writer.writerows([*([first[k]] if first else []), *row] for k, row in enumerate(X.tolist()))
    return tmp_path


def detect(folder: Path, *arguments: str) -> list[str]:
    paths = ["--inliers", str(folder / "good.csv"), "--test", str(folder / "new.csv"), "--id", "id"]
    return ["detect", *paths, "--contamination", "0.25", *arguments]


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as stream:
        return list(csv.DictReader(stream))


SMALL_BENCH = ["bench", "--part", "size", "--sizes", "40", "--repeats", "1", "--no-figure"]


@pytest.mark.parametrize(
    "arguments",
    [
        ["verify", "--size", "12", "--dim", "2"],
        ["instances", "list"],
        ["doctor"],
        *map(in_long, (["instances", "check", "--only", "pair-fused"], ["instances", "drill", "--problems", "2"])),
        in_long(SMALL_BENCH),
    ],
)
def test_json_to_standard_output_can_be_piped(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(main, [*arguments, "--json", "-"])
    assert done.exit_code == 0, done.output
    json.loads(done.stdout)
    assert len(done.stderr.splitlines()) >= 2  # the words are still there
    assert list(tmp_path.iterdir()) == []
    plain = CliRunner().invoke(main, arguments)
    assert plain.stdout


def test_reproduce_writes_json_to_standard_output(tmp_path: Path) -> None:
    done = CliRunner().invoke(main, ["reproduce", "table1", "--out", str(tmp_path), "--json", "-"])
    assert done.exit_code == 0, done.output
    assert list(json.loads(done.stdout)) == ["table1"]


def test_detect_writes_each_of_its_outputs_to_standard_output(tables: Path) -> None:
    rows = list(csv.DictReader(io.StringIO(CliRunner().invoke(main, detect(tables, "--out", "-")).stdout)))
    assert len(rows) == 24
    assert json.loads(CliRunner().invoke(main, detect(tables, "--json", "/dev/fd/1")).stdout)["outliers"]
    assert CliRunner().invoke(main, detect(tables, "--report", "-")).stdout.startswith("<!DOCTYPE html>")


def test_a_page_without_an_ending_is_a_page(tables: Path) -> None:
    assert CliRunner().invoke(main, detect(tables, "--report", str(tables / "page"))).exit_code == 0
    assert (tables / "page").read_text().startswith("<!DOCTYPE html>")


def test_pipes_and_devices_may_have_any_name(tables: Path) -> None:
    os.mkfifo(tables / "page.pipe")
    (tables / "null.dat").symlink_to("/dev/null")
    page: list[str] = []
    reader = threading.Thread(target=lambda: page.append((tables / "page.pipe").read_text()))
    reader.start()
    outputs = ["--report", str(tables / "page.pipe"), "--out", str(tables / "null.dat"), "--json", "/dev/null"]
    done = CliRunner().invoke(main, detect(tables, *outputs))
    if done.exit_code:
        (tables / "page.pipe").write_text("")  # ends the reader
    reader.join()
    assert done.exit_code == 0, done.output
    assert page[0].endswith("</html>\n")


def test_the_figure_of_bench_goes_to_standard_output() -> None:
    pytest.importorskip("matplotlib")
    done = CliRunner().invoke(main, [*SMALL_BENCH[:-1], "--figure", "-"])
    assert done.stdout_bytes.startswith(b"\x89PNG")
    assert "Growth with N" in done.stderr


def test_a_device_and_a_link_survive(tmp_path: Path, device: Callable[[str], Path]) -> None:
    (tmp_path / "target.json").write_text("old")
    (tmp_path / "link.json").symlink_to("target.json")
    null = device("null")
    for path in (tmp_path / "link.json", null):
        done = CliRunner().invoke(main, ["instances", "check", "--only", "pair-fused", "--json", str(path)])
        assert done.exit_code == 0, done.output
    assert (tmp_path / "link.json").is_symlink()
    assert json.loads((tmp_path / "target.json").read_text())
    assert stat.S_ISCHR(null.stat().st_mode)


def test_a_full_disk_names_the_file(device: Callable[[str], Path]) -> None:
    full = device("full")
    for arguments in (["verify", "--size", "12", "--dim", "2"], ["instances", "list"], SMALL_BENCH):
        done = CliRunner().invoke(main, [*arguments, "--json", str(full)])
        assert done.exit_code != 0
        assert done.stderr.splitlines()[-1] == f"Error: cannot write {full}: No space left on device"


# ---- what names can do ----------------------------------------------------------------------------------


@pytest.mark.parametrize("command", [["verify", "--size", "12", "--dim", "2"], ["doctor"]])
def test_a_file_that_cannot_be_written_is_no_verdict(command: list[str], device: Callable[[str], Path]) -> None:
    """Exit 1 would say that something does not hold."""
    assert CliRunner().invoke(main, [*command, "--json", str(device("full"))]).exit_code == 2


def test_names_are_data_to_the_terminal(tables: Path) -> None:
    done = CliRunner().invoke(main, detect(tables, "--top", "6"))
    assert done.exit_code == 0, done.output
    assert "\x1b" not in done.output
    assert "\x07" not in done.output
    assert r"red\x1b[31m" in done.output


def test_names_are_data_to_a_spreadsheet(tables: Path) -> None:
    done = CliRunner().invoke(main, detect(tables, "--out", str(tables / "scores.csv")))
    assert done.exit_code == 0, done.output
    rows = rows_of(tables / "scores.csv")
    assert [row["id"] for row in rows[20:]] == ["'=1+1", "'@SUM(A1)", "evil\x1b]0;owned\x07", "-5"]
    for row in rows:
        float(row["log_ratio"])
        assert not any(cell.startswith(("=", "+", "@", "\t", "\r")) for cell in row.values())


def test_reasons_are_unambiguous(tables: Path) -> None:
    """Names with blanks, commas and quotes, and their values: the cell is a JSON list of texts."""
    outputs = ["--out", str(tables / "scores.csv"), "--json", str(tables / "all.json")]
    assert CliRunner().invoke(main, detect(tables, *outputs)).exit_code == 0
    everything = json.loads((tables / "all.json").read_text())
    rows = rows_of(tables / "scores.csv")
    used = set()
    for outlier in everything["outliers"]:
        texts = json.loads(rows[outlier["test_row"] - 1]["reasons"])
        pushing = [reason for reason in outlier["reasons"] if reason["contribution"] < 0]
        for text, reason in zip(texts, pushing, strict=True):
            assert re.fullmatch(re.escape(f"{reason['feature']} = {reason['value']:.4g}") + ", (above|below) .*", text)
        used |= {reason["feature"] for reason in pushing}
    assert len(used) >= 3
    assert used <= set(NAMES)


def test_the_name_of_a_file_is_data_too(tmp_path: Path) -> None:
    path = tmp_path / "x\x1b[2J\nAll holds.npz"
    load_instance("pair-fused").problem.save(path)
    done = CliRunner().invoke(main, ["verify", str(path), "--solver", "FAST"])
    assert done.exit_code == 0
    assert "\x1b" not in done.output
    assert sum("All holds" in line for line in done.stdout.splitlines()) == 2  # the escaped name, and the verdict
    np.save(tmp_path / "W\x1b[31m.npy", np.zeros((2, 1)))
    judged = CliRunner().invoke(main, ["verify", str(path), "--W", str(tmp_path / "W\x1b[31m.npy")])
    assert "\x1b" not in judged.output
    missing = CliRunner().invoke(main, ["verify", str(path) + "\x1b"])
    assert missing.exit_code == 2
    assert "\x1b" not in missing.output


# ---- pipes as input -------------------------------------------------------------------------------------


@contextmanager
def piped(path: Path) -> Iterator[str]:
    """What the shell makes of <(cat path): a pipe that can be read once."""
    reading, writing = os.pipe()

    def fill() -> None:
        with os.fdopen(writing, "wb") as stream:
            stream.write(path.read_bytes())

    thread = threading.Thread(target=fill)
    thread.start()
    try:
        yield f"/dev/fd/{reading}"
    finally:
        os.close(reading)
        thread.join()


@pytest.mark.long
def test_process_substitution_works_as_input(tables: Path) -> None:
    run = f"{sys.executable} -c 'from llr_cvx.entry import main; main()'"
    line = f"{run} detect --inliers <(cat good.csv) --test <(cat new.csv) --id id --out - | wc -l"
    done = subprocess.run(["bash", "-c", line], cwd=tables, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "25", done.stderr


@pytest.mark.parametrize("ending", ["npy", "npz", "csv"])
def test_a_problem_and_weights_come_through_pipes(ending: str, tmp_path: Path) -> None:
    instance = load_instance("pair-fused")
    instance.problem.save(tmp_path / "p.npz")
    path = tmp_path / f"W.{ending}"
    if ending == "csv":
        np.savetxt(path, instance.W, fmt="%.17g")
    else:
        np.save(path, instance.W) if ending == "npy" else np.savez(path, W=instance.W)
    with piped(tmp_path / "p.npz") as problem, piped(path) as weights:
        done = CliRunner().invoke(main, ["verify", problem, "--W", weights, "--solver", "FAST"])
    assert done.exit_code == 0, done.output
    assert "accepted" in done.stdout


def test_parquet_comes_through_a_pipe(tables: Path) -> None:
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    pandas.read_csv(tables / "good.csv").to_parquet(tables / "good.parquet")
    with piped(tables / "good.parquet") as inliers:
        done = CliRunner().invoke(main, [*detect(tables, "--out", "-"), "--inliers", inliers])
    assert done.exit_code == 0, done.output
    assert done.stdout.count("\n") == 25


def test_certificates_come_through_pipes(tmp_path: Path) -> None:
    instance = load_instance("pair-fused")
    instance.problem.save(tmp_path / "p.npz")
    save_certificate(tmp_path / "c.json", instance.certificate, instance.W)
    with piped(tmp_path / "p.npz") as problem, piped(tmp_path / "c.json") as certificate:
        result = checker.check(checker.read(problem, checker.PROBLEM), checker.read(certificate, checker.CERTIFICATE))
    assert result["confirmed"]


def test_a_device_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("llr_cvx.inputs.MAX_PIPE_BYTES", 2**20)
    done = CliRunner().invoke(main, ["detect", "--inliers", "/dev/zero", "--test", "/dev/zero"])
    assert done.exit_code == 1
    assert "cannot read /dev/zero" in done.stderr


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ("a;b\n1,5;2\n", "column 'a' holds numbers such as '1,5': '--decimal ,'"),
        ('a,b\n"1.000,5",2\n', "column 'a' holds numbers such as '1.000,5': '--decimal ,'"),
        ("a,b\n1,5,2,5\n", "line 2: 4 cells where the first line has 2; if the commas are decimal commas"),
        ("a;b\n1;2\n2;3\nred;4\n", "line 4, column 'a' holds 'red', not a number: correct it, or --drop a"),
    ],
)
def test_a_decimal_comma_gets_the_right_advice(text: str, advice: str, tables: Path) -> None:
    (tables / "good.csv").write_text(text)
    done = CliRunner().invoke(main, detect(tables))
    assert done.exit_code == 1
    assert advice in done.stderr
