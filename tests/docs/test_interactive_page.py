"""The interactive page: its controls do what they say, on a phone too; contrast; no network; a picture for print."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browser import chromium, printed_pages, run_script
from scripts import load

import llr_cvx as llr
from llr_cvx.solvers.irls import plain_step
from llr_cvx.solvers.smoothing import smoothed

FOLDER = Path(__file__).parents[2] / "docs" / "interactive"
make = load("docs/interactive/make.py")

#: A phone shows the page; a reader moves the sliders, makes a step, then forty with a shrinking epsilon.
VISIT = """
(async () => {
  const page = document.querySelector("iframe").contentDocument, view = document.querySelector("iframe").contentWindow;
  const get = (id) => page.getElementById(id);
  const wait = () => new Promise((done) => setTimeout(done, 400));
  const move = (id, value) => { get(id).value = value; get(id).dispatchEvent(new view.Event("input")); };
  const said = () => ({ ...get("said").dataset });
  const pictures = () => [...page.querySelectorAll("svg")].map((svg) => svg.innerHTML);
  const controls = [...page.querySelectorAll("input, select, button")];
  const box = (control) => (control.closest("label") || control).getBoundingClientRect();
  const seen = {
    width: page.documentElement.scrollWidth,
    visible: !page.querySelector("main").hidden,
    unnamed: controls.filter((c) => !(c.labels && c.labels.length) && !c.textContent.trim()).map((c) => c.id),
    unreachable: controls.filter((c) => { c.focus(); return page.activeElement !== c; }).map((c) => c.id),
    small: controls.filter((c) => box(c).height < 40).map((c) => c.id),
    words: [...page.querySelectorAll("svg")].map((svg) => svg.getAttribute("aria-label")),
  };
  await wait();
  const before = pictures();
  move("lambda1", -0.5);
  move("lambda2", 0);
  await wait();
  seen.moved = pictures().map((text, k) => text !== before[k]);
  seen.penalties = ["lambda1", "lambda2"].map((id) => get(id).getAttribute("aria-valuetext"));
  seen.optimum = { ...get("found").dataset };
  move("epsilon", -2);
  seen.start = said();
  get("step").click();
  seen.step = said();
  get("shrink").click();
  for (let k = 0; k < 8; k++) get("ten").click();
  seen.end = said();
  seen.rows = [...get("history").rows].map((row) => [...row.cells].map((cell) => cell.textContent));
  get("again").click();
  seen.again = said();
  const slice = get("slice1").innerHTML;
  get("sample").value = "0";
  get("sample").dispatchEvent(new view.Event("change"));
  seen.other = get("slice1").innerHTML !== slice;
  return seen;
})()
"""


@pytest.fixture(scope="module")
def visit(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    frame = f'<iframe src="{(FOLDER / "index.html").as_uri()}" style="width: 390px; height: 844px; border: 0"></iframe>'
    return run_script(tmp_path_factory.mktemp("visit"), frame, VISIT)


def problem() -> llr.Problem:
    return llr.Problem(**make.instance(), lambda1=10**-0.5, lambda2=1.0)


def test_the_instance_is_the_one_of_its_script() -> None:
    assert (FOLDER / "instance.js").read_text(encoding="utf-8") == make.script()


def test_it_fits_a_phone_and_a_keyboard(visit: dict[str, Any]) -> None:
    assert visit["visible"]
    assert visit["width"] <= 390
    assert (visit["unnamed"], visit["unreachable"], visit["small"]) == ([], [], [])
    assert all(len(words.split()) >= 8 for words in visit["words"][:-2])  # the last two are drawn a moment later


def test_the_penalties_move_every_picture(visit: dict[str, Any]) -> None:
    assert all(visit["moved"])
    assert len(visit["moved"]) == 7
    assert visit["penalties"] == ["0.316", "1.00"]
    best = llr.solve_fast(problem(), tol=1e-12)
    assert float(visit["optimum"]["J"]) == pytest.approx(best.objective, rel=1e-8)
    assert float(visit["optimum"]["dual"]) == pytest.approx(best.objective, rel=1e-8)
    assert int(visit["optimum"]["rows"]) == len(set(best.clusters))
    assert int(visit["optimum"]["weights"]) == best.support.sum()


def test_steps_are_those_of_algorithm_1(visit: dict[str, Any]) -> None:
    p = problem()
    start = p.y[:, None] * p.X / (1.0 + (p.X**2).sum(axis=1, keepdims=True))
    at = smoothed(p, start, 0.01)
    assert float(visit["start"]["smooth"]) == pytest.approx(at.value, rel=1e-8)
    after = plain_step(p, at, 1e-13)
    assert after is not None
    assert visit["step"]["step"] == "1"
    assert float(visit["step"]["J"]) == pytest.approx(after.objective, rel=1e-8)
    assert float(visit["step"]["smooth"]) == pytest.approx(after.value, rel=1e-8)


def test_the_gap_closes_from_both_sides(visit: dict[str, Any]) -> None:
    best = llr.solve_fast(problem(), tol=1e-12).objective
    gaps = [(float(visit[at]["J"]) - best, best - float(visit[at]["dual"])) for at in ("start", "step", "end")]
    assert np.all(np.diff(gaps, axis=0) < 0)
    assert 0 <= gaps[-1][0] < 1e-3 > gaps[-1][1] >= 0
    assert visit["end"]["step"] == "81"
    assert len(visit["rows"]) == 5
    assert all(0 <= float(fell) <= float(smooth_fell) for *_, fell, smooth_fell, _, _ in visit["rows"])
    assert visit["again"]["step"] == "0"
    assert visit["other"]


#: What has the focus, whether it can be seen, and what the page says.
SEEN = """
const get = (id) => document.getElementById(id), at = document.activeElement, box = at.getBoundingClientRect();
const top = document.elementFromPoint((box.left + box.right) / 2, (box.top + box.bottom) / 2);
return { focus: at.id, value: at.value, checked: at.checked, covered: !(top && at.contains(top)),
  outlined: getComputedStyle(at).outlineStyle !== "none", width: document.documentElement.scrollWidth,
  controls: get("lambda1").form.getBoundingClientRect().height / innerHeight, said: { ...get("said").dataset },
  found: { ...get("found").dataset }, shown: get("lambda1-value").textContent };
