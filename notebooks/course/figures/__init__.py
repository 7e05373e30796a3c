"""Every figure of the notebooks, by one name: `figures`."""

from course.figures.look import *  # noqa: F403
from course.figures.paper import *  # noqa: F403
from course.figures.samples import *  # noqa: F403
from course.figures.solvers import *  # noqa: F403
