"""A library of problems whose optimum is known to a proven interval, to test any solver against.

>>> from llr_cvx.instances import list_instances, load_instance
>>> instance = load_instance("pair-fused")
>>> instance.lower <= instance.problem.objective(instance.W) <= instance.upper
True
"""

from llr_cvx.instances.library import Instance, list_instances, load_instance

__all__ = ["Instance", "list_instances", "load_instance"]
