"""How far long work is, and how long the rest will take."""

from __future__ import annotations

import math
import sys
import time
from typing import IO, Any


class Pace:
    """The time left, from what the finished part of the work took; `total` is its cost in any unit."""

    def __init__(self, total: float) -> None:
        self.total, self.done = total, 0.0
        self.start = time.monotonic()

    def advance(self, cost: float = 1.0) -> None:
        """Count a finished piece."""
        self.done += cost

    @property
    def elapsed(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self.start

    def left(self) -> str:
        """Such as ", about 12 s left"; empty until something is finished."""
        if not self.done:
            return ""
        return f", about {self.elapsed / self.done * max(self.total - self.done, 0.0):.0f} s left"


class Progress:
    """Report finished pieces on stderr: one updating line on a terminal, otherwise one line per tenth."""

    def __init__(self, label: str, total: int, done: int, stream: IO[str] | None = None, unit: str = "trials") -> None:
        self.label, self.total, self.done, self.unit = label, total, done, unit
        self.stream = sys.stderr if stream is None else stream
        self.pace = Pace(total - done)
        self.terminal = self.stream.isatty()
        if total:
            self._show(end="" if self.terminal else "\n")

    def advance(self) -> None:
        """Count one more finished piece."""
        self.done += 1
        self.pace.advance()
        if self.terminal:
            self._show(end="")
        elif self.done * 10 // self.total > (self.done - 1) * 10 // self.total:
            self._show(end="\n")

    def close(self) -> None:
        """End the line."""
        if self.terminal and self.total:
            print(file=self.stream)

    def _show(self, end: str) -> None:
        filled = 30 * self.done // self.total
        bar = f"[{'#' * filled}{'.' * (30 - filled)}]"
        text = f"{self.label} {bar} {self.done}/{self.total} {self.unit}, {self.pace.elapsed:.0f} s{self.pace.left()}"
        print(f"\r{text:<100}" if self.terminal else text, end=end, file=self.stream, flush=True)


class Descent:
    """Report on stderr how long a solver will need, from how fast the logarithm of its gap falls towards `tol`.

    Call it with each step. It says nothing in the first seconds, and little afterwards.
    """

    def __init__(self, tol: float, stream: IO[str] | None = None, first: float = 4.0, every: float = 5.0) -> None:
        self.tol, self.stream, self.next, self.every = tol, stream, first, every
        self.start, self.fit, self.widest = time.monotonic(), 0, 0.0

    def __call__(self, step: Any) -> None:
        """Take note of a step: an object with `iteration`, `best`, `dual` and `seconds`."""
        gap = math.log10(max((step.best - step.dual) / step.best, self.tol) / self.tol) if step.best > 0 else 0.0
        if step.iteration == 1:
            self.fit, self.widest = self.fit + 1, gap
        self.widest = max(self.widest, gap)
        elapsed = time.monotonic() - self.start
        if elapsed < self.next:
            return
        self.next = elapsed + self.every
        pace = Pace(self.widest)
        pace.start, pace.done = time.monotonic() - step.seconds, self.widest - gap
        name = f"solving, fit {self.fit}: iteration {step.iteration}, {elapsed:.0f} s"
        print(f"{name}{pace.left()}", file=self.stream or sys.stderr, flush=True)
