"""`llr-cvx verify`: solve with every solver, certify and compare the answers, and say whether all of it holds."""

from __future__ import annotations

import math
import textwrap
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import click

from llr_cvx import validation as check
from llr_cvx.arrays import FloatArray
from llr_cvx.cli import files
from llr_cvx.cli import options as opt
from llr_cvx.cli.problems import numbering, read_problem
from llr_cvx.detection.scalers import SCALINGS
from llr_cvx.instances.library import sizes
from llr_cvx.problem import Problem
from llr_cvx.proofs.ball_arithmetic import enclose, require_flint
from llr_cvx.proofs.certificate import ROUNDING, Certificate, shown_gap
from llr_cvx.solution import SolverError
from llr_cvx.solvers.conic import installed
from llr_cvx.solvers.exact import solve_exact
from llr_cvx.solvers.fast.solver import solve_fast
from llr_cvx.solvers.irls import solve_irls
from llr_cvx.text import printable
from llr_cvx.verdicts.weights import verify

#: The solvers of this package; every other name is that of a conic solver.
OWN = {"IRLS": solve_irls, "FAST": solve_fast}
DEFAULT_SOLVERS = ("CLARABEL", *OWN)
#: What each solver calls its time limit.
TIME_LIMITS = dict.fromkeys(OWN, "time_limit") | {"CLARABEL": "time_limit", "SCS": "time_limit_secs"}


@dataclass(frozen=True)
class Row:
    """One line of the table; numbers are NaN where a solver gave no W, `monotone` None where no descent is promised."""

    solver: str
    objective: float
    lower_bound: float
    relative_gap: float
    monotone: bool | None
    seconds: float
    verdict: str
    holds: bool
    message: str


# ---- judging --------------------------------------------------------------------------------------------


class Numbers(NamedTuple):
    """Objective, lower bound and relative gap as shown."""

    objective: float
    lower_bound: float
    relative_gap: float


def numbers(problem: Problem, W: FloatArray, c: Certificate, rigorous: bool) -> Numbers:
    """From the certificate; with `rigorous`, bounds of it in which every rounding error is counted."""
    if not rigorous:
        return Numbers(c.primal, c.dual, c.relative_gap)
    proof = enclose(problem, W, c.alpha, c.U)
    return Numbers(proof.primal_high, proof.dual_low, proof.relative_gap)


def solver_row(problem: Problem, solver: str, tol: float, rigorous: bool, time_limit: float | None = None) -> Row:
    """Solve and judge: an answer holds if proved optimal to tol; for IRLS, J_epsilon must never have risen."""
    limit: dict[str, Any] = {} if time_limit is None else {TIME_LIMITS[solver]: time_limit}
    try:
        s = OWN[solver](problem, tol, **limit) if solver in OWN else solve_exact(problem, solver, tol, **limit)
    except SolverError as error:
        return Row(solver, math.nan, math.nan, math.nan, None, math.nan, "failed", False, str(error))
    monotone = s.trace.is_monotone() if solver == "IRLS" and s.trace else None
    verdict = "not monotone" if monotone is False else s.status
    c, message = s.certificate, s.message
    if s.status == "uncertified":
        message += (
            "\nlambda2 = 0: there is no unconditional proof; among all W with "
            f"||w_i||_1 <= {c.radius:.3g} the relative gap is {shown_gap(c.bounded_relative_gap)}"
        )
    shown = numbers(problem, s.W, c, rigorous)
    if verdict == "optimal" and not shown.relative_gap <= tol:
        verdict = "inaccurate"
        message += f"; with every rounding error counted the relative gap is {shown.relative_gap:.2e}"
    return Row(s.solver, *shown, monotone, s.seconds, verdict, verdict == "optimal", message)


def weights_row(problem: Problem, path: str, tol: float, rigorous: bool, time_limit: float | None) -> Row:
    """Judge a W that someone else made."""
    W = files.read_weights(path)
    v = verify(problem, W, tol, time_limit=time_limit)
    shown = numbers(problem, W, v.certificate, rigorous)
    accepted = v.accepted and (not rigorous or shown.relative_gap <= tol)
    verdict = "accepted" if accepted else "rejected"
    return Row(Path(path).name, *shown, None, math.nan, verdict, accepted, str(v))


