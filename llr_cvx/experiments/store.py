"""Finished trials on disk, one JSON line each, appended and synced at once, so that no trial is repeated."""

from __future__ import annotations

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


class TrialStore:
    """An append-only file of records, whose first line describes them.

    Parameters
    ----------
    path : path
        Created with its folder if it does not exist.
    header : dict
        What the records depend on; a file with a different header is refused.
    """

    def __init__(self, path: str | Path, header: Record) -> None:
        self.path = Path(path)
        self.header = header
        self.path.parent.mkdir(parents=True, exist_ok=True)

    def read(self) -> dict[tuple[str, int], Record]:
        """The stored records by (cell, trial)."""
        return {(row["cell"], row["trial"]): row for row in self._rows() if "cell" in row}

    def sessions(self) -> dict[int, float]:
        """Wall-clock seconds up to the last trial of each session that wrote to this file, killed ones included."""
        last: dict[int, float] = {}
        for row in self._rows():
            if "elapsed" in row:
                last[row["session"]] = max(last.get(row["session"], 0.0), float(row["elapsed"]))
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
                f"{self.path} holds trials of another experiment: remove it or choose another output folder"
            )
        return rows[1:]

    def _parse(self, line: bytes, number: int) -> Record:
        try:
            row: Record = json.loads(line)
            return row
        except ValueError as error:
            raise ValueError(f"{self.path}, line {number}: not a stored trial ({error}); remove the file") from None

    @contextmanager
    def writing(self) -> Iterator[Writer]:
        """Open exclusively for appending, after removing a line that a crash left unfinished."""
        descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            _lock(descriptor, self.path)
            whole = self.path.read_bytes().rfind(b"\n") + 1
            os.ftruncate(descriptor, whole)
            os.lseek(descriptor, whole, os.SEEK_SET)
            writer = Writer(descriptor)
            if whole == 0:
                writer.append({"header": self.header})
            yield writer
        finally:
            os.close(descriptor)


class Writer:
    """Appends records to an open store."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def append(self, record: Record) -> None:
        """Append one line; it is on disk when this returns."""
        line = memoryview(json.dumps(record, separators=(",", ":")).encode() + b"\n")
        while line:
            line = line[os.write(self._descriptor, line) :]
        os.fsync(self._descriptor)


def _lock(descriptor: int, path: Path) -> None:
    if fcntl is None:
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)  # released by the system when the process ends
    except OSError:
        raise RuntimeError(f"another run is writing to {path}: wait for it or choose another output folder") from None
