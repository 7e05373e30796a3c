"""Option types and checks shared by subcommands; bad values are refused before any file is read."""

from __future__ import annotations

import math
import shlex
from pathlib import Path
from typing import Any

import click

from llr_cvx.detection.tables import Frame, row_name_columns

#: Table formats, for the help of --inliers.
TABLES = "CSV (comma, semicolon, tab or bar) or Parquet"


class Finite(click.FloatRange):
    """A finite number in a range; `click.FloatRange` alone accepts nan and inf."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Read the number."""
        number = float(super().convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"{value} is not a finite number", param, ctx)
        return number


#: Numbers > 0, and numbers >= 0.
POSITIVE, NOT_NEGATIVE = Finite(min=0, min_open=True), Finite(min=0)


class Width(click.ParamType):  # type: ignore[type-arg]
    """A positive number or the word "median"."""

    name = "NUMBER|median"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float | str:
        """Read the number."""
        if value == "median":
            return "median"
        try:
            return POSITIVE.convert(value, param, ctx)
        except click.BadParameter:
            self.fail(f'a number > 0 or "median" is needed, got {value!r}', param, ctx)


def share(_ctx: click.Context, _param: click.Parameter, value: float | None) -> float | None:
    """Check a share in (0, 0.5]; percentages are a common mistake."""
    if value is None or 0 < value <= 0.5:
        return value
    hint = f"; for {value:g} % write {value / 100:g}" if 0.5 < value <= 50 else ""
    raise click.BadParameter(f"{value:g} is not a share above 0 and at most 0.5{hint}")


def writable(_ctx: click.Context, _param: click.Parameter, value: str | None) -> str | None:
    """Check that the folder of an output file exists."""
    if value is not None and not Path(value).resolve().parent.is_dir():
        raise click.BadParameter(f"the folder of {value} does not exist")
    return value


def row_name_notes(*frames: Frame) -> list[str]:
    """Notes on columns that merely number the rows: used as features, they can hide the outliers."""
    names = dict.fromkeys(name for frame in frames for name in row_name_columns(frame))
    return [
        f"column {name!r} looks like row names: --id {shlex.quote(name)} to use it as such, "
        f"--drop {shlex.quote(name)} to ignore it"
        for name in names
    ]
