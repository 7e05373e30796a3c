"""Every reader, fed with thousands of damaged files: an answer or a documented error, in bounded time and memory.

By default some 2,000 files; LLR_CVX_FUZZ=20000 pytest tests/project/test_fuzz.py for as many as you like.
"""

from __future__ import annotations

import csv
import io
import json
import os
import runpy
import signal
import sys
import warnings
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest

from llr_cvx import checker
from llr_cvx.cli.files import read_weights
from llr_cvx.detection.matrices import read_columns, read_samples
from llr_cvx.detection.pairs import read_pair
from llr_cvx.detection.tables import read_table
from llr_cvx.experiments.results import read as read_results
from llr_cvx.experiments.session import Setting
from llr_cvx.experiments.targets import summary_page
from llr_cvx.instances import load_instance
from llr_cvx.instances.library import read_instance, write_instance
from llr_cvx.problem import Problem
from llr_cvx.proofs.files import load_certificate, save_certificate
from llr_cvx.store import Store, resumed

RESULTS = Path(__file__).parents[2] / "results"
INSTANCE = load_instance("pair-fused")
TOTAL = int(os.environ.get("LLR_CVX_FUZZ", "2000"))
#: Seconds for one file, and bytes of memory for all files of one reader.
MAX_SECONDS, MAX_MEMORY = 10.0, 300 * 2**20

# ---- damage ---------------------------------------------------------------------------------------------

TOKENS = [
    b"nan",
    b"1e999",
    b"-",
    b"9" * 400,
    b"null",
    b"true",
    b'"',
    b"[",
    b"]" * 5,
    b"[" * 3000,
    b"{",
    b",",
    b";;",
    b"\n",
]
TOKENS += [
    b"\x00",
    b"\xff\xfe",
    b"\xef\xbb\xbf",
    b"1_0",
    "١".encode(),
    b"0x10",
    b"(" * 200,
    b"'descr'",
    b"PK\x03\x04",
    b"=",
    b"\r",
]
TOKENS += [b"(9999999999, 99999)", b"<f8", b"|O", b"<c16", b">i2", b"-1", b"2**70", b"1,5"]


def spoil(data: bytes, rng: np.random.Generator) -> bytes:
    """One to three random changes: bytes, lengths, pieces, tokens."""
    for _ in range(rng.integers(1, 4)):
        at, to = sorted(rng.integers(len(data) + 1, size=2).tolist())
        to = min(to, at + 200)
        token = TOKENS[rng.integers(len(TOKENS))]
        data = [
            data[:at] + bytes([rng.integers(256)]) + data[at + 1 :],
            data[:at] + bytes([data[at % len(data)] ^ (1 << rng.integers(8))]) + data[at + 1 :] if data else b"",
            data[:at],
            data[:at] + data[to:],
            data[:to] + data[at:to] * int(rng.integers(1, 50)) + data[to:],
            data[:at] + token + data[at:],
            data[:at] + token + data[at + len(token) :],
            data[:at] + rng.bytes(int(rng.integers(1, 40))) + data[at:],
            data[:at] + rng.choice([b"\xff", b"\x00", b"\x7f"]) * int(rng.choice([2, 4, 8])) + data[to:],
        ][rng.integers(9)]
        if not data:
            return b""
    return data


