"""Finished pieces of long work on disk, one JSON line each, appended and synced at once, so that none is done twice."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

try:
    import fcntl
except ImportError:  # not on Windows, where two runs writing to one file go unnoticed
    fcntl = None  # type: ignore[assignment]

Record = dict[str, Any]


class Store:
    """An append-only file of records, whose first line describes them.

    Parameters
    ----------
    path : path
        Created with its folder if it does not exist.
    header : dict
        What the records depend on; a file with a different header is refused.
    key : names
        The fields that identify a record.
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