"""


@pytest.mark.long
def test_keys_alone_use_the_page_on_a_phone() -> None:
    """Tab reaches every control in its order and shows it; arrows, Enter and the space bar move it."""
    with chromium() as driver:
        from selenium.webdriver.common.action_chains import ActionChains
        from selenium.webdriver.common.keys import Keys

        phone = {"width": 390, "height": 844, "deviceScaleFactor": 2, "mobile": True}
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", phone)
        driver.get((FOLDER / "index.html").as_uri())

        def press(*keys: str) -> dict[str, Any]:
            ActionChains(driver).send_keys(*keys).perform()
            return dict(driver.execute_script(SEEN))

        visits = {}
        for name, keys in (
            ("", []),  # the link back
            ("lambda1", [Keys.ARROW_RIGHT] * 10),
            ("lambda2", [Keys.ARROW_UP] * 10),
            ("epsilon", [Keys.ARROW_LEFT] * 7),
            ("step", [Keys.ENTER]),
            ("ten", [Keys.SPACE]),
            ("again", []),
            ("shrink", [Keys.SPACE]),
            ("sample", [Keys.ARROW_UP]),
            ("feature", [Keys.ARROW_DOWN]),
        ):
            arrived = press(Keys.TAB)
            assert (arrived["focus"], arrived["covered"], arrived["outlined"]) == (name, False, True)
            visits[name] = press(*keys) if keys else arrived
        errors = [entry for entry in driver.get_log("browser") if entry["level"] == "SEVERE"]

    assert errors == []
    assert all(visit["width"] <= 390 for visit in visits.values())
    assert visits["lambda1"]["controls"] < 0.25  # they stay on top while one scrolls
    assert visits["lambda1"]["shown"] == "0.316"
    best = llr.solve_fast(problem(), tol=1e-12)
    assert float(visits["lambda2"]["found"]["J"]) == pytest.approx(best.objective, rel=1e-8)
    assert float(visits["epsilon"]["value"]) == pytest.approx(-2.0)
    assert [visits[name]["said"]["step"] for name in ("epsilon", "step", "ten")] == ["0", "1", "11"]
    assert visits["shrink"]["checked"]
    assert (visits["sample"]["value"], visits["feature"]["value"]) == ("12", "2")


def test_nothing_comes_from_elsewhere() -> None:
    for name in ("index.html", "style.css", "llr.js", "charts.js", "page.js", "instance.js"):
        text = (FOLDER / name).read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")
        assert not re.search(r"https?:|//\w+\.\w|@import|\bfetch\b|XMLHttpRequest|\bimport\b", text), name


def luminance(colour: str) -> float:
    parts = np.array([int(colour[k : k + 2], 16) for k in (1, 3, 5)]) / 255
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def contrast(a: str, b: str) -> float:
    low, high = sorted((luminance(a), luminance(b)))
    return (high + 0.05) / (low + 0.05)


def test_colours_can_be_told_from_the_background_in_light_and_dark() -> None:
    blocks = re.findall(r":root \{(.*?)\}", (FOLDER / "style.css").read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) == 2
    for block in blocks:
        colours = dict(re.findall(r"--(\w+): (#\w{6});", block))
        paper, panel = colours.pop("paper"), colours.pop("panel")
        del colours["grid"]  # decoration
        assert len(colours) == len(set(colours.values())) == 6  # that of outliers is of nothing else
        for name, colour in colours.items():
            assert min(contrast(colour, paper), contrast(colour, panel)) >= 4.5, name
    assert contrast("#ffffff", "#000000") == pytest.approx(21.0)


@pytest.mark.long
def test_it_prints_on_one_sheet(tmp_path: Path) -> None:
    assert (FOLDER / "still.png").stat().st_size > 50_000
    assert printed_pages((FOLDER / "index.html").as_uri(), tmp_path) == 1
