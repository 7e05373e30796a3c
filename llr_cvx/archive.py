"""Read and write .npz files: no pickle, sizes checked before loading, files replaced atomically."""

from __future__ import annotations

import os
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

#: Refuse archives that would unpack to more than this many bytes.
MAX_BYTES = 8 * 2**30


@contextmanager
def replacing(path: str | Path, mode: str = "wb", **options: Any) -> Iterator[IO[Any]]:
    """Open a temporary file next to `path`; it replaces `path` on success and is deleted on failure."""
    target = Path(path)
    try:
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".part")
    except OSError as error:
        raise OSError(f"cannot write {target}: {error.strerror or error}") from error
    try:
        with os.fdopen(handle, mode, **options) as stream:
            yield stream
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(name, 0o666 & ~umask)
        os.replace(name, target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def save(path: str | Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write arrays to one compressed .npz, atomically."""
    with replacing(path) as stream:
        np.savez_compressed(stream, allow_pickle=False, **dict(arrays))


def load(path: str | Path, required: tuple[str, ...], optional: tuple[str, ...] = ()) -> dict[str, NDArray[Any]]:
    """Read the named arrays; an error says what is wrong with the file."""
    with _reading(path), zipfile.ZipFile(path) as archive:
        size = sum(item.file_size for item in archive.infolist())
        held = {name.removesuffix(".npy") for name in archive.namelist()}
    if size > MAX_BYTES:
        raise ValueError(f"{path} would unpack to {size} bytes, more than the limit of {MAX_BYTES}")
    missing = [name for name in required if name not in held]
    if missing:
        raise ValueError(
            f"{path} is an .npz of something else: it has no {', '.join(missing)} (needed: {', '.join(required)})"
        )
    with _reading(path), np.load(path, allow_pickle=False) as npz:
        return {name: npz[name] for name in (*required, *optional) if name in held}


@contextmanager
def _reading(path: str | Path) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError:
        raise FileNotFoundError(f"{path} does not exist") from None
    except Exception as error:  # damaged files make zipfile, zlib and numpy raise almost anything
        raise ValueError(f"{path} is not a readable .npz file (truncated, damaged or foreign): {error}") from error
