"""Wheel and source distribution: built, checked; the wheel run alone, without source tree or extras."""

from __future__ import annotations

import importlib.metadata
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from readme_renderer import markdown

from llr_cvx import course

ROOT = Path(__file__).parents[2]
LEFT_OUT = shutil.ignore_patterns(".git", ".venv", ".*_cache", "__pycache__", "_build", ".hypothesis")


def run(*command: object, cwd: Path | None = None, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")} | variables
    words = [str(word) for word in command]
    return subprocess.run(words, cwd=cwd, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """(wheel, source distribution), made from a copy; offline, by the build backend of this environment."""
    source = shutil.copytree(ROOT, tmp_path_factory.mktemp("source") / "copy", ignore=LEFT_OUT)
    dist = tmp_path_factory.mktemp("dist")
    done = run(sys.executable, "-m", "hatchling", "build", "-d", dist, cwd=source)
    assert done.returncode == 0, done.stderr
    (wheel,), (sdist,) = dist.glob("*.whl"), dist.glob("*.tar.gz")
    return wheel, sdist


def closure(extra: str = "") -> list[importlib.metadata.Distribution]:
    """The distributions that `pip install llr-cvx`, or with an extra, brings, without the package itself."""
    found: dict[str, importlib.metadata.Distribution] = {}
    waiting = [("llr-cvx", extra)]
    while waiting:
        package, of = waiting.pop()
        for line in importlib.metadata.requires(package) or []:
            needed = Requirement(line)
            name = canonicalize_name(needed.name)
            if name not in found and (needed.marker is None or needed.marker.evaluate({"extra": of})):
                found[name] = importlib.metadata.distribution(name)
                waiting.append((name, ""))
    return list(found.values())


def link(distributions: list[importlib.metadata.Distribution], place: Path) -> None:
    """Put installed distributions into another environment."""
    (site,) = place.glob("lib/python*/site-packages")
    for distribution in distributions:
        for top in {file.parts[0] for file in distribution.files or [] if file.parts[0] not in ("..", "__pycache__")}:
            if not (site / top).exists():
                (site / top).symlink_to(Path(str(distribution.locate_file(top))))


@pytest.fixture(scope="module")
def alone(built: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bin folder of an environment with the wheel, its core dependencies (linked from here), and nothing else."""
    place = tmp_path_factory.mktemp("alone") / "venv"
    assert run(sys.executable, "-m", "venv", "--without-pip", place).returncode == 0
    link(closure(), place)
    arguments = ("--quiet", "--offline", "--no-deps", "--no-cache", "--python", place / "bin" / "python", built[0])
    done = run(sys.executable, "-m", "uv", "pip", "install", *arguments)
    assert done.returncode == 0, done.stderr
    return place / "bin"


# ---- what is in them -------------------------------------------------------------------------------------


@pytest.mark.long
def test_twine_finds_nothing_wrong(built: tuple[Path, Path]) -> None:
    done = run(sys.executable, "-m", "twine", "check", "--strict", *built, NO_COLOR="1")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("PASSED") == 2


def test_check_wheel_contents_finds_nothing_wrong(built: tuple[Path, Path]) -> None:
    done = run(sys.executable, "-m", "check_wheel_contents", "--no-config", "--toplevel", "llr_cvx", built[0])
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_wheel_has_the_package_and_the_source_has_all_the_rest(built: tuple[Path, Path]) -> None:
    wheel = zipfile.ZipFile(built[0]).namelist()
    assert {
        "llr_cvx/py.typed",
        "llr_cvx/report/page.css",
        "llr_cvx/report/page.html",
        "llr_cvx/instances/data/paper-d10.npz",
    } <= set(wheel)
    with tarfile.open(built[1]) as archive:
        source = {name.partition("/")[2] for name in archive.getnames()}
    assert {"README.md", "docs/index.md", "tests/builders.py", "notebooks/readme_picture.png", ".ci/run"} <= source
    assert {"hatch_build.py", "CITATION.cff", "LICENSE", "recipe/recipe.yaml"} <= source


# ---- the README on a package index -----------------------------------------------------------------------


def description(wheel: Path) -> str:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        return archive.read(name).decode().partition("\n\n")[2]


def dead_links(html: str) -> list[str]:
    return [link for link in re.findall(r'(?:href|src)="([^"]*)"', html) if not link.startswith(("https://", "#"))]


def test_no_link_of_the_description_is_dead(built: tuple[Path, Path]) -> None:
    html = markdown.render(description(built[0]))
    assert html is not None
    assert "https://arxiv.org/abs/1702.06354" in html
    assert dead_links(html) == []
    assert "docs/detect.md" in html  # named, though there is nothing to link to
    assert "$$" not in html
    assert dead_links(str(markdown.render((ROOT / "README.md").read_text("utf-8"))))  # the check sees relative links


def test_with_a_repository_links_and_pictures_are_absolute(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT)
    from hatch_build import for_an_index

    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    html = str(markdown.render(for_an_index(readme, "https://example.org/llr/")))
    assert dead_links(html) == []
    assert re.search(r'<img [^>]*src="https://example\.org/llr/raw/HEAD/notebooks/readme_picture\.png"', html)
    assert 'href="https://example.org/llr/blob/HEAD/docs/detect.md"' in html
    with pytest.raises(ValueError, match="no longer says"):
        for_an_index("another text", None)


# ---- the wheel alone -------------------------------------------------------------------------------------


@pytest.mark.long
def test_it_is_really_alone(alone: Path, tmp_path: Path) -> None:
    code = "from importlib.util import find_spec as f; print(f('llr_cvx').origin); print(f('matplotlib'))"
    place, extra = run(alone / "python", "-c", code, cwd=tmp_path).stdout.split()
    assert Path(place).is_relative_to(alone.parent)
    assert extra == "None"


@pytest.mark.long
def test_verify(alone: Path, tmp_path: Path) -> None:
    done = run(alone / "llr-cvx", "verify", "--size", 24, "--dim", 3, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "All holds" in done.stdout


@pytest.mark.long
def test_detect_says_what_to_install(alone: Path, tmp_path: Path) -> None:
    for name in ("good.csv", "new.csv"):
        (tmp_path / name).write_text("u,v\n1,2\n", encoding="utf-8")
    done = run(alone / "llr-cvx", "detect", "--inliers", "good.csv", "--test", "new.csv", cwd=tmp_path)
    assert done.returncode == 1
    assert 'tables need pandas: pip install "llr-cvx[tables] @ ' in done.stderr


@pytest.mark.long
def test_detect_with_its_extra(alone: Path, tmp_path: Path) -> None:
    place = Path(shutil.copytree(alone.parent, tmp_path / "venv", symlinks=True))
    link(closure("tables"), place)
    rng = np.random.default_rng(0)
    for name, rows in (("good.csv", 40), ("new.csv", 22)):
        np.savetxt(tmp_path / name, rng.normal(size=(rows, 3)), delimiter=",", header="u,v,w", comments="")
    files = ("--inliers", "good.csv", "--test", "new.csv", "--out", "scores.csv", "--report", "page.html")
    done = run(place / "bin" / "python", "-m", "llr_cvx", "detect", *files, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert len((tmp_path / "scores.csv").read_text(encoding="utf-8").splitlines()) == 23
    assert "</html>" in (tmp_path / "page.html").read_text(encoding="utf-8")


@pytest.mark.long
def test_the_course_comes_out_of_the_wheel(alone: Path, tmp_path: Path) -> None:
    done = run(alone / "llr-cvx", "notebooks", "course", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    copied = {p.relative_to(tmp_path / "course").as_posix(): p for p in tmp_path.rglob("*.*")}
    expected = course.in_checkout(ROOT)
    assert copied.keys() == expected.keys()
    assert all(path.read_bytes() == expected[name].read_bytes() for name, path in copied.items())
    again = run(alone / "llr-cvx", "notebooks", "course", cwd=tmp_path)
    assert (again.returncode, "exists" in again.stderr) == (2, True)


@pytest.mark.long
def test_doctor_and_its_hints(alone: Path, built: tuple[Path, Path], tmp_path: Path) -> None:
    """What it says to type is right for this wheel: uv takes the requirement apart and finds the file."""
    done = run(alone / "python", "-m", "llr_cvx", "doctor", "--json", "report.json", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    assert report["healthy"] is True
    assert report["missing"]["plots"] == ["matplotlib"]
    (hint,) = re.findall(r"missing matplotlib: pip install \"(.*)\"", done.stdout)
    requirement = Requirement(hint)
    assert requirement.extras == {"plots"}
    assert requirement.url == built[0].as_uri()
