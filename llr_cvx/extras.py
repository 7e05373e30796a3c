"""How to get what is optional."""

from __future__ import annotations


def pip_install(extra: str) -> str:
    """What to type for an extra, from the folder of the README as everywhere there.

    >>> pip_install("plots")
    'pip install ".[plots]" in the folder of the README'
    """
    return f'pip install ".[{extra}]" in the folder of the README'
