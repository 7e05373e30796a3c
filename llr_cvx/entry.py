"""The entry point of `llr-cvx`: an interrupt, a stop or a lost output ends the command in one line.

It imports next to nothing before it answers signals: loading the rest takes a second or two.
"""

from __future__ import annotations

import errno
import os
import signal
import sys

TYPE_CHECKING = False  # as in typing, which is not imported for the same reason
if TYPE_CHECKING:
    from typing import Any, NoReturn

#: What is said when a signal ends the command; its exit status is 128 + the signal, as in a shell.
_WORDS = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}
#: The exit status after such a signal. Seconds after which it is looked whether its exception was lost.
_stopped: list[int] = []
_AGAIN = 0.5


def main(prog_name: str = "llr-cvx") -> NoReturn:
    """Run the command line; `prog_name` is what its help calls it."""
    for number in _WORDS:
        if signal.getsignal(number) != signal.SIG_IGN:  # as under nohup
            signal.signal(number, _stop)
    output = sys.stdout
    code: Any
    try:
        try:
            code = _run(prog_name)
        except SystemExit as ended:
            code = ended.code
        except Exception:
            if not _stopped:
                raise
        if _stopped:  # compiled code may have made something else of the exception
            code = _stopped[0]
        if sys.stdout is not output:  # click puts a silent stream in the place of one whose reader has gone
            raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))
        output.flush()
    except OSError as error:  # without a name: a reader that has gone, or no space left where the output goes
        nameless = error.errno is not None and error.filename is None
        _say(f"cannot write standard output: {error.strerror}" if nameless else str(error))
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what is left in the buffer is lost without more words
        sys.exit(1)
    finally:
        if _stopped and hasattr(signal, "setitimer"):
            signal.setitimer(signal.ITIMER_REAL, 0.0)
    sys.exit(code)


def _run(prog_name: str) -> int:
    """The exit status of the command, whose errors are shown."""
    import click

    from llr_cvx.cli import main as command

    try:
        result = command.main(prog_name=prog_name, standalone_mode=False)
        return result if isinstance(result, int) else 0
    except click.ClickException as error:
        if not _stopped:
            error.show()
        return error.exit_code
    except click.Abort:
        return 1


def _stop(number: int, _frame: Any) -> NoReturn:
    """Unwind: files are closed or removed and workers ended on the way. A second signal does not wait for that."""
    signal.signal(number, signal.SIG_DFL)
    _say(_WORDS[signal.Signals(number)])
    _stopped.append(128 + number)
    if hasattr(signal, "setitimer"):  # not on Windows
        signal.signal(signal.SIGALRM, _stop_again)
        signal.setitimer(signal.ITIMER_REAL, _AGAIN, _AGAIN)
    raise SystemExit(_stopped[0])


def _stop_again(_number: int, _frame: Any) -> None:
    """Where the exception was lost, as in a callback of a weak reference, or became another one: raise it again."""
    handled = sys.exc_info()[1]
    while handled is not None and not isinstance(handled, SystemExit):
        handled = handled.__context__
    if handled is None:  # else it is on its way, and something is being cleaned up
        raise SystemExit(_stopped[0])


def _say(line: str) -> None:
    try:
        os.write(2, f"llr-cvx: {line}\n".encode())
    except OSError:  # nobody is listening
        return
