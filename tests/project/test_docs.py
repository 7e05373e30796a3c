"""The documentation site: builds without a warning or a network, its links hold, and a browser shows it."""

from __future__ import annotations

import importlib
import os
import re
import shlex
import shutil
import subprocess
import sys
from functools import cache
from html.parser import HTMLParser
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import unquote, urlsplit

import numpy as np
import pytest
from browser import browse, chromium, dump_dom, printed_pages, serious_violations
from click.testing import CliRunner
from scripts import load

import llr_cvx
from llr_cvx.arena.judge import STATUSES as ARENA_STATUSES
from llr_cvx.cli import main
from llr_cvx.solution import STATUSES

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
NEEDED = ("sphinx", "myst_nb", "furo", "latex2mathml")


# ---- without building ------------------------------------------------------------------------------------


def documented() -> list[str]:
    """Names in the reference, as written after autofunction and autoclass; the front door's without package."""
    return re.findall(r"^\.\. auto(?:function|class):: (\S+)$", (DOCS / "api.md").read_text("utf-8"), re.MULTILINE)


def test_every_public_name_is_in_the_reference_with_an_example() -> None:
    assert set(llr_cvx.__all__) <= set(documented())
    for name in llr_cvx.__all__:
        assert ">>> " in (getattr(llr_cvx, name).__doc__ or ""), f"{name} has no example"


def test_every_name_in_the_reference_exists() -> None:
    for name in documented():
        module, _, attribute = name.rpartition(".")
        assert hasattr(importlib.import_module(module or "llr_cvx"), attribute), name


def test_the_map_explains_every_public_name() -> None:
    page = (DOCS / "map.md").read_text(encoding="utf-8")
    for name in llr_cvx.__all__:
        assert re.search(rf"`{name}[`(]", page), f"docs/map.md does not say what {name} is for"


def test_the_conventions_list_every_status() -> None:
    page = (DOCS / "conventions.md").read_text(encoding="utf-8")
    assert re.findall(r'^\| `"(\w+)"` \|', page, re.MULTILINE) == list(STATUSES)


