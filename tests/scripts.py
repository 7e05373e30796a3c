"""Scripts that are no part of a package, as modules."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parents[1]


def load(name: str) -> ModuleType:
    """The module in this file, given as a path from the root of the repository; it may import its neighbours."""
    spec = importlib.util.spec_from_file_location(name.removesuffix(".py").replace("/", "_"), ROOT / name)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look it up there
    sys.path.insert(0, str((ROOT / name).parent))
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.pop(0)
    return module
