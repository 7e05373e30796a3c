"""`llr-cvx doctor`: what is installed here, and whether it works; for bug reports."""

from __future__ import annotations

import os
import platform
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import click
import cvxpy as cp
from cvxpy.constraints import SOC, ExpCone
from cvxpy.reductions.solvers.defines import SOLVER_MAP_CONIC
from threadpoolctl import threadpool_info

from llr_cvx import checker, extras
from llr_cvx.cli import files
from llr_cvx.cli import options as opt
from llr_cvx.datasets import make_synthetic
from llr_cvx.problem import Problem
from llr_cvx.processes import THREAD_VARIABLES
from llr_cvx.proofs.certificate import ROUNDING
from llr_cvx.proofs.files import save_certificate
from llr_cvx.solution import Solution
from llr_cvx.solvers.exact import solve_exact
from llr_cvx.solvers.fast.solver import solve_fast
from llr_cvx.solvers.irls import solve_irls
from llr_cvx.verdicts.dual_search import certify

TOL = 1e-6


# ---- what is here ---------------------------------------------------------------------------------------


def versions() -> dict[str, str]:
    """Python, this package and what it always needs."""
    packages = (extras.DISTRIBUTION, *extras.requirements().get("", ()))
    return {"python": platform.python_version()} | {n: extras.installed_version(n) or "not installed" for n in packages}


def conic_solvers() -> list[str]:
    """Installed solvers that take Eq. (5): those with exponential and second-order cones."""
    known = {n: set(SOLVER_MAP_CONIC[n].SUPPORTED_CONSTRAINTS) for n in cp.installed_solvers() if n in SOLVER_MAP_CONIC}
    return [name for name, cones in known.items() if cones >= {ExpCone, SOC}]


def blas() -> list[dict[str, Any]]:
    """The linear algebra libraries loaded, with their threads."""
    keys = ("internal_api", "version", "architecture", "num_threads")
    return [
        {"file": "/".join(Path(library["filepath"]).parts[-2:])} | {k: library.get(k) for k in keys}
        for library in threadpool_info()
    ]


def missing_extras() -> dict[str, list[str]]:
    """For each extra the packages that are not installed."""
    wanted = extras.requirements()
    return {e: [n for n in wanted[e] if extras.installed_version(n) is None] for e in sorted(wanted) if e}


# ---- whether it works -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Check:
    """One line of the self-test."""

    name: str
    passed: bool
    found: str


def self_test() -> list[Check]:
    """Solve a tiny problem three ways, compare, certify, and have the independent checker judge the proof."""
    X_inlier, X_test, _ = make_synthetic(d=3, random_state=0, n_inlier=12, n_test_inlier=6, n_outlier=2)
    problem = Problem.from_samples(X_inlier, X_test, lambda1=0.1, lambda2=1.0)
    solvers: dict[str, Callable[[], Solution]] = {
        "solve_exact": lambda: solve_exact(problem, tol=TOL),
        "solve_irls": lambda: solve_irls(problem, TOL),
        "solve_fast": lambda: solve_fast(problem, TOL),
    }
    solutions: dict[str, Solution] = {}

    def solve(name: str) -> tuple[bool, str]:
        s = solutions[name] = solvers[name]()
        return s.status == "optimal", f"{s.status}, proven relative gap {s.certificate.relative_gap:.1e}"

    def agree() -> tuple[bool, str]:
        certificates = [s.certificate for s in solutions.values()]
        spread = max(c.primal for c in certificates) - min(c.primal for c in certificates)
        allowed = sum(c.gap + ROUNDING * c.primal for c in certificates)
        return len(certificates) == 3 and spread <= allowed, f"objectives within {spread:.1e}, allowed {allowed:.1e}"

    def proof() -> tuple[bool, str]:
        c = certify(problem, solutions["solve_fast"].W)
        return c.proves(TOL), f"proven relative gap {c.relative_gap:.1e}"

    def judge() -> tuple[bool, str]:
        s = solutions["solve_fast"]
        with tempfile.TemporaryDirectory() as folder:
            problem.save(Path(folder) / "problem.npz")
            save_certificate(Path(folder) / "proof.npz", s.certificate, s.W)
            data = checker.read(f"{folder}/problem.npz", checker.PROBLEM)
            claim = checker.read(f"{folder}/proof.npz", checker.CERTIFICATE)
        confirmed = checker.check(data, claim, TOL)["confirmed"]
        rejected = not checker.check(data, claim | {"dual": claim["dual"] * 1.01}, TOL)["confirmed"]
        words = ("confirms" if confirmed else "DOES NOT CONFIRM", "rejects" if rejected else "DOES NOT REJECT")
        return confirmed and rejected, f"{words[0]} the proof and {words[1]} a false one"

    runs = {name: partial(solve, name) for name in solvers} | {"agreement": agree, "certify": proof, "checker": judge}
    checks = []
    for name, run in runs.items():
        try:
            checks.append(Check(name, *run()))
        except Exception as error:  # a finding, too
            checks.append(Check(name, False, f"{type(error).__name__}: {error}"))
    return checks


# ---- the command ----------------------------------------------------------------------------------------


def section(title: str, lines: Iterable[str]) -> None:
    """Print a heading and its indented lines."""
    opt.say(title, *(f"  {line}" for line in lines), "")


@click.command(name="doctor")
@opt.output("--json", "json_file", help="Write the report here.")
def command(json_file: str | None) -> None:
    """Say what is installed, and test in seconds that it works.

    Paste the output into a bug report. A missing extra is no fault; the command that installs it is shown.

    \b
    Exit 0: the self-test passed.    Exit 1: it did not.    Exit 2: bad input.
    """
    found, absent = versions(), missing_extras()
    section("versions", [f"{name:<16}{version}" for name, version in found.items()])
    section("system", [platform.platform(), f"Python at {sys.executable}", f"{os.cpu_count()} CPUs"])
    solvers = conic_solvers()
    section("conic solvers for solve_exact", [", ".join(solvers) or "none: pip install clarabel"])
    libraries, variables = blas(), {name: os.environ.get(name) for name in THREAD_VARIABLES}
    loaded = [f"{b['internal_api']} {b['version'] or ''}: {b['num_threads']} threads, {b['file']}" for b in libraries]
    section("BLAS", loaded + [f"{name}={value}" for name, value in variables.items() if value is not None])
    hints = {e: f"missing {', '.join(names)}: {extras.pip_install(e)}" for e, names in absent.items() if names}
    section("extras", (f"{e:<16}{hints.get(e, 'installed')}" for e in absent))
    start = time.perf_counter()
    checks = self_test()
    seconds = time.perf_counter() - start
    width = max(len(c.name) for c in checks) + 2
    section("self-test", [f"{'ok ' if c.passed else 'BAD'}  {c.name:<{width}}{c.found}" for c in checks])
    healthy = bool(solvers) and all(c.passed for c in checks)
    opt.say(f"{'All is well' if healthy else 'SOMETHING IS WRONG: see above'} ({seconds:.1f} s)")
    if json_file is not None:
        report = {
            "versions": found,
            "platform": platform.platform(),
            "cpus": os.cpu_count(),
            "conic_solvers": solvers,
            "blas": libraries,
            "threads": variables,
            "missing": absent,
            "self_test": [asdict(c) for c in checks],
            "seconds": seconds,
            "healthy": healthy,
        }
        try:
            files.write_json(json_file, report)
        except OSError as error:
            raise click.UsageError(str(error)) from None
    raise SystemExit(0 if healthy else 1)