def spoil_member(data: bytes, rng: np.random.Generator) -> bytes:
    """Damage inside an archive that is whole outside: the checksums of the archive do not reveal it."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    victim = list(members)[rng.integers(len(members))]
    part = members[victim]
    members[victim] = spoil(part[:128], rng) + part[128:] if rng.random() < 0.7 else spoil(part, rng)
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return stream.getvalue()


def spoil_file(data: bytes, rng: np.random.Generator) -> bytes:
    return spoil_member(data, rng) if data[:2] == b"PK" and rng.random() < 0.6 else spoil(data, rng)


# ---- the readers ----------------------------------------------------------------------------------------

Reader = Callable[[Path], Any]


def table(folder: Path) -> Path:
    rows = np.random.default_rng(0).normal(size=(8, 3)).round(3).tolist()
    lines = ["id,a b,c", *(f"S{k},{x},{y}" for k, (x, y, _) in enumerate(rows))]
    (folder / "t.csv").write_text("\n".join(lines) + "\n")
    return folder / "t.csv"


def saved(ending: str) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        pandas = pytest.importorskip("pandas")
        path, frame = folder / f"t.{ending}", pandas.read_csv(table(folder))
        if ending == "parquet":
            frame.to_parquet(path)
        elif ending == "xlsx":
            frame.to_excel(path, index=False)
        else:
            frame.to_json(path, orient="records", lines=True)
        return path

    return make


def weights(ending: str) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        path, W = folder / f"W.{ending}", np.random.default_rng(0).normal(size=(4, 3))
        if ending == "csv":
            np.savetxt(path, W, delimiter=",")
        else:
            np.save(path, W) if ending == "npy" else np.savez(path, W=W)
        return path

    return make


def problem(folder: Path) -> Path:
    INSTANCE.problem.save(folder / "p.npz")
    return folder / "p.npz"


def certificate(ending: str) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        save_certificate(folder / f"c.{ending}", INSTANCE.certificate, INSTANCE.W)
        return folder / f"c.{ending}"

    return make


def judged(path: Path) -> None:
    """The checker as a script, on its own problem: only the documented exit codes."""
    before = sys.argv
    problem = path.with_name("problem.npz")
    if not problem.exists():
        INSTANCE.problem.save(problem)
    sys.argv = ["checker.py", str(problem), str(path)]
    try:
        runpy.run_path(checker.__file__, run_name="__main__")
    except SystemExit as ended:
        code = ended.code
    finally:
        sys.argv = before
    assert code in (0, 1, 2)
    if code == 2:
        raise ValueError("unreadable")


def stored(folder: Path) -> Path:
    store = Store(folder / "t.jsonl", {"experiment": "small"})
    with store.writing() as writer:
        for trial in range(5):
            writer.append({"cell": "Heart", "trial": trial, "results": {"llr": 0.5}, "session": 1, "elapsed": 0.5})
    return store.path


def read_store(path: Path) -> None:
    store = Store(path, {"experiment": "small"})
    store.read()
    store.sessions()


def journal(folder: Path) -> Path:
    """What an interrupted run leaves behind."""
    os.environ["XDG_CACHE_HOME"] = str(folder)
    with suppress(KeyboardInterrupt), resumed("fuzz", [1], False, print) as kept:
        for k in range(5):
            kept.keep(f"piece {k}", [{"value": k / 7, "name": "x"}])
        raise KeyboardInterrupt
    return next((folder / "llr-cvx").iterdir())


def go_on(path: Path) -> None:
    """Whatever happened to the file, what is taken from it is what was kept."""
    with resumed("fuzz", [1], False, lambda line: None) as kept:
        for name, result in kept.done.items():
            assert result == [{"value": int(name[6:]) / 7, "name": "x"}]


def reading(row: str) -> tuple[str, str]:
    """Draw and label of a line of the forensic tables."""
    cell, label = next(csv.reader([row]))[:2]
    return cell.partition("/")[2], label


def results(name: str) -> Callable[[Path], Path]:
    fresh = {reading(row) for row in (RESULTS / "forensics_fresh.csv").read_text().splitlines()[1:]}

    def make(folder: Path) -> Path:
        for path in (path for path in RESULTS.iterdir() if path.suffix in (".csv", ".md")):
            header, *rows = path.read_text().splitlines(keepends=True)
            kept = rows[:: len(rows) // 60 | 1]  # of many trials and protocols a few, with all kinds among them
            if path.name == "forensics_trials.csv":  # a reading is whole, and those run again on fresh draws are there
                kept = [row for row in rows if reading(row) in fresh]
            if name.endswith(".md") and path.suffix == ".csv":  # read, but not looked at: every choice is among them
                rows = kept = rows[::7][:62]
            (folder / path.name).write_text("".join([header, *(kept if len(rows) > 500 else rows)]))
        return folder / name

    return make


def instance(folder: Path) -> Path:
    return write_instance(INSTANCE, folder)


#: What makes a good file, what reads it, and the errors that the reader documents.
READERS: dict[str, tuple[Callable[[Path], Path], Reader, tuple[type[Exception], ...]]] = {
    "Problem.load": (problem, Problem.load, (ValueError,)),
    "load_certificate .npz": (certificate("npz"), lambda p: load_certificate(p, INSTANCE.problem), (ValueError,)),
    "load_certificate .json": (certificate("json"), lambda p: load_certificate(p, INSTANCE.problem), (ValueError,)),
    "checker .npz": (certificate("npz"), judged, (ValueError,)),
    "checker .json": (certificate("json"), judged, (ValueError,)),
    "read_weights .npy": (weights("npy"), read_weights, (ValueError, TypeError)),
    "read_weights .npz": (weights("npz"), read_weights, (ValueError, TypeError)),
    "read_weights .csv": (weights("csv"), read_weights, (ValueError, TypeError)),
    "read_instance": (instance, lambda p: read_instance(p.stem, p.parent), (ValueError,)),
    "read_samples .csv": (table, lambda p: read_samples(p, p, ["id"]), (ValueError,)),
    "read_table .csv": (table, read_table, (ValueError,)),
    "read_pair .csv": (table, lambda p: read_pair(p, p, "id"), (ValueError,)),
    "read_columns .csv": (weights("csv"), read_columns, (ValueError,)),
    "read_table .parquet": (saved("parquet"), read_table, (ValueError,)),
    "read_table .xlsx": (saved("xlsx"), read_table, (ValueError,)),
    "read_table .jsonl": (saved("jsonl"), read_table, (ValueError,)),
    "Store": (stored, read_store, (ValueError,)),
    "resumed": (journal, go_on, ()),
    "results .csv": (results("table2.csv"), lambda p: summary_page(Setting(p.parent)), (ValueError,)),
    "results .md": (results("table2.md"), lambda p: read_results(p.parent), (ValueError,)),
}


class Hang(BaseException):
    """Not an Exception: a reader that catches everything must not catch this."""


@contextmanager
def time_limit() -> Iterator[None]:
    def stop(_number: int, _frame: FrameType | None) -> None:
        raise Hang

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, MAX_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def memory(kind: str) -> int:
    """VmRSS: bytes in use; VmHWM: their peak since `forget_peak`."""
    status = Path("/proc/self/status")
    if not status.exists():
        return 0
    return next(int(line.split()[1]) * 1024 for line in status.read_text().splitlines() if line.startswith(kind))


def forget_peak() -> None:
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        pytest.skip("the peak of memory cannot be measured here")


@pytest.mark.parametrize("name", READERS)
def test_a_damaged_file_gives_an_answer_or_a_documented_error(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))  # restored afterwards
    make, read, documented = READERS[name]
    path = make(tmp_path)
    whole = path.read_bytes()
    read(path)
    rng = np.random.default_rng([20261118, list(READERS).index(name)])
    forget_peak()
    before, refused, runs = memory("VmRSS"), 0, -(-TOTAL // len(READERS))
    for _ in range(runs):
        damaged = spoil_file(whole, rng)
        path.write_bytes(damaged)
        try:
            with time_limit(), warnings.catch_warnings():
                warnings.simplefilter("ignore")  # NumPy's about headers: as a user would run it
                read(path)
        except documented:
            refused += 1
    capsys.readouterr()
    assert memory("VmHWM") - before < MAX_MEMORY
    if documented:
        assert runs / 10 < refused  # the damage is felt


# ---- files that ask for too much ------------------------------------------------------------------------


def npy(shape: tuple[int, ...], descr: str = "<f8", payload: bytes = b"\0" * 80) -> bytes:
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"descr": descr, "fortran_order": False, "shape": shape})
    return stream.getvalue() + payload


GREEDY = {
    "huge": npy((10**9, 10**4)),
    "overflowing": npy((2**62, 2**62)),
    "negative": npy((-1, 5)),
    "text": npy((1, 1), "<U999999999"),
    "deep header": npy((1, 1)).replace(b"(1, 1)", b"(" * 30 + b"1, 1)"),
}


@pytest.mark.parametrize("case", GREEDY)
def test_a_header_that_claims_too_much_takes_no_memory(case: str, tmp_path: Path) -> None:
    forget_peak()
    before = memory("VmRSS")
    (tmp_path / "W.npy").write_bytes(GREEDY[case])
    with zipfile.ZipFile(tmp_path / "W.npz", "w") as archive:
        archive.writestr("W.npy", GREEDY[case])
    for ending in ("npy", "npz"):
        with pytest.raises(ValueError, match=rf"W\.{ending} is not a readable \.{ending} file"):
            read_weights(tmp_path / f"W.{ending}")
    assert memory("VmHWM") - before < MAX_MEMORY


def test_a_bomb_is_refused_by_its_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("llr_cvx.archive.MAX_BYTES", 2**20)
    np.savez_compressed(tmp_path / "W.npz", W=np.zeros((1000, 1000)))
    with pytest.raises(ValueError, match="would unpack to 8000128 bytes, more than the limit"):
        read_weights(tmp_path / "W.npz")


def test_json_nested_without_end_is_refused_everywhere(tmp_path: Path) -> None:
    for opening in ("[", '{"a":'):
        (tmp_path / "c.json").write_text(opening * 200_000)
        with pytest.raises(ValueError, match=r"c\.json is not a readable certificate"):
            load_certificate(tmp_path / "c.json", INSTANCE.problem)
        (tmp_path / "s.jsonl").write_text(json.dumps({"header": {}}) + "\n" + opening * 200_000 + "\n")
        with pytest.raises(ValueError, match=r"s\.jsonl, line 2: not a stored record"):
            Store(tmp_path / "s.jsonl", {}).read()
