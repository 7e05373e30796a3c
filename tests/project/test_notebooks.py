"""Every notebook runs from top to bottom, without a warning, shows what is committed, and judges answers rightly."""

from __future__ import annotations

import os
import re
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

nbformat = pytest.importorskip("nbformat", reason='notebooks need the extra: pip install ".[notebooks]"')
nbclient = pytest.importorskip("nbclient", reason='notebooks need the extra: pip install ".[notebooks]"')
for needed in ("ipykernel", "ipywidgets", "matplotlib"):
    pytest.importorskip(needed, reason='notebooks need the extra: pip install ".[notebooks]"')

from exercises import CHECK, HEADING, WRONG, solutions, with_answers  # noqa: E402
from kernels import TIME_LIMIT, Client, code_cells, executed  # noqa: E402

FOLDER = Path(__file__).parents[2] / "notebooks"
LESSONS = sorted(FOLDER.glob("*.ipynb"))
SOLUTIONS = sorted((FOLDER / "solutions").glob("*.ipynb"))
CHECKED = [path for path in LESSONS if (FOLDER / "solutions" / f"{path.stem}.md").exists()]
PROCESSOR_LIMIT = 30  # seconds a notebook, on one idle core: processor time, so that a busy machine changes little
WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
WIDGET_STATE = "application/vnd.jupyter.widget-state+json"

#: A cell with this tag prints what depends on the machine or on the version of another solver.
VARIES = "varies"

NUMBER = re.compile(r"[-+]?\d+(?P<decimals>\.\d*)?(?P<exponent>e[-+]?\d+)?", re.IGNORECASE)
TIMING = re.compile(r"\d+(\.\d+)?(e[-+]?\d+)?\s*(s|ms|seconds|minutes|min)\b")


def ids(path: Path) -> str:
    return str(path.relative_to(FOLDER))


def read(path: Path) -> Any:
    return nbformat.read(path, as_version=4)


@cache
def prose_of(path: Path) -> str:
    return "\n".join(cell.source for cell in read(path).cells if cell.cell_type == "markdown")


def text_of(cell: Any) -> str:
    """What a cell says in words; pictures, pages and widgets are left out."""
    said = []
    for output in cell.outputs:
        if output.output_type == "stream" and output.name == "stdout":
            said.append(output.text)
        elif "data" in output and WIDGET_VIEW not in output.data:
            said += [output.data[kind] for kind in ("text/plain", "text/markdown") if kind in output.data]
    return " ".join(without_seconds("\n".join(said)).split())


def without_seconds(text: str) -> str:
    """Tables lose the entries of their columns called "seconds"."""
    kept, timed = [], []
    for line in text.splitlines():
        row = line.strip().strip("|").split("|") if line.strip().startswith("|") else []
        if not row:
            timed = []
        elif "seconds" in line:
            timed = [k for k, name in enumerate(row) if name.strip() == "seconds"]
        else:
            row = [entry for k, entry in enumerate(row) if k not in timed]
        kept.append("|".join(row) if row else line)
    return "\n".join(kept)


def is_figure(output: Any) -> bool:
    return not {"image/png", "image/svg+xml"}.isdisjoint(output.get("data", {}))


def count_figures(cell: Any) -> int:
    return sum(map(is_figure, cell.outputs))


def warnings_of(cell: Any) -> str:
    return "".join(o.text for o in cell.outputs if o.output_type == "stream" and o.name == "stderr")


def same_number(stored: re.Match[str], fresh: re.Match[str]) -> bool:
    """Decimals agree to one unit of the last printed place, whole numbers to 1 %, rounding errors always."""
    a, b = float(stored.group()), float(fresh.group())
    if max(abs(a), abs(b)) < 1e-7:
        return True
    if stored["decimals"] is None and stored["exponent"] is None:
        return abs(a - b) <= 0.01 * abs(a)
    places = len(stored["decimals"] or ".") - 1
    unit = 10.0 ** (int((stored["exponent"] or "e0")[1:]) - places)
    same_size = stored["exponent"] is None or abs(a - b) <= 0.5 * max(abs(a), abs(b))
    return same_size and abs(a - b) <= 1.01 * unit


