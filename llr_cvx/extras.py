"""Optional dependencies: which extras are installed, and what to type for those that are not."""

from __future__ import annotations

import json
import re
from importlib import import_module, metadata
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

DISTRIBUTION = "llr-cvx"


def pip_install(extra: str) -> str:
    """The command that adds an extra to this very installation, wherever it came from."""
    return f"pip install {pip_argument(extra, _origin())}"


def needed(module: str, extra: str, by: str) -> Any:
    """Import an optional dependency, or say what is needed by whom, and how to install it.

    >>> needed("math", "plots", "plots").pi
    3.141592653589793
    """
    try:
        return import_module(module)
    except ImportError:
        raise ImportError(f"{by} need {module.partition('.')[0]}: {pip_install(extra)}") from None


def pip_argument(extra: str, origin: dict[str, Any] | None) -> str:
    """What to hand to `pip install`, given the record of a direct installation (PEP 610); None: from an index.

    >>> pip_argument("plots", None)
    '"llr-cvx[plots]"'
    >>> pip_argument("plots", {"url": "file:///home/me/llr", "dir_info": {"editable": True}})
    '-e "/home/me/llr[plots]"'
    >>> pip_argument("plots", {"url": "file:///tmp/llr_cvx-0.1.0-py3-none-any.whl", "archive_info": {}})
    '"llr-cvx[plots] @ file:///tmp/llr_cvx-0.1.0-py3-none-any.whl"'
    """
    if origin is None:
        return f'"{DISTRIBUTION}[{extra}]"'
    if "dir_info" in origin:
        option = "-e " if origin["dir_info"].get("editable") else ""
        return f'{option}"{url2pathname(urlsplit(origin["url"]).path)}[{extra}]"'
    scheme = f"{origin['vcs_info']['vcs']}+" if "vcs_info" in origin else ""
    return f'"{DISTRIBUTION}[{extra}] @ {scheme}{origin["url"]}"'


def requirements() -> dict[str, list[str]]:
    """Names of the packages needed by each extra; those that are always needed have the key "".

    Empty where the package runs from a folder that was never installed.
    """
    needed: dict[str, list[str]] = {}
    try:
        lines = metadata.requires(DISTRIBUTION) or []
    except metadata.PackageNotFoundError:
        return needed
    for line in lines:
        requirement, _, marker = line.partition(";")
        extra = re.search(r"extra == ['\"]([\w.-]+)['\"]", marker)
        name = re.split(r"[\[<>=!~ ]", requirement)[0]
        needed.setdefault(extra.group(1) if extra else "", []).append(name)
    return needed


def installed_version(name: str) -> str | None:
    """The version of an installed package, or None."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _origin() -> dict[str, Any] | None:
    try:
        record = metadata.distribution(DISTRIBUTION).read_text("direct_url.json")
    except metadata.PackageNotFoundError:  # run from a folder that was never installed
        return {"url": Path(__file__).parents[1].as_uri(), "dir_info": {"editable": True}}
    return None if record is None else dict(json.loads(record))
