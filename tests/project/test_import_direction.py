"""Imports run one way: graph -> Problem -> certificate -> Solution -> solvers -> detector -> experiments -> cli."""

from __future__ import annotations

import ast
import subprocess
import sys
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import llr_cvx

#: The path of the data, one layer per module or folder. A module may import from its own layer and from those
#: before it, never from a later one.
LAYERS = [
    {"text", "extras", "inputs", "progress", "processes", "store", "course"},
    {"outputs"},
    {"arrays", "validation", "archive", "separability"},
    {"graph", "datasets"},
    {"problem"},
    {"oracles", "checker"},
    {"proofs"},
    {"solution"},
    {"solvers"},
    {"verdicts"},
    {"instances"},
    {"detection"},
    {"report"},
    {"experiments"},
    {"benchmarks"},
    {"arena"},
    {"cli"},
    {"entry", "__main__"},
]
#: What judges the other solvers may not reach any of them.
GROUND_TRUTH = {"solvers.exact", "solvers.conic", "checker"}
JUDGED = ("solvers.irls", "solvers.algorithm1", "solvers.fast", "solvers.path", "verdicts")
Imports = dict[str, set[str]]


@cache
def package_imports() -> Imports:
    """Who imports whom inside the package, imports inside functions included."""
    root = Path(llr_cvx.__file__).parent
    files = {".".join(p.relative_to(root).with_suffix("").parts): p for p in root.rglob("*.py")}
    files = {name.removesuffix("__init__").removesuffix(".") or "": p for name, p in files.items()}
    graph: Imports = {}
    for name, path in files.items():
        graph[name] = set()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            found: list[str] = []
            if isinstance(node, ast.ImportFrom):
                assert node.level == 0, f"{path} imports relatively: write the full name"
                found = [f"{node.module}.{alias.name}" for alias in node.names]
            elif isinstance(node, ast.Import):
                found = [alias.name for alias in node.names]
            for target in found:
                if target.split(".")[0] == "llr_cvx":
                    inner = target.removeprefix("llr_cvx").removeprefix(".")
                    if inner not in files:  # from module import name
                        inner = inner.rpartition(".")[0]
                    assert inner in files, f"{path} imports {target}, which does not exist"
                    graph[name].add(inner)
    # The package's own front door imports from everywhere; only who imports *it* matters.
    return graph | {"": set()}


def layer(module: str) -> int | None:
    return next((k for k, names in enumerate(LAYERS) if module.split(".")[0] in names), None)


def reach(graph: Imports, module: str) -> set[str]:
    seen: set[str] = set()
    waiting = [module]
    while waiting:
        for target in graph[waiting.pop()] - seen:
            seen.add(target)
            waiting.append(target)
    return seen


def wrong_way(graph: Imports) -> list[tuple[str, str]]:
    """Pairs (module, reached) where the second lies below the first on the path of the data."""
    pairs = []
    for module in graph:
        own = layer(module)
        for target in sorted(reach(graph, module)):
            below = layer(target)
            if own is not None and below is not None and below > own:
                pairs.append((module, target))
    return pairs


def test_no_cycles() -> None:
    graph = package_imports()
    assert len(graph) > 15
    assert len(list(TopologicalSorter(graph).static_order())) == len(graph)


def test_one_way_along_the_path_of_the_data() -> None:
    assert wrong_way(package_imports()) == []


def test_every_module_has_a_layer() -> None:
    assert [name for name in package_imports() if name and layer(name) is None] == []


def judged_by_ground_truth(graph: Imports) -> list[tuple[str, str]]:
    """Pairs (judge, judged) where the judge imports what it judges."""
    return [(judge, m) for judge in sorted(GROUND_TRUTH) for m in sorted(reach(graph, judge)) if m.startswith(JUDGED)]


def test_the_ground_truth_imports_nothing_that_it_judges() -> None:
    graph = package_imports()
    assert judged_by_ground_truth(graph) == []
    assert graph["checker"] == set()
    assert not [m for m in reach(graph, "solvers.irls") if m.startswith("solvers.fast")]
    assert judged_by_ground_truth(graph | {"solvers.conic": graph["solvers.conic"] | {"verdicts.dual_search"}})


def test_no_module_shares_its_name_with_a_public_function() -> None:
    names = {name.rpartition(".")[2] for name in package_imports()}
    assert names & set(llr_cvx.__all__) == set()


def test_nothing_inside_imports_the_front_door() -> None:
    """`import llr_cvx as llr` is for users: inside, it would tie every module to every other."""
    assert [name for name, targets in package_imports().items() if "" in targets] == []


def test_the_check_sees_a_wrong_import() -> None:
    graph = package_imports()
    assert wrong_way(graph | {"problem": graph["problem"] | {"solvers.irls"}})
    through_a_helper = graph | {"solvers.linear.cg": graph["solvers.linear.cg"] | {"verdicts.dual_search"}}
    assert ("solvers.irls", "verdicts.dual_search") in wrong_way(through_a_helper)
    with pytest.raises(CycleError):
        list(TopologicalSorter(graph | {"graph": graph["graph"] | {"problem"}}).static_order())


@pytest.mark.long
def test_the_core_works_without_any_extra() -> None:
    extras = [
        "matplotlib",
        "pandas",
        "pyarrow",
        "jinja2",
        "openpyxl",
        "densratio",
        "flint",
        "distributed",
        "dask",
        "benchopt",
        "hypothesis",
        "pytest",
    ]
    code = f"""
import sys
class Absent:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name in {extras}:
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Absent)
import llr_cvx as llr
from llr_cvx.cli import main
main(["verify", "--size", "12", "--dim", "2"])
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr
    assert "All holds" in found.stdout
