"""docs/beside_the_equations.md: three files, whole and in order, cut at lines that exist."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from scripts import load

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "beside_the_equations.md").read_text(encoding="utf-8")
BLOCKS = dict(re.findall(r"^```\{beside\} (\S+)\n(.*?)^```$", PAGE, flags=re.DOTALL | re.MULTILINE))

SOURCE = '''"""Module."""

import math


@cached
def area(r):
    """Docstring
    of two lines.
    """

    r2 = r * r
    return math.pi * r2


class Circle:
    def half(self):
        if self:
            return 1
'''


@pytest.fixture(scope="module")
def beside() -> Any:
    pytest.importorskip("sphinx", reason='the site needs the extra: pip install ".[docs]"')
    return load("docs/beside.py")


def test_the_three_files_are_there() -> None:
    assert [Path(name).name for name in BLOCKS] == ["exact.py", "algorithm1.py", "irls.py"]


@pytest.mark.parametrize("name", BLOCKS)
def test_every_line_is_shown_once_and_has_words(beside: Any, name: str) -> None:
    source = (ROOT / name).read_text(encoding="utf-8")
    rows = beside.segments(BLOCKS[name])
    cut = beside.pieces(source, [beginning for beginning, _ in rows])
    assert all(words.strip() for _, words in rows)
    shown = [line.strip() for piece in cut for line in piece.code.splitlines() if line.strip()]
    docstrings = re.compile(
        r'^ +"""(?:.*?)"""\n', flags=re.DOTALL | re.MULTILINE
    )  # found by other means than in beside
    code = docstrings.sub("", source[re.search(r"^(@|def |class )", source, re.MULTILINE).start() :])
    assert shown == [line.strip() for line in code.splitlines() if line.strip()]
    assert max(len(piece.code.splitlines()) for piece in cut) <= 18  # line by line, not page by page
    for piece in cut:
        assert source.splitlines()[piece.first - 1].strip() == piece.code.splitlines()[0].strip()


def test_pieces_keep_the_indentation_inside_a_function(beside: Any) -> None:
    cut = beside.pieces(SOURCE, ["@cached", "r2 =", "class", "def half", "return 1"])
    assert [piece.code for piece in cut] == [
        "@cached\ndef area(r):",
        "r2 = r * r\nreturn math.pi * r2",
        "class Circle:",
        "def half(self):\n    if self:",
        "    return 1",
    ]
    assert [(piece.first, piece.last) for piece in cut] == [(6, 7), (12, 13), (16, 16), (17, 18), (19, 19)]


@pytest.mark.parametrize(
    ("beginnings", "message"),
    [
        (["@cached", "r3 ="], "no line begins with 'r3 ='"),
        (["@cached", "class", "r2 ="], "no line begins with 'r2 =' after line 16"),
        (["def area"], "must begin at line 6"),
        ([], "must begin at line 6"),
    ],
)
def test_a_page_that_has_drifted_is_an_error(beside: Any, beginnings: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        beside.pieces(SOURCE, beginnings)
