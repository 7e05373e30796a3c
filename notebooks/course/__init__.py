"""What the notebooks share: figures of one look, sliders, and exercises that check themselves."""

from course import figures
from course.exercises import check
from course.sliders import interact

__all__ = ["check", "figures", "interact"]
