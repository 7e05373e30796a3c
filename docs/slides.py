"""Slides from Markdown: `python docs/slides.py slides.html` writes one file that needs nothing else.

docs/lesson/slides.md has one slide between two lines `---`. A picture `![caption](FILE.ipynb#anchor)` is the first
figure below the first heading of a notebook whose anchor starts so, as it was committed, with its words for those who
do not see it; `#anchor:2` is the second one. Formulas become MathML.
"""

from __future__ import annotations

import base64
import html
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from formulas import mathml
from markdown_it import MarkdownIt
from mdit_py_plugins.dollarmath import dollarmath_plugin

SOURCE = Path(__file__).parent / "lesson" / "slides.md"


def slides(source: Path = SOURCE) -> list[str]:
    """The slides as HTML fragments."""
    parser = MarkdownIt("commonmark").enable("table").use(dollarmath_plugin, renderer=formula, allow_labels=False)
    texts = re.split(r"^---$", source.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return [with_figures(parser.render(text), source.parent) for text in texts]


def formula(tex: str, options: dict[str, Any]) -> str:
    """TeX as MathML; on a narrow screen a long formula scrolls."""
    if options["display_mode"]:
        return f'<div class="formula">{mathml(tex, "block")}</div>'
    return mathml(tex, "inline")


def with_figures(fragment: str, folder: Path) -> str:
    """Put figures of notebooks in the place of links to them; the text in brackets is the caption."""

    def picture(found: re.Match[str]) -> str:
        name, anchor, caption = found.groups()
        source, words = figure(folder / name, anchor)
        caption = f"<figcaption>{caption}</figcaption>" if caption else ""
        return f'<figure><img src="{source}" alt="{html.escape(words)}">{caption}</figure>'

    return re.sub(r'<p><img src="([^"#]+\.ipynb)#([^"]+)" alt="([^"]*)" ?/></p>', picture, fragment)


def figure(notebook: Path, anchor: str) -> tuple[str, str]:
    """A figure as the address of its own bytes, and its words."""
    start, _, place = anchor.partition(":")
    found = [(source, words) for heading, source, words in figures(notebook) if heading.startswith(start)]
    if len(found) < int(place or 1):
        known = ", ".join(dict.fromkeys(heading for heading, *_ in figures(notebook)))
        raise ValueError(f"{notebook.name} has no figure #{anchor}; its headings with figures are {known}")
    return found[int(place or 1) - 1]


def figures(notebook: Path) -> Iterator[tuple[str, str, str]]:
    """The anchor of the heading above each figure, its bytes as an address, and its words."""
    heading = ""
    for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] == "markdown":
            for title in re.findall(r"^#+ (.+)$", "".join(cell["source"]), re.MULTILINE):
                heading = re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
        words = cell["metadata"].get("mystnb", {}).get("image", {}).get("alt", "")
        for data in (output.get("data", {}) for output in cell.get("outputs", [])):
            if "image/svg+xml" in data:
                code = base64.b64encode("".join(data["image/svg+xml"]).encode()).decode()
                yield heading, f"data:image/svg+xml;base64,{code}", words
            elif "image/png" in data:
                yield heading, f"data:image/png;base64,{''.join(data['image/png'].split())}", words


def page(fragments: list[str]) -> str:
    """One page with all slides, its style and the keys that turn them."""
    folder = Path(__file__).parent / "lesson"
    style, script = ((folder / name).read_text(encoding="utf-8") for name in ("slides.css", "slides.js"))
    total = len(fragments)
    sections = [
        f'<section id="{k}" aria-label="Slide {k} of {total}">{text}<footer>{k} / {total}</footer></section>'
        for k, text in enumerate(fragments, start=1)
    ]
    title = re.sub(r"<[^>]+>", "", re.findall(r"<h1>(.*?)</h1>", fragments[0])[0])
    return "\n".join(
        [
            f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<style>{style}</style></head><body>",
            *sections,
            f"<script>{script}</script></body></html>\n",
        ]
    )


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(page(slides()), encoding="utf-8")
