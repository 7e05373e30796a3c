"""`llr-cvx reproduce`: the paper's figures and tables, and a comparison of detectors, one target each."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from llr_cvx.cli import files
from llr_cvx.cli import options as opt

#: Default number of trials: the paper's 100, fewer for the slow targets, none where nothing is drawn.
DEFAULT_TRIALS = {
    "table1": 0, "figure1": 100, "table2": 100, "variants": 20, "exact": 2, "protocol": 7, "forensics": 5,
    "detectors": 10, "summary": 0,
}  # fmt: skip

#: Targets made of others: the paper's own results, and everything that is said about them.
GROUPS = {
    "all": ("table1", "figure1", "table2"),
    "paper": ("table1", "figure1", "table2", "variants", "exact", "protocol", "forensics", "summary"),
}


@click.command(name="reproduce", context_settings={"show_default": True})
@click.argument("target", type=click.Choice([*DEFAULT_TRIALS, *GROUPS]))
@click.option(
    "--trials",
    type=click.IntRange(min=1),
    help="Trials per cell. [default: 100; variants 20, detectors 10, protocol 7, forensics 5, exact 2]",
)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("results"),
    help="Folder for results; finished trials are stored in its subfolder 'trials'.",
)
@click.option("--jobs", type=int, default=-1, help="Number of processes; -1 for one per core.")
@click.option("--seed", type=click.IntRange(min=0), default=0, help="Random seed.")
@click.option(
    "--backend",
    type=click.Choice(["loky", "dask"]),
    default="loky",
    help="Where trials run: on this machine or on a Dask cluster.",
)
@click.option("--scheduler", metavar="ADDRESS", help="Dask scheduler, for example tcp://10.0.0.1:8786.")
@opt.output("--json", "json_file", help="Write the summary of all targets as JSON.")
def command(
    target: str, trials: int | None, out: Path, jobs: int, seed: int, backend: str, scheduler: str | None,
    json_file: str | None,
) -> None:  # fmt: skip
    """Regenerate the paper's figures and tables, each with its protocol and the printed numbers; compare detectors.

    \b
    figure1   AUC against d for all methods; weights, scores and convergence of LLR
    table1    properties of the methods, from the registry
    table2    mean AUC (sd) on the seven benchmark sets, t-tests, difference from the paper
    variants  Figure 1 with other outliers, and how well planted features are found
    exact     LLR by solve_fast against the exact conic model on a few trials of each set (minutes)
    protocol  which of the choices that the paper leaves open come closest to its baselines (minutes)
    forensics LLR's printed column against every reading of the paper, with leaks and ceilings (minutes)
    detectors LLR beside KNN, LOF, isolation forest and others on 17 public sets (minutes)
    summary   what holds and what does not, from the results of the other targets
    all       figure1, table1 and table2
    paper     all of this except detectors: at most 20 minutes on two cores

    Each trial is stored as soon as it finishes: after an interruption, even by kill -9, the same command resumes
    where it stopped. The numbers depend only on the seed, not on the number of processes.

    \b
    Examples:
      llr-cvx reproduce table2 --trials 5            about a minute, to check that everything works
      llr-cvx reproduce all                          the paper's 100 trials
      llr-cvx reproduce paper                        everything about the paper
      llr-cvx reproduce table2 --backend dask --scheduler tcp://10.0.0.1:8786
    """
    from llr_cvx.experiments.runner import Workers
    from llr_cvx.experiments.session import Setting
    from llr_cvx.experiments.targets import TARGETS

    try:
        workers = Workers(jobs, backend, scheduler)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise click.ClickException(f"cannot create the folder {out}: {error.strerror}") from None
    setting = Setting(out, seed=seed, workers=workers)
    summary: dict[str, Any] = {}
    for name in GROUPS.get(target, (target,)):
        try:
            summary[name] = TARGETS[name](replace(setting, trials=trials or DEFAULT_TRIALS[name]))
        except (ImportError, RuntimeError, ValueError) as error:
            raise click.ClickException(str(error)) from error
        opt.say(_line(name, summary[name], out))
    if json_file:
        files.write_json(json_file, summary)


def _line(name: str, result: dict[str, Any], out: Path) -> str:
    """One line per target: the files written and the main figures."""
    parts = [f"{name}: {', '.join(str(out / file) for file in result['files'])}"]
    if "largest_relative_gap" in result:
        parts.append(f"largest proven gap {result['largest_relative_gap']:.3g} in {result['llr_trials']} LLR trials")
    if "closest" in result:
        parts.append(f"closest distance {result['distance']:.2f}; the default is number {result['default_is_number']}")
    if "failed" in result:
        parts.append(f"failed: {len(result['failed'])}")
    return "; ".join(parts)
