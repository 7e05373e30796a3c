"""HTML pages from templates: self-contained, readable without their script, on a phone and on paper.

Jinja2 escapes every name and value. Whatever they contain, a page loads nothing, and runs no script but its own.
"""

from __future__ import annotations

from base64 import b64encode
from hashlib import sha256
from typing import Any

from llr_cvx.extras import needed
from llr_cvx.text import printable


def render(template: str, values: dict[str, Any]) -> str:
    """Fill in a template of the package that extends report/base.html and names its `styles` and `script`, if any.

    >>> page = render("report/base.html", {"title": "<i>", "styles": ["report/page.css"]})
    >>> "<h1>&lt;i&gt;</h1>" in page, "<script" in page
    (True, False)
    """
    jinja2 = needed("jinja2", "tables", "pages")
    short = {"trim_blocks": True, "lstrip_blocks": True, "keep_trailing_newline": True}
    loader = jinja2.PackageLoader("llr_cvx", "")
    environment = jinja2.Environment(loader=loader, autoescape=True, undefined=jinja2.StrictUndefined, **short)
    environment.filters["hash"] = lambda text: f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"
    # No mark in a name may change the direction of the text around it.
    environment.finalize = lambda value: printable(value) if type(value) is str else value
    return str(environment.get_template(template).render(values))
