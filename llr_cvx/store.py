"""Finished pieces of long work on disk, one JSON line each, appended and synced at once, so that none is done twice.

Experiments keep a `Store` beside their results; commands that go on where they stopped have a `Journal` in the user's
cache folder until all is finished.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from llr_cvx.extras import installed_version

try:
    import fcntl
except ImportError:  # not on Windows, where two runs writing to one file go unnoticed
    fcntl = None  # type: ignore[assignment]

Record = dict[str, Any]

#: Packages on which what is kept depends, beside the source of this one.
_PACKAGES = ("numpy", "scipy", "scikit-learn", "cvxpy", "clarabel", "scs")


class Store:
    """An append-only file of records, created with its folder if it does not exist.

    Its first line is the `header`, which says what the records depend on: a file with a different one is refused.
    `key` names the fields that identify a record.
    """

    def __init__(self, path: str | Path, header: Record, key: tuple[str, ...] = ("cell", "trial")) -> None:
        self.path = Path(path)
        self.header: Record = json.loads(json.dumps(header))  # as it will be read back: lists for tuples
        self.key = key
        self.path.parent.mkdir(parents=True, exist_ok=True)

    def read(self) -> dict[tuple[Any, ...], Record]:
        """The stored records by their key.

        Raises OSError if the file cannot be read, and ValueError, naming the line, if it holds anything else.
        """
        records = {}
        for number, row in enumerate(self._rows(), start=2):
            key = tuple(row.get(name) for name in self.key)
            if not all(isinstance(part, (str, int)) for part in key):
                raise self._damage(number, f"{' and '.join(self.key)} needed, got {key}")
            records[key] = row
        return records

    def sessions(self) -> dict[int, float]:
        """Wall-clock seconds up to the last record of each session that wrote to this file, killed ones included."""
        last: dict[int, float] = {}
        for number, row in enumerate(self._rows(), start=2):
            if "elapsed" in row:
                session, elapsed = row.get("session"), row["elapsed"]
                if not isinstance(session, int) or not isinstance(elapsed, (int, float)):
                    raise self._damage(number, f"session {session!r} with {elapsed!r} seconds")
                last[session] = max(last.get(session, 0.0), float(elapsed))
        return last

    def _rows(self) -> list[Record]:
        """All lines except the header and a last line truncated by a crash."""
        if not self.path.exists():
            return []
        lines = self.path.read_bytes().split(b"\n")[:-1]  # anything after the last newline is truncated
        if not lines:
            return []
        rows = [self._parse(line, number) for number, line in enumerate(lines, start=1)]
        if rows[0] != {"header": self.header}:
            raise ValueError(
                f"{self.path} holds records of another experiment: remove it or choose another output folder"
            )
        return rows[1:]

    def _parse(self, line: bytes, number: int) -> Record:
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise self._damage(number, str(error)) from None
        if not isinstance(row, dict):
            raise self._damage(number, f"an object needed, got {type(row).__name__}")
        return row

    def _damage(self, number: int, words: str) -> ValueError:
        return ValueError(f"{self.path}, line {number}: not a stored record ({words}); remove the file")

    @contextmanager
    def writing(self, fresh: bool = False) -> Iterator[Writer]:
        """Open exclusively for appending, after removing a line that a crash left unfinished; all lines if `fresh`."""
        descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            _lock(descriptor, self.path)
            whole = 0 if fresh else self.path.read_bytes().rfind(b"\n") + 1
            os.ftruncate(descriptor, whole)
            os.lseek(descriptor, whole, os.SEEK_SET)
            writer = Writer(descriptor, self.path)
            if whole == 0:
                writer.append({"header": self.header})
            yield writer
        finally:
            os.close(descriptor)


class Writer:
    """Appends records to an open store."""

    def __init__(self, descriptor: int, path: Path) -> None:
        self._descriptor, self._path = descriptor, path

    def append(self, record: Record) -> None:
        """Append one line; it is on disk when this returns."""
        line = memoryview(json.dumps(record, separators=(",", ":")).encode() + b"\n")
        try:
            while line:
                line = line[os.write(self._descriptor, line) :]
            os.fsync(self._descriptor)
        except OSError as error:
            raise OSError(f"cannot write {self._path}: {error.strerror}") from error


def _lock(descriptor: int, path: Path) -> None:
    if fcntl is None:
        return  # type: ignore[unreachable]  # reached on Windows
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)  # released by the system when the process ends
    except OSError:
        raise RuntimeError(f"another run is writing to {path}: wait for it or choose another output folder") from None


def fingerprint(value: Any) -> str:
    """Twelve hex digits of the SHA-256 of the canonical JSON of `value`."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:12]


# ---- commands that go on where they stopped ------------------------------------------------------------------------


class Journal:
    """The finished pieces of an earlier run, by name, and a place to keep new ones."""

    def __init__(self, done: dict[str, Any], writer: Writer | None) -> None:
        self.done, self._writer = done, writer

    def keep(self, piece: str, result: Any) -> None:
        """Store the result of one piece, made of plain values; it is on disk when this returns."""
        self.done[piece] = result
        if self._writer is not None:
            self._writer.append({"piece": piece, "result": result, "check": fingerprint([piece, result])})


@contextmanager
def resumed(command: str, options: Any, fresh: bool, tell: Callable[[str], object]) -> Iterator[Journal]:
    """The journal of a command with these options and this code, deleted when the block ends without an exception.

    It lives in the user's cache folder (XDG_CACHE_HOME, or ~/.cache). Where that cannot be written to, or another run
    with the same options is writing to it, nothing is kept, and a line says so.
    """
    with ExitStack() as stack:
        store, journal = None, Journal({}, None)
        try:
            header = {"command": command, "options": options, "code": code_version()}
            cache_home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
            store = Store(cache_home / "llr-cvx" / f"{command}-{fingerprint(header)}.jsonl", header, key=("piece",))
            done = {} if fresh else _finished(store)
            journal = Journal(done, stack.enter_context(store.writing(fresh)))
        except (OSError, RuntimeError) as error:
            store = None
            tell(f"note: {error}; an interrupted run cannot be resumed")
        if journal.done:
            tell(f"going on where an interrupted run stopped, with {len(journal.done)} finished (--fresh starts anew)")
        yield journal
        if store is not None:
            store.path.unlink(missing_ok=True)


def _finished(store: Store) -> dict[str, Any]:
    """The stored pieces; what is damaged is left out, since it can be done again."""
    try:
        rows = store.read()
    except ValueError:
        store.path.unlink()
        return {}
    return {
        piece: row["result"]
        for (piece,), row in rows.items()
        if row.get("check") == fingerprint([piece, row.get("result")])
    }


@cache
def code_version() -> str:
    """A fingerprint of the source of this package and of the versions of those that it computes with."""
    found = {"python": platform.python_version()} | {name: installed_version(name) or "" for name in _PACKAGES}
    root = Path(__file__).parent
    for path in sorted(root.rglob("*.py")):
        found[str(path.relative_to(root))] = hashlib.sha256(path.read_bytes()).hexdigest()
    return fingerprint(found)
