"""When a curve of certified gaps ends."""

from benchopt.stopping_criterion import StoppingCriterion


class ProvedGap(StoppingCriterion):
    """Stop once the gap `target` is proved, or after `patience` evaluations without a smaller gap."""

    def __init__(self, target=1e-9, patience=8, strategy=None, key_to_monitor="value", minimize=True):
        super().__init__(
            target=target, patience=patience, strategy=strategy, key_to_monitor=key_to_monitor, minimize=minimize
        )

    def check_convergence(self, objective_list):
        """Whether to stop, and the progress shown."""
        gaps = [row[self.key_to_monitor_] for row in objective_list]
        since_best = len(gaps) - 1 - gaps.index(min(gaps))
        return gaps[-1] <= self.kwargs["target"] or since_best >= self.kwargs["patience"], 0.0
