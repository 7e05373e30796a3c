"""What it takes to solve the instances: measured once, on one machine, and stored beside them.

The difficulty of an instance is the number of conjugate gradient iterations that `solve_irls` spends until a relative
gap of 1e-9 is proved: it depends on the problem and hardly on the machine. Times are CPU seconds with one BLAS
thread; they compare only with each other, so that Clarabel's is also given as a multiple of that of `solve_fast`.
"""

from __future__ import annotations

import json
import os
import platform
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path

from llr_cvx import archive
from llr_cvx.instances.library import DATA_DIR, Instance
from llr_cvx.problem import Problem
from llr_cvx.solution import SolverError
from llr_cvx.solvers.fast.solver import solve_fast
from llr_cvx.solvers.irls import Irls
from llr_cvx.solvers.run import begin

#: Where the measurements are stored.
EFFORT_FILE = DATA_DIR / "effort.json"

#: Conjugate gradient iterations up to which an instance is easy or medium: about a third of the library each.
EASY, MEDIUM = 150, 600

#: Relative gap of these measurements.
GAP = 1e-9


@dataclass(frozen=True)
class Effort:
    """What one instance takes; times are those of the processor, in seconds."""

    cg_iterations: int | None  # of `solve_irls` until it proves GAP; None if it does not
    fast_seconds: float  # of `solve_fast` to GAP
    clarabel: str = "not tried"  # how it ended: its own word, or "failed" where it gave no W
    clarabel_seconds: float | None = None  # with CVXPY at their default tolerances, compilation included
    clarabel_excess: float | None = None  # proven bound on the relative suboptimality of their W

    @property
    def difficulty(self) -> str:
        """ "easy", "medium" or "hard".

        >>> Effort(151, 0.1).difficulty
        'medium'
        """
        if self.cg_iterations is None or self.cg_iterations > MEDIUM:
            return "hard"
        return "easy" if self.cg_iterations <= EASY else "medium"

    @property
    def clarabel_time(self) -> str:
        """Clarabel's time and its multiple of that of `solve_fast`, for a table; the gap where it is not optimal.

        >>> Effort(9, 0.1, "optimal", 2.0, 1e-9).clarabel_time, Effort(9, 0.1, "failed", 3.0).clarabel_time
        ('2 s (20x)', 'failed, 3 s')
        >>> Effort(9, 0.1, "user_limit", 600.0, 0.2).clarabel_time, Effort(9, 0.1).clarabel_time
        ('> 600 s', 'not tried')
        """
        if self.clarabel_seconds is None:
            return self.clarabel
        seconds = f"{_short(self.clarabel_seconds)} s"
        if self.clarabel in ("failed", "user_limit"):
            return f"failed, {seconds}" if self.clarabel == "failed" else f"> {seconds}"
        times = f"{seconds} ({_short(self.clarabel_seconds / self.fast_seconds)}x)"
        return times if self.clarabel == "optimal" else f"{times}, gap {self.clarabel_excess:.0e}"


def _short(value: float) -> str:
    return f"{value:.2g}" if value < 10 else f"{value:.0f}"


def count_cg(problem: Problem) -> int | None:
    """Conjugate gradient iterations of IRLS until GAP is proved; None where it is not."""
    run = begin(problem, GAP, None, max_iter=300, time_limit=None, callback=None, progress=False)
    irls, total = Irls(problem, run.start, run.best), 0
    while not (run.over or irls.done):
        run.record(irls.name, irls.step())
        total += irls.n_cg
    return total if run.proved else None


def measure(instance: Instance, time_limit: float, try_clarabel: bool = True) -> Effort:
    """Measure one instance; Clarabel stops at the first iteration after `time_limit` seconds by the clock."""
    from llr_cvx.solvers.exact import solve_exact  # with CVXPY, for which `instances list` need not wait

    problem = instance.problem
    cg_iterations = count_cg(problem)
    began = time.process_time()
    solve_fast(problem, GAP)
    fast_seconds = time.process_time() - began
    if not try_clarabel:
        return Effort(cg_iterations, fast_seconds)
    began = time.process_time()
    try:
        # With this tol no time goes into a proof: the stored interval judges W.
        solution = solve_exact(problem, tol=sys.float_info.max, time_limit=time_limit, max_threads=1)
    except SolverError:
        return Effort(cg_iterations, fast_seconds, "failed", time.process_time() - began)
    seconds = time.process_time() - began
    said = solution.message.split(" said ")[1].split()[0].strip(";")
    excess = (solution.objective - instance.lower) / solution.objective
    return Effort(cg_iterations, fast_seconds, said, seconds, excess)


def load_efforts(path: str | Path = EFFORT_FILE) -> dict[str, Effort]:
    """The stored measurements by instance.

    >>> load_efforts()["pair-fused"].difficulty
    'easy'
    """
    stored = json.loads(Path(path).read_text(encoding="utf-8"))
    return {name: Effort(**values) for name, values in stored["instances"].items()}


def save_efforts(efforts: Mapping[str, Effort], command: str, path: str | Path = EFFORT_FILE) -> None:
    """Store measurements with what made them."""
    versions = {name: version(name) for name in ("llr-cvx", "numpy", "scipy", "cvxpy", "clarabel")}
    made = {"command": command, "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"}
    made |= {"python": platform.python_version(), **versions}
    with archive.replacing(path, "w", encoding="utf-8") as stream:
        json.dump({"made": made, "instances": {k: asdict(v) for k, v in efforts.items()}}, stream, indent=1)
        stream.write("\n")
