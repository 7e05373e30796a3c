"""The documentation site, built by ``sphinx-build -W -c docs . docs/_build/html`` without network access.

The source folder is the repository root, so README and notebooks are read in place and their links stay valid.
"""

from __future__ import annotations

import importlib
import re
import shutil
import sys
from importlib import metadata
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import latex2mathml.converter
from docutils import nodes

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS))
slides = importlib.import_module("slides")

project = "llr_cvx"
author = copyright = "The llr_cvx developers"
release = metadata.version("llr-cvx")

extensions = ["sphinx.ext.autodoc", "sphinx.ext.napoleon", "myst_nb", "beside"]
root_doc = "docs/index"
include_patterns = ["docs/*.md", "notebooks/*.ipynb", "notebooks/solutions/*", "*.md"]
include_patterns += ["docs/lesson/plan.md", "docs/lesson/quiz.md", "docs/lesson/cheatsheet.md"]
exclude_patterns = ["docs/_build", "**/.ipynb_checkpoints"]
templates_path = ["_templates"]

html_theme = "furo"
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

default_role = "code"
autodoc_typehints = "none"  # plain signatures are readable, expanded type aliases are not
autodoc_member_order = "bysource"
napoleon_use_rtype = False
napoleon_use_param = False  # "array of shape (N,)" would link to a property called shape


def escape_formulas(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Escape formulas in docstrings: |x| is not a substitution, and coef_ is not a link."""
    if what in ("property", "attribute"):
        lines.insert(0, "")  # otherwise napoleon takes the text before a colon for a type
    code = False
    for k, line in enumerate(lines):
        code = line.lstrip().startswith(">>>") or (code and bool(line.strip()))
        if not code:
            line = line.replace("|", r"\|")
            lines[k] = re.sub(r"(?<=\w)_(?=[\s,.;:)=]|$)(?! :)", r"\\_", line)


MATHML = "http://www.w3.org/1998/Math/MathML"
ElementTree.register_namespace("", MATHML)


def mathml(display: str) -> Any:
    """Return a visitor that writes TeX as MathML, which browsers render without scripts or network access."""

    def visit(writer: Any, node: nodes.Element) -> None:
        tex = re.sub(r"\\(begin|end)\{(split|align\*?|aligned)\}", r"\\\1{aligned}", node.astext())
        tex = re.sub(r"\\arg\s*\\(max|min)(?![a-z])", r"\\operatorname*{arg\1}", tex)
        tree = ElementTree.fromstring(latex2mathml.converter.convert(tex, display=display))
        for element in list(tree.iter()):
            as_browsers_draw_it(element, display)
        writer.body.append(ElementTree.tostring(tree, encoding="unicode"))
        raise nodes.SkipNode

    return visit


def as_browsers_draw_it(element: ElementTree.Element, display: str) -> None:
    """Replace what depends on the reader's math font, or is not in MathML Core, by what every browser draws."""
    tag, children = element.tag.removeprefix(f"{{{MATHML}}}"), list(element)
    last = "".join(children[-1].itertext()) if children else ""
    for child, after in pairwise(children):
        if child.text == "log" and after.text != "(":  # a thin space, as TeX sets it
            child.tag = f"{{{MATHML}}}mo"
            child.attrib.update(lspace="0", rspace="0.17em")
    if tag in ("msup", "msubsup") and set(last) == {"\N{PRIME}"}:  # shrunk twice, it is invisible
        if tag == "msubsup":
            element[:] = [ElementTree.Element(f"{{{MATHML}}}msub"), children[-1]]
            element[0].extend(children[:-1])
        element.tag = f"{{{MATHML}}}mrow"
        children[-1].tag = f"{{{MATHML}}}mtext"
        children[-1].set("style", "font-family: serif")
    elif tag == "munder" and last == "\N{BOTTOM CURLY BRACKET}":  # few fonts stretch it
        element.tag = f"{{{MATHML}}}mrow"
        element.set("style", "border-bottom: 1px solid; padding-bottom: 0.25em")
        element.remove(children[-1])
    elif tag == "menclose":
        element.tag = f"{{{MATHML}}}mrow"
        element.set("style", "border: 1px solid; padding: 0.5em")
        del element.attrib["notation"]
    elif tag == "msub" and display == "block" and (children[0].text or "") in LIMITS:
        element.tag = f"{{{MATHML}}}munder"


LIMITS = ("\N{N-ARY SUMMATION}", "max", "min", "argmax", "argmin")


def add_pages(app: Any, failure: Exception | None) -> None:
    """Add what is not written in Markdown for Sphinx: the interactive page and the slides."""
    if failure is None and app.builder.format == "html":
        folder, leave = Path(app.outdir) / "docs", shutil.ignore_patterns("*.py", "__pycache__")
        shutil.copytree(DOCS / "interactive", folder / "interactive", ignore=leave, dirs_exist_ok=True)
        (folder / "lesson" / "slides.html").write_text(slides.page(slides.slides()), encoding="utf-8")


def setup(app: Any) -> dict[str, bool]:
    """Register the docstring hook and the MathML renderer."""
    app.connect("autodoc-process-docstring", escape_formulas, priority=400)  # before napoleon
    app.connect("build-finished", add_pages)
    app.add_html_math_renderer("mathml", (mathml("inline"), None), (mathml("block"), None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
