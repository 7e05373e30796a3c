"""Refuse writes outside given folders, and signals to other processes, by Landlock: a security module of Linux (5.13
and later; 6.12 for signals) that needs no rights.

Restrictions apply to the calling process and to all its descendants, and cannot be lifted.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterable
from pathlib import Path

#: System calls, the same on every architecture in use, and the option of prctl that Landlock requires.
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_SET_NO_NEW_PRIVS = 38
_VERSION_FLAG, _PATH_BENEATH = 1, 1

#: Bits of the rights to change the file system: write to a file; remove, make or link files and folders of any kind.
_WRITE_FILE, _REMOVE_AND_MAKE = 1 << 1, sum(1 << bit for bit in range(4, 13))
#: Rights that later versions of the interface added: to move between folders (2) and to truncate (3).
_LATER = {2: 1 << 13, 3: 1 << 14}
#: Since this version, signals can be confined to the process itself and its descendants.
SCOPED_SINCE, _SCOPE_SIGNAL = 6, 1 << 1


class _Ruleset(ctypes.Structure):
    _fields_ = (
        ("handled_access_fs", ctypes.c_uint64),
        ("handled_access_net", ctypes.c_uint64),
        ("scoped", ctypes.c_uint64),
    )


class _PathBeneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed_access", ctypes.c_uint64), ("parent_fd", ctypes.c_int32))


def version() -> int:
    """Version of the interface; 0 where there is no Landlock, or where it is switched off by LLR_ARENA_NO_LANDLOCK."""
    if os.name != "posix" or os.uname().sysname != "Linux" or os.environ.get("LLR_ARENA_NO_LANDLOCK"):
        return 0
    found = int(_libc().syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(_VERSION_FLAG)))
    return max(found, 0)


def write_only_in(folders: Iterable[str | Path]) -> None:
    """Allow this process to change files only in these folders, where the system can do that.

    Where it can, signals to any process but its own descendants are refused too: an entry could otherwise end
    those that watch it.
    """
    abi = version()
    if not abi:
        return
    libc = _libc()
    rights = _WRITE_FILE | _REMOVE_AND_MAKE | sum(bit for since, bit in _LATER.items() if abi >= since)
    scoped = abi >= SCOPED_SINCE
    ruleset = _Ruleset(rights, 0, _SCOPE_SIGNAL if scoped else 0)
    known = ctypes.sizeof(ruleset) if scoped else ctypes.sizeof(ctypes.c_uint64)  # of the structure, to older versions
    fd = libc.syscall(_CREATE_RULESET, ctypes.byref(ruleset), ctypes.c_size_t(known), 0)
    if fd < 0:
        return
    for folder in filter(os.path.isdir, folders):
        parent = os.open(folder, os.O_PATH | os.O_CLOEXEC)
        libc.syscall(_ADD_RULE, fd, _PATH_BENEATH, ctypes.byref(_PathBeneath(rights, parent)), 0)
        os.close(parent)
    libc.prctl(_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    libc.syscall(_RESTRICT_SELF, fd, 0)
    os.close(fd)


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)
