"""The documentation site, made by ``sphinx-build -W -c docs . docs/_build/html`` without network.

The source folder is the repository itself: README and notebooks are read where they are, and their links hold.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import latex2mathml.converter
from docutils import nodes

ROOT = Path(__file__).parent.parent

project = "llr_cvx"
author = copyright = "The llr_cvx developers"
release = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]

extensions = ["sphinx.ext.autodoc", "sphinx.ext.napoleon", "myst_nb"]
root_doc = "docs/index"
include_patterns = ["docs/*.md", "notebooks/*.ipynb", "notebooks/solutions/*.ipynb", "README.md", "CHANGELOG.md"]
exclude_patterns = ["docs/_build", "**/.ipynb_checkpoints"]
templates_path = ["_templates"]

html_theme = "furo"
html_title = "llr_cvx"
html_additional_pages = {"index": "to_the_front_page.html"}
html_show_sourcelink = False
html_domain_indices = False
html_math_renderer = "mathml"

nb_ipywidgets_js: dict[str, dict[str, str]] = {}  # else pages with stored widget states load scripts from afar
nb_execution_mode = "off"  # notebooks come with the outputs that the tests compare
myst_enable_extensions = ["dollarmath", "amsmath"]
myst_heading_anchors = 3
suppress_warnings = ["mystnb.unknown_mime_type"]  # widgets: a static figure stands beside each

default_role = "code"
autodoc_typehints = "none"  # the signatures are readable, their aliases are not
autodoc_member_order = "bysource"
napoleon_use_rtype = False
napoleon_use_param = False  # "array of shape (N,)" would become a link to some property called shape


def escape_formulas(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Docstrings hold formulas as plain text: |x| is no substitution and coef_ no link."""
    if what in ("property", "attribute"):
        lines.insert(0, "")  # else napoleon takes what precedes a colon for a type
    code = False
    for k, line in enumerate(lines):
        code = line.lstrip().startswith(">>>") or (code and bool(line.strip()))
        if not code:
            line = line.replace("|", r"\|")
            lines[k] = re.sub(r"(?<=\w)_(?=[\s,.;:)=]|$)(?! :)", r"\\_", line)


def mathml(display: str) -> Any:
    """A visitor that writes TeX as MathML, which browsers draw themselves: no script, no network."""

    def visit(writer: Any, node: nodes.Element) -> None:
        tex = re.sub(r"\\(begin|end)\{(split|align\*?|aligned)\}", r"\\\1{aligned}", node.astext())
        writer.body.append(latex2mathml.converter.convert(tex, display=display))
        raise nodes.SkipNode

    return visit


def setup(app: Any) -> dict[str, bool]:
    """Connect them."""
    app.connect("autodoc-process-docstring", escape_formulas, priority=400)  # before napoleon
    app.add_html_math_renderer("mathml", (mathml("inline"), None), (mathml("block"), None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
