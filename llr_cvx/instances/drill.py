"""The drill: hostile random problems, every claim about them checked by the independent checker.

The generator `varied_problem` draws what data usually look like; `hostile_problem` draws, from one seed per problem:

* N from 2 to 40 and d from 1 to 8, both log-uniform; labels at random, both classes present;
* samples normal, +-1, small integers, Cauchy, or copies of few distinct rows; then, each with probability 1/5,
  zero rows, a zero column, a constant column, columns scaled by 10^U(-4, 4), all scaled by 10^U(-8, 8), one row
  times 1e6;
* no edges, a chain, a ring, a star, a complete graph, a random one, two components, or nearest neighbours;
* weights 1, exp(normal), exp(6 normal), or half of them zero;
* lambda1 = 0 with probability 1/10, else 10^U(-3, 2), or 10^U(-8, 8) one time in four; lambda2 likewise, never 0.
"""

from __future__ import annotations

import math
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from llr_cvx import checker
from llr_cvx.arrays import FloatArray, IntArray
from llr_cvx.graph import build_graph
from llr_cvx.instances.generators import NO_EDGES, chain, complete, ring, star
from llr_cvx.instances.varied import varied_problem
from llr_cvx.problem import Problem
from llr_cvx.proofs.certificate import Certificate
from llr_cvx.proofs.files import certificate_arrays, problem_arrays
from llr_cvx.solution import ConvergenceWarning, Solution
from llr_cvx.solvers.fast.solver import solve_fast
from llr_cvx.solvers.irls import solve_irls
from llr_cvx.store import Journal
from llr_cvx.verdicts.weights import verify

Solver = Callable[[Problem, float], Solution]
SOLVERS: dict[str, Solver] = {"fast": solve_fast, "irls": solve_irls}


@dataclass(frozen=True)
class Finding:
    """One thing that must not happen: what, on which problem, in words."""

    kind: str
    seed: int
    words: str


@dataclass(frozen=True)
class Outcome:
    """What the drill found on one problem."""

    seed: int
    optimal: bool | None  # whether the solver claimed optimality; None if it raised
    seconds: float  # time of the solve
    findings: list[Finding]

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Outcome:
        """Read back what `dataclasses.asdict` made."""
        return cls(**values | {"findings": [Finding(**finding) for finding in values["findings"]]})


