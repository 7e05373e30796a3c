"""Names and messages made safe for terminals and spreadsheets: what a table contains is data, never a command."""

from __future__ import annotations

import re
from typing import Any
from unicodedata import category

#: Where an apostrophe keeps a spreadsheet from taking a cell for a formula: before = + - @, or their full-width forms,
#: at the beginning of a cell, quoted or not, or of what would be one where the separator is not the comma.
_FORMULA = re.compile(r"^(?=[\t\r\n])|(?:^|(?<=[;|\t\r\n]))(?=[ \u00a0\"]*[-=+@\uff1d\uff0b\uff0d\uff20])")
#: Candidate separators of cells; the most frequent in the first line is used.
SEPARATORS = ",;\t|"
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def printable(text: Any) -> str:
    r"""Text on one line, with control characters, line ends and invisible marks, but for blanks, as backslash escapes.

    >>> print(printable("red\x1b[31m\nalert"))
    red\x1b[31m\nalert
    """
    shown = (c if c.isprintable() or category(c) == "Zs" else c.encode("unicode_escape").decode() for c in str(text))
    return "".join(shown)


def printable_lines(text: str) -> str:
    """`printable` line by line: the line ends and tabs of the text itself stay."""
    return "\n".join("\t".join(map(printable, line.split("\t"))) for line in text.split("\n"))


def csv_cell(value: Any) -> Any:
    """A cell that no spreadsheet takes for a formula: text that begins like one gets an apostrophe, numbers stay.

    >>> [csv_cell(cell) for cell in ("=1+1", "-5", -5.0, "@SUM(A1)", "a=b", "a;=b")]
    ["'=1+1", '-5', -5.0, "'@SUM(A1)", 'a=b', "a;'=b"]
    """
    return value if not isinstance(value, str) or _NUMBER.fullmatch(value) else _FORMULA.sub("'", value)


def is_number(cell: str) -> bool:
    """Whether a cell can be read as a number, finite or not.

    >>> [is_number(cell) for cell in ("1.5", "nan", "1_000", "red")]
    [True, True, False, False]
    """
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell  # Python reads 1_000 as a number, but in a table it is text
