"""What is finished is kept until all is finished, for the same options and the same code."""

from __future__ import annotations

from pathlib import Path

import pytest

from llr_cvx import store
from llr_cvx.store import Journal, resumed


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "llr-cvx"


def interrupt(options: object = (1, "a"), *pieces: str, fresh: bool = False) -> tuple[dict[str, object], list[str]]:
    """What a run finds, before it keeps some pieces and is interrupted; and what it says."""
    said: list[str] = []
    found: dict[str, object] = {}

    def work(journal: Journal) -> None:
        found.update(journal.done)
        for piece in pieces:
            journal.keep(piece, [piece, 0.1, None])
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), resumed("work", options, fresh, said.append) as journal:
        work(journal)
    return found, said


def test_an_interrupted_run_goes_on_and_a_finished_one_leaves_nothing(cache: Path) -> None:
    assert interrupt((1, "a"), "x", "y") == ({}, [])
    found, said = interrupt((1, "a"), "z")
    assert found == {"x": ["x", 0.1, None], "y": ["y", 0.1, None]}
    assert said == ["going on where an interrupted run stopped, with 2 finished (--fresh starts anew)"]
    with resumed("work", (1, "a"), False, print) as journal:
        assert list(journal.done) == ["x", "y", "z"]
    assert list(cache.iterdir()) == []


def test_other_options_other_code_and_fresh_start_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    interrupt((1, "a"), "x")
    assert interrupt((2, "a"))[0] == {}
    assert list(interrupt((1, "a"))[0]) == ["x"]
    with monkeypatch.context() as patched:
        patched.setattr(store, "code_version", lambda: "other")
        assert interrupt((1, "a"))[0] == {}
    assert interrupt((1, "a"), fresh=True)[0] == {}
    assert interrupt((1, "a"))[0] == {}


def test_a_changed_result_is_not_believed(cache: Path) -> None:
    interrupt((1, "a"), "x", "y")
    (path,) = cache.iterdir()
    path.write_text(path.read_text().replace('["x",0.1', '["x",0.2'))
    assert list(interrupt((1, "a"))[0]) == ["y"]
    path.write_text("garbage\n" + path.read_text())
    assert interrupt((1, "a"), "z")[0] == {}
    assert list(interrupt((1, "a"))[0]) == ["z"]


def test_two_runs_at_once_and_a_folder_that_cannot_be_written_to(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The work is done all the same."""
    said: list[str] = []
    with resumed("work", [1], False, said.append) as first, resumed("work", [1], False, said.append) as second:
        first.keep("x", 1)
        second.keep("y", 2)
        assert second.done == {"y": 2}
    assert len(said) == 1
    assert "another run is writing" in said[0]
    assert "cannot be resumed" in said[0]
    (cache.parent / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache.parent / "file"))
    with resumed("work", [1], False, said.append) as journal:
        journal.keep("x", 1)
    assert len(said) == 2


def test_a_fresh_run_does_not_take_the_journal_of_one_that_is_running(cache: Path) -> None:
    said: list[str] = []
    with resumed("work", 1, False, print) as first:
        first.keep("x", 1)
        with resumed("work", 1, True, said.append) as second:
            second.keep("y", 2)
        assert "another run is writing" in said[0]
        (path,) = cache.iterdir()
        assert '"piece":"x"' in path.read_text(encoding="utf-8")


def test_the_code_version_sees_the_source() -> None:
    assert store.code_version() == store.code_version.__wrapped__()
    assert len(store.code_version()) == 12
