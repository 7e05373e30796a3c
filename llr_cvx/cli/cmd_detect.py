"""`llr-cvx detect`: which rows of one table are outliers relative to another, and why."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import ExitStack
from decimal import ROUND_CEILING, Context
from pathlib import Path
from typing import IO, Any, get_args

import click

from llr_cvx import validation as check
from llr_cvx.archive import replacing
from llr_cvx.cli import options as opt
from llr_cvx.cli.files import as_json
from llr_cvx.detection.estimator import LLRDetector
from llr_cvx.detection.explanation import Explanation
from llr_cvx.detection.pairs import Missing, TableProblems, read_pair
from llr_cvx.detection.scalers import SCALINGS
from llr_cvx.detection.screening import MIN_INLIERS, ROW_NUMBERING, Detection, detect
from llr_cvx.detection.selection import LLRDetectorCV
from llr_cvx.detection.settings import SETTINGS
from llr_cvx.detection.tables import alike
from llr_cvx.inputs import is_special
from llr_cvx.outputs import is_stdout
from llr_cvx.progress import Descent
from llr_cvx.proofs.certificate import shown_gap
from llr_cvx.report.page import render_report
from llr_cvx.solution import SolverError
from llr_cvx.text import csv_cell, printable

#: Options that decide which rows are outliers; at most one may be given.
DECISIONS = ("threshold", "contamination", "fdr", "false_alarm")
#: The false discovery rate without any of them.
DEFAULT_FDR = 0.1
#: The gap to prove for up to so many pooled rows: at 50,000 rows 1e-8 takes seven times as long as 1e-4, and flags the
#: same rows.
TOL_BY_ROWS = {500: 1e-8, 5_000: 1e-6, math.inf: 1e-4}
#: Options about reading the tables.
FILES = ("inliers", "test", "id_column", "drop", "missing", "sheets", "sep", "decimal", "encoding")
#: A proven interval within this distance of log r is printed as log r +- that distance.
MAX_SYMMETRIC_REACH = 0.01

FORMATS = "CSV, also compressed, Parquet, Feather, Excel or JSON lines; - for standard input"
SHEET_HELP = "Sheet of a workbook, by name or number; twice if the test rows are in another. [default: the first]"
MISSING_HELP = "Refuse missing values, drop their rows, fill in medians, or do so and make absence a feature."
SCALE_HELP = "By the inliers' mean and deviation, quartiles or range; conditional: what other features do not predict."
GRAPH_HELP = "Column that says which rows are similar; repeatable. By default all columns do."
SETTING_HELP = "Penalties: the paper's (lambda1 = 0.1, lambda2 = 1) or those for detection (0.5, 0.01: finds more)."
FDR_HELP = (
    f"Largest expected share of false alarms among the outliers. [default: {DEFAULT_FDR} from {MIN_INLIERS} inliers on]"
)
THRESHOLD_HELP = "Call rows with density ratio r < TAU outliers; ordinary rows sit near r = n/n', not near 1."


@click.command(context_settings={"show_default": True})
@click.option(
    "--inliers", required=True, metavar="FILE", help=f"Rows known to be good, 20 or more for p-values: {FORMATS}."
)
@click.option("--test", required=True, metavar="FILE", help="Rows to check; other columns than those are ignored.")
@click.option("--sep", help="Separator of the cells of a text file. [default: the most frequent of , ; | and tab]")
@click.option("--decimal", default=".", help="Decimal point of a text file, such as a comma.")
@click.option("--encoding", help="Encoding of text that is not UTF-8, such as latin-1.")
@click.option("--sheet", "sheets", multiple=True, metavar="NAME", help=SHEET_HELP)
@click.option("--missing", type=click.Choice(get_args(Missing)), default="refuse", help=MISSING_HELP)
@click.option("--id", "id_column", metavar="NAME", help="Column of unique row names; not a feature.")
@click.option("--drop", multiple=True, metavar="NAME", help="Column to leave out; repeatable.")
@click.option("--scale", type=click.Choice(list(SCALINGS)), default="standard", help=SCALE_HELP)
@click.option("--neighbors", "-k", "n_neighbors", type=click.IntRange(min=1), default=5, help="K of the graph.")
@click.option("--sigma", type=opt.width, metavar="NUMBER|median", default="median", help="Gaussian width of the graph.")
@click.option("--graph-column", "graph_columns", multiple=True, metavar="NAME", help=GRAPH_HELP)
@click.option("--setting", type=click.Choice(list(SETTINGS)), default="paper", help=SETTING_HELP)
@click.option("--lambda1", type=opt.NOT_NEGATIVE, help="Coupling of similar rows, instead of that of --setting.")
@click.option("--lambda2", type=opt.NOT_NEGATIVE, help="Sparsity of the explanations, instead of that of --setting.")
@click.option("--choose-lambda", is_flag=True, help="Choose lambda1 by the likelihood of held-out rows (5 folds).")
@click.option("--fdr", type=float, callback=opt.share, help=FDR_HELP)
@click.option("--false-alarm", type=float, callback=opt.share, help="Call rows with p at most this outliers.")
@click.option("--seed", "random_state", type=int, default=0, help="Which inliers are held out for p-values.")
@click.option("--threshold", "--tau", "threshold", type=opt.POSITIVE, metavar="TAU", help=THRESHOLD_HELP)
@click.option("--contamination", type=float, callback=opt.share, help="Call this share of rows outliers (0.05: 5 %).")
@click.option("--intercept", "fit_intercept", is_flag=True, help="Add a constant feature.")
@click.option("--solver", type=click.Choice(["fast", "irls", "exact"]), default="fast")
@click.option("--tol", type=opt.POSITIVE, help="Relative duality gap to prove. [default: 1e-8; 1e-4 for many rows]")
@click.option("--top", type=click.IntRange(min=0), default=20, help="Outliers to print.")
@click.option("--quiet", "-q", is_flag=True, help="No notes and no progress.")
@click.option("--verbose", "-v", is_flag=True, help="The solver's trace, and the time of each step.")
@opt.output("--out", help="Write the scores of all test rows with their reasons: .csv, .parquet or .xlsx.")
@opt.output("--report", help="Write a self-contained HTML page.")
@opt.output("--json", "json_file", help="Write everything as JSON.")
def command(**options: Any) -> None:
    """Find and explain the outliers of a table, given a table of rows known to be good.

    Each test row gets a density ratio r (low means outlier), a proven interval for r, a p-value, and the few features
    behind it. Part of the inliers is held out at random for the p-values; outliers are told from them at a false
    discovery rate of 0.1, unless --false-alarm, --threshold or --contamination says otherwise. With fewer than 20
    inliers, rows are ranked only. What exactly is guaranteed: docs/detect.md.

    Columns are matched by name, up to case and blanks. Numbers, booleans, categories and dates like 2024-12-31 are
    features; both files are encoded and scaled by the inliers (--scale). Rows are named by their --id, or by their
    number in the file, counted from 1 without the header line. `llr-cvx verify` reads numeric files with the same
    options, but scales only on request.

    \b
    Examples:
      llr-cvx detect --inliers good.csv --test new.csv
      llr-cvx detect --inliers good.csv --test new.csv --id serial --drop date --report page.html
      llr-cvx detect --inliers good.xlsx --test new.csv.gz --decimal , --missing median --out scores.xlsx

    Files are written only if the whole run succeeds; existing files are replaced.
    """
    outputs = {kind: options[kind] for kind in ("out", "report", "json_file") if options[kind] is not None}
    _check(options, outputs)
    start = time.perf_counter()
    try:
        inliers, test, notes = read_pair(**{name: options[name] for name in FILES})
        read = time.perf_counter()
        run = _run(inliers, test, options)
        run.notes[:0] = notes
        fitted = time.perf_counter()
        _write(run, outputs)
    except TableProblems as error:
        opt.say(*f"Error: {error}".split("\n"), err=True)
        raise click.exceptions.Exit(1) from error
    except (ValueError, TypeError, OSError, ImportError, SolverError) as error:
        raise click.ClickException(str(error)) from error
    written = time.perf_counter()
    if not options["quiet"]:
        opt.say(*(f"note: {note}" for note in run.notes), err=True)
    opt.say(*_lines(run, options["top"]))
    if options["verbose"]:
        steps = f"reading {read - start:.2f} s; fitting and explaining {fitted - read:.2f} s"
        opt.say(f"{steps}; writing {written - fitted:.2f} s", err=True)
    if not options["quiet"]:
        opt.say(*(f"wrote {'standard output' if is_stdout(path) else path}" for path in outputs.values()), err=True)


def _check(options: dict[str, Any], outputs: dict[str, str]) -> None:
    """Refuse, before any work, options that contradict each other."""
    given = [f"--{name.replace('_', '-')}" for name in DECISIONS if options[name] is not None]
    if options["choose_lambda"] and options["lambda1"] is not None:
        given = ["--lambda1", "--choose-lambda"]
    if len(given) > 1:
        raise click.UsageError(f"{' and '.join(given)} contradict each other: give one of them")
    if options["lambda1"] == options["lambda2"] == 0:
        raise click.UsageError("--lambda1 and --lambda2 are both 0: at least one of them must be positive")
    if len(options["sheets"]) > 2:
        raise click.UsageError("--sheet can be given twice, for the inliers and for the test rows")
    if options["inliers"] == options["test"] == "-":
        raise click.UsageError("--inliers and --test cannot both be standard input")
    taken = {Path(options[name]).resolve() for name in ("inliers", "test")}
    if len(taken) < 2 and len(set(options["sheets"])) < 2 and Path(options["test"]).is_file():
        raise click.UsageError(
            "--inliers and --test are one file: give another, or --sheet twice for two of its sheets"
        )
    for kind, path in outputs.items():
        if is_stdout(path) or is_special(path):
            continue
        ending, place = Path(path).suffix.lower(), Path(path).resolve()
        if kind == "report" and ending not in ("", ".html", ".htm"):
            raise click.UsageError(f"--report writes an HTML page: {path} must end in .html")
        if kind == "out" and ending not in ("", ".csv", ".parquet", ".xlsx"):
            raise click.UsageError(f"--out writes CSV, Parquet or Excel: {path} must end in .csv, .parquet or .xlsx")
        if place in taken:
            raise click.UsageError(f"{path} is already the name of an input or of another output")
        taken.add(place)


def _run(inliers: Any, test: Any, options: dict[str, Any]) -> Detection:
    """Fit with the options given; the setting and the number of rows decide about others."""
    given = SETTINGS[options["setting"]] | {name: value for name, value in options.items() if value is not None}
    names, rows, undecided, fit = list(inliers), len(inliers) + len(test), "", dict[str, Any]()
    columns = [alike(names, name) or name for name in options["graph_columns"]]
    given["graph_columns"] = check.columns(columns or None, len(names), names, "--graph-column").tolist()
    given["lambda2s"] = [given["lambda2"]]
    given["new_rows"] = None  # there are none, and one fit instead of two
    given.setdefault("tol", next(tol for most, tol in TOL_BY_ROWS.items() if rows <= most))
    given["verbose"] = options["verbose"] or (False if options["quiet"] else Descent(given["tol"]))
    if given.keys().isdisjoint(DECISIONS):
        given["fdr"] = DEFAULT_FDR if len(inliers) >= MIN_INLIERS else None
        few = f"{len(inliers)} inlier(s) are too few to hold some out for p-values; from {MIN_INLIERS} on there would "
        undecided = "" if given["fdr"] else f"{few}be some, or give --threshold or --contamination"
    detector = LLRDetectorCV() if options["choose_lambda"] else LLRDetector()
    if options["choose_lambda"] and not options["quiet"]:
        fit["progress"] = lambda said: opt.say(said, err=True)
    detector.set_params(**{name: given[name] for name in detector.get_params() if name in given})
    return detect(inliers, test, detector, options["scale"], undecided, options["missing"], **fit)


def _write(run: Detection, outputs: dict[str, str]) -> None:
    """Write every output to a temporary file first; move them into place only when all are written."""
    with ExitStack() as stack:
        for kind, path in outputs.items():
            stream: IO[bytes] = stack.enter_context(replacing(path))
            if kind == "out":
                _write_scores(run.scores(), stream, Path(path).suffix.lower())
            else:
                stream.write(render_report(run).encode() if kind == "report" else as_json(run.as_dict()))


def _write_scores(scores: Any, stream: IO[bytes], ending: str) -> None:
    """Write a DataFrame by the ending of a name, CSV if in doubt; spreadsheets must not find formulas in names."""
    if ending == ".parquet":
        scores.to_parquet(stream, index=False)
        return
    for name in ("id", "reasons"):
        scores[name] = scores[name].map(csv_cell)
    if ending == ".xlsx":
        scores["id"] = scores["id"].map(printable)  # workbooks hold no control characters
        scores.to_excel(stream, index=False, engine="openpyxl")
    else:
        stream.write(scores.to_csv(index=False, lineterminator="\n").encode())


def _lines(run: Detection, top: int) -> Iterator[str]:
    """What is printed: the decision, and the outliers or, if there is none, the rows with the lowest scores."""
    solution, shown = run.detector.solution_, run.worst[:top]
    if run.chosen:
        yield run.chosen
    yield from run.decision()
    n, rows = int((solution.problem.y < 0).sum()), len(solution.problem.y)
    yield f"base: log(n/n') = log({n}/{rows - n}) = {run.base:.4g}; a row's log r is this plus its contributions"
    if run.numbered:
        yield ROW_NUMBERING
    if shown and not run.explanations:
        yield f"the {len(shown)} lowest scores:" if len(shown) > 1 else "the lowest score:"
    for e in shown:
        p = f"p = {run.pvalues[e.row - len(run.inliers)]:.3g}, " if run.held_out else ""
        part = f"base {'-' if e.log_ratio < run.base else '+'} {abs(e.log_ratio - run.base):.4g}"
        proof = f"proven {_interval(e)}{'' if e.certain else ': crosses the threshold'}"
        yield ""
        yield f"#{e.rank} {run.name_of(e.row)}: {p}r = {e.ratio:.4g}, log r = {e.log_ratio:.4g} = {part} ({proof})"
        yield from e.details()
        if others := [run.name_of(row) for row in e.shares_with[:10]]:
            more = e.group_size - 1 - len(others)
            yield f"    same reasons as: {', '.join(others)}{f' and {more} more' if more else ''}"
    if len(run.explanations) > top:
        yield from ("", f"... and {len(run.explanations) - top} more")
    gap = shown_gap(solution.certificate.relative_gap, ".1e")
    proof = f"proven relative gap {gap} (asked for {run.detector.tol:.0e})"
    yield from ("", f"{solution.solver}: {solution.status}, {proof}, {solution.seconds:.2f} s")


def _interval(e: Explanation) -> str:
    """Both ends, or +- the larger distance, rounded up, if four digits would not distinguish them from log r."""
    low, high = e.interval
    reach = max(high - e.log_ratio, e.log_ratio - low, 0.0)
    if reach > MAX_SYMMETRIC_REACH:
        return f"{low:.4g} to {high:.4g}"
    return f"± {float(Context(1, ROUND_CEILING).create_decimal_from_float(reach)):.0e}" if reach else "± 0"
