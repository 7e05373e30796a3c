"""`llr-cvx arena`: options, files, exit statuses, and what is printed."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from llr_cvx.arena.judge import STATUSES
from llr_cvx.cli import main
from llr_cvx.instances import load_instance

MINE = """
import numpy as np
from llr_cvx.instances import load_instance

def right(problem):
    return load_instance("pair-fused").W

def wrong(problem):
    return np.ones(problem.shape)

def raises(problem):
    raise ValueError("no <step> & no |bar|")
"""


def arena(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["arena", *arguments])


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(MINE, encoding="utf-8")
    return "mine.py"


def test_a_proved_solver_exits_with_0_and_writes_what_is_promised(mine: str) -> None:
    result = arena("--solver", f"{mine}:right", "--only", "pair-fused", "--time-limit", "60", "--json", "a.json")
    assert result.exit_code == 0, result.output
    assert "The answer is proved to a relative gap of 1e-06." in result.stdout
    (row,) = json.loads(Path("a.json").read_text(encoding="utf-8"))["results"]
    assert (row["instance"], row["accepted"], row["status"]) == ("pair-fused", True, "proved")
    low, high = row["suboptimality"]
    assert 0 <= low <= high
    assert row["seconds"] > 0
    assert not Path("a.json.part").exists()


def test_a_module_on_the_path_is_found(mine: str) -> None:
    assert arena("--solver", "mine:right", "--only", "pair-fused").exit_code == 0


def test_failures_exit_with_1_and_are_in_every_file(mine: str) -> None:
    files = ["--json", "a.json", "--html", "a.html", "--markdown", "a.md"]
    entries = [f"--solver={mine}:{name}" for name in ("right", "wrong", "raises")]
    result = arena(*entries, "--command", "cp {problem}/samples.csv {out}/W.csv", "--only", "pair-fused", *files)
    assert result.exit_code == 1
    rows = json.loads(Path("a.json").read_text(encoding="utf-8"))["results"]
    assert [row["status"] for row in rows] == ["proved", "not proved", "crash", "invalid"]
    assert set(STATUSES) == {"proved", "not proved", "crash", "timeout", "invalid", "false claim"}
    assert "1 of 4 answers are proved" in result.stdout
    page, text = (Path(name).read_text(encoding="utf-8") for name in ("a.html", "a.md"))
    for shown in (result.stdout, page, text):
        assert "not proved" in shown
        assert "mine.py:wrong" in shown
    assert "no &lt;step&gt; &amp; no |bar|" in page
    assert "<step>" not in page
    assert "no \\<step\\> & no \\|bar\\|" in text
    assert "no <step> & no |bar|" in result.stdout


def test_repeats_and_comparison(mine: str) -> None:
    for name in ("right", "wrong"):
        arena("--solver", f"{mine}:{name}", "--only", "pair-fused", "--repeats", "3", "--json", f"{name}.json")
    same = arena("compare", "right.json", "right.json")
    assert same.exit_code == 0, same.output
    assert "Nothing broke. Of 1 times, none became slower beyond the noise." in same.stdout
    unproved = arena("compare", "wrong.json", "wrong.json")
    assert "Nothing broke. No times were judged." in unproved.stdout
    assert "–x" not in unproved.stdout
    arena("--solver", f"{mine}:right", "--only", "pair-fused", "--json", "once.json")  # too few repeats to judge
    assert "No times were judged." in arena("compare", "once.json", "once.json").stdout
    broken = arena("compare", "right.json", "wrong.json", "--json", "c.json")
    assert broken.exit_code == 1
    assert "BROKEN" in broken.stdout
    assert json.loads(Path("c.json").read_text(encoding="utf-8"))["worse"] == ["pair-fused"]
    assert arena("compare", "right.json").exit_code == 2  # one entry only
    Path("other.json").write_text("[]", encoding="utf-8")
    assert "not a result of llr-cvx arena" in arena("compare", "right.json", "other.json").output


def test_own_problems(mine: str) -> None:
    load_instance("pair-fused").problem.save("own.npz")
    result = arena("--solver", f"{mine}:right", "--problem", "own.npz", "--json", "a.json")
    assert result.exit_code == 0, result.output
    assert json.loads(Path("a.json").read_text(encoding="utf-8"))["results"][0]["instance"] == "own"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "no solver"),
        (("--solver", "fast", "--only", "nowhere"), "no instance is called 'nowhere'"),
        (("--solver", "nobody"), "no entry is called 'nobody'"),
        (("--solver", "gone.py:solve"), "gone.py does not exist"),
        (("--solver", "mine.py:"), "does not name a function"),
        (("--solver", "fast", "--solver", "fast"), "once"),
        (("--command", "true {out}"), "must hold {problem}"),
        (("--solver", "fast", "--drill", "3", "--dry-run"), "choose one of"),
        (("--solver", "fast", "--time-limit", "0"), "time-limit"),
        (("--solver", "fast", "--jobs", "0"), "jobs must be"),
        (("--solver", "fast", "--json", "nowhere/a.json"), "cannot write nowhere/a.json: its folder does not exist"),
        (("--solver", "fast", "compare", "mine.py"), "leave out --solver"),
    ],
)
def test_bad_input_exits_with_2_before_anything_runs(mine: str, arguments: tuple[str, ...], words: str) -> None:
    result = arena(*arguments)
    assert result.exit_code == 2, result.output
    assert words in " ".join(result.output.split())


def test_a_page_without_what_it_needs_is_refused_before_anything_runs(
    mine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    done = arena("--solver", f"{mine}:right", "--dry-run", "--html", "page.html")
    assert (done.exit_code, Path("page.html").exists()) == (2, False)
    assert "pages need jinja2: pip install" in done.output


def test_an_entry_that_cannot_be_imported_is_a_row(mine: str) -> None:
    Path("bad.py").write_text("import no_such_package\n", encoding="utf-8")
    result = arena("--solver", "bad.py:solve", "--only", "pair-fused", "--json", "a.json")
    assert result.exit_code == 1
    (row,) = json.loads(Path("a.json").read_text(encoding="utf-8"))["results"]
    assert row["status"] == "crash"
    assert "No module named 'no_such_package'" in row["reason"]


def test_functions_of_this_package_are_entries_as_they_are(mine: str) -> None:
    result = arena("--solver", "llr_cvx:solve_fast", "--only", "fused-some", "--tol", "1e-9", "--json", "a.json")
    assert result.exit_code == 0, result.output
    (row,) = json.loads(Path("a.json").read_text(encoding="utf-8"))["results"]
    assert row["claims"]["dual"] <= row["claims"]["objective"]
    W = load_instance("fused-some").W
    assert row["objective"] == pytest.approx(load_instance("fused-some").problem.objective(W), rel=1e-9)
