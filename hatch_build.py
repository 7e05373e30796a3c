"""README.md as a package index can show it, and the course inside the wheel.

On an index a relative link is dead, and so is a formula.

With the address of the repository, `Source` in [project.urls], relative links and pictures become absolute. Without it
pictures are left out, and a link becomes its words and the name of the file in the source distribution.
"""

from __future__ import annotations

import re
from pathlib import Path
from runpy import run_path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

#: What only makes sense beside the source, and what an index shows instead.
HERE = "Run them in this folder."
THERE = "`pip install llr-cvx` suffices for `llr-cvx verify`. The commands below run in the folder of the source."
FILES = " Files named in brackets are in the source distribution."
RELATIVE = r"\]\((?!https?://|#)([^)#\s]+)(#[^)\s]*)?\)"  # ](file#anchor)


class ReadmeForAnIndex(MetadataHookInterface):
    """Sets the description."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Called by hatchling with the [project] table."""
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        source = metadata.get("urls", {}).get("Source")
        metadata["readme"] = {"content-type": "text/markdown", "text": for_an_index(text, source)}


class CourseInTheWheel(BuildHookInterface[Any]):
    """Puts the notebooks where `llr_cvx.course` looks for them; an editable installation reads them in place."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called by hatchling before it builds a wheel."""
        if version != "editable":
            course = run_path(str(Path(self.root) / "llr_cvx" / "course.py"))
            for name, path in course["in_checkout"](Path(self.root)).items():
                build_data["force_include"][str(path)] = f"llr_cvx/{course['PACKED']}/{name}"


def for_an_index(text: str, source: str | None) -> str:
    """The text without relative links, TeX, or words that suppose the source folder."""
    if HERE not in text:
        raise ValueError(f"README.md no longer says {HERE!r}: adapt hatch_build.py")
    text = text.replace(HERE, THERE)
    text = re.sub(r"^\$\$\n(.*?)^\$\$$", r"```tex\n\1```", text, flags=re.DOTALL | re.MULTILINE)
    if source is not None:
        source = source.rstrip("/")
        text = re.sub(rf"(!\[[^\]]*){RELATIVE}", rf"\1]({source}/raw/HEAD/\2)", text)
        return re.sub(RELATIVE, rf"]({source}/blob/HEAD/\1\2)", text)
    text = re.sub(rf"!\[[^\]]*{RELATIVE}\n+\*[^*]*\*\n+", "", text)  # a picture and the caption below it
    text = re.sub(rf"\[([^\]]+){RELATIVE}", r"\1 (`\2`)", text)
    return re.sub(r"(\S+) \(`\1`\)", r"`\1`", text).replace(THERE, THERE + FILES)
