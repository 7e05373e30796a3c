"""`llr-cvx bench`: race IRLS and the fast solver against general conic solvers; one table, one figure."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import click

from llr_cvx import archive
from llr_cvx.benchmarks import measure as bench
from llr_cvx.benchmarks import sensitivity
from llr_cvx.benchmarks import tables as report
from llr_cvx.benchmarks.measure import Record, Rules, blas_threads
from llr_cvx.benchmarks.plan import DIM_N, PARTS, QUICK_D, QUICK_N, SIZE_D, jobs, run_jobs
from llr_cvx.cli import files
from llr_cvx.cli import options as opt
from llr_cvx.extras import pip_install
from llr_cvx.outputs import is_stdout
from llr_cvx.store import resumed

CLOCKS = {"wall": time.perf_counter, "cpu": time.process_time}
FORMATS = (".png", ".svg", ".pdf")


def numbers(kind: click.IntRange | opt.Finite) -> Callable[..., tuple[Any, ...]]:
    """A callback that reads numbers of one kind, separated by commas."""

    def read(ctx: click.Context, param: click.Parameter, value: str) -> tuple[Any, ...]:
        try:
            return tuple(dict.fromkeys(kind(word, param, ctx) for word in value.split(",")))
        except click.BadParameter as error:
            raise click.BadParameter(f"{error.message} Got {value!r}; write numbers like 10,50.") from None

    return read


def _picture(ctx: click.Context, param: click.Parameter, value: str) -> str | None:
    if not is_stdout(value) and Path(value).suffix.lower() not in FORMATS:
        raise click.BadParameter(f"{value} must end in one of {', '.join(FORMATS)}")
    path: str | None = opt.writable(ctx, param, value)
    return path


@click.command(name="bench", context_settings={"show_default": True})
@click.option(
    "--part",
    "parts",
    multiple=True,
    type=click.Choice((*PARTS, "all")),
    help="What to measure; repeatable. [default: race, size, dim, path]",
)
@click.option("--quick", is_flag=True, help=f"No conic solver above d = {QUICK_D}, no size above N = {QUICK_N:,}.")
@click.option(
    "--d", "dims", callback=numbers(click.IntRange(min=1)), default="10,50", help="Race, path, plane: columns."
)
@click.option("--n", "rows", type=click.IntRange(min=8), default=310, help="Race, path, plane: rows.")
@click.option("--seeds", callback=numbers(click.IntRange(min=0)), default="0", help="Seeds of the data.")
@click.option("--lambda1", type=opt.POSITIVE, default=0.1)
@click.option("--lambda2", type=opt.POSITIVE, default=1.0)
@click.option("--gaps", callback=numbers(opt.POSITIVE), default="1e-3,1e-6,1e-9", help="Race: gaps to prove.")
@click.option(
    "--sizes", callback=numbers(click.IntRange(min=8)), default="1000,4000,16000", help=f"Growth with N, d = {SIZE_D}."
)
@click.option(
    "--dims",
    "growing",
    callback=numbers(click.IntRange(min=1)),
    default="10,20,40,80",
    help=f"Growth with d, N = {DIM_N}.",
)
@click.option("--gap", type=opt.POSITIVE, help="Plane, path: gap to prove. [default: plane 1e-9, path 1e-6]")
@click.option("--points", type=click.IntRange(min=2), default=20, help="Path: points.")
@click.option("--along", type=click.Choice(("lambda1", "lambda2")), default="lambda1", help="Path: penalty.")
@click.option("--descending", is_flag=True, help="Path: from the largest penalty to the smallest.")
@click.option(
    "--only",
    multiple=True,
    metavar="NAME",
    type=click.Choice(tuple(sensitivity.tuned())),
    help="Settings: this one; repeatable.",
)
@click.option("--repeats", type=click.IntRange(min=1), default=5, help="Runs of IRLS and FAST; median.")
@click.option("--threads", type=click.IntRange(min=1), default=1, help="BLAS threads for all.")
@click.option("--clock", type=click.Choice(tuple(CLOCKS)), default="wall", help="Use cpu on a busy machine.")
@click.option("--time-limit", type=opt.POSITIVE, default=600.0, help="Seconds for one run of a conic solver.")
@click.option(
    "--figure",
    type=click.Path(dir_okay=False),
    callback=_picture,
    default="llr-cvx-bench.png",
    help="Where to draw: .png, .svg or .pdf; - for a .png on standard output.",
)
@click.option("--no-figure", is_flag=True, help="Draw nothing.")
@click.option("--fresh", is_flag=True, help="Measure everything anew, also what an interrupted run has left.")
@opt.output("--json", "json_file", help="Write all records.")
def command(figure: str, no_figure: bool, fresh: bool, json_file: str | None, **options: Any) -> None:
    """Race IRLS and the fast solver (FAST) against general conic solvers.

    Everything is a time until a relative duality gap is *proved*; what a solver says of itself counts nothing.
    Conic solvers run through CVXPY with tolerances from loose to tight; for each gap the cheapest run that
    reaches it counts, compiling included, and certifying is not charged to them. One that never gets there
    is shown so, with the gap it reached. Read the ratios: seconds belong to your machine.

    \b
    race      time to each of --gaps for IRLS, FAST, CVXPY+Clarabel and CVXPY+SCS
    size      growth of FAST with N, and of IRLS beside it, to a gap of 1e-4
    dim       growth of FAST with d, to a gap of 1e-4
    path      warm-started paths of FAST from a tenth of lambda1 (see --along) to
              lambda1 and to 10 lambda1, against as many cold solves, to 1e-6 (--gap)
    Only on request:
    plane     IRLS and FAST for lambda1 from 0.001 to 10, lambda2 from 0.01 to 10, to 1e-9 (--gap)
    coupled   FAST: N = 5,000, d = 20 with lambda1 = 1, where most edges fuse, to 1e-4
    large     FAST: N = 100,000, d = 20 in its own process, with its peak memory, to 1e-4
    million   FAST: N = 1,000,000, d = 5 likewise: some four minutes
    new       20,000 new rows scored by a model fitted to N = 310, d = 20
    settings  every tuned number of both solvers times and divided by three: six minutes

    \b
    Exit 0: IRLS and FAST proved every gap asked for, and J_epsilon never rose in IRLS.
    Exit 1: otherwise.    Exit 2: bad input.
    The last lines compare the ratios with what the project wants of itself; they do not decide the exit.
    The whole default run takes some ten minutes, nearly all of it Clarabel at d = 50. What is measured is kept
    until the run is complete: after an interruption, even by kill -9, the same command goes on where it stopped.

    \b
    Examples:
      llr-cvx bench --quick
      llr-cvx bench --part race --d 10 --seeds 0,1,2 --json race.json
      llr-cvx bench --part large --part coupled --no-figure
      llr-cvx bench --part plane --gap 1e-12
      llr-cvx bench --part settings --only HANDOVER
    """
    rules = Rules(options["threads"], options["repeats"], options["time_limit"], CLOCKS[options["clock"]])
    parts = PARTS if "all" in options["parts"] else options["parts"] or PARTS[:4]
    tell = partial(opt.say, err=True)
    with blas_threads(rules.threads), resumed("bench", [*parts, options], fresh, tell) as journal:
        records, changes = run_jobs(jobs(parts, options, rules, tell), journal, tell)
        head = report.facts(rules.threads, os.cpu_count() or 1)
        head[-1] += f", {options['clock']} time"
        seeds = ", ".join(map(str, options["seeds"]))
        head.append(f"Synthetic data of the paper, K = 5, sigma = median, seed(s) {seeds}")
        if options["quick"]:
            head.append(f"--quick: conic solvers above d = {QUICK_D} and sizes above N = {QUICK_N:,} left out")
        opt.say(*report.table(records, head).splitlines())
        if changes:
            opt.say("", *sensitivity.table(changes).splitlines())
        if records and not no_figure:
            opt.say("", draw(records, figure))
        if json_file is not None:
            kept = [p._asdict() for p in report.promises(records)]
            rows = [asdict(r) | {"certified": r.certified} for r in records]
            result = {"head": head, "options": options, "records": rows, "promises": kept}
            files.write_json(json_file, result | {"settings": list(map(asdict, changes))})
    own = [r for r in records if r.solver.startswith((*bench.SOLVERS, "JOIN"))]
    raise SystemExit(0 if all(r.certified and r.monotone is not False for r in own) else 1)


def draw(records: list[Record], path: str) -> str:
    """Write the figure, whole or not at all; return the line to print."""
    try:
        from llr_cvx.benchmarks.figure import figure
    except ImportError:
        return f"no figure: matplotlib is not installed ({pip_install('plots')})"
    with archive.replacing(path) as stream:
        figure(records).savefig(stream, format=Path(path).suffix.lower()[1:] or "png", dpi=150)
    return f"figure: {path}"
