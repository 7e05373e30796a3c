"""results/arena.md: the built-in entries on the library, as committed, and the command that made it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from llr_cvx.cli import main
from llr_cvx.instances import list_instances

PAGE = (Path(__file__).parents[2] / "results" / "arena.md").read_text(encoding="utf-8")


def rows(entry: str) -> list[dict[str, str]]:
    section = PAGE.partition(f"## `{entry}`\n")[2].partition("\n## `")[0]
    head, _, *body = (
        [cell.strip() for cell in line.split("|")[1:-1]] for line in section.splitlines() if line[:1] == "|"
    )
    return [dict(zip(head, line, strict=True)) for line in body]


@pytest.mark.parametrize("entry", ["fast", "irls", "exact"])
def test_it_is_about_the_library(entry: str) -> None:
    names = [row["instance"] for row in rows(entry)]
    assert len(names) >= 36
    assert set(names) <= set(list_instances())


def test_fast_is_proved_to_1e_9_everywhere() -> None:
    assert "tol 1e-09" in PAGE
    assert {row["status"] for row in rows("fast")} == {"proved"}
    assert max(float(row["rel. gap"]) for row in rows("fast")) <= 1e-9


def test_irls_is_monotone_everywhere() -> None:
    assert {row["monotone"] for row in rows("irls")} <= {"yes", "J_eps"}


def test_what_clarabel_does_not_reach_is_shown_with_its_reason() -> None:
    failed = {row["instance"] for row in rows("exact") if row["status"] != "proved"}
    assert failed
    assert set(re.findall(r"^- (\S+): \*\*[a-z ]+\*\*\. \S", PAGE, re.MULTILINE)) >= failed


def test_its_command_is_one() -> None:
    (command,) = re.findall(r"^```sh\nllr-cvx (.*)\n```$", PAGE, re.MULTILINE)
    words = command.split()
    assert words[:3] == ["arena", "--solver", "fast"]
    done = CliRunner().invoke(main, [*words, "--only", "nowhere"])  # everything before the bad name is accepted
    assert "no instance is called 'nowhere'" in done.output
