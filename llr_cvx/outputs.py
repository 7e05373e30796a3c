"""Write outputs whole or not at all, whatever their name stands for.

A regular file is replaced atomically: through symbolic links, which stay, and with its permission bits and owner.
Standard output ("-"), pipes and character devices such as /dev/null are written to as they are, once everything is
ready. Folders, block devices and sockets are refused.
"""

from __future__ import annotations

import io
import os
import re
import secrets
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from llr_cvx.text import printable_lines

_DESCRIPTORS = {"-": 1, "/dev/stdout": 1, "/dev/stderr": 2}
_REFUSED = {stat.S_IFDIR: "a folder", stat.S_IFBLK: "a block device", stat.S_IFSOCK: "a socket"}


def is_stdout(path: str | Path) -> bool:
    """Whether a name means standard output.

    >>> is_stdout("-"), is_stdout("/dev/fd/1"), is_stdout("scores.csv")
    (True, True, False)
    """
    return _descriptor(path) == 1


def check_output(path: str | Path) -> None:
    """Raise OSError if `path` cannot be written to, as far as that can be known before the work is done."""
    if not _written_straight(path):
        target = _target(path)
        if not target.parent.is_dir():
            raise FileNotFoundError(f"cannot write {path}: its folder does not exist")
        if not os.access(target if target.exists() else target.parent, os.W_OK):
            raise OSError(f"cannot write {path}: Permission denied")


@contextmanager
def replacing(path: str | Path, mode: str = "wb", **options: Any) -> Iterator[IO[Any]]:
    """Open a stream whose contents go to `path` when the block ends without an exception; an error names `path`."""
    check_output(path)
    opened = _collected(path, mode, options) if _written_straight(path) else _replaced(path, mode, options)
    with opened as stream:
        try:
            yield stream
            stream.flush()
        except OSError as error:  # a full disk: the system does not say which file was being written
            if error.errno is None or error.filename is not None:
                raise
            raise _failure(path, error) from error


@contextmanager
def _replaced(path: str | Path, mode: str, options: dict[str, Any]) -> Iterator[IO[Any]]:
    target = _target(path)
    try:
        handle, name = _temporary(target)
    except OSError as error:
        raise _failure(path, error) from error
    try:
        with os.fdopen(handle, mode, **options) as stream:
            yield stream
            try:
                if not name:
                    name = str(target.with_name(f".{target.name[:100]}.{secrets.token_hex(4)}.part"))
                    # With a src_dir_fd, Python follows the link in /proc to the file itself.
                    os.link(f"/proc/self/fd/{handle}", name, src_dir_fd=handle, follow_symlinks=True)
                _take_over_permissions(name, target)
                os.replace(name, target)
            except OSError as error:
                raise _failure(path, error) from error
    except BaseException:
        if name:
            Path(name).unlink(missing_ok=True)
        raise


def _temporary(target: Path) -> tuple[int, str]:
    """A new file beside `target`: without a name on Linux, where even kill -9 then leaves nothing behind."""
    if hasattr(os, "O_TMPFILE") and os.path.isdir("/proc/self/fd"):
        with suppress(OSError):  # not every file system has them
            return os.open(target.parent, os.O_TMPFILE | os.O_RDWR, 0o600), ""
    return tempfile.mkstemp(dir=target.parent, prefix=f".{target.name[:100]}.", suffix=".part")


def _take_over_permissions(name: str, target: Path) -> None:
    """Give a new file the owner and permission bits of the one it replaces, or those of any new file."""
    try:
        old = os.stat(target)
    except FileNotFoundError:
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(name, 0o666 & ~umask)
        return
    if hasattr(os, "chown"):
        with suppress(PermissionError):
            os.chown(name, old.st_uid, old.st_gid)
    os.chmod(name, stat.S_IMODE(old.st_mode))


@contextmanager
def _collected(path: str | Path, mode: str, options: dict[str, Any]) -> Iterator[IO[Any]]:
    """Collect everything, then write it straight to a descriptor, pipe or device."""
    whole = io.BytesIO()
    yield whole if "b" in mode else io.TextIOWrapper(whole, write_through=True, **options)
    try:
        _send(path, whole.getvalue())
    except OSError as error:
        raise _failure(path, error) from error


def _send(path: str | Path, data: bytes) -> None:
    descriptor = _descriptor(path)
    if descriptor == 1:
        sys.stdout.flush()
        if sys.stdout.isatty():  # names from a table must not control the terminal
            data = printable_lines(data.decode("utf-8", "backslashreplace")).encode()
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
        return
    handle = os.open(path, os.O_WRONLY) if descriptor is None else os.dup(descriptor)
    with os.fdopen(handle, "wb") as stream:
        stream.write(data)


def _descriptor(path: str | Path) -> int | None:
    """The open file of this process that a name stands for."""
    found = re.fullmatch(r"/(?:dev|proc/self)/fd/(\d+)", str(path))
    return int(found.group(1)) if found else _DESCRIPTORS.get(str(path))


def _written_straight(path: str | Path) -> bool:
    """Whether `path` is a descriptor, pipe or character device; False for a regular or new file."""
    if _descriptor(path) is not None:
        return True
    try:
        kind = stat.S_IFMT(os.stat(path).st_mode)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise _failure(path, error) from error
    if kind in _REFUSED:
        raise OSError(f"cannot write {path}: it is {_REFUSED[kind]}")
    return kind != stat.S_IFREG


def _target(path: str | Path) -> Path:
    return Path(os.path.realpath(path))


def _failure(path: str | Path, error: OSError) -> OSError:
    where = "standard output" if is_stdout(path) else path
    return type(error)(f"cannot write {where}: {error.strerror or error}")