def first_difference(stored: str, fresh: str) -> str | None:
    """Where two texts differ by more than times and the last printed digit; None if nowhere."""
    stored, fresh = TIMING.sub("<time>", stored), TIMING.sub("<time>", fresh)
    if NUMBER.sub("#", stored) != NUMBER.sub("#", fresh):
        return f"stored: {stored}\nfresh:  {fresh}"
    for a, b in zip(NUMBER.finditer(stored), NUMBER.finditer(fresh), strict=True):
        if not same_number(a, b):
            return f"stored: ...{stored[max(0, a.start() - 60) : a.end() + 10]}\nfresh:  {b.group()}"
    return None


def widget_outputs(notebook: Any) -> list[Any]:
    """What interactive controls printed and drew: an error there does not stop the notebook."""
    models = notebook.metadata.get("widgets", {}).get(WIDGET_STATE, {}).get("state", {}).values()
    return [output for model in models for output in model["state"].get("outputs", [])]


def processor_seconds() -> float:
    """Processor time of all kernels so far that have ended, without what they started and left (the arena)."""
    times = os.times()
    return times.children_user + times.children_system


@pytest.mark.parametrize("path", LESSONS + SOLUTIONS, ids=ids)
def test_runs_and_shows_what_is_committed(path: Path) -> None:
    stored, notebook = read(path), read(path)
    if path in CHECKED:
        right = solutions(FOLDER / "solutions" / f"{path.stem}.md")
        notebook.cells = with_answers(notebook.cells, right)
    started = processor_seconds()
    fresh = executed(notebook, path.parent)  # an exception in a cell is raised here
    assert processor_seconds() - started < PROCESSOR_LIMIT
    shown = [cell for cell in code_cells(fresh) if cell.id in {cell.id for cell in stored.cells}]

    for place, (old, new) in enumerate(zip(code_cells(stored), shown, strict=True)):
        where = f"{path.name}, code cell {place}:\n{new.source}\n"
        assert not warnings_of(new), where + warnings_of(new)
        assert count_figures(new) == count_figures(old), where + "committed and fresh figures differ in number"
        if VARIES not in new.metadata.get("tags", []):
            difference = first_difference(text_of(old), text_of(new))
            assert difference is None, f"{where}{difference}\nexecute the notebook again and commit it"

    drawn = widget_outputs(fresh)
    assert [o for o in drawn if o["output_type"] == "error" or o.get("name") == "stderr"] == []
    if path in LESSONS:
        assert any(map(is_figure, drawn)), "no interactive control draws a figure"

    said = [text_of(cell) for cell in code_cells(fresh) if "answered" in cell.metadata.get("tags", [])]
    wrong, right_ones = said[::2], said[1::2]
    assert [text for text in wrong if " not right: " not in text or "cannot be judged" in text] == []
    assert [text for text in right_ones if " right: " not in text or "not right" in text] == []


@pytest.mark.parametrize("path", CHECKED, ids=ids)
def test_every_exercise_has_its_parts(path: Path) -> None:
    """A kind, dots to fill in, a check that says so, a solution and a wrong answer; the next exercise follows."""
    cells = read(path).cells
    places = [k for k, cell in enumerate(cells) if cell.cell_type == "code" and CHECK.match(cell.source)]
    numbers = [CHECK.match(cells[k].source)[1] for k in places]
    assert numbers == [f"{int(path.name[:2])}.{k}" for k in range(1, len(numbers) + 1)]
    assert len(numbers) >= 4
    kinds = set()
    for number, k in zip(numbers, places, strict=True):
        heading = HEADING.match(cells[k - 2].source)
        assert heading, f"{number} has no heading of the form ### {number} (kind)"
        assert heading[1] == number
        kinds.add(heading[2])
        assert "..." in cells[k - 1].source
        assert text_of(cells[k]).startswith(f"{number} not answered yet")
    assert kinds == {"predict", "compute", "prove"}
    assert list(solutions(FOLDER / "solutions" / f"{path.stem}.md")) == numbers
    assert [number for number in WRONG if number.startswith(f"{int(path.name[:2])}.")] == numbers


