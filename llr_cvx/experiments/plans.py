"""The list of trials behind each figure and table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from typing import Any

from llr_cvx.experiments.benchmarks import BENCHMARKS, load_benchmark
from llr_cvx.experiments.methods import RUNNABLE
from llr_cvx.experiments.protocol import L1_RULES, ROLES, SCALINGS, WIDTHS, Protocol
from llr_cvx.experiments.trials import Run, Task, synthetic_source

#: The dimensions of Fig. 1(a).
DIMENSIONS = tuple(range(10, 101, 10))

#: The choices that the paper leaves open, and the values that the protocol study tries. Vehicle's "class 1" is its
#: first class alphabetically or in the data's own description; 20 neighbours is scikit-learn's default for LOF.
FACTORS: dict[str, tuple[Any, ...]] = {
    "scaling": tuple(SCALINGS),
    "inliers": tuple(ROLES),
    "vehicle_outlier": ("bus", "opel"),
    "n_neighbors": (5, 10),
    "sigma": tuple(WIDTHS),
    "intercept": (False, True),
    "l1_lambda": tuple(L1_RULES),
    "lof_neighbors": (5, 20),
}


def table2(trials: int, seed: int, protocol: Protocol, sets: Sequence[str] = BENCHMARKS) -> list[Task]:
    """All methods on all sets, trial by trial, so that an early stop leaves all sets equally complete."""
    runs = tuple(Run(key, key, protocol) for key in RUNNABLE)
    return [Task("table2", name, name, trial, seed, protocol, runs) for trial in range(trials) for name in sets]


def exact(trials: int, seed: int, protocol: Protocol, sets: Sequence[str] = BENCHMARKS) -> list[Task]:
    """The first draws of Table 2 again: LLR by `solve_fast` and by the conic solver."""
    runs = tuple(Run(key, key, protocol) for key in ("llr", "llr_exact"))
    return [Task("table2", name, name, trial, seed, protocol, runs) for trial in range(trials) for name in sets]


def synthetic_protocol(protocol: Protocol) -> Protocol:
    """The protocol of Fig. 1: the synthetic features already have mean 0 and a common scale."""
    return replace(protocol, scaling="none", intercept=False)


def figure1(trials: int, seed: int, protocol: Protocol, dimensions: Sequence[int] = DIMENSIONS) -> list[Task]:
    """All methods on the synthetic data of Sec. 4.1, d = 10, 20, ..., 100."""
    protocol = synthetic_protocol(protocol)
    runs = tuple(Run(key, key, protocol) for key in RUNNABLE)
    return [
        Task("figure1", f"d={d}", synthetic_source(d), trial, seed, protocol, runs)
        for trial in range(trials)
        for d in dimensions
    ]


def protocol_grid(base: Protocol) -> list[Protocol]:
    """Every combination of the choices that the paper leaves open."""
    return _variants(base, *FACTORS)


def _variants(base: Protocol, *factors: str) -> list[Protocol]:
    """`base` with every combination of the named choices."""
    values = product(*(FACTORS[name] for name in factors))
    return [replace(base, **dict(zip(factors, combination, strict=True))) for combination in values]


def study_base(protocol: Protocol) -> Protocol:
    """The first protocol of the grid, so that stored trials do not depend on which protocol is the default."""
    return protocol_grid(protocol)[0]


def protocol_study(trials: int, seed: int, base: Protocol, sets: Sequence[str] = BENCHMARKS) -> list[Task]:
    """Each distinct cell of the grid once: a draw does not depend on K, nor OSVM on the graph's width."""
    runs = tuple(
        Run(study_label(method, protocol), method, protocol)
        for method, factors in _DEPENDS.items()
        for protocol in _variants(base, *factors)
    )
    draws = _variants(base, "scaling", "inliers", "vehicle_outlier")
    tasks: dict[tuple[str, int], Task] = {}
    for trial, protocol, name in product(range(trials), draws, sets):
        task = Task("protocol", study_cell(name, protocol), name, trial, seed, protocol, runs)
        tasks.setdefault(task.key, task)
    return list(tasks.values())


def study_cell(name: str, protocol: Protocol) -> str:
    """What a draw depends on: the set, its outlier class and the scaling."""
    outlier = load_benchmark(name).outlier_class(protocol.inliers, protocol.vehicle_outlier)
    return f"{name}/{outlier}/{protocol.scaling}"


#: What the scores of each printed method depend on, once the draw is given.
_DEPENDS: dict[str, tuple[str, ...]] = {
    "osvm": (),
    "lof": ("lof_neighbors",),
    "l1lr": ("intercept", "l1_lambda"),
    "kliep": (),
    "ulsif": (),
    "llr": ("n_neighbors", "sigma", "intercept"),
}


def study_label(method: str, protocol: Protocol) -> str:
    """A method and the choices that its scores depend on.

    >>> study_label("lof", Protocol(lof_neighbors=5))
    'lof/lof_neighbors=5'
    """
    return "/".join([method, *(f"{name}={getattr(protocol, name)}" for name in _DEPENDS[method])])
