"""Read what an entry left in its output folder, without trusting a byte of it.

The files are those that docs/arena.md lists: W, alpha and U as CSV (with or without a header line), .npy or JSON
(nested lists); `claims.json`; `iterates/` and `seconds.csv`; or `answer.json` with all of these. A program that takes
its output argument for the name of a file may write that file, in any of these formats.
"""

from __future__ import annotations

import json
import math
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from llr_cvx.arrays import FloatArray
from llr_cvx.text import is_number

#: No file larger than this is read, nor more of all iterates together: it is memory of the arena that they would take.
MAX_BYTES = 2**30
#: Nor any text, whose numbers take several times its size once they are read.
MAX_TEXT = 2**28
#: No more iterates than this are judged.
MAX_ITERATES = 20_000
#: W and the dual point.
POINT = ("W", "alpha", "U")
#: What the worker of a Python entry measured, in the process of that entry.
MEASURED = ("seconds", "cpu_seconds", "iterates", "memory")


class Unusable(Exception):
    """An answer that cannot be judged; the message says why."""


@dataclass
class Answer:
    """What an entry said, unjudged. Arrays are float64; everything not given is None or empty."""

    W: FloatArray | None = None
    alpha: FloatArray | None = None
    U: FloatArray | None = None
    fault: str = ""  # why there is no W to judge
    claims: Mapping[str, Any] = field(default_factory=dict)  # "objective", "dual", "trace" as far as given and finite
    iterates: list[FloatArray] = field(default_factory=list)
    stamps: FloatArray | None = None  # seconds of each iterate
    epsilons: FloatArray | None = None  # its smoothing
    values: FloatArray | None = None  # the objective claimed for it
    stamped_by: str = "runner"  # or "system", "entry"
    facts: Mapping[str, Any] = field(default_factory=dict)  # what the worker of Python entries noted
    notes: list[str] = field(default_factory=list)


def read_answer(out: Path, shape: tuple[int, int], n_edges: int, began: float, token: str = "") -> Answer:
    """The answer in the folder `out`.

    `began` is the time of day at which the entry was started. With a token it is that of a Python entry, whose worker
    ends by writing run.json with that token; what a program calls run.json is of no interest.
    """
    answer = Answer()
    try:
        if token:
            answer.facts = _facts(out / "run.json", token)
        _fill(answer, out, shape, n_edges, began)
    except Unusable as error:
        answer.fault = str(error)
    except Exception as error:  # damaged files make parsers raise almost anything
        answer.fault = f"unreadable output: {type(error).__name__}: {error}"[:300]
    return answer


def _facts(path: Path, token: str) -> dict[str, Any]:
    facts = _json(path)
    if not isinstance(facts, dict) or facts.get("token") != token:
        raise Unusable("no output: it ended before it returned")
    return {name: value for name, value in facts.items() if name not in MEASURED or _is_amount(value)}


def _is_amount(value: Any) -> bool:
    """Whether a value can be a measured time, size or count."""
    return type(value) in (int, float) and 0 <= value < math.inf


def _fill(answer: Answer, out: Path, shape: tuple[int, int], n_edges: int, began: float) -> None:
    single = next((p for p in (out, *(out.with_name(f"out.{e}") for e in ("npy", "csv", "json"))) if p.is_file()), None)
    folder = out if out.is_dir() else out.parent
    whole = _json(folder / "answer.json")
    if not isinstance(whole, dict):
        raise Unusable("answer.json is not an object with W")
    found: dict[str, Any] = {name: whole[name] for name in POINT if name in whole}
    for name in POINT:
        path = next((p for ending in ("npy", "csv", "json") if (p := folder / f"{name}.{ending}").exists()), None)
        if path is not None:
            found[name] = _array(path)
    if "W" not in found and single is not None:
        found["W"] = _array(single)
    if isinstance(found.get("W"), dict):  # W.json, or the single file, holds the whole answer
        whole = found.pop("W")
        found |= {name: whole[name] for name in POINT if name in whole}
    given = _json(folder / "claims.json") if (folder / "claims.json").exists() else whole
    answer.claims = _claims(given, answer.notes) if isinstance(given, dict) else {}
    if answer.facts:  # by the worker of a Python entry
        _recorded_iterates(answer, folder, shape)
    else:
        _read_iterates(answer, folder, whole, shape, began)
    if answer.facts.get("fault"):
        raise Unusable(str(answer.facts["fault"])[:300])
    if "W" not in found:
        raise Unusable("no output: there is no W.csv, W.npy, W.json or answer.json")
    answer.W = matrix(found["W"], "W", shape, answer.notes)
    if ("alpha" in found) != ("U" in found):
        answer.notes.append("a dual point needs both alpha and U: ignored")
    elif "alpha" in found:
        alpha = np.asarray(found["alpha"])
        answer.alpha = matrix(alpha.reshape(-1), "alpha", (shape[0],), answer.notes)
        answer.U = matrix(np.asarray(found["U"]).reshape(-1, shape[1]), "U", (n_edges, shape[1]), answer.notes)


def matrix(value: Any, name: str, shape: tuple[int, ...], notes: list[str]) -> FloatArray:
    """A finite float64 array of this shape; other precisions are judged by the value they have as doubles."""
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise Unusable(f"{name} is not rectangular: {error}") from None
    if array.dtype.kind not in "iuf":
        raise Unusable(f"{name} has dtype {array.dtype}: real numbers expected")
    if array.shape != shape:
        turned = ": it is transposed" if array.ndim == 2 and array.shape[::-1] == shape else ""
        raise Unusable(f"{name} has shape {array.shape} but the problem needs {shape}{turned}")
    if array.dtype != np.float64:
        notes.append(f"{name} is {array.dtype}: judged by its values as float64")
    double = np.array(array, dtype=np.float64, order="C")
    if not np.isfinite(double).all():
        where = ", ".join(str(int(k)) for k in np.argwhere(~np.isfinite(double))[0])
        raise Unusable(
            f"{name} has {np.count_nonzero(~np.isfinite(double))} NaN or infinite entries, the first at {where}"
        )
    return double


