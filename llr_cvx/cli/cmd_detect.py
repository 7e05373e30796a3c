"""`llr-cvx detect`: which rows of one table are outliers relative to another, and why."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any

import click
from click.core import ParameterSource

from llr_cvx.archive import replacing
from llr_cvx.cli import options as opt
from llr_cvx.detection.estimator import LLRDetector
from llr_cvx.detection.explanation import Explanation
from llr_cvx.detection.screening import ROW_NUMBERING, SCALINGS, Detection, detect, threshold_rule
from llr_cvx.detection.selection import LLRDetectorCV
from llr_cvx.detection.tables import read_pair
from llr_cvx.proofs.certificate import shown_gap
from llr_cvx.report.page import render_report
from llr_cvx.solution import SolverError

#: With at least this many pooled rows, iterations are reported as they run.
VERBOSE_MIN_ROWS = 1500
#: A proven interval within this distance of log r is printed as log r +- that distance.
MAX_SYMMETRIC_REACH = 0.01
#: Options that name an output file.
OUTPUT_OPTIONS = {"out": "--out", "report": "--report", "json_file": "--json"}


@click.command()
@click.option(
    "--inliers",
    required=True,
    metavar="FILE",
    help=f"Rows known to be good: {opt.TABLES}, with a header line; at least 20 rows.",
)
@click.option("--test", required=True, metavar="FILE", help="Rows to check, with the same columns in any order.")
@click.option("--id", "id_column", metavar="NAME", help="Column of unique row names; not a feature.")
@click.option("--drop", multiple=True, metavar="NAME", help="Column to leave out; repeatable.")
@click.option(
    "--scale",
    type=click.Choice(list(SCALINGS)),
    default="standard",
    show_default=True,
    help="Scale features by the inliers' mean and deviation, median and quartiles, or range.",
)
@click.option(
    "--neighbors",
    "-k",
    type=click.IntRange(min=1),
    default=5,
    show_default=True,
    help="K of the similarity graph.",
)
@click.option(
    "--sigma", type=opt.Width(), default="median", show_default=True, help="Gaussian width of the similarity."
)
@click.option("--lambda1", type=opt.NOT_NEGATIVE, default=0.1, show_default=True, help="Coupling of similar rows.")
@click.option("--lambda2", type=opt.NOT_NEGATIVE, default=1.0, show_default=True, help="Sparsity of the explanations.")
@click.option(
    "--choose-lambda",
    is_flag=True,
    help="Choose lambda1 from a grid by the likelihood of held-out rows (5 folds).",
)
@click.option(
    "--tau",
    type=opt.POSITIVE,
    help="Call rows with density ratio r < TAU outliers. Ordinary rows sit near r = n/n' (n test rows, n' "
    "inliers), not near 1: choose TAU well below n/n'.",
)
@click.option(
    "--contamination",
    type=float,
    callback=opt.share,
    help="Call this share of the test rows outliers: above 0, at most 0.5 (0.05 for 5 %).",
)
@click.option("--intercept", is_flag=True, help="Add a constant feature.")
@click.option(
    "--solver",
    type=click.Choice(["fast", "irls", "exact"]),
    default="fast",
    show_default=True,
    help="The production solver, IRLS alone, or the same model in CVXPY.",
)
@click.option("--tol", type=opt.POSITIVE, default=1e-8, show_default=True, help="Relative duality gap to prove.")
@click.option("--top", type=click.IntRange(min=0), default=20, show_default=True, help="Outliers to print.")
@click.option("--out", metavar="FILE", help="Write the scores of all test rows as CSV.")
@click.option("--report", metavar="FILE", help="Write a self-contained HTML page.")
@click.option("--json", "json_file", metavar="FILE", help="Write everything as JSON.")
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> None:
    """Find and explain the outliers of a table, given a table of rows known to be good.

    Each test row gets a density ratio r (low means outlier), a proven interval for r, and the few features behind
    it. Without --tau or --contamination, rows below the lower fence of the test rows' own scores are outliers.

    Columns are matched by name, and every remaining column is a feature; both files are scaled by the inliers
    (--scale). Rows are named by their --id, or by their number in the file, counted from 1 without the header line.
    `llr-cvx verify` reads the same files with the same options, but scales only on request.

    \b
    Examples:
      llr-cvx detect --inliers good.csv --test new.csv
      llr-cvx detect --inliers good.csv --test new.csv --id serial --drop date --report page.html
      llr-cvx detect --inliers good.csv --test new.csv --contamination 0.05 --out scores.csv --json all.json

    Files are written only if the whole run succeeds; existing files are replaced.
    """
    if options["tau"] is not None and options["contamination"] is not None:
        raise click.UsageError("--tau and --contamination contradict each other: give one of them")
    if options["choose_lambda"] and ctx.get_parameter_source("lambda1") is not ParameterSource.DEFAULT:
        raise click.UsageError("--lambda1 and --choose-lambda contradict each other: give one of them")
    if options["lambda1"] == 0 and options["lambda2"] == 0 and not options["choose_lambda"]:
        raise click.UsageError("--lambda1 and --lambda2 are both 0: at least one of them must be positive")
    outputs = {key: options[key] for key in OUTPUT_OPTIONS if options[key] is not None}
    for key, path in outputs.items():
        if path == "-":
            raise click.UsageError(f"{OUTPUT_OPTIONS[key]} writes a file, not standard output: give a file name, not -")
    report = outputs.get("report", "")
    if report and Path(report).suffix.lower() not in (".html", ".htm"):
        raise click.UsageError(f"--report writes an HTML page: {report} must end in .html")
    try:
        _check_outputs(list(outputs.values()), [options["inliers"], options["test"]])
        run = _run(options)
        run.notes.extend(opt.row_name_notes(run.inliers, run.test))
        _write(run, outputs)
    except (ValueError, TypeError, OSError, SolverError) as error:
        raise click.ClickException(str(error)) from error
    _print(run, options["top"])
    for path in outputs.values():
        click.echo(f"wrote {path}", err=True)


def _run(options: dict[str, Any]) -> Detection:
    inliers, test = read_pair(options["inliers"], options["test"], options["id_column"], options["drop"])
    rows = len(inliers.ids) + len(test.ids)
    click.echo(f"{len(inliers.ids)} inliers, {len(test.ids)} test rows, {len(test.columns)} features", err=True)
    shared = {
        "n_neighbors": options["neighbors"],
        "sigma": options["sigma"],
        "threshold": options["tau"],
        "contamination": options["contamination"],
        "fit_intercept": options["intercept"],
        "solver": options["solver"],
        "tol": options["tol"],
        "verbose": rows >= VERBOSE_MIN_ROWS,
    }
    if options["choose_lambda"]:
        chooser = LLRDetectorCV(lambda2s=[options["lambda2"]], **shared)
        run = detect(inliers, test, chooser, options["scale"], progress=lambda said: click.echo(said, err=True))
        click.echo(str(chooser.curve_), err=True)
        if not chooser.curve_.informative:
            run.notes.append(
                "no lambda1 separates held-out test rows from inliers better than chance: outliers are few or none"
            )
        return run
    detector = LLRDetector(lambda1=options["lambda1"], lambda2=options["lambda2"], **shared)
    return detect(inliers, test, detector, options["scale"])


def _check_outputs(outputs: Sequence[str], inputs: Sequence[str]) -> None:
    """Check, before any work, that outputs can be created and overwrite neither an input nor one another."""
    taken = [Path(path).resolve() for path in inputs]
    for path in outputs:
        target = Path(path).resolve()
        if target in taken:
            raise ValueError(f"{path} is already the name of an input or of another output")
        if target.is_dir() or not target.parent.is_dir():
            raise ValueError(f"cannot write {path}: it is a directory, or the directory for it does not exist")
        taken.append(target)


def _write(run: Detection, outputs: dict[str, str]) -> None:
    """Write every output to a temporary file first; move them into place only when all are written."""
    with ExitStack() as stack:
        for kind, path in outputs.items():
            stream: IO[str] = stack.enter_context(replacing(path, "w", encoding="utf-8", newline=""))
            if kind == "out":
                run.write_scores(stream)
            elif kind == "report":
                stream.write(render_report(run))
            else:
                json.dump(run.as_dict() | _choice(run), stream, indent=1, allow_nan=False)
                stream.write("\n")
            stream.flush()


def _choice(run: Detection) -> dict[str, Any]:
    """How the lambdas were chosen, if they were not given."""
    if not isinstance(run.detector, LLRDetectorCV):
        return {}
    chosen = (run.detector.lambda1_, run.detector.lambda2_)
    return {"choice": {"reason": run.detector.curve_.reason(*chosen), **run.detector.curve_.as_dict()}}


def _print(run: Detection, top: int) -> None:
    solution, found = run.detector.solution_, run.explanations
    for note in run.notes:
        click.echo(f"note: {note}", err=True)
    rule = threshold_rule(run.detector)
    for choice in _choice(run).values():
        click.echo(choice["reason"])
    click.echo(
        f"{len(found)} of {len(run.test.ids)} test rows are outliers (threshold on log r: "
        f"{run.detector.offset_:.4g}, {rule})"
    )
    if found[:top]:
        click.echo(
            f"base: log(n/n') = log({len(run.test.ids)}/{len(run.inliers.ids)}) = {run.base:.4g}; "
            "a row's log r is this plus its contributions"
        )
        if run.test.numbered:
            click.echo(ROW_NUMBERING)
    for e in found[:top]:
        click.echo(
            f"\n#{e.rank} {run.name_of(e.row)}: r = {e.ratio:.4g}, log r = {e.log_ratio:.4g} "
            f"(proven {_interval(e)}{'' if e.certain else ': crosses the threshold'})"
        )
        for reason in e.reasons:
            click.echo(f"    {reason}")
        if not e.reasons:
            click.echo("    no feature selected")
        if e.next_feature:
            click.echo(f"    next: {e.next_feature.feature}, {100 * e.next_feature.distance:.3g} % short of selection")
        if e.shares_with:
            others = [run.name_of(row) for row in e.shares_with[:10]]
            more = e.group_size - 1 - len(others)
            click.echo(f"    same reasons as: {', '.join(others)}{f' and {more} more' if more else ''}")
    if len(found) > top:
        click.echo(f"\n... and {len(found) - top} more")
    click.echo(
        f"\n{solution.solver}: {solution.status}, proven relative gap "
        f"{shown_gap(solution.certificate.relative_gap, '.1e')}, {solution.seconds:.2f} s"
    )


def _interval(e: Explanation) -> str:
    """Both ends, or +- the larger distance if four digits would not distinguish them from log r."""
    low, high = e.interval
    reach = max(high - e.log_ratio, e.log_ratio - low)
    return f"± {_rounded_up(reach)}" if reach <= MAX_SYMMETRIC_REACH else f"{low:.4g} to {high:.4g}"


def _rounded_up(reach: float) -> str:
    """One significant digit, never less than `reach`."""
    if reach <= 0:
        return "0"
    unit = 10.0 ** math.floor(math.log10(reach))
    return f"{math.ceil(reach / unit) * unit:.0e}"