@dataclass
class Report:
    """The counts of a drill; `findings` is empty if all went well."""

    generator: str = "hostile"
    problems: int = 0
    optimal: int = 0  # claimed optimal
    unproved: int = 0  # ended honestly without a proof
    checked: int = 0  # certificates handed to the independent checker
    verdicts: int = 0  # corrupted W handed to `verify`
    seconds: float = 0.0  # time of the whole drill; after an interruption, of what was left
    solve_seconds: list[float] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)

    #: What a finding can be.
    KINDS = ("wrong optimal", "exception", "warning", "gap not confirmed", "not monotone", "wrong verdict")

    def add(self, outcome: Outcome) -> None:
        """Count one more problem."""
        solved = outcome.optimal is not None
        self.problems += 1
        self.optimal += outcome.optimal is True
        self.unproved += outcome.optimal is False
        self.checked += solved
        self.verdicts += solved
        self.solve_seconds += [outcome.seconds] if solved else []
        self.findings += outcome.findings

    def count(self, kind: str) -> int:
        """How many findings of one kind."""
        return sum(finding.kind == kind for finding in self.findings)

    @property
    def slowest_tenth(self) -> tuple[float, float]:
        """Seconds from which a solve belongs to the slowest tenth, and the share of all solve time spent there.

        >>> Report(solve_seconds=[1.0] * 18 + [9.0, 13.0]).slowest_tenth
        (9.0, 0.55)
        """
        ordered = sorted(self.solve_seconds, reverse=True) or [0.0]
        slowest = ordered[: -(-len(ordered) // 10)]
        return slowest[-1], sum(slowest) / (sum(ordered) or 1.0)

    def __str__(self) -> str:
        least, share = self.slowest_tenth
        lines = [
            f"{self.problems} {self.generator} problems in {self.seconds:.1f} s: {self.optimal} claimed optimal, "
            f"{self.unproved} ended without a proof and said so",
            f"{self.checked} certificates rechecked independently, {self.verdicts} corrupted W judged",
            f"slowest tenth: {least:.3g} s or more per solve, {share:.0%} of the time of all solves",
        ]
        lines += [f"  {kind + ':':20s}{self.count(kind)}" for kind in self.KINDS]
        lines += [f"  seed {f.seed}: {f.kind}: {f.words}" for f in self.findings[:20]]
        return "\n".join(lines)


# ---- the generator --------------------------------------------------------------------------------------


def hostile_problem(seed: int) -> Problem:
    """One problem of the stated generator.

    >>> hostile_problem(0)
    Problem(N=28, d=1, edges=0, lambda1=40.4092, lambda2=8.02888)
    """
    rng = np.random.default_rng([20260731, seed])
    N = int(2 * 20.0 ** rng.random())
    d = int(8.999 ** rng.random())
    X = _hostile_samples(rng, N, d)
    y = rng.permutation(np.where(np.arange(N) < rng.integers(1, N), 1.0, -1.0))
    edges = _hostile_edges(rng, X)
    lambda1 = 0.0 if rng.random() < 0.1 else _hostile_lambda(rng)
    return Problem(X, y, edges, _hostile_weights(rng, len(edges)), lambda1, _hostile_lambda(rng))


def _hostile_lambda(rng: np.random.Generator) -> float:
    return float(10.0 ** (rng.uniform(-8, 8) if rng.random() < 0.25 else rng.uniform(-3, 2)))


def _hostile_samples(rng: np.random.Generator, N: int, d: int) -> FloatArray:
    kind = rng.integers(5)
    X = rng.standard_normal((N, d))
    if kind == 1:
        X = np.sign(X)
    elif kind == 2:
        X = rng.integers(-2, 3, size=(N, d)).astype(float)
    elif kind == 3:
        X = rng.standard_cauchy((N, d))
    elif kind == 4:
        X = X[rng.integers(0, max(1, N // 3), size=N)]
    changes: list[Callable[[], FloatArray]] = [
        lambda: X * (rng.random((N, 1)) < 0.7),
        lambda: X * (np.arange(d) != rng.integers(d)),
        lambda: np.where(np.arange(d) == rng.integers(d), 1.0, X),
        lambda: X * 10.0 ** rng.uniform(-4, 4, size=d),
        lambda: X * 10.0 ** rng.uniform(-8, 8),
        lambda: X * np.where(np.arange(N) == rng.integers(N), 1e6, 1.0)[:, None],
    ]
    for change in changes:
        if rng.random() < 0.2:
            X = change()
    return np.asarray(X, dtype=float)


def _hostile_edges(rng: np.random.Generator, X: FloatArray) -> IntArray:
    N = len(X)
    kind = rng.integers(8)
    if kind == 0 or (kind >= 5 and N < 4):
        return NO_EDGES
    if kind <= 4:
        return np.asarray((chain, ring, star, complete)[kind - 1](N) if N > 2 else chain(N), dtype=np.int64)
    if kind == 5:
        every = complete(N)
        return np.asarray(every[rng.random(len(every)) < 0.2], dtype=np.int64).reshape(-1, 2)
    if kind == 6:
        return np.vstack([chain(N // 2), N // 2 + chain(N - N // 2)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about isolated rows, which are wanted here
        return build_graph(X, int(rng.integers(1, min(N - 1, 5) + 1)), "median").edges


def _hostile_weights(rng: np.random.Generator, n_edges: int) -> FloatArray:
    kind = rng.integers(4)
    if kind == 0:
        return np.ones(n_edges)
    weights = np.exp((1.0 if kind < 3 else 6.0) * rng.standard_normal(n_edges))
    return np.where(rng.random(n_edges) < 0.5, weights, 0.0) if kind == 2 else weights


# ---- the drill ------------------------------------------------------------------------------------------

GENERATORS: dict[str, Callable[[int], Problem]] = {"hostile": hostile_problem, "varied": varied_problem}


def drill(
    n_problems: int = 1000,
    solver: Solver = solve_fast,
    tol: float = 1e-6,
    first_seed: int = 0,
    generator: str = "hostile",
    journal: Journal | None = None,
) -> Iterator[Report]:
    """Run the drill; yield the report so far after each problem, the last one is complete.

    What the journal holds is not solved again. `tol` is the relative gap up to which the solver may claim "optimal".

    >>> *_, report = drill(3)
    >>> report.problems, report.findings
    (3, [])
    """
    report, journal = Report(generator), journal or Journal({}, None)
    began = time.perf_counter()
    for seed in range(first_seed, first_seed + n_problems):
        if str(seed) not in journal.done:
            journal.keep(str(seed), asdict(examine(seed, solver, tol, generator)))
        report.add(Outcome.from_dict(journal.done[str(seed)]))
        report.seconds = time.perf_counter() - began
        yield report


def examine(seed: int, solver: Solver, tol: float, generator: str) -> Outcome:
    """One problem of the drill."""
    outcome = Outcome(seed, None, math.nan, [])
    problem = GENERATORS[generator](seed)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            outcome = _examine(problem, seed, solver, tol)
        except Exception as error:  # whatever it is, it is a finding
            where = traceback.extract_tb(error.__traceback__)[-1]
            words = f"{type(error).__name__}: {error} ({where.name}, line {where.lineno})"
            outcome.findings.append(Finding("exception", seed, words))
    # All warnings but the one that says honestly that no proof was reached.
    told = {f"{w.category.__name__}: {w.message}" for w in caught if not issubclass(w.category, ConvergenceWarning)}
    outcome.findings.extend(Finding("warning", seed, words) for words in sorted(told))
    return outcome


def _examine(problem: Problem, seed: int, solver: Solver, tol: float) -> Outcome:
    """Solve, recheck the claims independently, then corrupt W and see whether `verify` notices."""
    began = time.perf_counter()
    solution = solver(problem, tol)
    seconds = time.perf_counter() - began
    optimal = solution.status == "optimal"
    found = [*_objections(problem, solution.W, solution.certificate, optimal, tol, "wrong optimal")]
    if solution.solver == "IRLS" and solution.trace and not solution.trace.is_monotone():
        found.append(("not monotone", "J_epsilon rises from one IRLS step to the next"))
    rng = np.random.default_rng(seed)
    W = solution.W * (1.0 + 0.1 * rng.standard_normal(problem.shape))
    verdict = verify(problem, W, tol)
    low, high = verdict.suboptimality
    if not 0.0 <= low <= high:
        found.append(("wrong verdict", f"interval ({low!r}, {high!r})"))
    found += _objections(problem, W, verdict.certificate, verdict.accepted, tol, "wrong verdict")
    return Outcome(seed, optimal, seconds, [Finding(kind, seed, words) for kind, words in found])


def _objections(
    problem: Problem, W: FloatArray, proof: Certificate, claimed: bool, tol: float, kind: str
) -> Iterator[tuple[str, str]]:
    """What the independent checker objects to; `kind` is the objection to a false claim that W is optimal to tol."""
    result = checker.check(problem_arrays(problem), certificate_arrays(proof, W))
    if not result["confirmed"]:
        yield "gap not confirmed", "; ".join(result["reasons"])
    # The checker counts rounding into its gap: what it adds, beyond the difference of its midpoints, is allowed.
    rounding = result["primal_high"] - result["primal_low"]
    allowed = tol + rounding / result["primal_high"]
    if claimed and not result["relative_gap"] <= allowed:
        yield kind, f"relative gap {result['relative_gap']:.3e} > {allowed:.3e}"
