"""The list of trials behind each figure and table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

from llr_cvx.experiments.benchmarks import BENCHMARKS, load_benchmark
from llr_cvx.experiments.methods import METHODS
from llr_cvx.experiments.protocol import L1_RULES, OUTLIERS, ROLES, SCALINGS, Protocol
from llr_cvx.experiments.trials import SYNTHETIC, Run, Task

#: The dimensions of Fig. 1(a).
DIMENSIONS = tuple(range(10, 101, 10))

#: What the paper leaves open and the baselines depend on, and the values that the protocol study tries. Vehicle's
#: "class 1" is its first class alphabetically or in the data's own description; 20 neighbours is scikit-learn's
#: default for LOF.
FACTORS: dict[str, tuple[Any, ...]] = {
    "scaling": tuple(SCALINGS),
    "n_outliers": tuple(OUTLIERS),
    "inliers": tuple(ROLES),
    "vehicle_outlier": ("bus", "opel"),
    "l1_lambda": tuple(L1_RULES),
    "lof_neighbors": (5, 20),
}

#: Those of them that decide how samples are drawn and scaled.
DRAW_FACTORS = ("scaling", "n_outliers", "inliers", "vehicle_outlier")

#: What the scores of each baseline depend on, once the draw is given.
BASELINES: dict[str, tuple[str, ...]] = {
    "osvm": (),
    "lof": ("lof_neighbors",),
    "l1lr": ("l1_lambda",),
    "kliep": (),
    "ulsif": (),
}


def table2(
    trials: int, seed: int, protocol: Protocol, sets: Sequence[str] = BENCHMARKS, methods: Iterable[str] = METHODS
) -> list[Task]:
    """All methods on all sets, trial by trial, so that an early stop leaves all sets equally complete."""
    runs = tuple(Run(key, key, protocol) for key in methods)
    return [Task("table2", name, trial, seed, name, protocol, runs) for trial in range(trials) for name in sets]


def exact(trials: int, seed: int, protocol: Protocol, sets: Sequence[str] = BENCHMARKS) -> list[Task]:
    """The first draws of Table 2 again: LLR by `solve_fast` and by the conic solver."""
    return table2(trials, seed, protocol, sets, ("llr", "llr_exact"))


def synthetic_protocol(protocol: Protocol) -> Protocol:
    """The protocol of Fig. 1: the synthetic features already have mean 0 and a common scale."""
    return replace(protocol, scaling="none", intercept=False)


def figure1(trials: int, seed: int, protocol: Protocol, dimensions: Sequence[int] = DIMENSIONS) -> list[Task]:
    """All methods on the synthetic data of Sec. 4.1, d = 10, 20, ..., 100."""
    protocol = synthetic_protocol(protocol)
    runs = tuple(Run(key, key, protocol) for key in METHODS)
    return [
        Task("figure1", f"d={d}", trial, seed, f"{SYNTHETIC}{d}", protocol, runs)
        for trial in range(trials)
        for d in dimensions
    ]


def protocol_grid(base: Protocol, factors: Iterable[str] = FACTORS) -> list[Protocol]:
    """`base` with every combination of the choices that the paper leaves open, or of some of them."""
    factors = tuple(factors)
    values = product(*(FACTORS[name] for name in factors))
    return [replace(base, **dict(zip(factors, combination, strict=True))) for combination in values]


def protocol_study(
    trials: int, seed: int, protocols: Sequence[Protocol], sets: Sequence[str] = BENCHMARKS
) -> list[Task]:
    """The baselines, each distinct cell of the protocols once: OSVM, for one, depends on the draw alone."""
    base = protocols[0]
    runs = tuple(
        Run(study_label(method, protocol), method, protocol)
        for method, factors in BASELINES.items()
        for protocol in protocol_grid(base, factors)
    )
    plain = {name: getattr(base, name) for name in FACTORS if name not in DRAW_FACTORS}
    draws = dict.fromkeys(replace(protocol, **plain) for protocol in protocols)
    tasks: dict[tuple[str, int], Task] = {}
    for trial, protocol, name in product(range(trials), draws, sets):
        task = Task("protocol", study_cell(name, protocol), trial, seed, name, protocol, runs)
        tasks.setdefault(task.key, task)
    return list(tasks.values())


def study_cell(name: str, protocol: Protocol) -> str:
    """What a draw depends on: the set, its outlier class, their number and the scaling."""
    outlier = load_benchmark(name).outlier_class(protocol.inliers, protocol.vehicle_outlier)
    return f"{name}/{outlier}/{protocol.n_outliers}/{protocol.scaling}"


def study_label(method: str, protocol: Protocol) -> str:
    """A baseline and the choices that its scores depend on.

    >>> study_label("lof", Protocol(lof_neighbors=5))
    'lof/lof_neighbors=5'
    """
    return "/".join([method, *(f"{name}={getattr(protocol, name)}" for name in BASELINES[method])])
