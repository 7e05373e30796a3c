"""The documentation site, built by ``sphinx-build -W -c docs . docs/_build/html`` without network access.

The source folder is the repository root, so README and notebooks are read in place and their links stay valid.
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

nb_ipywidgets_js: dict[str, dict[str, str]] = {}  # otherwise pages with stored widget states load remote scripts
nb_execution_mode = "off"  # notebooks are committed with outputs, which the tests compare
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


def mathml(display: str) -> Any:
    """Return a visitor that writes TeX as MathML, which browsers render without scripts or network access."""

    def visit(writer: Any, node: nodes.Element) -> None:
        tex = re.sub(r"\\(begin|end)\{(split|align\*?|aligned)\}", r"\\\1{aligned}", node.astext())
        writer.body.append(latex2mathml.converter.convert(tex, display=display))
        raise nodes.SkipNode

    return visit


def setup(app: Any) -> dict[str, bool]:
    """Register the docstring hook and the MathML renderer."""
    app.connect("autodoc-process-docstring", escape_formulas, priority=400)  # before napoleon
    app.add_html_math_renderer("mathml", (mathml("inline"), None), (mathml("block"), None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
