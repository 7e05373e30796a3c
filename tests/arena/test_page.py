"""The page of a run: complete, self-contained, escaped, and its charts say what the numbers say."""

from __future__ import annotations

import re
from dataclasses import asdict
from html import unescape
from html.parser import HTMLParser
from typing import Any

import pytest

from llr_cvx.arena import tables
from llr_cvx.arena.judge import STATUSES, Row
from llr_cvx.arena.page import profile, render_arena
from llr_cvx.arena.tournament import summarise

CONDITIONS = {
    "tol": 1e-6,
    "time_limit": 60.0,
    "memory_limit": 2**32,
    "threads": 1,
    "repeats": 1,
    "comparable_times": True,
    "machine": "a machine",
}


def result(entry: str, instance: str, status: str = "proved", seconds: float = 1.0, **more: Any) -> dict[str, Any]:
    row = Row(status=status, accepted=status == "proved", seconds=seconds, relative_gap=1e-7, **more)
    row.reason = "" if row.accepted else "because <b>"
    return {"entry": entry, "instance": instance, "N": 4, "d": 2, "edges": 3, **asdict(row)}


def document(results: list[dict[str, Any]]) -> dict[str, Any]:
    return {"conditions": CONDITIONS, "summary": summarise(results), "results": results}


def test_a_page_with_every_failure_has_a_card_for_each() -> None:
    failures = [status for status in STATUSES if status != "proved"]
    rows = [
        result("mine", f"p{k}", status, violations={"fit": 1.0, "network": 3.0}) for k, status in enumerate(failures)
    ]
    html = render_arena(document([*rows, result("mine", "good", curve=[(0.1, 0.5), (1.0, 1e-8)])]))
    assert html.count('<article class="card"') == len(failures) == 5
    assert "network 75%" in html
    assert "because &lt;b&gt;" in html
    assert "because <b>" not in html


def test_a_page_without_failures_has_no_cards() -> None:
    html = render_arena(document([result("mine", "a"), result("mine", "b")]))
    assert "card" not in re.sub(r"<style>.*</style>", "", html, flags=re.DOTALL)
    assert "All 2 answers are proved" in html


def test_iterates_that_are_all_infinitely_far_away_are_no_chart() -> None:
    far = result("mine", "a", "inaccurate", curve=[(0.1, float("inf"))]) | {"relative_gap": None}
    assert "Gap against time" not in render_arena(document([far]))


def test_it_needs_no_network_and_runs_no_script() -> None:
    hostile = '"><script src="http://evil"></script>'
    html = render_arena(document([result(hostile, hostile, "crash", output=hostile, notes=[hostile])]))
    assert "<script" not in html
    assert "default-src 'none'" in unescape(html)
    parser = Balance()
    parser.feed(html)
    assert parser.open == []
    assert not [value for name, value in parser.attributes if name in ("src", "href") and not value.startswith("#")]


class Balance(HTMLParser):
    """Tags that were opened and not closed."""

    VOID = ("meta",)

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.attributes: list[tuple[str, str]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes += [(name, value or "") for name, value in attrs]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes += [(name, value or "") for name, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_profile_counts_what_is_proved() -> None:
    rows = [result("A", "p", seconds=1.0), result("A", "q", "timeout"), result("B", "p", seconds=4.0)]
    rows.append(result("B", "q", seconds=2.0))
    steps, relative = profile(rows, ["A", "B"])
    assert relative
    assert steps == {"A": [(1.0, 0.5)], "B": [(1.0, 0.5), (4.0, 1.0)]}
    assert profile(rows[:2], ["A"]) == ({"A": [(1.0, 0.5)]}, False)


def test_a_curve_is_drawn_where_its_numbers_are() -> None:
    rows = [result("A", "p", curve=[(0.01, 1.0), (0.1, 1e-3), (1.0, 1e-6)], seconds=1.0)]
    (points,) = re.findall(
        r'points="([^"]*)" class="line s0"', render_arena(document(rows)).rpartition("<h3>p</h3>")[2]
    )
    x, y = zip(*(map(float, point.split(",")) for point in points.split()), strict=True)
    assert x[1] - x[0] == pytest.approx(x[2] - x[1], abs=0.2)  # a decade of time each
    assert y[1] - y[0] == pytest.approx(y[2] - y[1], abs=0.2)  # three decades of gap each


def test_answers_without_iterates_and_zero_gaps_are_drawn() -> None:
    rows = [result("A", "p", curve=[(0.0, 0.0)]), result("B", "p")]
    assert render_arena(document(rows)).count("<circle") == 2


def test_markdown_keeps_its_columns() -> None:
    text = tables.markdown(document([result("a|b", "p", "crash", notes=["x|y"])]))
    lines = [line for line in text.splitlines() if line.startswith("|")]
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in lines} == {9, 12}


def test_shared_cores_are_told_everywhere() -> None:
    found = document([result("mine", "a")])
    found["conditions"] = CONDITIONS | {"comparable_times": False}
    for text in (tables.terminal(found), tables.markdown(found), render_arena(found)):
        assert "Times are not comparable" in text
