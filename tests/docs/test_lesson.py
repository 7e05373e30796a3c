"""The lesson: slides from the notebooks' own figures, a plan that adds up, true answers, one printed page."""

from __future__ import annotations

import base64
import contextlib
import io
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browser import printed_pages, run_script
from scripts import load

import llr_cvx as llr
from llr_cvx.proofs.certificate import dual_objective
from llr_cvx.solvers.irls import plain_step
from llr_cvx.solvers.smoothing import smoothed

ROOT = Path(__file__).parents[2]
LESSON = ROOT / "docs" / "lesson"

slides = load("docs/slides.py")


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("slides") / "slides.html"
    subprocess.run([sys.executable, ROOT / "docs" / "slides.py", target], check=True)
    return target


# ---- slides ----------------------------------------------------------------------------------------------


def test_twelve_to_fifteen_slides_need_nothing_else(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert 12 <= text.count("<section") <= 15
    assert re.findall(r'(?:src|href)="(?!data:)', text) == []
    assert text.count("<h2>") + text.count("<h1>") == text.count("<section")
    assert "$" not in re.sub(r"<script>.*?</script>|data:[^\"]*", "", text, flags=re.DOTALL)  # every formula is drawn


def test_figures_are_those_of_the_notebooks(page: Path) -> None:
    """Byte for byte as committed, each with the words of its notebook."""
    committed = set()
    for notebook in (ROOT / "notebooks").glob("*.ipynb"):
        for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"]:
            for data in (output.get("data", {}) for output in cell.get("outputs", [])):
                committed |= {base64.b64decode(data["image/png"])} if "image/png" in data else set()
                committed |= {"".join(data["image/svg+xml"]).encode()} if "image/svg+xml" in data else set()
    shown = re.findall(r'<img src="data:image/[\w+]+;base64,([^"]*)" alt="([^"]*)"', page.read_text(encoding="utf-8"))
    assert len(shown) >= 8
    assert all(base64.b64decode(picture) in committed and len(words.split()) >= 8 for picture, words in shown)
    links = re.findall(r"\]\(\S+\.ipynb#", (LESSON / "slides.md").read_text(encoding="utf-8"))
    assert len(shown) == len(links)


def test_a_figure_that_is_gone_is_named() -> None:
    with pytest.raises(ValueError, match=r"03_irls.ipynb has no figure #39-nothing; its headings .*31-a-parabola"):
        slides.figure(ROOT / "notebooks" / "03_irls.ipynb", "39-nothing")


@pytest.mark.long
def test_every_slide_fits_the_screen_and_a_sheet(page: Path, tmp_path: Path) -> None:
    frame = f'<iframe src="{page.as_uri()}" style="width: 1280px; height: 720px; border: 0"></iframe>'
    sizes = """[...document.querySelector("iframe").contentDocument.querySelectorAll("section")]
        .map((slide) => [slide.getBoundingClientRect().height, slide.scrollWidth - slide.clientWidth,
            Math.max(0, ...[...slide.children].map((part) => part.getBoundingClientRect().bottom
                - slide.getBoundingClientRect().bottom))])"""
    assert run_script(tmp_path, frame, sizes) == [[720, 0, 0]] * page.read_text(encoding="utf-8").count("<section")
    assert printed_pages(page.as_uri(), tmp_path) == page.read_text(encoding="utf-8").count("<section")


# ---- plan and quiz ---------------------------------------------------------------------------------------


def test_the_plan_adds_up_and_shows_every_slide() -> None:
    text = (LESSON / "plan.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d):(\d\d) \| (\d+) \| (.*) \| (.*) \|$", text, re.MULTILINE)
    starts = [60 * int(hours) + int(minutes) for hours, minutes, *_ in rows]
    lengths = [int(row[2]) for row in rows]
    assert sum(lengths) == 90
    assert starts == np.cumsum([0, *lengths[:-1]]).tolist()
    shown: list[int] = []
    for row in rows:
        for first, link, last in re.findall(r"slides? (\d+)(?: (to|and) (\d+))?", row[4] + row[3]):
            shown += range(int(first), int(last) + 1) if link else [int(first)]
    assert set(shown) == set(range(1, len(slides.slides()) + 1))
    assert f"Slides</a>: {len(slides.slides())}" in text


def test_the_answers_to_the_activities() -> None:
    instance = load("docs/interactive/make.py").instance()

    def solved(lambda1: float, lambda2: float = 10**-0.5) -> llr.Solution:
        return llr.solve_fast(llr.Problem(**instance, lambda1=lambda1, lambda2=lambda2), tol=1e-10)

    assert len(set(solved(0.001).clusters)) == 14
    assert len(set(solved(10.0).clusters)) == 1
    assert len(set(solved(10**-0.9).clusters[11:])) > 1 == len(set(solved(10**-0.8).clusters[11:]))
    assert [solved(t).support[13].tolist() for t in (0.5, 1.0, 3.9)] == [
        [True, False, False],
        [True, True, False],
        [True, True, False],
    ]
    p, optimum = llr.Problem(**instance, lambda1=0.1, lambda2=10**-0.5), solved(0.1).objective
    at = smoothed(p, p.y[:, None] * p.X / (1.0 + (p.X**2).sum(axis=1, keepdims=True)), 0.05)
    for _ in range(30):
        at = plain_step(p, at, 1e-12) or at
    bound = dual_objective(p, at.alpha, p.radii[:, None] * at.d_hat)
    distances = at.objective - optimum, optimum - bound, at.value - at.objective
    assert distances == pytest.approx((0.066, 0.042, 0.25), abs=0.004)  # as printed in answer 4
    for lambda2 in (0.01, 10.0):  # docs/interactive.md, "Features vanish"
        assert (solved(0.001, lambda2).support.sum(axis=1) == 1).all()
    assert solved(10.0, 0.01).support.sum() > solved(10.0, 10.0).support.sum()


def test_the_quiz_has_an_answer_for_every_question_and_they_are_true() -> None:
    text = (LESSON / "quiz.md").read_text(encoding="utf-8")
    questions, _, answers = text.partition("## Answers")
    numbers = [re.findall(r"^(\d+)\. ", part, re.MULTILINE) for part in (questions, answers)]
    assert numbers[0] == numbers[1] == [str(k) for k in range(1, 11)]
    (program,) = re.findall(r"^```python\n(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE)
    names: dict[str, Any] = {}
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(program, "quiz.md", "exec"), names)
    assert float(printed.getvalue().split()[0]) == pytest.approx(-2.60, abs=0.005)  # as printed in answer 2
    w = names["solve_decoupled"](names["apart"])[1]
    assert w[0] == 0 < w[1]
    assert names["s"].objective == pytest.approx(names["t"].objective, rel=1e-8)
    np.testing.assert_allclose(names["s"].W, 10 * names["t"].W, atol=1e-5)
    half = dual_objective(names["p"], np.full(2, 0.5), np.zeros((1, 2)))
    assert names["bound"] == pytest.approx(half, rel=1e-12)
    assert names["bound"] <= names["s"].objective


def test_the_lesson_leads_to_a_glossary_in_order() -> None:
    for page in ("plan.md", "quiz.md"):
        assert "](../glossary.md)" in (LESSON / page).read_text(encoding="utf-8"), page
    terms = re.findall(r"^### (.+)$", (LESSON.parent / "glossary.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert terms == sorted(terms, key=str.lower)
    assert len(terms) > 30


# ---- the cheat sheet -------------------------------------------------------------------------------------


def test_the_cheat_sheet_has_its_four_formulas_and_every_solver() -> None:
    text = (LESSON / "cheatsheet.md").read_text(encoding="utf-8")
    assert len(re.findall(r"^\$\$.*\$\$$", text, re.MULTILINE)) == 4
    assert {"solve_exact", "solve_irls", "solve_fast", "certify", "verify"} <= set(re.findall(r"`(\w+)`", text))


def test_the_program_of_the_cheat_sheet_runs() -> None:
    text = (LESSON / "cheatsheet.md").read_text(encoding="utf-8")
    (program,) = re.findall(r"^```python\n(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE)
    X_inlier, X_test, _ = llr.make_synthetic(d=3, random_state=0, n_inlier=20, n_test_inlier=10, n_outlier=2)
    names: dict[str, Any] = {"X_inlier": X_inlier, "X_test": X_test}
    exec(compile(program, "cheatsheet.md", "exec"), names)
    np.testing.assert_allclose(names["scores"], np.log(12 / 20) + names["reasons"].sum(axis=1))
    assert names["c"].relative_gap <= 1e-6
    for expression in re.findall(r"`([psc]\.[\w.()]+)`", text):  # the column "in Python"
        eval(expression, names)