@pytest.mark.long
def test_the_detector_page_tells_the_truth(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its examples run, and the outliers shown for the mixed table are those found; so they are from Python."""
    page = (DOCS / "detect.md").read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for example in re.findall(r"^```python\n(.*?)^```$", page, flags=re.DOTALL | re.MULTILINE):
        for large, small in (("50_000", "250"), ("20_000", "100"), (":1000", ":10"), ("range(5)", "range(2)")):
            example = example.replace(large, small)
        exec(compile(example, "detect.md", "exec"), names)
    scores, is_outlier = names["scores"], names["is_outlier"]
    assert is_outlier[np.argsort(scores)[:5]].all()
    assert names["why"].shape == (110, 10)
    assert names["unseen"].shape == (3,)
    assert np.median(names["p"][is_outlier]) < 0.1
    assert names["p_new"].shape == (3,)
    assert names["stable"].shape == (110,)
    (command,) = re.findall(r"^llr-cvx (detect .*new.xlsx .*)$", page, re.MULTILINE)
    done = CliRunner().invoke(main, [*shlex.split(command), "--out", "scores.parquet"])
    assert done.exit_code == 0, done.output
    (shown,) = re.findall(r"^```text\n(.*?)^```$", page, flags=re.DOTALL | re.MULTILINE)
    varies = re.compile(r"\(proven [^)]*\)|relative gap \S+ |\d+\.\d+ s$", re.MULTILINE)
    number = re.compile(r"\d+(?:\.\d+)?")
    printed, expected = varies.sub("", done.stdout), varies.sub("", shown)
    assert number.sub("", printed) == number.sub("", expected)
    assert list(map(float, number.findall(printed))) == pytest.approx(
        list(map(float, number.findall(expected))), rel=1e-2
    )
    found = names["pd"].read_parquet("scores.parquet")
    assert found["log_ratio"].tolist() == names["mixed"].log_ratio_[240:].tolist()
    (many,) = re.findall(r"^`llr-cvx (detect -v .*)` ends", page, re.MULTILINE)
    steps = CliRunner().invoke(main, [*shlex.split(many), "-q"])
    assert re.search(r"reading \S+ s; fitting and explaining \S+ s; writing \S+ s", steps.stderr), steps.output


@pytest.mark.long
def test_the_proof_page_tells_the_truth(tmp_path: Path) -> None:
    """Its program writes a certificate that its command confirms, and a changed claim is rejected."""
    page = (DOCS / "proof.md").read_text(encoding="utf-8")
    (program,) = re.findall(r"^```python\n(.*?)^```$", page, flags=re.DOTALL | re.MULTILINE)
    (command,) = re.findall(r"^```sh\n(.*?)^```$", page, flags=re.DOTALL | re.MULTILINE)
    subprocess.run([sys.executable, "-c", program], cwd=tmp_path, env=_environment(), check=True)
    arguments = [sys.executable, *command.split()[1:]]
    assert subprocess.run(arguments, cwd=tmp_path, env=_environment(), capture_output=True, check=False).returncode == 0
    claim = tmp_path / "certificate.json"
    claim.write_text(re.sub(r'"dual": [\d.]+', '"dual": 1e3', claim.read_text("utf-8")), encoding="utf-8")
    assert subprocess.run(arguments, cwd=tmp_path, env=_environment(), capture_output=True, check=False).returncode == 1


@pytest.mark.long
@pytest.mark.skipif(shutil.which("cc") is None, reason="the page compiles a solver in C: install gcc")
def test_the_arena_page_tells_the_truth(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its solver gets the rows that are shown, and every command on it runs and ends as it says."""
    page = (DOCS / "arena.md").read_text(encoding="utf-8")
    (program,) = re.findall(r"^```python\n(.*?)^```$", page, flags=re.DOTALL | re.MULTILINE)
    (shown,) = re.findall(r"^```text\n(.*?)^```$", page, flags=re.DOTALL | re.MULTILINE)
    (tmp_path / "mine.py").write_text(program, encoding="utf-8")
    shutil.copytree(DOCS / "examples", tmp_path / "docs" / "examples")
    commands = re.findall(r"^```sh\n(.*?)^```$", page, flags=re.DOTALL | re.MULTILINE)
    monkeypatch.chdir(tmp_path)
    ended = []
    for program, *words in map(shlex.split, "".join(commands).splitlines()):
        if program == "llr-cvx":
            ended.append(CliRunner().invoke(main, words))
        else:
            subprocess.run([program, *words], check=True)
    assert [done.exit_code for done in ended] == [1, 1, 0, 1, 1, 0], [done.output for done in ended]
    for line, printed in zip(shown.splitlines()[2:5], ended[0].stdout.splitlines()[2:5], strict=True):
        assert line.split()[:5] == printed.split()[:5]  # instance, N, d, status
        assert float(line.split()[5]) == pytest.approx(float(printed.split()[5]), rel=0.5)
    assert shown.splitlines()[-1] == ended[0].stdout.splitlines()[-1]
    assert (tmp_path / "page.html").stat().st_size > 10_000


def test_the_arena_page_lists_every_status() -> None:
    page = (DOCS / "arena.md").read_text(encoding="utf-8")
    table = page.partition("| status | meaning |")[2].partition("\n\n")[0]
    assert set(re.findall(r"^\| ([a-z ]+) \|", table, re.MULTILINE)) == set(ARENA_STATUSES)


def _environment() -> dict[str, str]:
    """The source tree on the path, and every proxy pointing nowhere: what needs a network fails."""
    nowhere = dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), "http://127.0.0.1:9")
    return {**os.environ, **nowhere, "PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1"}


