"""`llr-cvx notebooks DIR`: the course copied out of a checkout; project/test_distribution.py does it from the wheel."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from llr_cvx import course
from llr_cvx.cli import main

ROOT = Path(__file__).parents[2]


def run(folder: Path) -> Result:
    return CliRunner().invoke(main, ["notebooks", str(folder)])


@pytest.mark.long
def test_the_course_is_copied_whole(tmp_path: Path) -> None:
    done = run(tmp_path / "new" / "course")
    assert done.exit_code == 0, done.output
    copied = {p.relative_to(tmp_path / "new" / "course").as_posix(): p for p in (tmp_path / "new").rglob("*.*")}
    notebooks = ROOT / "notebooks"
    sources = [*notebooks.glob("*.ipynb"), *notebooks.glob("solutions/*.md"), *notebooks.glob("course/**/*.py")]
    assert len(sources) > 20
    for source in sources:
        assert copied[source.relative_to(notebooks).as_posix()].read_bytes() == source.read_bytes()
    assert "results/table2_trials.csv" in copied  # notebook 7 reads it
    assert "readme_picture.py" not in copied
    code = "from course import check, figures; from course.results import stored, tell"
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path / "new" / "course", check=True)
    assert f"{len(list(notebooks.glob('*.ipynb')))} notebooks copied" in done.output
    assert f"{len(copied)} files" in done.output
    assert re.search(r"pip install .*\[notebooks\]. jupyterlab && jupyter lab \S+course", done.output)


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "solutions").mkdir()
    mine = tmp_path / "solutions" / "01_the_model.md"
    mine.write_text("my work", encoding="utf-8")
    done = run(tmp_path)
    assert done.exit_code == 2
    assert "01_the_model.md exists (1 such file(s))" in done.output
    assert [p for p in tmp_path.rglob("*") if p.is_file()] == [mine]
    assert mine.read_text(encoding="utf-8") == "my work"


def test_a_file_in_the_way_of_the_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    assert "is a file" in run(tmp_path / "file").output
    below = run(tmp_path / "file" / "course")
    assert (below.exit_code, "cannot copy to" in below.output) == (1, True)


def test_an_installation_without_the_course_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(course, "PACKAGE", tmp_path / "site-packages" / "llr_cvx")
    done = run(tmp_path / "course")
    assert done.exit_code == 1
    assert "has no notebooks" in done.output


def test_the_packed_files_win_over_a_folder_that_happens_to_be_beside_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(course, "PACKAGE", tmp_path / "llr_cvx")
    for place in ("llr_cvx/notebooks/01.ipynb", "notebooks/02.ipynb"):
        (tmp_path / place).parent.mkdir(parents=True)
        (tmp_path / place).write_text("{}", encoding="utf-8")
    assert course.copy(tmp_path / "copy") == ["01.ipynb"]
