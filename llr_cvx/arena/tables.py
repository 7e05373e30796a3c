"""Results as text: the table on the terminal, and Markdown."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from llr_cvx.arena.judge import LEVELS, STATUSES

Result = Mapping[str, Any]

TIMES = tuple(f"{level:.0e}" for level in LEVELS)
COLUMNS = ("instance", "N", "d", "status", "rel. gap", "seconds", *(f"to {t}" for t in TIMES), "monotone", "MB")
LAYOUT = "{:<18.18} {:>5} {:>4}  {:<11} {:>8} {:>9} {:>9} {:>9} {:>9}  {:<8} {:>6}"


def number(value: float | None, how: str) -> str:
    """A number, or a dash for none.

    >>> number(None, ".2f"), number(1.234, ".2f")
    ('–', '1.23')
    """
    return "–" if value is None else format(value, how)


def label(entry: str) -> str:
    """A short name of an entry: without the folder of its file, and with the middle of a long command left out.

    >>> label("/home/me/solvers/mine.py:solve")
    'mine.py:solve'
    """
    file = "{" not in entry and entry.rpartition(":")[0].endswith(".py")
    name = entry.rpartition("/")[2] if file else entry
    return name if len(name) <= 44 else f"{name[:22]}…{name[-21:]}"


def monotone(row: Result) -> str:
    """Whether J of the iterates never rises; "J_eps" if J_epsilon alone never does; a dash without iterates."""
    if row["monotone"] is None:
        return "–"
    return "yes" if row["monotone"] else "J_eps" if row["monotone_smoothed"] else "no"


def cells(row: Result) -> tuple[str, ...]:
    """The entries of the table for one result."""
    times = (number(row["time_to"].get(name), ".3f") for name in TIMES)
    size = f"{row['memory'] / 1e6:.0f}" if row["memory"] else "–"
    gap, seconds = number(row["relative_gap"], ".1e"), f"{row['seconds']:.3f}"
    return (row["instance"], str(row["N"]), str(row["d"]), row["status"], gap, seconds, *times, monotone(row), size)


def terminal(document: Result) -> str:
    """One table per entry, the reasons of its failures, and a summary."""
    lines = []
    for one in document["summary"]:
        rows = [row for row in document["results"] if row["entry"] == one["entry"]]
        lines += [one["entry"], LAYOUT.format(*COLUMNS), *(LAYOUT.format(*cells(row)) for row in rows), ""]
        for row in rows:
            told = [row["reason"]] * (not row["accepted"]) + list(row["notes"])
            lines += [textwrap.fill(f"{row['instance']}: {words}", 104, subsequent_indent="    ") for words in told]
        lines += [_summary(one), ""]
    return "\n".join([*lines, conclusion(document)])


def _summary(one: Result) -> str:
    counts = ", ".join(f"{one[status]} {status}" for status in STATUSES if one[status])
    cost = f"{one['cpu_seconds']:.2f} s of processor time, and {one['judge_seconds']:.2f} s to judge"
    return f"{one['entry']}: {counts}; {one['seconds']:.2f} s, {cost}"


def conclusion(document: Result) -> str:
    """The last line."""
    rows, tol = document["results"], document["conditions"]["tol"]
    proved = sum(row["accepted"] for row in rows)
    if len(rows) == 1:
        words = "The answer is proved" if proved else "The answer is not proved"
    else:
        words = f"{'All' if proved == len(rows) else f'{proved} of'} {len(rows)} answers are proved"
    shared = "" if document["conditions"]["comparable_times"] else "\nTimes are not comparable: runs shared cores."
    return f"{words} to a relative gap of {tol:g}.{shared}"


def markdown(document: Result) -> str:
    """The same for a text file or a pull request."""
    lines = ["# Arena", "", conclusion(document).replace("\n", " "), ""]
    lines += ["```sh", document["command"], "```", ""] if "command" in document else []
    lines += [conditions(document["conditions"]), ""]
    board = [
        [_code(one["entry"]), *(str(one[s]) for s in STATUSES), f"{one['seconds']:.2f}"] for one in document["summary"]
    ]
    lines += _table(["entry", *STATUSES, "seconds"], board)
    for one in document["summary"]:
        rows = [row for row in document["results"] if row["entry"] == one["entry"]]
        lines += ["", f"## {_code(one['entry'])}", "", *_table(list(COLUMNS), [list(cells(row)) for row in rows])]
        failed = [row for row in rows if not row["accepted"]]
        if failed:
            lines += ["", "### Not proved", ""]
            lines += [
                f"- {row['instance']}: **{row['status']}**. {_plain('; '.join([row['reason'], *row['notes']]))}"
                for row in failed
            ]
    return "\n".join(lines) + "\n"


def conditions(conditions: Result) -> str:
    """The conditions of a run on one line."""
    limits = f"time limit {conditions['time_limit']:g} s, memory limit {conditions['memory_limit'] / 2**30:g} GiB"
    repeats = f"median of {conditions['repeats']} runs in turns" if conditions["repeats"] > 1 else "one run each"
    return (
        f"tol {conditions['tol']:g}, {limits}, {conditions['threads']} thread(s), {repeats}; {conditions['machine']}."
    )


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    lines = [head, ["---"] * len(head), *rows]
    return ["| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines]


def _code(name: str) -> str:
    return f"`{name.replace('`', '')}`"


def _plain(words: str) -> str:
    """On one line, and not taken for Markdown."""
    text = " ".join(words.split())
    for mark in "\\`*_<>[]|#":
        text = text.replace(mark, "\\" + mark)
    return text
