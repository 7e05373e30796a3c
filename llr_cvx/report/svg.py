"""Small hand-written SVG charts, without libraries or scripts. All text is escaped here."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np

from llr_cvx.arrays import FloatArray


def _n(x: float) -> str:
    """A coordinate with at most one decimal."""
    return f"{x:.1f}".rstrip("0").rstrip(".")


def _svg(width: float, height: float, label: str, body: list[str]) -> str:
    return (
        f'<svg viewBox="0 0 {_n(width)} {_n(height)}" role="img" aria-label="{escape(label, quote=True)}">'
        + "".join(body)
        + "</svg>"
    )


def text(x: float, y: float, content: str, style: str = "", anchor: str = "start") -> str:
    """An escaped text element."""
    kind = f' class="{style}"' if style else ""
    return f'<text x="{_n(x)}" y="{_n(y)}" text-anchor="{anchor}"{kind}>{escape(content)}</text>'


def shortened(name: str, limit: int) -> str:
    """A name shortened in the middle, so that both ends stay readable.

    >>> shortened("mean_temperature_of_the_left_bearing", 20)
    'mean_tempe…t_bearing'
    """
    if len(name) <= limit:
        return name
    head = limit // 2
    return f"{name[:head]}…{name[len(name) - (limit - head - 1) :]}"


def bars(names: Sequence[str], values: Sequence[float], span: tuple[float, float], label: str) -> str:
    """Horizontal bars from a common zero line, each under its name; the width covers the range `span`.

    Left (negative) pushes towards outlier, right away from it.
    """
    width, row = 260.0, 36.0
    low, high = min(0.0, span[0]), max(0.0, span[1])
    room = (width - 4.0) / ((high - low) or 1.0)
    zero = 2.0 - low * room
    height = row * len(names)
    body = []
    for k, (name, value) in enumerate(zip(names, values, strict=True)):
        top = k * row
        start, size = min(zero, zero + value * room), max(abs(value) * room, 1.0)
        kind = "out" if value < 0 else "in"
        body.append(text(0, top + 12, shortened(name, 28), "name"))
        body.append(text(width, top + 12, f"{value:+.3g}".replace("-", "−"), "number", "end"))
        body.append(
            f'<rect x="{_n(start)}" y="{_n(top + 18)}" width="{_n(size)}" height="11" class="{kind}">'
            f"<title>{escape(name)}: {value:+.4g}</title></rect>"
        )
        body.append(f'<line x1="{_n(zero)}" y1="{_n(top + 16)}" x2="{_n(zero)}" y2="{_n(top + 31)}" class="zero"/>')
    return _svg(width, height, label, body)


def in_range(value: float, low: float, high: float, label: str) -> str:
    """A value against the inliers' typical range: a grey band, and a mark inside or outside it."""
    width, height, margin = 120.0, 16.0, 6.0
    ends = [value, low, high]
    left, span = min(ends), (max(ends) - min(ends)) or 1.0

    def place(x: float) -> float:
        return margin + (x - left) / span * (width - 2 * margin)

    band = max(place(high) - place(low), 2.0)
    kind = "mark" if low <= value <= high else "mark far"
    return _svg(
        width,
        height,
        label,
        [
            f'<line x1="0" y1="8" x2="{_n(width)}" y2="8" class="axis"/>',
            f'<rect x="{_n(place(low))}" y="4" width="{_n(band)}" height="8" rx="2" class="band"/>',
            f'<circle cx="{_n(place(value))}" cy="8" r="4" class="{kind}"/>',
        ],
    )


def histogram(scores: FloatArray, offset: float, label: str) -> str:
    """Histogram of scores with the threshold as a line; scores below it have the colour of outliers."""
    width, height, bottom = 440.0, 168.0, 130.0
    low, high = float(min(scores.min(), offset)), float(max(scores.max(), offset))
    pad = 0.04 * (high - low) or 0.5
    low, high = low - pad, high + pad
    step = (high - low) / float(np.clip(2 * np.sqrt(len(scores)), 8, 50))
    # Bins are aligned with the threshold, so that none straddles it.
    edges = offset + step * np.arange(np.floor((low - offset) / step), np.ceil((high - offset) / step) + 1)
    low, high, bins = float(edges[0]), float(edges[-1]), len(edges) - 1
    below = np.histogram(scores[scores < offset], edges)[0]
    above = np.histogram(scores[scores >= offset], edges)[0]
    scale = (bottom - 24.0) / max(1, int((below + above).max()))
    room = (width - 20.0) / bins

    def place(x: float) -> float:
        return 10.0 + (x - low) / (high - low) * (width - 20.0)

    body = []
    for k, (few, many) in enumerate(zip(below, above, strict=True)):
        x = 10.0 + k * room
        for count, kind in ((few, "out"), (many, "known")):
            if count:
                tall = max(count * scale, 2.5)
                body.append(
                    f'<rect x="{_n(x + 0.5)}" y="{_n(bottom - tall)}" width="{_n(room - 1)}" height="{_n(tall)}" '
                    f'class="{kind}"><title>{count} row(s)</title></rect>'
                )
    body.append(f'<line x1="10" y1="{_n(bottom)}" x2="{_n(width - 10)}" y2="{_n(bottom)}" class="axis"/>')
    for tick in _ticks(low, high):
        body.append(text(place(tick), bottom + 16, f"{tick:g}".replace("-", "−"), "number", "middle"))
    cut = place(offset)
    side, anchor = (cut + 6, "start") if cut < width / 2 else (cut - 6, "end")
    body.append(f'<line x1="{_n(cut)}" y1="6" x2="{_n(cut)}" y2="{_n(bottom)}" class="cut"/>')
    body.append(text(side, 16, "threshold", "name", anchor))
    body.append(text(10, bottom + 35, "← outlier-like", "name"))
    body.append(text(width - 10, bottom + 35, "log r of the test rows →", "name", "end"))
    return _svg(width, height, label, body)


def _ticks(low: float, high: float) -> list[float]:
    """A few round numbers between low and high."""
    raw = (high - low) / 5.0
    power = 10.0 ** np.floor(np.log10(raw))
    step = power * min((1.0, 2.0, 5.0, 10.0), key=lambda m: abs(m * power - raw))
    first = np.ceil(low / step)
    return [float(f"{k * step:.10g}") for k in np.arange(first, np.floor(high / step) + 1)]
