"""The package as installed: metadata, licence, types, and the names at its front door."""

from __future__ import annotations

import importlib.metadata
import inspect
import re
import tomllib
from fnmatch import fnmatch
from pathlib import Path

import llr_cvx

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def requirement_names(requirements: list[str]) -> list[str]:
    return [re.split(r"[\[<>=!~ ]", r)[0] for r in requirements]


def test_one_version_everywhere() -> None:
    assert importlib.metadata.version("llr-cvx") == PROJECT["version"]
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {PROJECT['version']}\n" in citation
    assert f"license: {PROJECT['license']}\n" in citation


def test_core_dependencies_are_few() -> None:
    expected = ["numpy", "scipy", "cvxpy", "clarabel", "scikit-learn", "click"]
    assert requirement_names(PROJECT["dependencies"]) == expected


def test_the_test_extra_brings_every_other_extra_that_tests_use() -> None:
    extras = PROJECT["optional-dependencies"]
    included = re.search(r"llr-cvx\[(.*?)\]", extras["test"][0])
    assert included is not None
    assert set(included.group(1).split(",")) == set(extras) - {"test"}  # nothing is skipped for want of a package


def test_licence_and_types_are_there() -> None:
    licence = (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert licence.startswith("BSD 3-Clause License")
    assert "The llr_cvx developers" in licence
    assert (Path(llr_cvx.__file__).parent / "py.typed").exists()


def test_the_command_is_installed() -> None:
    (entry,) = importlib.metadata.entry_points(group="console_scripts", name="llr-cvx")
    assert entry.load().name == "main"


def test_the_front_door() -> None:
    """Few names, sorted, all there, all documented."""
    assert llr_cvx.__all__ == sorted(llr_cvx.__all__)
    assert len(llr_cvx.__all__) <= 16
    for name in llr_cvx.__all__:
        assert inspect.getdoc(getattr(llr_cvx, name)), name


def test_nothing_else_at_the_top_level() -> None:
    allowed = {
        "README.md",
        "LICENSE",
        "CHANGELOG.md",
        "CITATION.cff",
        "pyproject.toml",
        "llr_cvx",
        "tests",
        "notebooks",
        "docs",
        "results",
    }
    found = {path.name for path in ROOT.iterdir() if not path.name.startswith(".")}
    ignored = [line.strip("/") for line in (ROOT / ".gitignore").read_text(encoding="utf-8").split()]
    made = {name for name in found for pattern in ignored if fnmatch(name, pattern)}
    assert "llr_cvx" not in made
    assert found - allowed - made == set()


def paths_on_the_map() -> set[str]:
    """Files and folders that the tree in docs/map.md names, two columns of indentation per level."""
    page = (ROOT / "docs" / "map.md").read_text(encoding="utf-8")
    tree = re.search(r"^```text\nllr_cvx/\n(.*?)^```$", page, flags=re.DOTALL | re.MULTILINE)
    assert tree is not None
    paths, folder = set(), ""
    for line in tree.group(1).splitlines():
        indentation, names = re.match(r"( +)((?:[a-z0-9_]+(?:\.py|/) ?)+)", line).groups()
        nested = len(indentation) == 4
        folder = folder if nested else names.split()[0]
        paths |= {f"{folder if nested else ''}{name}" for name in names.split()}
    return paths


def test_the_map_names_modules_that_exist() -> None:
    named = paths_on_the_map()
    assert len(named) > 20
    for name in named:
        assert (ROOT / "llr_cvx" / name).exists(), name


def test_every_folder_of_the_package_is_on_the_map() -> None:
    folders = {f"{path.parent.name}/" for path in (ROOT / "llr_cvx").glob("*/__init__.py")}
    assert folders <= paths_on_the_map()
