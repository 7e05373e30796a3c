"""Files of the course: notebooks, helpers, solutions and the stored results that they read.

In a checkout they are in `notebooks/` and `results/`; a wheel has them inside the package (`hatch_build.py`, which
loads this file alone: it imports nothing but the standard library).
"""

from __future__ import annotations

import shutil
from pathlib import Path

PACKAGE = Path(__file__).parent

#: Where the files are in a wheel, below the package.
PACKED = "notebooks"

#: Folder of a checkout, pattern in it, and the folder of the copy that takes the files.
PARTS = (
    ("notebooks", "*.ipynb", ""),
    ("notebooks/course", "*.py", "course"),
    ("notebooks/course/figures", "*.py", "course/figures"),
    ("notebooks/solutions", "*.md", "solutions"),
    ("results", "*.csv", "results"),
    ("results", "*.md", "results"),
)


def in_checkout(root: Path) -> dict[str, Path]:
    """Name in the copy -> file, in reading order."""
    return {
        (Path(target) / path.name).as_posix(): path
        for folder, pattern, target in PARTS
        for path in sorted((root / folder).glob(pattern))
    }


def files() -> dict[str, Path]:
    """Name in the copy -> file, wherever this package runs from; empty if the course did not come with it."""
    packed = PACKAGE / PACKED
    if packed.is_dir():
        found = (path for path in sorted(packed.rglob("*")) if path.is_file() and path.suffix != ".pyc")
        return {path.relative_to(packed).as_posix(): path for path in found}
    return in_checkout(PACKAGE.parent)


def copy(folder: Path) -> list[str]:
    """Copy the files to a new or existing folder and return their names.

    Raises FileExistsError, before anything is written, if one of them is there already.
    """
    course = files()
    taken = [name for name in course if (folder / name).exists()]
    if taken:
        raise FileExistsError(f"{folder / taken[0]} exists ({len(taken)} such file(s)): choose another folder")
    for name, source in course.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, folder / name)
    return list(course)