@pytest.mark.parametrize("path", CHECKED, ids=ids)
def test_cells_are_short_and_plots_fold(path: Path) -> None:
    """A dozen lines or so, no wider than the site shows them; the site folds plots and leaves out dead controls."""
    for cell in read(path).cells:
        tags = cell.metadata.get("tags", [])
        if cell.cell_type == "code":
            assert len(cell.source.splitlines()) <= 16, cell.source
            assert max(map(len, cell.source.splitlines())) <= 90, cell.source
            assert ("hide-input" in tags) == (count_figures(cell) > 0), cell.source
            assert ("remove-cell" in tags) == ("\ninteract(" in f"\n{cell.source}"), cell.source


@pytest.mark.parametrize("path", LESSONS, ids=ids)
def test_a_lesson_has_all_its_parts(path: Path) -> None:
    notebook = read(path)
    prose = prose_of(path)
    assert re.search(r"\*\*(You will learn|After this notebook you can)\*\*", prose)
    assert "## Exercises" in prose
    assert sum(count_figures(cell) for cell in code_cells(notebook)) >= 2
    assert any("interact" in cell.source for cell in code_cells(notebook))
    assert path.stat().st_size < 1_000_000


@pytest.mark.parametrize("path", LESSONS + SOLUTIONS, ids=ids)
def test_every_figure_is_put_into_words(path: Path) -> None:
    """The site shows the text to those who do not see the picture."""
    for cell in code_cells(read(path)):
        if count_figures(cell):
            words = cell.metadata.get("mystnb", {}).get("image", {}).get("alt", "")
            assert len(words.split()) >= 8, f"{path.name} draws without alt text:\n{cell.source}"


@pytest.mark.parametrize("path", LESSONS + SOLUTIONS, ids=ids)
def test_committed_after_one_run_in_order(path: Path) -> None:
    counts = [cell.execution_count for cell in code_cells(read(path))]
    assert counts == list(range(1, len(counts) + 1))


