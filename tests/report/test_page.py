"""The report: escaped, self-contained, and rendered by a real browser."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from html.parser import HTMLParser
from xml.etree import ElementTree

import numpy as np
import pytest

from llr_cvx.detection.estimator import LLRDetector
from llr_cvx.detection.screening import detect
from llr_cvx.detection.tables import Frame
from llr_cvx.report import svg
from llr_cvx.report.page import MAX_CARDS, MAX_TABLE_ROWS, render_report

HOSTILE = "<script>document.title='owned'</script>"
BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)


def run(n_outlier=4, columns=("temperature", HOSTILE, "quote\"&'", "d" * 80), **parameters):
    rng = np.random.default_rng(0)
    good, new = rng.normal(size=(60, 4)), rng.normal(size=(30, 4))
    new[:n_outlier, 1] += 6.0
    ids = tuple(f"<img src=x onerror=alert({k})>" for k in range(30))
    inliers = Frame("good & <b>.csv", columns, good, tuple(map(str, range(60))))
    return detect(inliers, Frame("new.csv", columns, new, ids), LLRDetector(**parameters))


class Page(HTMLParser):
    """The tags, attributes and text of a page."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.attributes, self.text, self.open = [], [], [], []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


@pytest.fixture(scope="module")
def found():
    return run()


@pytest.fixture(scope="module")
def html(found):
    return render_report(found, title="Line 4 <test>")


def test_names_and_values_stay_text(html):
    page = Page(html)
    assert page.open == []  # everything that was opened is closed, in order
    assert not {"script", "img", "b>", "iframe", "link", "object"} & set(page.tags)
    assert all(not name.startswith("on") for name, _ in page.attributes)
    text = "".join(page.text)
    assert HOSTILE in text
    assert "<img src=x onerror=alert(0)>" in text
    assert "Line 4 <test>" in text
    assert "good & <b>.csv" in text


def test_nothing_is_loaded_from_anywhere(html):
    page = Page(html)
    loading = {"src", "srcset", "data", "action", "poster", "background"}
    assert not loading & {name for name, _ in page.attributes}
    links = {value for name, value in page.attributes if name in ("href", "xlink:href")}
    assert links
    assert all(re.fullmatch(r"#o\d+", link) for link in links)
    assert "url(" not in html
    assert "@import" not in html
    assert "default-src 'none'" in html


def test_it_says_what_was_found(found, html):
    text = "".join(Page(html).text)
    assert f"{len(found.explanations)} of 30 test rows score" in text
    for e in found.explanations:
        assert f"r = {e.ratio:.4g}" in text
    assert f"{found.detector.solution_.certificate.primal:.12g}" in text
    assert "lambda1" in text
    assert "standard" in text


def test_charts_are_well_formed(found, html):
    charts = re.findall(r"<svg.*?</svg>", html, flags=re.S)
    assert len(charts) >= 1 + 2 * len(found.explanations)
    for chart in charts:
        root = ElementTree.fromstring(chart)
        width, height = (float(x) for x in root.get("viewBox").split()[2:])
        for rect in root.iter("rect"):
            x, y, w, h = (float(rect.get(k)) for k in ("x", "y", "width", "height"))
            assert w >= 0
            assert h >= 0
            assert -1 <= x <= x + w <= width + 1
            assert -1 <= y <= y + h <= height + 1


def test_no_outlier_all_outliers_and_one_row():
    nothing = render_report(run(n_outlier=0, threshold=1e-9))
    assert "None of the 30 test rows scores below the threshold" in nothing
    assert "Ranked outliers" not in nothing
    everything = render_report(run(threshold=1e9))
    assert "30 of 30 test rows score below" in everything
    rng = np.random.default_rng(0)
    good = Frame("good.csv", ("a", "b"), rng.normal(size=(20, 2)), tuple(map(str, range(20))))
    one = render_report(detect(good, Frame("one.csv", ("a", "b"), np.array([[9.0, 0.0]]), ("only",)), LLRDetector()))
    assert "of 1 test rows" in one.replace("the 1 test", "of 1 test")


def test_long_lists_are_cut_and_say_so(monkeypatch):
    monkeypatch.setattr("llr_cvx.report.page.MAX_CARDS", 3)
    monkeypatch.setattr("llr_cvx.report.page.MAX_TABLE_ROWS", 5)
    page = render_report(run(threshold=1e9))
    assert page.count('<article class="card"') == 3
    assert "The first 3 of 30 outliers are shown" in page
    assert "25 more outliers" in page
    assert MAX_CARDS < MAX_TABLE_ROWS


def test_histogram_counts_every_row_once():
    scores = np.concatenate([np.random.default_rng(0).normal(size=500), [-9.0, -9.0]])
    root = ElementTree.fromstring(svg.histogram(scores, -2.0, "scores"))
    counts = {"out": 0, "known": 0}
    for rect in root.iter("rect"):
        counts[rect.get("class")] += int(rect.find("title").text.split()[0])
    assert counts == {"out": int((scores < -2).sum()), "known": int((scores >= -2).sum())}
    assert "threshold" in svg.histogram(np.zeros(3), 0.0, "all equal")


@pytest.mark.skipif(BROWSER is None, reason="no Chromium or Chrome is installed to open the page with")
@pytest.mark.parametrize("width", [360, 1200])
def test_a_browser_shows_it_without_overflow_or_script(html, tmp_path, width):
    """The page is shown in a frame of the given width and inspected from the outer document."""
    (tmp_path / "page.html").write_text(html, encoding="utf-8")
    (tmp_path / "outer.html").write_text(
        f"""<!DOCTYPE html><body>
        <iframe id="f" src="page.html" style="width:{width}px;height:900px;border:0"></iframe>
        <pre id="said">not loaded</pre><script>
        document.getElementById("f").addEventListener("load", event => {{
          const page = event.target.contentDocument, root = page.documentElement, shown = page.querySelector("svg");
          document.getElementById("said").textContent = JSON.stringify([
            root.scrollWidth, root.clientWidth, page.title, page.querySelectorAll("article").length,
            page.scripts.length, shown.getBoundingClientRect().height > 50]);
        }});</script></body>""",
        encoding="utf-8",
    )
    flags = (
        "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
        "--disable-component-update --disable-sync --allow-file-access-from-files --virtual-time-budget=5000 "
        "--dump-dom"
    )
    command = [
        BROWSER,
        *flags.split(),
        f"--user-data-dir={tmp_path / 'profile'}",
        (tmp_path / "outer.html").as_uri(),
    ]
    dom = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout
    said = re.search(r'<pre id="said">(.*?)</pre>', dom, flags=re.S)[1].replace("&lt;", "<").replace("&gt;", ">")
    scroll, client, title, cards, scripts, drawn = json.loads(said)
    assert scroll <= client <= width
    assert title == "Line 4 <test>"  # the script in a column name did not run
    assert cards >= 4
    assert scripts == 0
    assert drawn
