"""`llr-cvx notebooks`: the course, copied to where a student can work on it."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from llr_cvx import course, extras
from llr_cvx.cli import options as opt


@click.command(name="notebooks")
@click.argument("folder", metavar="DIR", type=click.Path(file_okay=False, path_type=Path))
def command(folder: Path) -> None:
    """Copy the notebooks of the course to DIR, with helpers, solutions and the stored results that they read.

    DIR is made if it does not exist. Nothing is ever overwritten: if a file of the course is there already, nothing
    is copied.

    \b
    Exit 0: copied.    Exit 1: the files cannot be read or written.    Exit 2: bad input, such as a file in the way.
    """
    try:
        names = course.copy(folder)
    except FileExistsError as error:
        raise click.BadParameter(str(error), param_hint="DIR") from None
    except OSError as error:
        raise click.ClickException(f"cannot copy to {folder}: {error.strerror or error}") from None
    if not names:
        raise click.ClickException("this installation has no notebooks: install the wheel or run from a checkout")
    lessons = [name for name in names if name.endswith(".ipynb") and "/" not in name]
    opt.say(
        f"{len(lessons)} notebooks copied to {folder}, {len(names)} files with helpers, solutions and stored results.",
        f"To open them: {extras.pip_install('notebooks')} jupyterlab && jupyter lab {shlex.quote(str(folder))}",
    )
