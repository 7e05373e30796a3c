"""The command `llr-cvx`; each subcommand lives in the module of its name and is imported only when called."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import click

from llr_cvx.text import printable

#: Subcommand -> one line of help. The module llr_cvx.cli.<name> holds a click command called `command`.
COMMANDS = {
    "verify": "Solve a problem with every solver, certify the answers and print the proof.",
    "detect": "Find and explain the outliers of a table, given a table of known inliers.",
    "reproduce": "Regenerate the figures and tables of the paper.",
    "bench": "Measure the solvers: time to a proof, beside general conic solvers.",
    "arena": "Run solvers in any language over certified problems and judge every answer.",
    "instances": "List, export and regenerate the library of certified problems.",
    "notebooks": "Copy the notebooks of the course to a folder.",
    "doctor": "Say what is installed, and test in seconds that it works.",
}


class _Lazy(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        command: click.Command = import_module(f"llr_cvx.cli.cmd_{name}").command
        return command

    def invoke(self, ctx: click.Context) -> Any:
        """Run the subcommand; names in the messages of errors must not control the terminal."""
        try:
            return super().invoke(ctx)
        except click.ClickException as error:
            vars(error).update(message=printable(error.message))
            raise
        except OSError as error:  # a file that cannot be read or written; one without a name is told by `llr_cvx.entry`
            if error.errno is not None and error.filename is None:
                raise
            raise click.ClickException(printable(error)) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=_Lazy, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="llr-cvx")
def main() -> None:
    """Localized logistic regression: outliers found, explained and proved optimal."""
