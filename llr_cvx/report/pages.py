"""HTML pages from templates: self-contained, readable without their script, on a phone and on paper.

Jinja2 escapes every name and value. Whatever they contain, a page loads nothing, and runs no script but its own.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from hashlib import sha256
from importlib.resources import files
from typing import Any

from llr_cvx.extras import needed
from llr_cvx.text import printable


def render(template: str, styles: Sequence[str], values: Mapping[str, Any], script: str = "") -> str:
    """Fill in a template that extends report/base.html; files are named by their path in the package.

    >>> page = render("report/base.html", ["report/page.css"], {"title": "<i>"})
    >>> "<h1>&lt;i&gt;</h1>" in page, "<script" in page
    (True, False)
    """
    jinja2 = needed("jinja2", "tables", "pages")
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_text),
        autoescape=True,
        keep_trailing_newline=True,
        undefined=jinja2.StrictUndefined,
        # No mark in a name may change the direction of the text around it.
        finalize=lambda value: printable(value) if type(value) is str else value,
    )
    style, code = "".join(map(_text, styles)), _text(script) if script else ""
    own = f"style-src {_hash(style)}; script-src {_hash(code)}"
    policy = f"default-src 'none'; {own}; base-uri 'none'; form-action 'none'"
    page: str = environment.get_template(template).render(values, style=style, script=code, policy=policy)
    return page


def _text(name: str) -> str:
    return files("llr_cvx").joinpath(name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"
