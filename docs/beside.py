"""A Sphinx directive that shows a source file beside its equations, line by line.

    ```{beside} llr_cvx/solvers/exact.py
    @ def formulate(
    Words and equations for the lines from here ...

    @ X, y, B, omega
    ... to the next line that is named.
    ```

The text after `@` is the beginning of a line of the file. A piece reaches to the line before the next one, and the
pieces together are the whole file, from its first function or class to its end; only docstrings are left out. A line
that is not there, or not in this order, is an error: the page cannot drift away from the code.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.util.docutils import SphinxDirective

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Piece:
    """Some lines of a file, counted from 1, without docstrings."""

    first: int
    last: int
    code: str


def shown_lines(source: str) -> list[tuple[int, str]]:
    """Numbered lines from the first function or class, decorators included, to the end; docstrings are left out."""
    tree = ast.parse(source)
    defined = [node for node in tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))]
    start = min([defined[0].lineno, *(decorator.lineno for decorator in defined[0].decorator_list)])
    hidden: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and ast.get_docstring(node) is not None:
            text = node.body[0]
            hidden |= set(range(text.lineno, (text.end_lineno or text.lineno) + 1))
    lines = list(enumerate(source.splitlines(), start=1))
    hidden |= {number for number, line in lines if number - 1 in hidden and not line.strip()}
    return [(number, line) for number, line in lines if number >= start and number not in hidden]


def indentation(source: str, number: int) -> int:
    """The indentation of the innermost function or class whose body has this line."""
    nodes_with_body = [n for n in ast.walk(ast.parse(source)) if isinstance(n, (ast.FunctionDef, ast.ClassDef))]
    around = [n.body[0] for n in nodes_with_body if n.body[0].lineno <= number <= (n.end_lineno or 0)]
    return max((first.col_offset for first in around), default=0)


def pieces(source: str, beginnings: list[str]) -> list[Piece]:
    """Cut the shown lines at those that begin so; the first of them must be the first line shown."""
    lines = shown_lines(source)
    cuts: list[int] = []
    for beginning in beginnings:
        after = cuts[-1] + 1 if cuts else 0
        found = [k for k, (_, line) in enumerate(lines) if k >= after and line.strip().startswith(beginning)]
        if not found:
            raise ValueError(f"no line begins with {beginning!r} after line {lines[after - 1][0] if cuts else 0}")
        cuts.append(found[0])
    if not cuts or cuts[0] != 0:
        raise ValueError(f"the first piece must begin at line {lines[0][0]}: {lines[0][1]!r}")
    made = []
    for start, end in zip(cuts, [*cuts[1:], len(lines)], strict=True):
        part = [(number, line) for number, line in lines[start:end]]
        while not part[-1][1].strip():
            part.pop()
        margin = min(indentation(source, number) for number, line in part if line.strip())
        made.append(Piece(part[0][0], part[-1][0], "\n".join(line[margin:] for _, line in part)))
    return made


def segments(content: str) -> list[tuple[str, str]]:
    """(beginning of a line, words about it) for each `@` in the content of the directive."""
    _, *parts = re.split(r"^@ (.+)$", content, flags=re.MULTILINE)
    return [(beginning.strip(), words.strip("\n")) for beginning, words in zip(parts[::2], parts[1::2], strict=True)]


class Beside(SphinxDirective):
    """Rows of two columns: words and equations, and the lines that they are about."""

    required_arguments = 1
    has_content = True

    def run(self) -> list[nodes.Node]:
        """Make the rows."""
        path = ROOT / self.arguments[0]
        self.env.note_dependency(str(path))
        rows = segments("\n".join(self.content))
        try:
            cut = pieces(path.read_text(encoding="utf-8"), [beginning for beginning, _ in rows])
        except ValueError as error:
            raise self.error(f"{self.arguments[0]}: {error}") from None
        return [self._row(words, piece, path.name) for (_, words), piece in zip(rows, cut, strict=True)]

    def _row(self, words: str, piece: Piece, name: str) -> nodes.Node:
        left, right = nodes.container(classes=["beside-words"]), nodes.container(classes=["beside-code"])
        self.state.nested_parse(StringList(words.splitlines(), self.arguments[0]), self.content_offset, left)
        where = f"{piece.first}–{piece.last}" if piece.last > piece.first else str(piece.first)
        right += nodes.paragraph("", f"{name}, {where}", classes=["beside-lines"])
        right += nodes.literal_block(piece.code, piece.code, language="python")
        return nodes.container("", left, right, classes=["beside"])


def setup(app: Any) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("beside", Beside)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
