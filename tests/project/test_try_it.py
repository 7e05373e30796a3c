"""Binder and Codespaces: their files parse, and install what docs/index.md tells a reader to install."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def extras_in(text: str) -> set[str]:
    """Extras of this folder that a command or requirement installs."""
    (found,) = re.findall(r"(?:^|[\s'\"])\.\[([\w,]+)\]", text)
    return set(Requirement(f"llr-cvx[{found}]").extras)


def by_hand() -> set[str]:
    page = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    (command,) = re.findall(r"^.*pip install .*jupyter lab notebooks$", page, re.MULTILINE)
    return extras_in(command)


def supported(python: str) -> bool:
    classifier = f"Programming Language :: Python :: {python}"
    return classifier in PROJECT["classifiers"] and SpecifierSet(PROJECT["requires-python"]).contains(python)


def test_binder() -> None:
    (line,) = (ROOT / ".binder" / "requirements.txt").read_text(encoding="utf-8").splitlines()
    assert extras_in(line) == by_hand() <= set(PROJECT["optional-dependencies"])
    runtime = (ROOT / ".binder" / "runtime.txt").read_text(encoding="utf-8").strip()
    assert supported(runtime.removeprefix("python-"))


def test_codespaces() -> None:
    container = json.loads((ROOT / ".devcontainer" / "devcontainer.json").read_text(encoding="utf-8"))
    command = container["postCreateCommand"]
    assert extras_in(command) == by_hand()
    assert command.endswith(" jupyterlab")
    assert supported(container["image"].partition(":")[2])
    for name in container["customizations"]["codespaces"]["openFiles"]:
        assert (ROOT / name).exists()
