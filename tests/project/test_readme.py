"""The README is short and true: its example runs, the CI runs its commands, and its output is what is printed."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from llr_cvx.cli import main

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, flags=re.DOTALL | re.MULTILINE)


def test_the_readme_is_short() -> None:
    assert len(README.split()) <= 1000  # code, tables and output included


def test_the_example_runs_and_finds_an_outlier(capsys: pytest.CaptureFixture[str]) -> None:
    example = blocks("python")[0]
    lines = [line for line in example.splitlines() if line.strip()]
    assert len(lines) <= 10
    names: dict[str, object] = {}
    exec(compile(example, "README.md", "exec"), names)
    printed = capsys.readouterr().out
    assert names["is_outlier"][names["suspect"]]
    assert names["culprit"] in (0, 1)  # the features in which the synthetic outliers are shifted
    assert names["solution"].status == "optimal"
    assert f"test sample {names['suspect']}: log r = " in printed
    assert "proven J* >=" in printed


@pytest.mark.parametrize("program", ["pytest", "llr-cvx"])
def test_the_ci_runs_the_commands_of_the_readme(program: str) -> None:
    """The CI script's own function picks the command out of README.md; it holds no copy of it."""
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert "bin/pip install" not in script
    function = re.search(r"^readme_command\(\) \{.*?^\}", script, flags=re.DOTALL | re.MULTILINE)
    assert function is not None
    picked = subprocess.run(
        ["bash", "-euc", f"{function.group()}\nreadme_command {program}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    assert picked in [line for block in blocks("sh") for line in block.splitlines()]
    assert picked.startswith("python3 -m venv .venv && .venv/bin/pip install ")
    assert f".venv/bin/{program}" in picked


def table(text: str) -> dict[str, list[str]]:
    rows = [line.split() for line in text.splitlines()]
    return {cells[0]: cells[1:] for cells in rows if len(cells) == 7 and re.fullmatch(r"\d+\.\d+", cells[1])}


def test_the_output_shown_is_the_output_printed() -> None:
    shown = table(blocks("text")[0])
    result = CliRunner().invoke(main, ["verify"])
    printed = table(result.stdout)
    assert list(shown) == list(printed) == ["CLARABEL", "IRLS", "FAST"]
    for solver, cells in shown.items():
        for k in (0, 1):  # objective and proven bound
            assert float(cells[k]) == pytest.approx(float(printed[solver][k]), rel=1e-7)
        assert cells[3] == printed[solver][3]  # monotone
        assert cells[-1] == printed[solver][-1]  # verdict
    assert blocks("text")[0].splitlines()[0] == result.stdout.splitlines()[0]


def test_the_outliers_shown_are_those_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Word for word, but for seconds, the gap reached and what follows from it."""
    monkeypatch.chdir(tmp_path)
    exec(compile(blocks("python")[1], "README.md", "exec"), {})
    (command,) = re.findall(r"`\.venv/bin/llr-cvx (detect --inliers good\.csv --test new\.csv --top 1)`", README)
    result = CliRunner().invoke(main, [*command.split(), "--out", "scores.csv"])
    assert result.exit_code == 0, result.output
    varies = re.compile(r"\(proven [^)]*\)|relative gap \S+ |\d+\.\d+ s$", re.MULTILINE)
    assert varies.sub("", result.stdout) == varies.sub("", blocks("text")[1])
    scores = (tmp_path / "scores.csv").read_text().splitlines()
    flagged = [int(line.split(",")[0]) for line in scores[1:] if line.split(",")[3] == "1"]
    assert len(flagged) == 6
    assert min(flagged) > 50  # the malignant rows are the last ten


def test_every_file_the_readme_points_to_exists() -> None:
    links = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", README)
    local = [link for link in links if "://" not in link]
    assert {"LICENSE", "CITATION.cff", "notebooks/readme_picture.png"} <= set(local)
    for link in local:
        assert (ROOT / link).exists(), link


def test_the_readme_leads_to_every_page_of_the_docs() -> None:
    for page in (ROOT / "docs").glob("*.md"):
        assert f"](docs/{page.name})" in README, f"README.md does not link to docs/{page.name}"