# ---- the built site --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        pytest.skip(f'{", ".join(missing)} not installed: pip install ".[docs]"')
    out = tmp_path_factory.mktemp("site") / "html"
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-c", "docs", ".", str(out)]
    built = subprocess.run(command, cwd=ROOT, env=_environment(), capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    return out


class Page(HTMLParser):
    """Links, resources, anchors and images of one page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.resources: list[str] = []
        self.anchors: set[str] = set()
        self.descriptions: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self.anchors |= {values[key] for key in ("id", "name") if key in values}
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        if tag in ("img", "script", "iframe", "source") and "src" in values:
            self.resources.append(values["src"])
        if tag == "img":
            self.descriptions.append(values.get("alt", ""))
        if tag == "link" and "href" in values:
            self.resources.append(values["href"])


@cache
def parsed(path: Path) -> Page:
    """A page, read once."""
    return Page(path)


def broken_links(site: Path) -> list[str]:
    """Local links and resources without a target, as "page -> link"."""
    pages = {path.resolve(): parsed(path) for path in site.rglob("*.html")}
    broken = []
    for path, page in pages.items():
        for link in [*page.links, *page.resources]:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            anchor = unquote(parts.fragment)
            if not target.exists() or (anchor and target in pages and anchor not in pages[target].anchors):
                broken.append(f"{path.relative_to(site.resolve())} -> {link}")
    return broken


def test_internal_links_hold(site: Path) -> None:
    assert broken_links(site) == []


def test_the_link_check_sees_a_missing_page(site: Path, tmp_path: Path) -> None:
    damaged = shutil.copytree(site, tmp_path / "damaged")
    (damaged / "docs" / "proof.html").unlink()
    assert any("proof.html" in link for link in broken_links(damaged))


def test_every_page_is_there(site: Path) -> None:
    notebooks = sorted((ROOT / "notebooks").glob("*.ipynb"))
    assert len(notebooks) >= 7
    for page in ("index", "README", "CHANGELOG", *(f"docs/{path.stem}" for path in DOCS.glob("*.md"))):
        assert (site / f"{page}.html").exists(), page
    assert "url=docs/index.html" in (site / "index.html").read_text(encoding="utf-8")
    for notebook in notebooks:
        page = site / "notebooks" / f"{notebook.stem}.html"
        assert "<img" in page.read_text(encoding="utf-8"), f"{notebook.name} shows no figure"


def test_the_reference_reads_properties_as_sentences(site: Path) -> None:
    """The words before a colon are no type, no escape is left over, and a shape of an array is not Problem.shape."""
    source = (site / "docs" / "api.html").read_text(encoding="utf-8")
    page = re.sub(r"<[^>]*>", "", source)
    assert "Whether J has a minimiser: not if lambda2 = 0" in page
    assert "The paper\u2019s: few features per outlier" in page
    assert "\\_" not in page
    assert "factory" not in page
    assert "*args" not in page
    assert ">Trace</a> or None" in source
    assert ">shape</a>" not in source


def test_reading_needs_no_network(site: Path) -> None:
    """No script, style or picture from elsewhere; formulas are MathML."""
    for path in site.rglob("*.html"):
        far = [link for link in parsed(path).resources if urlsplit(link).scheme in ("http", "https")]
        assert far == [], f"{path.name} loads {far}"
    assert "<math " in (site / "docs" / "paper.html").read_text(encoding="utf-8")


def badly_drawn(site: Path) -> list[str]:
    """Formulas with TeX that was not understood, or with what browsers shrink or leave out, as "page: formula"."""
    shrunk, grown = r"[\u23df\u2032]</m[io]>|&#x23DF;|<mi>&#x02032;", r"<mo>(\u2016|&#x02016;|\|)</mo>"
    bad = re.compile(rf">\\[a-z]+|<menclose|{shrunk}|{grown}")
    return [
        f"{path.relative_to(site)}: {formula}"
        for path in sorted(site.rglob("*.html"))
        for formula in re.findall(r"<math .*?</math>", path.read_text(encoding="utf-8"), re.DOTALL)
        if bad.search(formula)
    ]


def test_browsers_draw_every_formula(site: Path) -> None:
    assert badly_drawn(site) == []
    assert ">argmax<" in (site / "notebooks" / "02_two_extremes.html").read_text(encoding="utf-8")


def test_a_formula_that_is_badly_drawn_is_seen(tmp_path: Path) -> None:
    convert = pytest.importorskip("latex2mathml.converter").convert
    bad = (r"\arg\max_k", r"\boxed{a}", r"\underbrace{a}_{b}", "n'", r"\lVert w\rVert")
    (tmp_path / "page.html").write_text("".join(map(convert, (*bad, "w_i"))), encoding="utf-8")
    assert len(badly_drawn(tmp_path)) == len(bad)


def test_tables_are_tables_and_no_control_is_dead(site: Path) -> None:
    for path in sorted((site / "notebooks").glob("*.html")):
        page = path.read_text(encoding="utf-8")
        assert "interact(" not in re.sub("<[^>]*>", "", page), f"{path.name} shows a control that does nothing"
        assert not re.search(r"<p>\|", page), f"{path.name} shows a table as pipes"


def undescribed(site: Path) -> list[str]:
    """Pictures whose alt text is missing, a file name, or too short to say what is seen, as "page: text"."""
    return [
        f"{path.relative_to(site)}: {text!r}"
        for path in sorted(site.rglob("*.html"))
        for text in parsed(path).descriptions
        if len(text.split()) < 8 or text.endswith((".png", ".svg"))
    ]


def test_every_figure_is_described(site: Path) -> None:
    described = [text for path in site.rglob("*.html") for text in parsed(path).descriptions]
    assert len(described) >= 30
    assert len(set(described)) >= 28  # hardly a text for two pictures
    assert undescribed(site) == []
    (readme,) = parsed(site / "README.html").descriptions
    assert "each outlier" in readme  # a line ends between these words


def test_a_figure_without_words_is_seen(tmp_path: Path) -> None:
    page = '<img src="a.png"><img src="b.png" alt="_images/b.png"><img src="c.png" alt="Figure: the model">'
    (tmp_path / "page.html").write_text(page, encoding="utf-8")
    assert len(undescribed(tmp_path)) == 3


def test_code_is_shown_beside_its_equations(site: Path) -> None:
    page = (site / "docs" / "beside_the_equations.html").read_text(encoding="utf-8")
    rows = re.findall(r'class="beside docutils container">(.*?)</pre>', page, re.DOTALL)
    named = re.findall(r"^@ ", (DOCS / "beside_the_equations.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert len(rows) == len(named) > 50
    assert all("beside-words" in row and "beside-code" in row and "highlight-python" in row for row in rows)
    assert sum("<math" in row for row in rows) > 40


def test_signs_and_functions_have_the_room_that_tex_gives_them() -> None:
    pytest.importorskip("latex2mathml", reason="the site needs the extra docs")
    mathml = load("docs/formulas.py").mathml

    def room(tex: str) -> list[tuple[str, ...]]:
        """The text of each operator of a formula with its room before and after."""
        return re.findall(r'<mo form="\w+" lspace="(\S+?)" rspace="(\S+?)">(\S+?)</mo>', mathml(tex, "inline"))

    sign, term = ("0", "0", "\u2212"), ("0.22em", "0.22em", "\u2212")
    assert room("y \\to -y") == room("s(-y)") == room("-y") == room("\\sum_i -y") == [sign]
    assert room("x-y") == room("(x)-y") == room("x_i\\;-y") == room("\\lVert x\\rVert - y") == [term]
    assert room("v \\pm \\sum_e U") == [("0.22em", "0.22em", "±")]
    assert room("n/n'") == [("0", "0", "/")]
    assert room("a\\log a") == [("0.17em", "0.17em", "log")]
    assert room("\\log(1)") == [("0", "0", "log")]
    assert room("\\max(1)") == [("0", "0", "max")]
    assert room("x + \\dots + y") == room("\\underbrace{\\sum_i x}_{a} + y + z") == [("0.22em", "0.22em", "+")] * 2
    assert "*" not in mathml("w_i^{*\\top}", "inline")  # it would stand above the exponents


def test_lines_break_where_a_reader_would_break_them(site: Path) -> None:
    """Formulas keep punctuation on their line, and the bracket before them; 1e-6, d = 10 and p-value stay whole."""
    pages = [path.read_text(encoding="utf-8") for path in site.rglob("*.html") if path.name != "slides.html"]
    assert sum(page.count('<span class="together">') for page in pages) > 500
    assert [found for page in pages for found in re.findall(r"</math>[,.;:)]+(?![,.;:)]|</span>).*", page)] == []
    notebook = (site / "notebooks" / "01_the_model.html").read_text(encoding="utf-8")
    assert re.search(r'<span class="together"><math [^>]*>.{1,200}</math>,</span>', notebook)
    page = (site / "docs" / "detect.html").read_text(encoding="utf-8")
    for word in ("1e-6", "5 %", "p-values", "t-test", "λ2 = 0.01", "p ≤ 0.05", "28 s"):
        assert f'<span class="together">{word}</span>' in page
    assert '<code class="long docutils literal notranslate"><span class="pre">llr_cvx.detection.calibration' in page


#: What may be wider than a phone, since it scrolls by itself.
SCROLLS = "pre, .table-wrapper, .math-wrapper, .cell_output, .scroll, .formula, :has(> img)"


@pytest.mark.long
def test_on_a_phone_and_on_paper_pages_show_all(site: Path) -> None:
    """No page is wider than the phone; what is too wide scrolls by itself. Links for keyboards are not printed."""
    wide = f"""return [...document.querySelectorAll("body, body *")].filter((part) =>
        part.scrollWidth > part.clientWidth + 1 && /auto|scroll/.test(getComputedStyle(part).overflowX)
        && !part.matches("{SCROLLS}")).map((part) => part.className)"""
    with chromium() as driver:
        phone = {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True}
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", phone)
        for path in sorted(site.rglob("*.html")):
            driver.get(path.as_uri())
            assert driver.execute_script(wide) == [], path.name
            assert driver.execute_script("return document.documentElement.scrollWidth") <= 390, path.name
        driver.execute_script("document.body.innerHTML = '<div class=content style=overflow:auto><p>'+'x'.repeat(900)")
        assert driver.execute_script(wide) == ["content"]  # it would be seen
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
        driver.get((site / "docs" / "proof.html").as_uri())
        shown = "return getComputedStyle(document.querySelector('.skip-to-content')).display"
        assert driver.execute_script(shown) == "none"


@pytest.mark.long
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_are_accessible(site: Path, scheme: str) -> None:
    """A notebook, a page of text and a page of code beside equations, as axe-core sees them."""
    with chromium() as driver:
        media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
        for page in ("notebooks/03_irls", "README", "docs/beside_the_equations"):
            driver.get((site / f"{page}.html").as_uri())
            assert serious_violations(driver) == [], page


@pytest.mark.long
def test_the_cheat_sheet_prints_on_one_page(site: Path, tmp_path: Path) -> None:
    assert printed_pages((site / "docs" / "lesson" / "cheatsheet.html").as_uri(), tmp_path) == 1
    assert printed_pages((site / "docs" / "lesson" / "quiz.html").as_uri(), tmp_path) > 1  # the count can be larger


@pytest.mark.long
@pytest.mark.parametrize(("page", "words"), [("docs/index", "Building this site"), ("docs/proof", "What it proves")])
def test_a_browser_shows_it(site: Path, tmp_path: Path, page: str, words: str) -> None:
    address = (site / f"{page}.html").as_uri()
    dom = dump_dom(address, tmp_path / "profile")
    assert words in dom
    assert "<nav" in dom or "sidebar" in dom
    picture = tmp_path / "page.png"
    browse(address, tmp_path / "profile", "--window-size=1200,1600", f"--screenshot={picture}")
    assert picture.stat().st_size > 20_000  # an empty page is a few kilobytes
