"""The list of trials behind each figure and table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product

from llr_cvx.experiments.benchmarks import BENCHMARKS, load_benchmark
from llr_cvx.experiments.methods import RUNNABLE
from llr_cvx.experiments.protocol import L1_RULES, ROLES, SCALINGS, WIDTHS, Protocol
from llr_cvx.experiments.trials import Run, Task, synthetic_source

#: The dimensions of Fig. 1(a).
DIMENSIONS = tuple(range(10, 101, 10))

#: Classes of Vehicle that could be "class 1": first in the alphabet, first in the data's own description.
VEHICLE_CLASSES = ("bus", "opel")

#: Values of K in the protocol study.
NEIGHBORS = (5, 10)


def table2(trials: int, seed: int, protocol: Protocol, sets: Sequence[str] = BENCHMARKS) -> list[Task]:
    """All methods on all sets; trial by trial, so that an early stop leaves all sets equally far."""
    runs = tuple(Run(key, key, protocol) for key in RUNNABLE)
    return [Task("table2", name, name, trial, seed, protocol, runs) for trial in range(trials) for name in sets]


def exact(trials: int, seed: int, protocol: Protocol, sets: Sequence[str] = BENCHMARKS) -> list[Task]:
    """The first draws of Table 2 again: LLR by IRLS beside LLR by the conic solver."""
    runs = tuple(Run(key, key, protocol) for key in ("llr", "llr_exact"))
    return [Task("table2", name, name, trial, seed, protocol, runs) for trial in range(trials) for name in sets]


def synthetic_protocol(protocol: Protocol) -> Protocol:
    """The protocol of Fig. 1: the synthetic features have one scale already and mean 0."""
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
    return [
        replace(
            base, scaling=scaling, inliers=inliers, vehicle_outlier=vehicle, n_neighbors=K, sigma=sigma,
            intercept=intercept, l1_lambda=rule,
        )
        for scaling, inliers, vehicle, K, sigma, intercept, rule in product(
            SCALINGS, ROLES, VEHICLE_CLASSES, NEIGHBORS, WIDTHS, (False, True), L1_RULES
        )
    ]  # fmt: skip


def protocol_study(trials: int, seed: int, base: Protocol, sets: Sequence[str] = BENCHMARKS) -> list[Task]:
    """Each distinct cell of the grid once: a draw does not depend on K, and OSVM not on the graph's width."""
    tasks: dict[tuple[str, int], Task] = {}
    for trial, protocol, name in product(range(trials), protocol_grid(base), sets):
        task = Task("protocol", study_cell(name, protocol), name, trial, seed, protocol, _study_runs(base))
        tasks.setdefault(task.key, task)
    return list(tasks.values())


def study_cell(name: str, protocol: Protocol) -> str:
    """What a draw depends on: the set, its outlier class and the scaling."""
    outlier = load_benchmark(name).outlier_class(protocol.inliers, protocol.vehicle_outlier)
    return f"{name}/{outlier}/{protocol.scaling}"


def study_label(method: str, protocol: Protocol) -> str:
    """What the scores of a method depend on, once the draw is given."""
    constant = "with constant" if protocol.intercept else "no constant"
    if method == "llr":
        return f"llr/K={protocol.n_neighbors}/{protocol.sigma}/{constant}"
    if method == "l1lr":
        return f"l1lr/{protocol.l1_lambda}/{constant}"
    return method


def _study_runs(base: Protocol) -> tuple[Run, ...]:
    runs = [Run(key, key, base) for key in ("osvm", "lof", "kliep", "ulsif")]
    for intercept, rule in product((False, True), L1_RULES):
        protocol = replace(base, intercept=intercept, l1_lambda=rule)
        runs.append(Run(study_label("l1lr", protocol), "l1lr", protocol))
    for intercept, K, sigma in product((False, True), NEIGHBORS, WIDTHS):
        protocol = replace(base, intercept=intercept, n_neighbors=K, sigma=sigma)
        runs.append(Run(study_label("llr", protocol), "llr", protocol))
    return tuple(runs)
