"""`llr-cvx instances`: the library of certified problems, and the drill on random ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import click

from llr_cvx.cli import files
from llr_cvx.cli import options as opt
from llr_cvx.instances import Instance, list_instances, load_instance
from llr_cvx.instances.drill import GENERATORS, SOLVERS, Report, drill
from llr_cvx.instances.effort import EFFORT_FILE, load_efforts, measure, save_efforts
from llr_cvx.instances.export import export_instance, write_guide
from llr_cvx.instances.library import DATA_DIR, build_instance, recertify, write_instance
from llr_cvx.progress import Progress
from llr_cvx.store import resumed

_json = opt.output("--json", "json_file", help="Write the result here as JSON.")


@click.group(name="instances")
def command() -> None:
    """The library of certified problems: list, export, check, regenerate; and the drill.

    Each instance is a problem whose optimal value J* lies in a known interval of relative width at most 1e-9,
    proved in ball arithmetic, with a reference W and dual point. Use them to test a solver in any language.

    \b
    Examples:
      llr-cvx instances list
      llr-cvx instances export benchmark/
      llr-cvx instances drill --problems 1000
    """


def _save(json_file: str | None, result: Any) -> None:
    if json_file is not None:
        files.write_json(json_file, result)


def _names(_ctx: click.Context, _param: click.Parameter, values: tuple[str, ...]) -> list[str]:
    unknown = [name for name in values if name not in list_instances()]
    if unknown:
        raise click.BadParameter(f"no instance is called {unknown[0]!r}; see llr-cvx instances list")
    return list(values) or list_instances()


def _loaded(name: str) -> Instance:
    try:
        return load_instance(name)
    except (RuntimeError, ValueError) as error:
        raise click.ClickException(str(error)) from None


_only = click.option("--only", "names", multiple=True, callback=_names, help="Only this instance; repeatable.")


@command.command(name="list")
@_json
def list_(json_file: str | None) -> None:
    """Name, size, difficulty, active set, proven interval of J* and description of every instance.

    \b
    active      share of the entries of the reference W that are not zero
    fused       share of the edges along which the reference W is constant
    difficulty  by the conjugate gradient iterations of solve_irls to a proven gap of 1e-9 (easy up to 150, medium up
                to 600)
    Clarabel    CPU time of CVXPY and Clarabel, and its multiple of that of solve_fast to 1e-9, as measured once by
                llr-cvx instances measure; > means stopped by its time limit after so much CPU time
    """
    efforts = load_efforts()
    layout = "{:<18} {:>4} {:>4} {:>6} {:>7} {:>6} {:<10} {:<24} {!s:<21} {!s:<21} {}"
    names = ("name", "N", "d", "edges", "active", "fused", "difficulty", "Clarabel", "J* >=", "J* <=", "description")
    opt.say(layout.format(*names))
    rows = []
    for name in list_instances():
        r, effort = _loaded(name).facts, efforts.get(name)
        difficulty, clarabel = (effort.difficulty, effort.clarabel_time) if effort else ("?", "not measured")
        rows.append(r | {"difficulty": difficulty, "effort": asdict(effort) if effort else None})
        shares = ("–" if share != share else f"{share:.1%}" for share in (r["active"], r["fused"]))
        known = (difficulty, clarabel, r["lower"], r["upper"], r["description"])
        opt.say(layout.format(name, r["N"], r["d"], r["edges"], *shares, *known))
    _save(json_file, rows)


@command.command()
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@_only
@_json
def export(folder: Path, names: list[str], json_file: str | None) -> None:
    """Write every instance to FOLDER/<name>/ as .npz, MAT, CSV, JSON, CBF and CVXPY program.

    FOLDER/README.md explains the files and how to recheck a proof with FOLDER/checker.py, which needs only NumPy.

    \b
    problem.npz/.mat       X, y, edges, weights, lambda1, lambda2
    certificate.npz/.json/.mat   W, alpha, U and what they prove; the first two are input of llr_cvx/checker.py
    cvxpy_problem.py       Eq. (5) in CVXPY, reading problem.npz without pickle
    problem.cbf            Eq. (5) in the conic benchmark format; the first N*d variables are W
    samples.csv edges.csv W.csv alpha.csv U.csv   the same numbers as text, rows counted from 0
    instance.json          sizes, lambdas, the proven interval of J*, active set and fused share

    The reference points of large instances are solved for on the way: about a minute for all of them.
    """
    rows = []
    for name in names:
        opt.say(name, err=True)
        instance = _loaded(name)
        export_instance(instance, folder)
        rows.append(instance.facts)
    write_guide(folder)
    opt.say(f"{len(rows)} instance(s) written to {folder}; {folder / 'README.md'} explains them")
    _save(json_file, rows)


def _each(names: list[str], make: Callable[[str], Instance], json_file: str | None) -> None:
    """Run and print one proof per name; exit with status 1 if any failed."""
    rows: list[dict[str, Any]] = []
    for name in names:
        try:
            instance = make(name)
        except (RuntimeError, ValueError) as error:
            opt.say(f"{name:<18} FAILED: {error}")
            rows.append({"name": name, "error": str(error)})
            continue
        rows.append(instance.facts)
        opt.say(f"{name:<18} {instance.lower!r:<23} {instance.upper!r:<23} width {instance.relative_width:.1e}")
    _save(json_file, rows)
    failed = sum("error" in row for row in rows)
    opt.say(f"{len(names) - failed} of {len(names)} proved to relative width 1e-9")
    raise SystemExit(1 if failed else 0)


@command.command()
@_only
@_json
def check(names: list[str], json_file: str | None) -> None:
    """Prove the stored interval of every instance again, in ball arithmetic."""
    _each(names, lambda name: recertify(load_instance(name)), json_file)


@command.command()
@click.option(
    "--folder", type=click.Path(path_type=Path), default=DATA_DIR, help="Where to write. [default: the package]"
)
@_only
@_json
def regenerate(folder: Path, names: list[str], json_file: str | None) -> None:
    """Regenerate every instance from its seed, solve it, prove its interval and store it."""
    folder.mkdir(parents=True, exist_ok=True)

    def make(name: str) -> Instance:
        instance = build_instance(name)
        write_instance(instance, folder)
        return instance

    _each(names, make, json_file)


@command.command(name="measure")
@click.option(
    "--time-limit", type=opt.POSITIVE, default=600.0, show_default=True, help="Wall-clock seconds for Clarabel."
)
@click.option(
    "--largest",
    type=click.IntRange(min=0),
    default=50_000,
    show_default=True,
    help="Clarabel is not tried on problems with more unknowns N d than this.",
)
@click.option(
    "--out", type=click.Path(dir_okay=False, path_type=Path), default=EFFORT_FILE, help="[default: the package]"
)
@_only
def measure_(time_limit: float, largest: int, out: Path, names: list[str]) -> None:
    """Measure difficulty and Clarabel's CPU time of every instance, as `list` shows them.

    Measurements of other instances in the file are kept. Takes about a quarter of an hour for all.
    """
    efforts = load_efforts(out) if out.exists() else {}
    command_line = f"OMP_NUM_THREADS=1 llr-cvx instances measure --time-limit {time_limit:g} --largest {largest}"
    for name in names:
        instance = _loaded(name)
        opt.say(f"{name}: {instance.problem} ...", err=True)
        efforts[name] = measure(instance, time_limit, instance.problem.X.size <= largest)
        opt.say(f"{name:<18} {efforts[name].difficulty:<7} Clarabel {efforts[name].clarabel_time}")
        ordered = {key: efforts[key] for key in list_instances() if key in efforts}
        save_efforts(ordered, command_line, out)


@command.command(name="drill", context_settings={"show_default": True})
@click.option("--generator", type=click.Choice(tuple(GENERATORS)), default="hostile")
@click.option("--solver", type=click.Choice(tuple(SOLVERS)), default="fast")
@click.option("--problems", type=click.IntRange(min=1), default=1000, help="Number of problems.")
@click.option("--first-seed", type=click.IntRange(min=0), default=0)
@click.option("--tol", type=opt.POSITIVE, default=1e-6, help="Relative gap to claim.")
@click.option("--fresh", is_flag=True, help="Solve every problem, also those that an interrupted run has solved.")
@_json
def drill_(
    generator: str, solver: str, problems: int, first_seed: int, tol: float, fresh: bool, json_file: str | None
) -> None:
    """Solve random problems and let the independent checker judge every claim.

    Hostile problems are small, with degenerate samples, graphs and scales; varied ones look like data. Counts wrong
    claims of optimality, unhandled exceptions, NumPy warnings, gaps that the checker does not confirm, IRLS descents
    that rise, and wrong verdicts on corrupted W; exits with status 0 only if all counts are zero. A problem is
    recreated by hostile_problem(seed) in llr_cvx/instances/drill.py or varied_problem(seed) in varied.py beside it.

    What is found is kept until the drill is complete: after an interruption, even by kill -9, the same command goes
    on where it stopped.
    """
    options = [generator, solver, problems, first_seed, tol]
    with resumed("drill", options, fresh, partial(opt.say, err=True)) as journal:
        done = len(journal.done)
        progress = Progress("drill", problems, done, unit="problems")
        for report in drill(problems, SOLVERS[solver], tol, first_seed, generator, journal):
            if report.problems > done:
                progress.advance()
        progress.close()
        opt.say(*str(report).splitlines())
        counts = {kind: report.count(kind) for kind in Report.KINDS}
        least, share = report.slowest_tenth
        slowest = {"seconds": least, "share": share}
        _save(json_file, asdict(report) | {"solver": solver, "counts": counts, "slowest_tenth": slowest})
    raise SystemExit(1 if report.findings else 0)
