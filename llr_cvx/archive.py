"""Read and write .npz and .npy files: no pickle, sizes checked before memory is taken."""

from __future__ import annotations

import math
import os
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from llr_cvx.inputs import opened
from llr_cvx.outputs import replacing as replacing

#: Refuse archives that would unpack to more than this many bytes.
MAX_BYTES = 8 * 2**30

_HEADERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0, (3, 0): npy.read_array_header_2_0}


def save(path: str | Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write arrays to one compressed .npz, atomically."""
    with replacing(path) as stream:
        np.savez_compressed(stream, allow_pickle=False, **dict(arrays))


def load(
    path: str | Path, required: tuple[str, ...], optional: tuple[str, ...] = (), stream: IO[bytes] | None = None
) -> dict[str, NDArray[Any]]:
    """Read the named arrays; an error says what is wrong with the file.

    A file that is already open, such as a pipe that cannot be opened twice, is given as `stream`.
    """
    with _reading(path, ".npz"), opened(path, stream) as source, zipfile.ZipFile(source) as archive:
        held = {item.filename.removesuffix(".npy"): item for item in archive.infolist()}
        size = sum(item.file_size for item in held.values())
        missing = [name for name in required if name not in held]
        wanted = [name for name in (*required, *optional) if name in held]
        if size <= MAX_BYTES and not missing:
            return {name: _member(archive, held[name]) for name in wanted}
    if missing:
        raise ValueError(
            f"{path} is an .npz of something else: it has no {', '.join(missing)} (needed: {', '.join(required)})"
        )
    raise ValueError(f"{path} would unpack to {size} bytes, more than the limit of {MAX_BYTES}")


def load_array(path: str | Path, stream: IO[bytes] | None = None) -> NDArray[Any]:
    """Read one .npy file."""
    with _reading(path, ".npy"), opened(path, stream) as source:
        size = source.seek(0, os.SEEK_END)
        source.seek(0)
        return _array(source, size)


def _member(archive: zipfile.ZipFile, item: zipfile.ZipInfo) -> NDArray[Any]:
    with archive.open(item) as stream:
        return _array(stream, item.file_size)


def _array(stream: IO[bytes], size: int) -> NDArray[Any]:
    """An array in .npy format out of at most `size` bytes, whatever its header claims."""
    if stream.peek(2)[:2] == b"PK":  # type: ignore[attr-defined]
        raise ValueError("it is an .npz archive named .npy: rename it to .npz")
    version = npy.read_magic(stream)
    if version not in _HEADERS:
        raise ValueError(f"format version {version} is unknown")
    shape, fortran, dtype = _HEADERS[version](stream)
    wanted = math.prod(shape) * dtype.itemsize
    if dtype.hasobject:
        raise ValueError("it holds Python objects, which are not read")
    if not 0 <= wanted <= size:
        raise ValueError(f"its header claims {wanted} bytes of {dtype}, but it holds at most {size}")
    data = stream.read(wanted)
    if len(data) < wanted:
        raise ValueError(f"it ends after {len(data)} of {wanted} bytes")
    return np.frombuffer(bytearray(data), dtype).reshape(shape, order="F" if fortran else "C")


@contextmanager
def _reading(path: str | Path, kind: str) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError:
        raise FileNotFoundError(f"{path} does not exist") from None
    except Exception as error:  # damaged files make zipfile, zlib and numpy raise almost anything
        raise ValueError(f"{path} is not a readable {kind} file (truncated, damaged or foreign): {error}") from error
