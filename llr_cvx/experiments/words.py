"""Sentences about results: findings as a list, and lists in words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple


class Finding(NamedTuple):
    """A subject and what the results say about it."""

    subject: str
    text: str


def bullets(items: Iterable[Finding]) -> str:
    """A Markdown list.

    >>> print(bullets([Finding("Time", "none.")]))
    - **Time:** none.
    """
    return "\n".join(f"- **{item.subject}:** {item.text}" for item in items)


def listed(items: Sequence[str], last: str = "and") -> str:
    """A list in words, with semicolons where an item has a comma of its own; "none" if it is empty.

    >>> listed(["a", "b", "c"]), listed(["a, 1", "b, 1", "b, 2"]), listed([])
    ('a, b and c', 'a, 1; b, 1 and b, 2', 'none')
    """
    if len(items) < 2:
        return items[0] if items else "none"
    between = "; " if any("," in item for item in items) else ", "
    return between.join(items[:-1]) + f" {last} {items[-1]}"
