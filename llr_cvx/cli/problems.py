"""The problem selected by the options of `llr-cvx verify`: saved, from two tables, or synthetic."""

from __future__ import annotations

from typing import Any

import click
from sklearn.base import clone

from llr_cvx.cli.options import say
from llr_cvx.datasets import synthetic_of_size
from llr_cvx.detection.matrices import read_samples
from llr_cvx.detection.pairs import row_name_note
from llr_cvx.detection.scalers import SCALINGS
from llr_cvx.problem import Problem


def read_problem(options: dict[str, Any]) -> tuple[str, Problem]:
    """The selected problem, preceded by a description of its source."""
    lambdas = {k: options[k] for k in ("lambda1", "lambda2") if options[k] is not None}
    graph = {k: options[k] for k in ("n_neighbors", "sigma") if options[k] is not None}
    path, inliers, test = options["problem"], options["inliers"], options["test"]
    table = [f"--{k}" for k in ("id", "drop", "scale") if options[k]]
    if path is not None:
        if inliers or test or graph or table:
            raise click.UsageError(
                f"{path} holds samples and graph already: leave out --inliers, --test, --neighbors, --sigma, --id, "
                "--drop and --scale"
            )
        return str(path), Problem.load(path).with_lambdas(**lambdas)
    if bool(inliers) != bool(test):
        raise click.UsageError("--inliers and --test go together: give both files")
    if inliers:
        columns, *samples = read_samples(inliers, test, [*options["drop"], *filter(None, [options["id"]])])
        for note in row_name_note({name: [X[:, k] for X in samples] for k, name in enumerate(columns)}):
            say(f"note: {note}", err=True)
        scale = options["scale"] or "none"
        source = f"{inliers} + {test}, {'as they are' if scale == 'none' else f'{scale} scaling'}"
        X_inlier, X_test = samples
        if SCALINGS[scale] is not None:
            scaler = clone(SCALINGS[scale]).fit(X_inlier)
            X_inlier, X_test = scaler.transform(X_inlier), scaler.transform(X_test)
        return source, Problem.from_samples(X_inlier, X_test, **lambdas, **graph)
    if table:
        raise click.UsageError(f"{table[0]} is about the columns of two files: give --inliers and --test")
    X_inlier, X_test, _ = synthetic_of_size(options["size"], options["dim"], options["seed"])
    return f"synthetic, seed {options['seed']}", Problem.from_samples(X_inlier, X_test, **lambdas, **graph)


def numbering(problem: Problem) -> str:
    """One line that explains the row numbers."""
    n, N = int((problem.y > 0).sum()), problem.shape[0]
    if not (problem.y[:n] > 0).all():
        return f"rows: 0 to {N - 1}, as in the saved problem"
    return f"rows: 0 to {n - 1} are the known inliers, {n} to {N - 1} the test samples"