@pytest.mark.parametrize("path", LESSONS + SOLUTIONS, ids=ids)
def test_links_to_other_notebooks_lead_somewhere(path: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+\.(?:ipynb|md))[#)]", prose_of(path)):
        assert (path.parent / target).exists(), target


def test_each_term_of_the_glossary_is_linked_in_the_notebook_that_first_uses_it() -> None:
    aside = re.compile(r"\$[^$]*\$|`[^`]*`|\[[^]]*\]\(\S*ipynb\)")  # formulas, code, and names of notebooks
    glossary = (FOLDER.parent / "docs" / "glossary.md").read_text(encoding="utf-8")
    for term in re.findall(r"^### (.+)$", glossary, re.MULTILINE):
        anchor = re.sub(r"[^\w\- ]", "", term.lower()).replace(" ", "-")
        links = [re.search(rf"\[([^]]+)\]\(../docs/glossary.md#{anchor}\)", prose_of(path)) for path in LESSONS]
        first = next((k for k, link in enumerate(links) if link), None)
        assert first is not None, f"no notebook links {term}"
        words = re.compile(rf"\b{re.escape(links[first][1].strip('*'))}", re.IGNORECASE)
        early = [path.name for path in LESSONS[:first] if words.search(aside.sub("", prose_of(path)))]
        assert early == [], f"{term} is linked in {LESSONS[first].name} only"


@pytest.mark.parametrize("path", LESSONS, ids=ids)
def test_figures_are_sharp_and_of_one_width(path: Path) -> None:
    for cell in code_cells(read(path)):
        for drawn in filter(is_figure, cell.outputs):
            assert re.search(r'<svg [^>]*width="648pt"', drawn.data["image/svg+xml"]), cell.source


@pytest.mark.parametrize("path", LESSONS, ids=ids)
def test_orange_is_for_outliers(path: Path) -> None:
    """The colour has one meaning: a figure that uses it speaks of outliers, within or in the words for it."""
    for cell in code_cells(read(path)):
        for drawn in filter(is_figure, cell.outputs):
            figure = drawn.data["image/svg+xml"] + cell.metadata["mystnb"]["image"]["alt"]
            assert "#d55e00" not in figure or re.search(r"outlier|foreign|flagged", figure), cell.source


def test_each_lesson_is_there_once() -> None:
    numbers = [path.name[:2] for path in LESSONS]
    assert numbers == sorted(set(numbers))
    assert {path.stem for path in (FOLDER / "solutions").iterdir()} == {path.stem for path in LESSONS}


@pytest.mark.parametrize(
    ("stored", "fresh", "same"),
    [
        ("J = 57.3869, gap 1.2e-16", "J = 57.3870, gap 3.3e-12", True),
        ("solved in 0.31 s", "solved in 12 s", True),
        ("289 weight vectors", "291 weight vectors", True),
        ("AUC 0.978", "AUC 0.970", False),
        ("7 are outliers", "8 are outliers", False),
        ("gap 1.8e-02", "gap 1.6e-02", False),
        ("gap 1e-5", "gap 1e-12", False),
        ("status optimal", "status inaccurate", False),
        ("one 1", "one 1 2", False),
    ],
)
def test_stale_outputs_are_told_from_rounding(stored: str, fresh: str, same: bool) -> None:
    assert (first_difference(stored, fresh) is None) is same


def test_only_the_column_of_seconds_is_forgiven() -> None:
    table = "| solver | seconds | J |\n|---|---|---|\n| a | {} | {} |"
    stored, slower, worse = (without_seconds(table.format(*row)) for row in ((0.1, 5.0), (9.9, 5.0), (0.1, 7.0)))
    assert first_difference(stored, slower) is None
    assert first_difference(stored, worse) is not None


def test_only_a_kernel_that_does_not_start_is_tried_again(tmp_path: Path) -> None:
    note = "with open('runs', 'a') as file:\n    file.write('x')"
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(f"{note}\nimport os\nos._exit(1)")])
    with pytest.raises((RuntimeError, nbclient.exceptions.DeadKernelError)):
        executed(notebook, tmp_path)
    assert (tmp_path / "runs").read_text(encoding="utf-8") == "x"

    nowhere = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(note)])
    starts = []

    class Stubborn(Client):
        def execute(self, **options: Any) -> Any:
            starts.append(self)
            if len(starts) == 1:
                raise RuntimeError("Kernel didn't respond in 60 seconds")
            return self.nb

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys.modules[executed.__module__], "Client", Stubborn)
        executed(nowhere, tmp_path)
    assert len(starts) == 2


def test_what_can_go_wrong_is_seen(tmp_path: Path) -> None:
    """A warning, an error inside a control, and a figure that is not drawn."""
    sources = (
        "import warnings, ipywidgets, matplotlib.pyplot as plt\nwarnings.warn('careful')",
        "ipywidgets.interact(lambda x: 1 // 0, x=1)",
        "plt.plot([0, 1])\nplt.show()",
        "plt.plot([0, 1])\nplt.close()",
    )
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in sources])
    nbclient.NotebookClient(notebook, timeout=TIME_LIMIT, resources={"metadata": {"path": str(tmp_path)}}).execute()
    assert ["careful" in warnings_of(cell) for cell in notebook.cells] == [True, False, False, False]
    assert [count_figures(cell) for cell in notebook.cells] == [0, 0, 1, 0]
    assert "error" in {output["output_type"] for output in widget_outputs(notebook)}
