"""The documentation site, built by ``sphinx-build -W -c docs . docs/_build/html`` without network access.

The source folder is the repository root, so README and notebooks are read in place and their links stay valid.
"""

from __future__ import annotations

import importlib
import re
import shutil
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx import addnodes

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS))
formulas, slides = map(importlib.import_module, ("formulas", "slides"))

project = "llr_cvx"
author = copyright = "The llr_cvx developers"
release = metadata.version("llr-cvx")

extensions = ["sphinx.ext.autodoc", "sphinx.ext.napoleon", "myst_nb", "beside"]
root_doc = "docs/index"
include_patterns = ["docs/*.md", "notebooks/*.ipynb", "notebooks/solutions/*", "*.md"]
include_patterns += ["docs/lesson/plan.md", "docs/lesson/quiz.md", "docs/lesson/cheatsheet.md"]
exclude_patterns = [".*", "docs/_build", "**/.ipynb_checkpoints"]  # an environment in .venv has many files to look at
templates_path = ["_templates"]

html_theme = "furo"
pygments_dark_style = "a11y-high-contrast-dark"  # as in light; the default underlines modules as if they were links
html_title = "llr_cvx"
html_additional_pages = {"index": "to_the_front_page.html"}
html_static_path = ["_static"]
html_css_files = ["pages.css"]
html_show_sourcelink = False
html_domain_indices = False
html_math_renderer = "mathml"

nb_ipywidgets_js: dict[str, dict[str, str]] = {}  # otherwise pages with stored widget states load remote scripts
nb_execution_mode = "off"  # notebooks are committed with outputs, which the tests compare
nb_render_markdown_format = "gfm"  # tables that a cell prints
myst_enable_extensions = ["dollarmath", "amsmath"]
myst_heading_anchors = 3
suppress_warnings = ["mystnb.unknown_mime_type"]  # each widget has a static figure beside it

NUMBER = r"\d[\d.,]*(?<=\d)(?:e-\d+)?"
SHORT = re.compile(  # no line ends within d = 10, 0.5 ± 0.1, 5 %, 47 s, 1e-6, Eq. (5), notebook 5, p-value
    rf"((?<!\w)\w{{1,7}} [=<>≤≥→] [+−-]?{NUMBER}|{NUMBER} (?:± {NUMBER}|%|(?:s|MB|GiB)\b)|\d[\d.]*e-\d+"
    r"|\b(?:Eq\.|Sec\.|Fig\.|Algorithm|Lemma|Theorem|Table|Figure|[Nn]otebook|slide) \(?\d[\w.()]*"
    r"|(?<![\w-])\w{1,2}-[\w-]+)"
)
LONGEST_CODE = 36  # characters of a word of code that fits a phone

default_role = "code"
autodoc_typehints = "none"  # plain signatures are readable, expanded type aliases are not
autodoc_member_order = "bysource"
toc_object_entries_show_parents = "hide"  # members are indented below their class: its name would push theirs out
napoleon_use_rtype = False
napoleon_use_param = False  # "array of shape (N,)" would link to a property called shape


