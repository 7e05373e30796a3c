"""Cells of tables as text, and names made safe for terminals and spreadsheets: they are data, never commands."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator
from typing import Any
from unicodedata import category

#: Where an apostrophe keeps a spreadsheet from taking a cell for a formula: before = + - @, or their full-width forms,
#: at the beginning of a cell, quoted or not, or of what would be one where the separator is not the comma.
_FORMULA = re.compile(r"^(?=[\t\r\n])|(?:^|(?<=[;|\t\r\n]))(?=[ \u00a0\"]*[-=+@\uff1d\uff0b\uff0d\uff20])")
#: Candidate separators of cells; the most frequent in the first line is used.
SEPARATORS = ",;\t|"
#: The most characters of a first line that are looked at for its separator.
MAX_HEADER = 100_000
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


def separator_of(text: str) -> str:
    """The most frequent separator of the first line, outside quotes."""
    first = re.sub(r'"[^"]*"', "", text.lstrip("\r\n")[:MAX_HEADER]).partition("\n")[0]
    return max(SEPARATORS, key=first.count)


def cells_of(text: str, sep: str, strict: bool = False) -> Iterator[tuple[int, list[str]]]:
    """Rows of a text and the lines on which they end; blank lines count for none."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=sep, skipinitialspace=True, strict=strict)
    return ((reader.line_num, row) for row in reader if len(row) > 1 or any(map(str.strip, row)))


def is_number(cell: Any) -> bool:
    """Whether a cell can be read as a number, finite or not.

    >>> [is_number(cell) for cell in ("1.5", 2, "nan", "1_000", "red")]
    [True, True, True, False, False]
    """
    try:
        float(cell)
    except (TypeError, ValueError, OverflowError):
        return False
    return "_" not in str(cell)  # Python reads 1_000 as a number, but in a table it is text


def listing(names: Iterable[str], limit: int = 8, quoted: bool = True) -> str:
    """Names, the first of many.

    >>> listing(["a", "b", "c"], 2)
    "'a', 'b', ..."
    """
    shown = [repr(name) if quoted else name for name in names]
    return ", ".join(shown[:limit]) + (", ..." if len(shown) > limit else "")
