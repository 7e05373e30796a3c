"""A warden on a system without Landlock."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from llr_cvx.arena import sandbox


@pytest.fixture
def without_landlock(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("LLR_ARENA_NO_LANDLOCK", "1")
    monkeypatch.setattr(sandbox._Warden, "_running", {})
    yield
    for warden in sandbox._Warden._running.values():
        warden.close()
