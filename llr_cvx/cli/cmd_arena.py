"""`llr-cvx arena`: run solvers in any language over problems with a proven optimum, and judge every answer."""

from __future__ import annotations

import json
import os
import shlex
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from llr_cvx import archive
from llr_cvx.arena import compare as comparison
from llr_cvx.arena import tables
from llr_cvx.arena.entries import Entry, command_entry, python_entry
from llr_cvx.arena.page import render_arena
from llr_cvx.arena.sandbox import Limits
from llr_cvx.arena.tournament import DRY_RUN, Case, Plan, drill_cases, file_cases, library_cases, run_plan
from llr_cvx.cli import files
from llr_cvx.cli import options as opt
from llr_cvx.experiments.runner import Workers
from llr_cvx.extras import needed
from llr_cvx.instances.drill import GENERATORS
from llr_cvx.outputs import is_stdout


@click.group(name="arena", invoke_without_command=True, context_settings={"show_default": True})
@click.option(
    "--solver",
    "solvers",
    multiple=True,
    metavar="NAME",
    help="FILE.py:FUNCTION, MODULE:FUNCTION, or built in; repeatable.",
)
@click.option(
    "--command", "commands", multiple=True, help="A program, as 'julia mine.jl {problem} {out}'; repeatable. No shell."
)
@click.option("--only", "names", multiple=True, metavar="INSTANCE", help="Only this instance; repeatable.")
@click.option("--drill", type=click.IntRange(min=1), help="This many random problems instead of the library.")
@click.option("--generator", type=click.Choice(tuple(GENERATORS)), default="hostile", help="For --drill.")
@click.option("--first-seed", type=click.IntRange(min=0), default=0, help="For --drill.")
@click.option(
    "--problem",
    "problems",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A saved problem (.npz) of your own instead of the library; repeatable.",
)
@click.option("--dry-run", is_flag=True, help="Only three small instances, to see whether everything works.")
@click.option("--tol", type=opt.POSITIVE, default=1e-6, help="Relative gap that must be proved.")
@click.option("--time-limit", type=opt.POSITIVE, default=120.0, help="Seconds for each problem.")
@click.option("--memory-limit", type=opt.POSITIVE, default=4.0, help="GiB for an entry.")
@click.option("--threads", type=click.IntRange(min=1), default=1, help="BLAS threads of an entry.")
@click.option("--repeats", type=click.IntRange(min=1), default=1, help="Runs of each, in turns.")
@click.option("--jobs", type=int, default=1, help="Runs at a time; times are then not comparable.")
@click.option("--scheduler", metavar="ADDRESS", help="Dask scheduler to run on, for example tcp://10.0.0.1:8786.")
@opt.output("--json", "json_file", help="Write the results as JSON here.")
@opt.output("--html", "html_file", help="Write a page with plots here.")
@opt.output("--markdown", "markdown_file", help="Write the tables as Markdown here.")
@click.pass_context
def command(ctx: click.Context, /, **given: Any) -> None:
    """Run solvers over problems with a proven optimum, and judge every answer.

    A solver in Python is a function solve(problem) that returns W, or (W, alpha, U) with a dual point of its own, or
    yields iterates. Built in: exact (Clarabel), irls, fast, algorithm1, admm, subgradient, and the name of any conic
    solver that CVXPY has installed. A program in another language reads the folder {problem} (samples.csv, edges.csv,
    instance.json, ...) and writes W.csv, W.npy or W.json to the folder {out}.

    Each runs in a process of its own, with limits, and is ended with all its children. No word of it is believed: J
    is recomputed from W and its iterates and compared with a proven lower bound of the optimum. A run with --json
    that was interrupted goes on where it stopped when the same command is given again.

    \b
    proved        J(W) - J* <= tol J(W) is proved
    not proved    how far off W is, at least and at most, and which condition fails
    false claim   what the entry said about its answer is proved to be false
    invalid       no W, or not one of this problem; crash; timeout

    \b
    Exit 0: everything is proved.   Exit 1: something is not.   Exit 2: bad input, nothing was run.

    \b
    Examples:
      llr-cvx arena --solver mine.py:solve --dry-run
      llr-cvx arena --solver mine.py:solve --solver fast --html page.html
      llr-cvx arena --command './mine {problem} {out}' --only paper-d10 --json new.json
      llr-cvx arena compare old.json new.json
    """
    if ctx.invoked_subcommand is not None:
        if given["solvers"] or given["commands"]:
            raise click.UsageError("compare takes files: leave out --solver and --command")
        return
    try:
        if given["html_file"]:  # before any work
            needed("jinja2", "tables", "pages")
        plan = _plan(given)
    except (ValueError, OSError, ImportError) as error:
        raise click.UsageError(str(error)) from None
    json_file = given["json_file"]
    # Where finished runs are kept until the result is written to a file.
    store = None if json_file is None or is_stdout(json_file) else Path(f"{json_file}.part")
    try:
        document = {"command": _as_typed(ctx, given), **run_plan(plan, store)}
    except (ValueError, RuntimeError, OSError) as error:
        raise click.UsageError(str(error)) from None
    opt.say(*tables.terminal(document).splitlines())
    if json_file:
        files.write_json(json_file, document)
    if store:
        store.unlink(missing_ok=True)
    for name, render in (("html", render_arena), ("markdown", tables.markdown)):
        if given[f"{name}_file"]:
            with archive.replacing(given[f"{name}_file"], "w", encoding="utf-8") as stream:
                stream.write(render(document))
    raise SystemExit(0 if all(row["accepted"] for row in document["results"]) else 1)


