"""A headless browser for tests: what a page says once its scripts have run, how many pages it prints to, and clicks.

Where there is none, such tests are skipped, with the reason.
"""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
OPTIONS = ("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--allow-file-access-from-files")


def browse(address: str, profile: Path, *options: str) -> str:
    """Open a page in a new profile and return what the browser writes; skip the test where there is no browser."""
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        pytest.skip(f"no browser found: one of {', '.join(BROWSERS)} is needed; Debian: apt-get install chromium")
    command = [browser, *OPTIONS, f"--user-data-dir={profile}", *options, address]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def dump_dom(address: str, profile: Path) -> str:
    """The page as HTML after its scripts and timers have run."""
    return browse(address, profile, "--virtual-time-budget=20000", "--dump-dom")


def run_script(folder: Path, body: str, expression: str) -> Any:
    """The value of a JavaScript expression, which may be a promise, in a page with this body; an error is raised."""
    page = folder / "page.html"
    finish = f"""<pre id="result"></pre><script>
addEventListener("load", async () => {{
  let found;
  try {{ found = {{ value: await ({expression}) }}; }} catch (error) {{ found = {{ error: String(error.stack) }}; }}
  document.getElementById("result").textContent = JSON.stringify(found);
}});</script>"""
    page.write_text(f"<!doctype html><meta charset='utf-8'>{body}{finish}", encoding="utf-8")
    dom = dump_dom(page.as_uri(), folder / "profile")
    (text,) = re.findall(r'<pre id="result">(.*?)</pre>', dom, re.DOTALL)
    found = json.loads(html.unescape(text))
    assert "error" not in found, found["error"]
    return found["value"]


def printed_pages(address: str, folder: Path) -> int:
    """How many sheets of paper the page takes."""
    pdf = folder / "print.pdf"
    browse(address, folder / "profile", "--no-pdf-header-footer", f"--print-to-pdf={pdf}")
    return len(re.findall(rb"/Type\s*/Page\b", pdf.read_bytes()))


@contextmanager
def chromium(width: int = 1280, height: int = 1000) -> Iterator[Any]:
    """A driver of Debian's Chromium, without network."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="clicking needs selenium (extra test)")
    paths = [shutil.which("chromium"), shutil.which("chromedriver")]
    if None in paths:
        pytest.skip("clicking needs Chromium and its driver: apt-get install chromium chromium-driver")
    options = webdriver.ChromeOptions()
    options.binary_location = paths[0]
    for flag in ("headless", "no-sandbox", "disable-gpu", "disable-dev-shm-usage", f"window-size={width},{height}"):
        options.add_argument(f"--{flag}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options, webdriver.ChromeService(paths[1]))
    # A window is never narrower than 500 pixels; a phone is.
    screen = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
    try:
        yield driver
    finally:
        driver.quit()


def serious_violations(driver: Any) -> list[str]:
    """What axe-core finds on the page shown that is serious or critical, with the first element of each."""
    axe = pytest.importorskip("axe_core_python", reason="the accessibility check needs axe-core-python (extra test)")
    driver.execute_script((Path(axe.__file__).parent / "axe.min.js").read_text(encoding="utf-8"))
    driver.set_script_timeout(120)
    # Of what passes, one element per rule: naming all of them takes minutes on a large page.
    found = driver.execute_async_script("axe.run({resultTypes: ['violations']}).then(arguments[arguments.length - 1])")
    assert len(found["passes"]) > 10
    return [
        f"{v['id']}: {v['nodes'][0]['html'][:200]}"
        for v in found["violations"]
        if v["impact"] in ("serious", "critical")
    ]
