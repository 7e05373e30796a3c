"""Open inputs once, for reading at any position: files, and pipes such as those of process substitution."""

from __future__ import annotations

import io
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

#: Pipes and devices are read into memory; more than this many bytes are refused.
MAX_PIPE_BYTES = 2**30


@contextmanager
def opened(path: str | Path, stream: IO[bytes] | None = None) -> Iterator[IO[bytes]]:
    """The bytes of a file, seekable; `stream` if it is open already.

    >>> with opened(__file__) as stream:
    ...     stream.read(3), stream.seek(0)
    (b'\"\"\"', 0)
    """
    if stream is not None:
        yield stream
        return
    with open(path, "rb") as source:
        if stat.S_ISREG(os.fstat(source.fileno()).st_mode):
            yield source
            return
        data = source.read(MAX_PIPE_BYTES + 1)
    if len(data) > MAX_PIPE_BYTES:
        raise OSError(f"it is no regular file, and gives more than {MAX_PIPE_BYTES} bytes")
    yield io.BufferedReader(io.BytesIO(data))


def contents(path: str | Path, stream: IO[bytes] | None = None, most: int = -1) -> bytes:
    """The first `most` bytes of a file, or all; errors name the file."""
    try:
        with opened(path, stream) as source:
            return source.read(most)
    except FileNotFoundError:
        raise FileNotFoundError(f"{path}: no such file") from None
    except OSError as error:
        raise OSError(f"cannot read {path}: {error.strerror or error}") from None


def is_special(path: str | Path) -> bool:
    """Whether a name stands for a pipe or a device: the end of such a name says nothing about its contents."""
    try:
        return not stat.S_ISREG(os.stat(path).st_mode)
    except OSError:
        return False
