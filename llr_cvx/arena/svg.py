"""Pieces of SVG. All text is escaped here."""

from __future__ import annotations

from html import escape

from llr_cvx.report.charts import px


def drawing(width: float, height: float, label: str, body: list[str]) -> str:
    """An SVG element of this size, with a description for those who do not see it."""
    return (
        f'<svg viewBox="0 0 {px(width)} {px(height)}" role="img" aria-label="{escape(label, quote=True)}">'
        + "".join(body)
        + "</svg>"
    )


def text(x: float, y: float, content: str, style: str = "", anchor: str = "start") -> str:
    """An escaped text element."""
    kind = f' class="{style}"' if style else ""
    return f'<text x="{px(x)}" y="{px(y)}" text-anchor="{anchor}"{kind}>{escape(content)}</text>'


def shortened(name: str, limit: int) -> str:
    """A name shortened in the middle, so that both ends stay readable.

    >>> shortened("mean_temperature_of_the_left_bearing", 20)
    'mean_tempe…t_bearing'
    """
    if len(name) <= limit:
        return name
    head = limit // 2
    return f"{name[:head]}…{name[len(name) - (limit - head - 1) :]}"