def _claims(given: Mapping[str, Any], notes: list[str]) -> dict[str, Any]:
    claims: dict[str, Any] = {}
    for name in ("objective", "dual"):
        if isinstance(given.get(name), (int, float)) and not isinstance(given[name], bool):
            claims[name] = float(given[name])
        elif given.get(name) is not None:
            notes.append(f"the claim {name} is not a number: ignored")
    if isinstance(given.get("trace"), list):
        claims["trace"] = [float(value) for value in given["trace"]]
    return claims


# ---- iterates ------------------------------------------------------------------------------------------------------


def _recorded_iterates(answer: Answer, folder: Path, shape: tuple[int, int]) -> None:
    """What the worker of a Python entry recorded, up to the moment at which it may have been killed."""
    with _opened(folder / "iterates.npys") as stream:
        blocks = _blocks(stream)
    with _opened(folder / "stamps.bin") as stream:
        rows = np.frombuffer(stream.read())
    rows = rows[: len(rows) // 3 * 3].reshape(-1, 3)
    count = min(len(blocks), len(rows))
    answer.iterates = [matrix(value, f"iterate {k}", shape, []) for k, value in enumerate(blocks[:count])]
    answer.stamps, answer.epsilons, answer.values = rows[:count].T


def _read_iterates(
    answer: Answer, folder: Path, whole: Mapping[str, Any], shape: tuple[int, int], began: float
) -> None:
    values: Iterable[Any] = list(whole.get("iterates", []))[:MAX_ITERATES]
    if (folder / "iterates").is_dir():
        paths = sorted((folder / "iterates").iterdir())
        within = np.cumsum([path.lstat().st_size for path in paths]) <= MAX_BYTES
        kept = paths[: min(int(np.count_nonzero(within)), MAX_ITERATES)]
        if len(kept) < len(paths):
            answer.notes.append(
                f"only the first {len(kept)} of its {len(paths)} iterates are judged: too many, too large"
            )
        values = map(_array, kept)
        answer.stamps = np.array([path.lstat().st_ctime - began for path in kept])
        answer.stamped_by = "system"
    answer.iterates = [matrix(value, f"iterate {k}", shape, []) for k, value in enumerate(values)]
    count = len(answer.iterates)
    reported = whole.get("seconds")
    if (folder / "seconds.csv").exists():
        reported = _array(folder / "seconds.csv").reshape(-1)
    if reported is not None and count:
        answer.stamps, answer.stamped_by = matrix(reported, "seconds", (count,), []), "entry"
    if count and len(answer.claims.get("trace", [])) == count:
        answer.values = np.array(answer.claims["trace"], dtype=float)


def _blocks(stream: IO[bytes]) -> list[NDArray[Any]]:
    """The .npy blocks of a file; one that a killed entry left unfinished is dropped."""
    found: list[NDArray[Any]] = []
    while len(found) < MAX_ITERATES:
        try:
            found.append(_npy(stream))
        except (ValueError, EOFError):
            break
    return found


# ---- single files --------------------------------------------------------------------------------------------------


@contextmanager
def _opened(path: Path) -> Iterator[IO[bytes]]:
    """A plain file of moderate size: no link, pipe or device."""
    fd = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    with open(fd, "rb") as stream:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode) or status.st_size > MAX_BYTES:
            raise Unusable(f"{path.name} is not a plain file of at most {MAX_BYTES} bytes")
        yield stream


def _json(path: Path) -> Any:
    """What a file holds; an empty object if there is none."""
    if not path.exists():
        return {}
    try:
        with _opened(path) as stream:
            return json.loads(_text(stream, path.name))
    except ValueError as error:
        raise Unusable(f"{path.name} is not whole or not JSON: {error}") from None


def _array(path: Path) -> Any:
    """A matrix by its content: .npy, JSON, or numbers separated by commas."""
    try:
        with _opened(path) as stream:
            start = stream.read(6)
            stream.seek(0)
            if start == b"\x93NUMPY":
                return _npy(stream)
            text = _text(stream, path.name)
        if start.lstrip()[:1] in (b"[", b"{"):
            return json.loads(text)
        lines = [line for line in text.splitlines() if line.strip()]
        if lines and not is_number(lines[0].split(",")[0]):
            lines = lines[1:]  # a header
        return np.array([[float(cell) for cell in line.split(",")] for line in lines])
    except (ValueError, EOFError) as error:
        raise Unusable(f"{path.name} is not whole or not a matrix of numbers: {error}") from None


def _text(stream: IO[bytes], name: str) -> str:
    """The text of a file of moderate size."""
    found = stream.read(MAX_TEXT + 1)
    if len(found) > MAX_TEXT:
        raise Unusable(f"{name} has more than {MAX_TEXT} bytes of text: write large matrices as .npy")
    return found.decode()


def _npy(stream: IO[bytes]) -> NDArray[Any]:
    """One .npy block; its size is checked before memory is taken, and nothing is executed."""
    version = npy.read_magic(stream)
    shape, fortran, dtype = (npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0)(stream)
    size = math.prod(shape) * dtype.itemsize
    if dtype.hasobject or not 0 <= size <= MAX_BYTES:
        raise ValueError(f"{size} bytes of {dtype}: too many, or no numbers")
    data = stream.read(size)
    if len(data) < size:
        raise EOFError(f"{len(data)} of {size} bytes")
    return np.frombuffer(data, dtype).reshape(shape, order="F" if fortran else "C")
