"""A call in a new process: its result, its error, its death."""

from __future__ import annotations

import os

import pytest

from llr_cvx.processes import call_apart


def test_result_and_error_come_back() -> None:
    assert call_apart(divmod, 7, 2) == (3, 1)
    with pytest.raises(ZeroDivisionError):
        call_apart(divmod, 7, 0)
    assert call_apart(os.getppid) == os.getpid()


def test_a_process_that_dies_is_an_error_not_a_hang() -> None:
    """As when the system runs out of memory."""
    with pytest.raises(RuntimeError, match="the process for _exit ended with exit code 3"):
        call_apart(os._exit, 3)
