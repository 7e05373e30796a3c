"""The HTML page of a run: without scripts; its text is in `page.html`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import groupby
from typing import Any

from llr_cvx.arena import charts, tables
from llr_cvx.arena.judge import STATUSES
from llr_cvx.report.pages import render

#: Failures that get a card, and problems whose chart is shown at once; the other charts are folded away.
MAX_CARDS, OPEN_CHARTS, MAX_CHARTS = 100, 9, 60
#: Entries have one of this many colours, by their order: s0, s1, ...
COLOURS = 8
#: Columns of the table of all results that hold text, and those that a phone does not show.
_TEXT = ("instance", "status", "monotone")
_EXTRA = ("N", "d", *(f"to {name}" for name in tables.TIMES), "monotone", "MB")


def _is_traced(row: Mapping[str, Any]) -> bool:
    """Whether there is an iterate to draw: one with a finite gap."""
    return any(gap < math.inf for _, gap in row["curve"])


def render_arena(document: Mapping[str, Any], title: str = "Arena") -> str:
    """The page of a run as a string."""
    results, tol = document["results"], document["conditions"]["tol"]
    colours = {one["entry"]: f"s{k % COLOURS}" for k, one in enumerate(document["summary"])}
    problems = groupby(sorted(results, key=lambda row: str(row["instance"])), key=lambda row: row["instance"])
    traced = [rows for rows in (list(rows) for _, rows in problems) if any(map(_is_traced, rows))]
    traced.sort(key=lambda rows: -rows[0]["N"] * rows[0]["d"])
    values = {
        **{"document": document, "title": title, "colours": colours, "statuses": STATUSES},
        **{"label": tables.label, "cells": tables.cells, "px": charts.px, "tick": charts.tick},
        **{"max_cards": MAX_CARDS, "open_charts": OPEN_CHARTS},
        "shown": [name for name in STATUSES if name == "proved" or any(one[name] for one in document["summary"])],
        "columns": {name: "n" * (name not in _TEXT) + " extra" * (name in _EXTRA) for name in tables.COLUMNS},
        "profile": charts.profile_chart(results, colours) if any(row["accepted"] for row in results) else None,
        "gaps": [charts.gap_chart(rows, colours, tol) for rows in traced[:MAX_CHARTS]],
        "conclusion": tables.conclusion(document).splitlines(),
        "conditions": tables.conditions(document["conditions"]),
    }
    return render("arena/page.html", values)
