"""Commands that go on where they stopped: finished pieces are kept until all are finished, then forgotten."""

from __future__ import annotations

import hashlib
import os
import platform
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from llr_cvx.store import Store, Writer, fingerprint

#: Packages on which what is kept depends, beside the source of this one.
_PACKAGES = ("numpy", "scipy", "scikit-learn", "cvxpy", "clarabel", "scs")


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
            store = Store(_folder() / f"{command}-{fingerprint(header)}.jsonl", header, key=("piece",))
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
    whole = {
        piece: row for (piece,), row in rows.items() if row.get("check") == fingerprint([piece, row.get("result")])
    }
    return {piece: row["result"] for piece, row in whole.items()}


def _folder() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "llr-cvx"


@cache
def code_version() -> str:
    """A fingerprint of the source of this package and of the versions of those that it computes with."""
    found = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = ""
    root = Path(__file__).parent
    for path in sorted(root.rglob("*.py")):
        found[str(path.relative_to(root))] = hashlib.sha256(path.read_bytes()).hexdigest()
    return fingerprint(found)
