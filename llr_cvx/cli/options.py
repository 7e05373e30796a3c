"""Option types and checks shared by subcommands; bad values are refused before any file is read."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import click

from llr_cvx.outputs import check_output, is_stdout
from llr_cvx.text import printable

#: Where a click context keeps the option that writes to standard output.
_PIPED = "llr_cvx.cli.piped"


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


def width(value: str) -> float | str:
    """Read a positive number, or the word "median"."""
    try:
        return value if value == "median" else POSITIVE.convert(value, None, None)
    except click.BadParameter:
        raise click.BadParameter(f'a number > 0 or "median" is needed, got {value!r}') from None


def share(_ctx: click.Context, param: click.Parameter, value: float | None) -> float | None:
    """Check a rate between 0 and 1, or a contamination of at most 0.5; percentages are a common mistake."""
    half = param.name == "contamination"
    if value is None or (0 < value <= 0.5 if half else 0 < value < 1):
        return value
    hint = f"; for {value:g} % write {value / 100:g}" if 0.5 < value <= (50 if half else 99) else ""
    words = "a share above 0 and at most 0.5" if half else "between 0 and 1"
    raise click.BadParameter(f"{value:g} is not {words}{hint}")


def writable(ctx: click.Context, param: click.Parameter, value: Any) -> Any:
    """Check, before any work, that an output can be written, and that only one goes to standard output."""
    if value is None:
        return None
    try:
        check_output(value)
    except OSError as error:
        raise click.BadParameter(str(error)) from None
    name = param.opts[0]
    if is_stdout(value) and ctx.meta.setdefault(_PIPED, name) != name:
        raise click.UsageError(f"{ctx.meta[_PIPED]} and {name} both write to standard output: give one of them a file")
    return value


def output(*names: str, help: str) -> Callable[[Any], Any]:
    """An option that names an output file; "-" is standard output."""
    return click.option(*names, metavar="FILE", callback=writable, help=f"{help} (- for standard output)")


def say(*lines: str, err: bool = False) -> None:
    """Print lines for people: to standard error if an output goes to standard output.

    Control characters and line ends inside a line, which can only come from names in the input, are escaped.
    """
    context = click.get_current_context(silent=True)
    for line in lines:
        click.echo(printable(line), err=err or (context is not None and _PIPED in context.meta))
