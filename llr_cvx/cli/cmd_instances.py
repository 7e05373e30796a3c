"""`llr-cvx instances`: the library of certified problems, and the drill on random ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from llr_cvx.cli import files
from llr_cvx.cli import options as opt
from llr_cvx.instances import Instance, list_instances, load_instance
from llr_cvx.instances.drill import GENERATORS, SOLVERS, Report, drill
from llr_cvx.instances.export import export_instance, write_guide
from llr_cvx.instances.library import DATA_DIR, build_instance, recertify, write_instance

_json = click.option(
    "--json", "json_file", type=click.Path(dir_okay=False, path_type=Path), help="Write the result here as JSON."
)


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


def _facts(instance: Instance) -> dict[str, Any]:
    p = instance.problem
    return {
        "name": instance.name,
        "description": instance.description,
        "N": p.shape[0],
        "d": p.shape[1],
        "edges": len(p.edges),
        "lambda1": p.lambda1,
        "lambda2": p.lambda2,
        "lower": instance.lower,
        "upper": instance.upper,
    }


def _save(json_file: Path | None, result: Any) -> None:
    if json_file is not None:
        try:
            files.write_json(json_file, result)
        except OSError as error:
            raise click.ClickException(str(error)) from None


def _names(_ctx: click.Context, _param: click.Parameter, values: tuple[str, ...]) -> list[str]:
    unknown = [name for name in values if name not in list_instances()]
    if unknown:
        raise click.BadParameter(f"no instance is called {unknown[0]!r}; see llr-cvx instances list")
    return list(values) or list_instances()


_only = click.option("--only", "names", multiple=True, callback=_names, help="Only this instance; repeatable.")


@command.command(name="list")
@_json
def list_(json_file: Path | None) -> None:
    """Name, size, proven interval of J* and description of every instance."""
    rows = [_facts(load_instance(name)) for name in list_instances()]
    click.echo(f"{'name':<17} {'N':>4} {'d':>4} {'edges':>6}  {'J* >=':<23} {'J* <=':<23} description")
    for r in rows:
        numbers = f"{r['N']:>4} {r['d']:>4} {r['edges']:>6}  {r['lower']!r:<23} {r['upper']!r:<23}"
        click.echo(f"{r['name']:<17} {numbers} {r['description']}")
    _save(json_file, rows)


@command.command()
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@_only
@_json
def export(folder: Path, names: list[str], json_file: Path | None) -> None:
    """Write every instance to FOLDER/<name>/ as .npz, CSV, JSON and CBF.

    FOLDER/README.md explains the files and how to recheck a proof with FOLDER/checker.py, which needs only NumPy.

    \b
    problem.npz            X, y, edges, weights, lambda1, lambda2
    certificate.npz/.json  W, alpha, U, primal, dual: input of llr_cvx/checker.py
    problem.cbf            Eq. (5) in the conic benchmark format; the first N*d variables are W
    samples.csv edges.csv W.csv alpha.csv U.csv   the same numbers as text, rows counted from 0
    instance.json          sizes, lambdas and the proven interval of J*
    """
    rows = []
    for name in names:
        click.echo(name, err=True)
        instance = load_instance(name)
        try:
            export_instance(instance, folder)
        except OSError as error:
            raise click.ClickException(str(error)) from None
        rows.append(_facts(instance))
    write_guide(folder)
    click.echo(f"{len(rows)} instance(s) written to {folder}; {folder / 'README.md'} explains them")
    _save(json_file, rows)


def _each(names: list[str], make: Callable[[str], Instance], json_file: Path | None) -> None:
    """Run and print one proof per name; exit with status 1 if any failed."""
    rows, failed = [], 0
    for name in names:
        try:
            instance = make(name)
        except (RuntimeError, ValueError) as error:
            failed += 1
            click.echo(f"{name:<17} FAILED: {error}")
            rows.append({"name": name, "error": str(error)})
            continue
        rows.append(_facts(instance))
        click.echo(f"{name:<17} {instance.lower!r:<23} {instance.upper!r:<23} width {instance.relative_width:.1e}")
    _save(json_file, rows)
    click.echo(f"{len(names) - failed} of {len(names)} proved to relative width 1e-9")
    raise SystemExit(1 if failed else 0)


@command.command()
@_only
@_json
def check(names: list[str], json_file: Path | None) -> None:
    """Prove the stored interval of every instance again, in ball arithmetic."""
    _each(names, lambda name: recertify(load_instance(name)), json_file)


@command.command()
@click.option(
    "--folder", type=click.Path(path_type=Path), default=DATA_DIR, help="Where to write. [default: the package]"
)
@_only
@_json
def regenerate(folder: Path, names: list[str], json_file: Path | None) -> None:
    """Regenerate every instance from its seed, solve it, prove its interval and store it."""
    folder.mkdir(parents=True, exist_ok=True)

    def make(name: str) -> Instance:
        instance = build_instance(name)
        write_instance(instance, folder)
        return instance

    _each(names, make, json_file)


@command.command(name="drill")
@click.option("--generator", type=click.Choice(tuple(GENERATORS)), default="hostile", show_default=True)
@click.option("--solver", type=click.Choice(tuple(SOLVERS)), default="fast", show_default=True)
@click.option("--problems", type=click.IntRange(min=1), default=1000, show_default=True, help="Number of problems.")
@click.option("--first-seed", type=click.IntRange(min=0), default=0, show_default=True)
@click.option("--tol", type=opt.POSITIVE, default=1e-6, show_default=True, help="Relative gap to claim.")
@_json
def drill_(generator: str, solver: str, problems: int, first_seed: int, tol: float, json_file: Path | None) -> None:
    """Solve random problems and let the independent checker judge every claim.

    Hostile problems are small, with degenerate samples, graphs and scales; varied ones look like data. Counts wrong
    claims of optimality, unhandled exceptions, NumPy warnings, gaps that the checker does not confirm, IRLS descents
    that rise, and wrong verdicts on corrupted W; exits with status 0 only if all counts are zero. A problem is
    recreated by hostile_problem(seed) in llr_cvx/instances/drill.py or varied_problem(seed) in varied.py beside it.
    """
    report = Report()
    for report in drill(problems, SOLVERS[solver], tol, first_seed, generator):
        if report.problems % 50 == 0:
            click.echo(f"{report.problems} problems, {len(report.findings)} finding(s)", err=True)
    click.echo(str(report))
    counts = {kind: report.count(kind) for kind in Report.KINDS}
    least, share = report.slowest_tenth
    slowest = {"seconds": least, "share": share}
    _save(json_file, asdict(report) | {"solver": solver, "counts": counts, "slowest_tenth": slowest})
    raise SystemExit(1 if report.findings else 0)
