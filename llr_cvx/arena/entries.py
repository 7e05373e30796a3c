"""What a solver in Python looks like, and the entries that come with the package.

An entry is a function from a `Problem` to an answer; see `Solver`. It may also accept, by name, `tol` (the relative
gap that the arena asks for) and `record` (a function to call with each iterate, for solvers that have a callback).
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import shlex
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from llr_cvx.arena.examples.admm import admm
from llr_cvx.arena.examples.subgradient import subgradient
from llr_cvx.arrays import FloatArray
from llr_cvx.problem import Problem
from llr_cvx.solution import Solution, SolverError
from llr_cvx.solvers import algorithm1 as printed
from llr_cvx.solvers.conic import installed
from llr_cvx.solvers.exact import formulate
from llr_cvx.solvers.fast.solver import solve_fast
from llr_cvx.solvers.irls import solve_irls

#: W; or W with a dual point (alpha, U); or a mapping with "W" and any of "alpha", "U", "epsilon" (for iterates of a
#: smoothed method) and the claims "objective", "dual" and "trace"; or a `Solution`.
Answer = ArrayLike | tuple[ArrayLike, ArrayLike, ArrayLike] | Mapping[str, Any] | Solution


class Solver(Protocol):
    """The form of an entry: from a problem to an answer, or a generator of answers, the last of which counts.

    >>> def mine(problem: Problem) -> FloatArray:
    ...     return np.zeros(problem.shape)
    >>> solver: Solver = mine
    """

    def __call__(self, problem: Problem, /) -> Answer | Iterator[Answer]:
        """Solve the problem."""


# ---- the built-in entries ------------------------------------------------------------------------------------------


def exact(problem: Problem, solver: str = "CLARABEL") -> tuple[FloatArray, FloatArray, FloatArray] | FloatArray:
    """Eq. (5) in CVXPY as `solve_exact` states it, with the multipliers as the dual point; no proof on its clock."""
    model, W = formulate(problem)
    model.solve(solver=solver)
    if W.value is None:
        raise SolverError(f"{solver} returned no W: {model.status}")
    multipliers = [constraint.dual_value for constraint in model.constraints]
    if any(m is None for m in multipliers):
        return np.asarray(W.value)
    U = -multipliers[1] if len(multipliers) > 1 else np.zeros((len(problem.edges), problem.shape[1]))
    return np.asarray(W.value), problem.y * multipliers[0], U


def recorded(solver: Callable[..., Solution], problem: Problem, tol: float, record: Callable[[Any], None]) -> Solution:
    """A solver of this package, each step recorded."""
    return solver(problem, tol, callback=record)


def algorithm1(problem: Problem, n_steps: int = 25, epsilon: float = 1e-4) -> Iterator[Answer]:
    """Algorithm 1 as printed, with a fixed smoothing: monotone in J_epsilon, and never nearer to J* than that."""
    W = np.zeros(problem.shape)
    for _ in range(n_steps):
        C_g, C_e = printed.weights(problem, W, epsilon)
        W = printed.minimise_surrogate(problem, W, C_g, C_e, cg_iterations=200)
        yield {"W": W, "epsilon": epsilon}


BUILT_IN: dict[str, Callable[..., Any]] = {
    "exact": exact,
    "irls": partial(recorded, solve_irls),
    "fast": partial(recorded, solve_fast),
    "algorithm1": algorithm1,
    "admm": admm,
    "subgradient": subgradient,
}


# ---- finding an entry by its name ----------------------------------------------------------------------------------


def absolute(spec: str) -> str:
    """The same entry, findable from any folder; an error if it cannot be one. Nothing of it is executed.

    >>> absolute("fast"), absolute("scs")
    ('fast', 'SCS')
    """
    place, colon, function = spec.rpartition(":")
    if not colon:
        if spec.lower() in BUILT_IN:
            return spec.lower()
        try:
            return installed(spec)
        except ValueError as error:
            words = f"no entry is called {spec!r}: give FILE.py:FUNCTION, MODULE:FUNCTION or one of "
            raise ValueError(words + f"{', '.join(BUILT_IN)}, or a conic solver ({error})") from None
    if not function.isidentifier() or not place:
        raise ValueError(f"{spec!r} does not name a function: write FILE.py:FUNCTION or MODULE:FUNCTION")
    if not _is_file(place):
        return spec
    if not Path(place).is_file():
        raise ValueError(f"{place} does not exist: {spec!r} must be FILE.py:FUNCTION or MODULE:FUNCTION")
    return f"{Path(place).resolve()}:{function}"


def load(spec: str) -> Callable[..., Any]:
    """The function that an absolute name stands for; runs the module that defines it."""
    place, colon, function = spec.rpartition(":")
    if not colon:
        return BUILT_IN[spec] if spec in BUILT_IN else partial(exact, solver=spec)
    if _is_file(place):
        found = importlib.util.spec_from_file_location(Path(place).stem, place)
        if found is None or found.loader is None:
            raise ImportError(f"{place} is not a Python file")
        module = importlib.util.module_from_spec(found)
        found.loader.exec_module(module)
    else:
        module = importlib.import_module(place)
    solve: Callable[..., Any] = getattr(module, function)
    return solve


def source_file(spec: str, folders: list[str]) -> Path | None:
    """The file in which a named entry is defined, found without importing anything; None for built-in ones."""
    place, colon, _ = spec.rpartition(":")
    if not colon:
        return None
    if _is_file(place):
        return Path(place)
    inner = Path(*place.split("."))
    tried = (Path(folder) / path for folder in folders for path in (inner.with_suffix(".py"), inner / "__init__.py"))
    return next((path for path in tried if path.is_file()), None)


def _is_file(place: str) -> bool:
    return place.endswith(".py") or os.sep in place


# ---- an entry in a run ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Entry:
    """A solver to be run: by its absolute name if it is in Python, else by the words of its command line."""

    name: str  # as the user wrote it; the label of its rows
    spec: str = ""  # what `load` takes; empty for a command
    argv: tuple[str, ...] = ()  # the program and its arguments, with {problem} and {out} in them
    folders: tuple[str, ...] = ()  # where its modules are searched first
    source: str = ""  # fingerprint of the file that defines it, if known: an edited solver is another entry


def python_entry(spec: str) -> Entry:
    """An entry in Python, by name; relative paths are those of the current folder."""
    found = absolute(spec)
    here = os.getcwd()
    path = source_file(found, [here, *sys.path])
    folders = (str(path.parent), here) if path is not None and _is_file(found.rpartition(":")[0]) else (here,)
    return Entry(spec, found, folders=folders, source=_fingerprint([path]))


def command_entry(command: str) -> Entry:
    """An entry in any language: a command with {problem} and {out}, split into words as a shell would, and no shell.

    >>> command_entry("true {problem} {out}").argv
    ('true', '{problem}', '{out}')
    """
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise ValueError(f"--command {command!r} cannot be split into words: {error}") from None
    for needed in ("{problem}", "{out}"):
        if not any(needed in word for word in words):
            example = "for example 'julia mine.jl {problem} {out}'"
            raise ValueError(f"--command {command!r} must hold {needed}: {example}")
    if shutil.which(words[0]) is None:
        raise ValueError(f"--command: no program is called {words[0]!r}")
    files = {word: Path(word).resolve() for word in words if Path(word).is_file()}
    program = words[0] if os.sep not in words[0] else str(Path(words[0]).resolve())
    argv = (program, *(str(files.get(word, word)) for word in words[1:]))
    return Entry(command, argv=argv, source=_fingerprint(files.values()))


def _fingerprint(paths: Iterable[Path | None]) -> str:
    return sha256(b"".join(path.read_bytes() for path in paths if path is not None)).hexdigest()[:16]
