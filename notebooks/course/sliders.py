"""Sliders, one per argument of a function that draws."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any


def interact(draw: Callable[..., Any], **choices: Sequence[Any]) -> None:
    """Call `draw` with the values that sliders choose; each starts in the middle of its list.

    Without ipywidgets, draw once.
    """
    middle = {name: values[len(values) // 2] for name, values in choices.items()}
    try:
        import ipywidgets
    except ImportError:
        draw(**middle)
        return
    sliders = {
        name: ipywidgets.SelectionSlider(
            options=values,
            value=middle[name],
            description=name,
            continuous_update=False,
        )
        for name, values in choices.items()
    }
    ipywidgets.interact(draw, **sliders)
