"""The instance library: problems whose optimum is known to a proven interval."""

from benchopt import BaseDataset

from llr_cvx import checker
from llr_cvx.instances import list_instances, load_instance


class Dataset(BaseDataset):
    """One instance; its proven lower bound judges the solvers."""

    name = "library"
    parameters = {"instance": list_instances()}

    def get_data(self):
        """The problem's arrays and the bound."""
        instance = load_instance(self.instance)
        return {name: getattr(instance.problem, name) for name in checker.PROBLEM} | {"lower": instance.lower}