def disagreement(a: Row, b: Row) -> tuple[float, float]:
    """|J_a - J_b|, and what weak duality allows it to be: the sum of both certified gaps, and the rounding of J."""
    allowed = (a.objective - a.lower_bound) + (b.objective - b.lower_bound)
    return abs(a.objective - b.objective), allowed + ROUNDING * (abs(a.objective) + abs(b.objective))


# ---- telling --------------------------------------------------------------------------------------------


class BadInput(click.ClickException):
    """Wrong files or values: nothing was solved."""

    exit_code = 2


@contextmanager
def _told() -> Iterator[None]:
    """Print warnings as one plain line each on stderr."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = lambda message, *_args, **_kwargs: opt.say(f"warning: {message}", err=True)
        yield


COLUMNS = ("solver", "objective", "proven J* >=", "rel. gap", "monotone", "seconds", "verdict")
LAYOUT = "{:<12.12}  {:>16}  {:>16}  {:>9}  {:>8}  {:>8}  {}"


def table(rows: list[Row]) -> list[str]:
    """The rows as lines of text, at most 100 columns wide."""
    lines = [LAYOUT.format(*COLUMNS)]
    for r in rows:
        monotone = {None: "–", True: "yes", False: "NO"}[r.monotone]
        gap = "–" if math.isnan(r.relative_gap) else shown_gap(r.relative_gap, ".1e")
        numbers = (_show(r.objective, ".10f"), _show(r.lower_bound, ".10f"), gap)
        lines.append(LAYOUT.format(r.solver, *numbers, monotone, _show(r.seconds, ".3f"), r.verdict))
    return lines


def wrap(line: str) -> list[str]:
    """The line, broken to fit the table."""
    return textwrap.wrap(line, width=96, subsequent_indent="    ", break_long_words=False)


def _show(number: float, how: str) -> str:
    if math.isnan(number):
        return "–"
    text = format(number, how)
    return text if len(text) <= 16 else format(number, ".9e")


# ---- the command ----------------------------------------------------------------------------------------


@click.command(name="verify", context_settings={"show_default": True})
@click.argument("problem", required=False, type=click.Path(path_type=Path))
@click.option("--inliers", metavar="FILE", help="Known inliers, one a row: numbers in CSV or Parquet.")
@click.option("--test", metavar="FILE", help="Test samples; the same columns, in any order if they have names.")
@click.option("--id", metavar="NAME", help="Column that names the rows; not a feature.")
@click.option("--drop", multiple=True, metavar="NAME", help="Column to leave out; repeatable.")
@click.option(
    "--scale",
    type=click.Choice(list(SCALINGS)),
    help="Scale both files by the inliers, as detect does. [default: none; detect's is standard]",
)
@click.option("--W", "weights", type=click.Path(), help="A W to judge: .npy, .npz (array W) or .csv, inliers first.")
@click.option(
    "--solver",
    "solvers",
    multiple=True,
    help="IRLS, FAST, or a conic solver: CLARABEL, SCS, ...; repeatable. [default: CLARABEL, IRLS and FAST]",
)
@click.option(
    "--rigorous",
    is_flag=True,
    help='Bounds in ball arithmetic, every rounding error counted. Needs the extra "rigorous".',
)
@click.option("--tol", type=float, default=1e-6, help="Relative gap that must be proved.")
@click.option(
    "--time-limit",
    type=opt.POSITIVE,
    help="Seconds for each solver, and for the search of a proof of --W; what is not proved then does not hold.",
)
@click.option("--lambda1", type=float, help="Network penalty. [default: 0.1, or as saved]")
@click.option("--lambda2", type=float, help="Exclusive penalty. [default: 1, or as saved]")
@click.option("--neighbors", "n_neighbors", type=int, help="K of the similarity graph. [default: 5]")
@click.option("--sigma", type=opt.width, metavar="NUMBER|median", help="Gaussian width. [default: median]")
@click.option("--size", type=click.IntRange(min=8), default=93, help="Synthetic: rows.")
@click.option("--dim", type=click.IntRange(min=1), default=10, help="Synthetic: features.")
@click.option("--seed", type=click.IntRange(min=0), default=0, help="Synthetic: seed.")
@opt.output("--json", "json_file", help="Write the result here.")
def command(
    weights: str | None,
    solvers: tuple[str, ...],
    rigorous: bool,
    tol: float,
    time_limit: float | None,
    json_file: str | None,
    **options: Any,
) -> None:
    """Solve a problem with a conic solver, IRLS and the fast solver, certify the answers and print the proof.

    Judged is the saved PROBLEM (.npz), or two tables given by --inliers and --test, or without either the
    paper's synthetic data in small. Each answer W gets a lower bound of the optimum from a dual point:
    nobody has to trust a solver, a status or this table to know how far J(W) is from the best.

    Tables are read as by `llr-cvx detect`: columns are matched by name, and each that --id or --drop does not name
    is a feature. Unlike there, a first line of numbers counts as a row (its columns are called 1, 2, ...), and
    numbers are taken as they are unless --scale says otherwise. Rows are counted from 0, inliers first.

    \b
    objective      J(W), recomputed from W
    proven J* >=   a lower bound that holds for every W
    rel. gap       (objective - bound) / objective: "optimal" means at most --tol
    monotone       whether the smoothed objective of IRLS fell at every step;
                   – where nothing of the kind is promised: the fast solver, conic solvers

    \b
    Exit 0: every answer proved optimal, IRLS monotone, objectives agree, --W accepted.
    Exit 1: something does not hold; the last lines say what.    Exit 2: bad input, nothing solved.

    \b
    Examples:
      llr-cvx verify
      llr-cvx verify --inliers normal.csv --test today.csv --lambda1 0.05 --json proof.json
      llr-cvx verify saved.npz --W theirs.npy --tol 1e-4
      llr-cvx verify --rigorous
    """
    with _told():
        try:
            tol = check.real_number(tol, "tol", strict=True)
            if rigorous:
                require_flint()
            names = [n.upper() if n.upper() in OWN else installed(n) for n in solvers or DEFAULT_SOLVERS]
            if time_limit is not None and set(names) - set(TIME_LIMITS):
                raise click.UsageError(f"--time-limit works with {', '.join(TIME_LIMITS)} only: got {', '.join(names)}")
            source, problem = read_problem(options)
            problem.require_attained()
            judged = [] if weights is None else [weights_row(problem, weights, tol, rigorous, time_limit)]
        except (ValueError, TypeError, OSError, ImportError) as error:
            raise BadInput(str(error)) from None
        opt.say(f"{source}: {problem!r}", *str(problem.graph).splitlines(), numbering(problem), "")
        rows = []
        for name in names:
            opt.say(f"solving with {name} ...", err=True)
            rows.append(solver_row(problem, name, tol, rigorous, time_limit))
    holds, lines, pairs = conclude(rows, judged, tol)
    opt.say(*table(rows + judged), "", *lines)
    if json_file is not None:
        result = {
            "source": source,
            "problem": sizes(problem) | {"n_neighbors": problem.n_neighbors, "sigma": problem.sigma},
            "tol": tol,
            "rigorous": rigorous,
            "rows": [asdict(r) for r in rows + judged],
            "agreement": pairs,
            "holds": holds,
        }
        try:
            files.write_json(json_file, result)
        except OSError as error:
            raise BadInput(str(error)) from None
    raise SystemExit(0 if holds else 1)


def conclude(rows: list[Row], judged: list[Row], tol: float) -> tuple[bool, list[str], list[dict[str, Any]]]:
    """Whether all of it holds; the lines to print; the comparison of every two solvers that proved something."""
    lines, pairs = [], []
    for a, b in combinations([r for r in rows if r.verdict not in ("failed", "uncertified")], 2):
        difference, allowed = disagreement(a, b)
        agree = difference <= allowed
        pairs.append({"pair": [a.solver, b.solver], "difference": difference, "allowed": allowed, "agree": agree})
        word = "agree" if agree else "DISAGREE"
        lines.append(
            f"{a.solver} and {b.solver} {word}: |difference| {difference:.2e}, sum of certified gaps {allowed:.2e}"
        )
    for r in [*(r for r in rows if not r.holds), *judged]:
        lines += [part for line in r.message.splitlines() for part in wrap(f"{printable(r.solver)}: {line}")]
    holds = all(r.holds for r in rows + judged) and all(p["agree"] for p in pairs)
    lines.append(f"All holds to a relative gap of {tol:g}." if holds else "NOT everything holds.")
    return holds, lines, pairs