def _as_typed(ctx: click.Context, given: dict[str, Any]) -> str:
    """The command with its options, to be run again."""
    words = ["llr-cvx", "arena"]
    for option in ctx.command.params:
        if ctx.get_parameter_source(str(option.name)) is ParameterSource.COMMANDLINE:
            value = given[str(option.name)]
            for one in value if option.multiple else [value]:
                words += [option.opts[0], *([] if one is True else [str(one)])]
    return shlex.join(words)


def _plan(given: dict[str, Any]) -> Plan:
    if os.name != "posix":
        raise ValueError("the arena needs Linux or macOS: it runs solvers as processes with limits")
    entries: list[Entry] = [python_entry(name) for name in given["solvers"]]
    entries += [command_entry(line) for line in given["commands"]]
    if not entries:
        raise ValueError("no solver: give --solver FILE.py:FUNCTION or --command 'program {problem} {out}'")
    if len({entry.name for entry in entries}) < len(entries):
        raise ValueError("each solver can be entered once")
    limits = Limits(given["time_limit"], int(given["memory_limit"] * 2**30), given["threads"])
    backend = "dask" if given["scheduler"] else "loky"
    workers = Workers(given["jobs"], backend, given["scheduler"])
    return Plan(entries, _cases(given), given["tol"], given["repeats"], limits, workers)


def _cases(given: dict[str, Any]) -> list[Case]:
    chosen = [name for name in ("names", "drill", "problems", "dry_run") if given[name]]
    if len(chosen) > 1:
        raise ValueError("choose one of --only, --drill, --problem and --dry-run")
    if given["drill"]:
        return drill_cases(given["drill"], given["generator"], given["first_seed"])
    if given["problems"]:
        return file_cases(given["problems"])
    return library_cases(DRY_RUN if given["dry_run"] else tuple(dict.fromkeys(given["names"])))


# ---- compare -------------------------------------------------------------------------------------------------------


@command.command()
@click.argument("before", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("after", required=False, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--clock", type=click.Choice(["wall", "cpu"]), default="wall")
@opt.output("--json", "json_file", help="Write the comparison as JSON here.")
def compare(before: Path, after: Path | None, clock: str, json_file: str | None) -> None:
    """Compare two runs of --json, BEFORE and AFTER: what broke, and what became slower by more than the noise.

    Times are judged if each run has three repeats or more (--repeats 3). Best is one run with both solvers, which
    then run in turns: llr-cvx arena --solver old.py:solve --solver new.py:solve --repeats 5 --json both.json, and
    compare both.json alone.

    Exit 0: nothing broke or became slower.   Exit 1: something did.
    """
    try:
        a, b = (_read(before), _read(after)) if after else comparison.split(_read(before))
        changes, notes = comparison.compare(a, b, "seconds" if clock == "wall" else "cpu_seconds")
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    opt.say(f"{'instance':<18} {'before':<12} {'after':<12} {'time':>7}  verdict")
    for change in changes:
        mark = change.verdict.upper() if change.verdict in ("broken", "slower") else change.verdict
        ratio = "–" if change.ratio is None else f"{change.ratio:.2f}x"
        opt.say(f"{change.instance:<18.18} {change.before:<12} {change.after:<12} {ratio:>7}  {mark}")
    worse = [change.instance for change in changes if change.verdict in ("broken", "slower")]
    for note in notes:
        opt.say(f"note: {note}")
    judged = sum(change.ratio is not None and change.verdict != "unmeasured" for change in changes)
    slower = f"Of {judged} times, none became slower beyond the noise." if judged else "No times were judged."
    opt.say(f"worse: {', '.join(worse)}" if worse else f"Nothing broke. {slower}")
    if json_file:
        files.write_json(json_file, {"changes": [vars(change) for change in changes], "notes": notes, "worse": worse})
    raise SystemExit(1 if worse else 0)


def _read(path: Path) -> dict[str, Any]:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        if not {"conditions", "results"} <= document.keys():
            raise ValueError("it has no results")
    except (ValueError, AttributeError) as error:
        raise ValueError(f"{path} is not a result of llr-cvx arena --json: {error}") from None
    return dict(document)
