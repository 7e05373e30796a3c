"""The page: escaped, self-contained, in plain words; sorted, filtered and checked for accessibility in a browser."""

from __future__ import annotations

import re
from base64 import b64encode
from datetime import UTC, datetime
from hashlib import sha256
from html import unescape
from html.parser import HTMLParser
from xml.etree import ElementTree

import numpy as np
import pytest
from browser import chromium, serious_violations
from sizes import in_long

from llr_cvx.detection.calibration import BatchVerdict
from llr_cvx.detection.estimator import LLRDetector
from llr_cvx.detection.features import describe
from llr_cvx.detection.screening import detect
from llr_cvx.report.page import MAX_SHOWN, Distribution, histogram, render_report

pd = pytest.importorskip("pandas")
pytest.importorskip("jinja2")

HOSTILE = "<script>document.title='owned'</script>"
NAMES = ["temperature", HOSTILE, "quote\"&'", "d" * 80]


def run(n_outlier=4, rows=30, known=60, names=NAMES, **parameters):
    rng = np.random.default_rng(0)
    good, new = (pd.DataFrame(rng.normal(size=(n, 4)), columns=names) for n in (known, rows))
    good["colour"], new["colour"] = rng.choice(["red", "blue"], known), rng.choice(["red", "blue"], rows)
    new.iloc[:n_outlier, 1] += 6.0
    new.loc[new.index[: n_outlier // 2], "colour"] = "<b>green"
    new.index = [f"<img src=x onerror=alert({k})>" for k in range(rows)]
    good.attrs["source"], new.attrs["source"] = "good & <b>.csv", "new.csv"
    return detect(good, new, LLRDetector(**parameters))


class Page(HTMLParser):
    """The tags, attributes and text of a page; the script and the style apart."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.attributes, self.text, self.open = [], [], [], []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in ("meta", "input"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open[-1:] not in (["script"], ["style"]):
            self.text.append(data)


@pytest.fixture(scope="module")
def found():
    return run(8, contamination=0.3)


@pytest.fixture(scope="module")
def html(found):
    return render_report(found, "Line 4 <test>", datetime(2026, 3, 7, 9, 5, tzinfo=UTC))


def words(html):
    return " ".join("".join(Page(html).text).split())


def test_names_and_values_stay_text(html):
    page = Page(html)
    assert page.open == []  # everything that was opened is closed, in order
    assert page.tags.count("script") == 1
    assert not {"img", "b>", "iframe", "link", "object"} & set(page.tags)
    assert all(not name.startswith("on") and name != "style" for name, _ in page.attributes)
    for text in (HOSTILE, "<img src=x onerror=alert(0)>", "Line 4 <test>", "good & <b>.csv", "<b>green"):
        assert text in words(html)


def test_nothing_is_loaded_and_only_this_script_runs(html):
    page = Page(html)
    assert not {"src", "srcset", "data", "action", "poster"} & {name for name, _ in page.attributes}
    assert all(re.fullmatch(r"#[of]\d+", value) for name, value in page.attributes if name == "href")
    assert "url(" not in html
    assert "@import" not in html
    (policy,) = [value for name, value in page.attributes if name == "content" and "default-src" in value]
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    for kind, tag in (("script", "script"), ("style", "style")):
        text = re.search(rf"<{tag}>(.*?)</{tag}>", html, re.S)[1]
        assert f"{kind}-src 'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'" in policy


def test_it_begins_with_the_verdict_and_ends_with_the_accuracy(found, html):
    text = words(html)
    n = len(found.explanations)
    places = [
        text.index(part)
        for part in (
            f"{n} of 30 rows do not look like the rows known to be good.",
            "Checked on 7 March 2026, 09:05 UTC: 30 rows of new.csv against 60 rows of good & <b>.csv",
            "Rule: score below ",
            "Which columns are behind the outliers",
            "The batch as a whole",
            "All outliers",
            "One by one",
            "Numerical accuracy",
        )
    ]
    assert places == sorted(places)
    assert "prove" not in text[: places[-1]].replace("not proved to be good", "")
    assert f"{found.detector.solution_.certificate.primal:.12g}" in text[places[-1] :]
    assert "colour is <b>green, seen in 0 % of the inliers" in text
    assert html.count("<article") == n
    assert html.endswith("</html>\n")  # as every text file


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"n_outlier": 0, "threshold": 1e-9}, ["None of the 30 rows stands out", "The 5 lowest scores"]),
        ({"threshold": 1e9}, ["30 of 30 rows do not look like"]),
        ({"fdr": 0.1, "random_state": 0, "rows": 10, "known": 100}, ["on average at most 10 % of the rows listed"]),
        ({"fdr": 0.1, "random_state": 0, "n_outlier": 2, "known": 100}, ["fewer than 5 could not be told from chance"]),
        (
            {"false_alarm": 0.05, "random_state": 0},
            ["with a chance of at most 5 %: about 1.5 if all are good", "of all pairs, where 50 % are"],
        ),
        ({"fdr": 0.05, "random_state": 0, "n_outlier": 0, "known": 22}, ["22 rows known to be good are too few"]),
    ],
)
def test_the_verdict_in_other_cases(parameters, said):
    text = words(render_report(run(**parameters)))
    for part in said:
        assert part in text


def test_long_lists_are_cut_and_say_so(monkeypatch):
    for name, value in (("MAX_SHOWN", 3), ("MAX_CAUSES", 1)):
        monkeypatch.setattr(f"llr_cvx.report.page.{name}", value)
    page = render_report(run(threshold=1e9))
    assert page.count("<article") == 3
    assert "The 3 worst of 30 outliers" in page
    assert "The scores file (--out) has all of them." in page
    assert re.search(r"strongest reason. Other columns: \d+\.", page)


def test_only_rare_values_are_also_unusual():
    found = run(contamination=0.3, lambda1=0.5, lambda2=0.01)
    told = re.findall(r'data-label="also:">(.*?)</td>', render_report(found))
    for e, said in zip(found.explanations, told, strict=True):
        named = [f.feature for f in (*e.reasons, *e.also_unusual) if f.position != "within"]
        assert set(filter(None, unescape(said).split(", "))) <= set(named)
    assert any(r.position == "within" and r.contribution < 0 for e in found.explanations for r in e.reasons[1:])


def bars_of(path):
    """Left end, width and height of the bars of a path."""
    numbers = re.findall(r"M(\S+) (\S+)v-(\S+)h(\S+)V(\S+)z", path)
    assert all(base == foot for _, base, _, _, foot in numbers)
    return [(float(x), float(width), float(height)) for x, _, height, width, _ in numbers]


def test_charts_are_well_formed(html):
    for chart in re.findall(r"<svg.*?</svg>", html, flags=re.S):
        root = ElementTree.fromstring(chart)
        room = float(root.get("viewBox", "0 0 120 30").split()[2])
        for path in root.iter("path"):
            for x, width, height in bars_of(path.get("d")):
                assert 0 <= x <= x + width <= room
                assert 0 < height <= 120
            for x, width in re.findall(r"M(\S+) 0h(\S+)v30", path.get("d")):  # the mark of a value
                assert 0 <= float(x) <= float(x) + float(width) <= room
    drawn = re.findall(r'<path id="(f\d+)" d="(.*?)"', html)
    assert all(len(bars_of(path)) >= 2 for _, path in drawn)
    assert {name for name, _ in drawn} == set(re.findall(r'<use class="rows" href="#(f\d+)"', html))


def test_the_histogram_shows_every_score_once():
    scores = np.concatenate([np.random.default_rng(0).normal(size=500), [-9.0, -9.0]])
    drawn = histogram(scores, scores[:100], -2.0)
    rows, outliers, held = (bars_of(drawn[kind]) for kind in ("rows", "outliers", "held"))
    count = 502 / sum(height for *_, height in rows)
    assert sum(height for *_, height in outliers) * count == pytest.approx((scores < -2).sum(), abs=0.5)
    assert sum(height for *_, height in held) * count == pytest.approx(502, rel=0.02)
    assert max(height for *_, height in [*rows, *held]) == 120
    cut = float(re.fullmatch(r"M(\S+) 0V120", drawn["cut"])[1])
    assert all(x + width <= cut for x, width, _ in outliers)  # no bar straddles the line
    assert {bar for bar in rows if bar[0] + bar[1] <= cut} == set(outliers)
    alone = histogram(np.zeros(3), np.empty(0), -np.inf)
    assert [len(bars_of(path)) for path in alone.values()] == [1, 0, 0, 0]
    assert alone["cut"] == ""


@pytest.mark.parametrize("offset", [-0.2, -0.2 + 5e-17, -690.0, 690.0])
def test_a_histogram_of_scores_that_agree_but_for_rounding_is_drawn(offset):
    scores = -0.2 + np.arange(-2, 3) * 5e-17
    drawn = histogram(scores, scores[:2], offset)
    assert sum(height for *_, height in bars_of(drawn["rows"])) >= 120
    assert 0 < float(drawn["cut"][1:].split()[0]) < 440


def test_a_value_is_marked_where_it_lies_or_by_an_arrow():
    frame = pd.DataFrame({"x": [0.0, 1.0, 2.0, 1.0, 50.0, -50.0], "c": ["a", "a", "b", "b", "new", "a"]})
    numbers, levels = describe(frame, ["x", "c"], np.arange(6) < 3)
    drawn = Distribution(numbers, 3)
    assert float(drawn.mark(3)[1:].split()[0]) == pytest.approx(60.0 - 1.5)
    assert drawn.mark(0).startswith("M")
    assert drawn.mark(4) == "M120 15l-9 -7v14z"
    assert drawn.mark(5) == "M0 15l9 -7v14z"
    assert [Distribution(levels, 3).x[k] for k in (0, 2, 4)] == [20.0, 60.0, 100.0]


def many_rows():
    """The page of 20,000 new rows with 20 columns, 1,000 of them shifted; roughly solved: its size is what matters."""
    rng, n = np.random.default_rng(0), 25_000
    table = pd.DataFrame(rng.normal(size=(n, 16)).round(4), columns=[f"sensor {k}" for k in range(16)])
    table["type"], table["maker"] = rng.choice(["a", "b", "c"], n), rng.choice(["x", "y", "z", "<i>w"], n)
    table["tested"] = rng.random(n) < 0.8
    table["day"] = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 365, n), "D")
    table.iloc[:1000, rng.integers(0, 16, 1000)] += 9.0
    table.loc[:8, "type"] = "green"
    good, new = table[20_000:].reset_index(drop=True), table[:20_000]
    detector = LLRDetector(tol=0.3, contamination=0.05, graph_columns=["sensor 0"])
    return render_report(detect(good, new, detector), "Line 4 <test>")


@pytest.mark.parametrize(("size", "width"), [("small", 320), in_long(("small", 1280)), in_long(("large", 1280))])
def test_a_browser_sorts_filters_and_finds_nothing_serious(html, tmp_path, size, width):
    page = html if size == "small" else many_rows()
    assert len(page.encode()) < 3e6
    (tmp_path / "page.html").write_text(page, encoding="utf-8")
    with chromium(width) as driver:
        driver.get((tmp_path / "page.html").as_uri())
        assert driver.title == "Line 4 <test>"  # the script in a column name did not run

        def column(k):
            cells = f"[...document.querySelectorAll('#rows tbody tr td:nth-child({k + 1})')]"
            return driver.execute_script(f"return {cells}.filter(c => c.offsetHeight).map(c => c.textContent)")

        ranks = [int(rank) for rank in column(0)]
        assert ranks == list(range(1, (MAX_SHOWN if size == "large" else len(ranks)) + 1))
        heads = driver.find_elements("css selector", "#rows th button")
        for k, read in ((1, str.lower), (2, float), (0, int)):
            for step in (1, -1) if width > 640 else ():
                heads[k].click()
                values = [read(text) for text in column(k)]
                assert values == sorted(values, reverse=step < 0)
                assert heads[k].find_element("xpath", "..").get_attribute("aria-sort")
        field = driver.find_element("id", "filter")
        field.send_keys("green inliers")
        assert len(column(1)) == (9 if size == "large" else 4)
        assert driver.find_element("id", "shown").text == f"{len(column(1))} of {len(ranks)} rows"
        cards = driver.execute_script(
            "return [...document.querySelectorAll('article')].map(card => card.offsetHeight > 0)"
        )
        assert (len(cards), sum(cards)) == (len(ranks), len(column(1)))
        field.clear()
        field.send_keys(" ")
        assert len(column(1)) == len(ranks)
        wide, room = driver.execute_script("const e = document.documentElement; return [e.scrollWidth, e.clientWidth]")
        assert wide <= room
        assert serious_violations(driver) == []
        assert driver.get_log("browser") == []  # nothing was blocked, nothing failed


def test_sorting_by_name_does_not_depend_on_the_order_before(tmp_path):
    found = run(threshold=1e9, rows=9)
    for k, name in enumerate(["10", "9", "2", "1a", "12-B", "0x10", "1e3", "007", "x"]):
        found.ids[60 + k] = name
    (tmp_path / "page.html").write_text(render_report(found), encoding="utf-8")
    with chromium() as driver:
        driver.get((tmp_path / "page.html").as_uri())
        names = "return [...document.querySelectorAll('#rows tbody tr')].map(row => row.cells[1].textContent)"
        heads, orders = driver.find_elements("css selector", "#rows th button"), []
        for before in (0, 2, 3):
            heads[before].click()
            heads[1].click()
            orders.append(driver.execute_script(names))
        assert orders[0] == orders[1] == orders[2] != found.ids[60:]


@pytest.mark.parametrize("parameters", [{"n_outlier": 0, "fdr": 0.1}, {"false_alarm": 0.2}])
def test_phones_show_every_cell_with_p_values_and_scores(parameters, tmp_path):
    (tmp_path / "page.html").write_text(render_report(run(**parameters, random_state=0)), encoding="utf-8")
    with chromium(320) as driver:
        driver.get((tmp_path / "page.html").as_uri())
        cells = driver.find_elements("css selector", "#rows td")
        assert all(cell.is_displayed() or not cell.text for cell in cells)
        ends = "return [...document.querySelectorAll('#rows td')].map(cell => cell.getBoundingClientRect().right)"
        assert max(driver.execute_script(ends)) <= 320


def test_a_hopeless_batch_has_no_p_of_zero():
    found = run()
    found.batch = BatchVerdict(below=1.0, pvalue=0.0)
    assert "(p below 0.0001)" in words(render_report(found))


def test_marks_that_turn_the_text_around_are_shown():
    page = render_report(run(names=["a", "b\u202ecba\u00a0d", "c", "d"]))
    assert "\u202e" not in page
    assert "b\\u202ecba\u00a0d" in page


def test_it_reads_without_its_script(html, tmp_path):
    other = html.replace("script-src &#39;sha256-", "script-src &#39;sha256-x")
    (tmp_path / "page.html").write_text(other, encoding="utf-8")
    with chromium() as driver:
        driver.get((tmp_path / "page.html").as_uri())
        assert not driver.find_element("id", "filter").is_displayed()
        assert not driver.find_elements("css selector", "#rows th button")
        assert driver.find_element("css selector", "article").is_displayed()