def escape_formulas(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Escape formulas in docstrings: |x| is not a substitution, and coef_ is not a link."""
    if what in ("property", "attribute", "data"):
        lines[:0] = ["..", ""]  # an empty comment; otherwise napoleon takes the text before a colon for a type
    code = False
    for k, line in enumerate(lines):
        code = line.lstrip().startswith(">>>") or (code and bool(line.strip()))
        if not code and not re.fullmatch(r"\s*\w+_(, \w+_)*( : .*)?", line):  # not where attributes are named
            line = line.replace("|", r"\|")
            lines[k] = re.sub(r"(?<=\w)_(?=[\s,.;:)=]|$)(?! :)", r"\\_", line)


def drop_signature(app: Any, what: str, name: str, obj: Any, options: Any, signature: str, returns: str) -> Any:
    """Leave out signatures that only Python needs: of protocols, and of results with made defaults."""
    return ("", "") if signature == "(*args, **kwargs)" or "<factory>" in (signature or "") else None


def keep_together(app: Any, doctree: nodes.document, name: str) -> None:
    """Put formulas on one line with the bracket before and the punctuation after them; keep d = 10 and 5 % whole."""
    for node in list(doctree.findall(nodes.math)):
        parent, place = node.parent, node.parent.index(node)
        start, end, opening, closing = place, place + 1, "", ""
        if place and isinstance(before := parent[place - 1], nodes.Text):
            start, opening = place - 1, re.search(r"[(\[“]*$", before)[0]
        if end < len(parent) and isinstance(after := parent[end], nodes.Text):
            end, closing = end + 1, re.match(r"[\])”.,:;?!]*", after)[0]
        if opening or closing:
            inside = (nodes.Text(opening), node.deepcopy(), nodes.Text(closing))
            pieces = [nodes.inline("", "", *inside, classes=["together"])]
            if start < place:
                pieces.insert(0, nodes.Text(before.removesuffix(opening)))
            if end > place + 1:
                pieces.append(nodes.Text(after.removeprefix(closing)))
            parent[start:end] = pieces
    verbatim = (nodes.FixedTextElement, nodes.literal, nodes.math, nodes.raw)
    for text in list(doctree.findall(nodes.Text)):
        if not isinstance(text.parent, verbatim) and len(pieces := SHORT.split(text)) > 1:
            together = [nodes.inline("", piece, classes=["together"]) for piece in pieces[1::2]]
            pieces[1::2] = together
            text.parent.replace(text, [nodes.Text(piece) if isinstance(piece, str) else piece for piece in pieces])
    for node in doctree.findall(nodes.literal):
        if max(map(len, node.astext().split()), default=0) > LONGEST_CODE:
            node["classes"].append("long")


def unlink_shapes(app: Any, doctree: nodes.document) -> None:
    """Types of attributes link to classes; the word in "array of shape (N,)" is not Problem.shape."""
    for node in list(doctree.findall(addnodes.pending_xref)):
        if node.get("reftarget") == "shape":
            node.replace_self(node.children)


def join_alt_texts(app: Any, name: str, source: list[str]) -> None:
    """Put the text of a picture on one line: otherwise the words around a line break run together."""
    source[0] = re.sub(r"!\[[^]]*\]\(", lambda found: found[0].replace("\n", " "), source[0])


def finish_navigation(app: Any, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """Headings of the sidebar have a level, and links to the page before and after call the README as it does."""
    tree = context.get("furo_navigation_tree", "")
    context["furo_navigation_tree"] = tree.replace('role="heading"', 'role="heading" aria-level="2"')
    for place in ("prev", "next"):
        if context.get(place) and context[place]["link"].endswith("README.html"):
            context[place]["title"] = "README"


def write_formula(display: str) -> Any:
    """Return a visitor that writes TeX as MathML."""

    def visit(writer: Any, node: nodes.Element) -> None:
        writer.body.append(formulas.mathml(node.astext(), display))
        raise nodes.SkipNode

    return visit


def add_pages(app: Any, failure: Exception | None) -> None:
    """Add what is not written in Markdown for Sphinx: the interactive page and the slides."""
    if failure is None and app.builder.format == "html":
        folder, leave = Path(app.outdir) / "docs", shutil.ignore_patterns("*.py", "__pycache__")
        shutil.copytree(DOCS / "interactive", folder / "interactive", ignore=leave, dirs_exist_ok=True)
        (folder / "lesson" / "slides.html").write_text(slides.page(slides.slides()), encoding="utf-8")


def setup(app: Any) -> dict[str, bool]:
    """Register the docstring hook and the MathML renderer."""
    app.connect("autodoc-process-docstring", escape_formulas, priority=400)  # before napoleon
    app.connect("autodoc-process-signature", drop_signature)
    app.connect("source-read", join_alt_texts)
    app.connect("html-page-context", finish_navigation, priority=900)  # after the theme
    app.connect("doctree-read", unlink_shapes)
    app.connect("doctree-resolved", keep_together)
    app.connect("build-finished", add_pages)
    app.add_html_math_renderer("mathml", (write_formula("inline"), None), (write_formula("block"), None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
