"""A store reads what it wrote, and says which line is not its own. For its use see experiments/test_runner.py."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from llr_cvx.store import Store, fingerprint

HEADER = {"experiment": "small", "dims": (2, 3)}
GOOD = {"cell": "Heart", "trial": 0, "session": 1, "elapsed": 0.5}


@pytest.mark.parametrize(
    "line",
    [
        "3",
        "null",
        "[]",
        '"text"',
        "{}",
        '{"cell": "a"}',
        '{"cell": [], "trial": 1}',
        '{"cell": "a", "trial": 1.5}',
        "{",
    ],
)
def test_a_foreign_line_is_named(line: str, tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_text("\n".join([json.dumps({"header": HEADER}), json.dumps(GOOD), line, ""]))
    with pytest.raises(ValueError, match=r"s\.jsonl, line 3: not a stored record"):
        Store(path, HEADER).read()


@pytest.mark.parametrize("change", [{"session": None}, {"session": []}, {"elapsed": "1"}, {"elapsed": None}])
def test_a_session_that_is_none_is_named(change: dict[str, object], tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_text("\n".join([json.dumps({"header": HEADER}), json.dumps(GOOD | change), ""]))
    with pytest.raises(ValueError, match=r"s\.jsonl, line 2: not a stored record"):
        Store(path, HEADER).sessions()


def test_a_full_disk_names_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(tmp_path / "s.jsonl", HEADER)
    with store.writing() as writer:
        monkeypatch.setattr("os.write", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device")))
        with pytest.raises(OSError, match=f"cannot write {store.path}: No space left on device"):
            writer.append(GOOD)


def test_tuples_in_the_header_are_lists_in_the_file(tmp_path: Path) -> None:
    for trial in range(2):
        with Store(tmp_path / "s.jsonl", HEADER).writing() as writer:
            writer.append(GOOD | {"trial": trial})
    assert list(Store(tmp_path / "s.jsonl", HEADER).read()) == [("Heart", 0), ("Heart", 1)]
    assert fingerprint(HEADER) == fingerprint({"dims": [2, 3], "experiment": "small"})


def test_a_line_written_in_pieces_is_whole_and_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The system may write less than it was given; a record counts only once it is synced."""
    written, synced, write = [], [], os.write
    monkeypatch.setattr("os.write", lambda handle, data: written.append(1) or write(handle, bytes(data[:7])))
    monkeypatch.setattr("os.fsync", lambda handle: synced.append(len(written)))
    store = Store(tmp_path / "s.jsonl", HEADER)
    with store.writing() as writer:
        before = len(written)
        writer.append(GOOD)
        assert synced[-1] == len(written) > before + 1
    assert store.read() == {("Heart", 0): GOOD}


def test_a_session_lasts_until_its_latest_record(tmp_path: Path) -> None:
    store = Store(tmp_path / "s.jsonl", HEADER)
    with store.writing() as writer:
        for trial, (session, elapsed) in enumerate([(1, 0.5), (1, 2.5), (2, 1.0), (1, 1.5)]):
            writer.append(GOOD | {"trial": trial, "session": session, "elapsed": elapsed})
    assert store.sessions() == {1: 2.5, 2: 1.0}
