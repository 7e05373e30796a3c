"""Which single protocol comes closest to the printed values of all methods over all sets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from llr_cvx.experiments.benchmarks import BENCHMARKS
from llr_cvx.experiments.plans import FACTORS, protocol_grid, study_cell, study_label
from llr_cvx.experiments.printed import PRINTED_METHODS, TABLE2
from llr_cvx.experiments.protocol import Protocol
from llr_cvx.experiments.statistics import summarize, table
from llr_cvx.experiments.store import Record


class Fit(NamedTuple):
    """How a protocol compares with the paper.

    Attributes
    ----------
    protocol : Protocol
    distance : float
        Root mean square, over sets and methods, of (mean here - printed mean) / printed sd.
    by_method : dict
        The same for each method alone.
    mean_difference : float
        Mean absolute difference of AUC.
    """

    protocol: Protocol
    distance: float
    by_method: dict[str, float]
    mean_difference: float


def rank(records: Iterable[Record], base: Protocol, sets: Sequence[str] = BENCHMARKS) -> list[Fit]:
    """All protocols of the grid, the closest first."""
    rows = list(records)
    means = {
        cell: {label: summarize(values).mean for label, values in table(rows, cell).items()}
        for cell in {row["cell"] for row in rows}
    }
    return sorted((_fit(means, protocol, sets) for protocol in protocol_grid(base)), key=lambda fit: fit.distance)


def _fit(means: dict[str, dict[str, float]], protocol: Protocol, sets: Sequence[str]) -> Fit:
    here = np.array(
        [[means[study_cell(s, protocol)][study_label(m, protocol)] for m in PRINTED_METHODS] for s in sets]
    )
    printed = np.array([[TABLE2[s][m].mean for m in PRINTED_METHODS] for s in sets])
    sd = np.array([[TABLE2[s][m].sd for m in PRINTED_METHODS] for s in sets])
    z2 = ((here - printed) / sd) ** 2
    by_method = dict(zip(PRINTED_METHODS, np.sqrt(z2.mean(axis=0)).tolist(), strict=True))
    return Fit(protocol, float(np.sqrt(z2.mean())), by_method, float(np.abs(here - printed).mean()))


def marginals(fits: Sequence[Fit]) -> list[dict[str, Any]]:
    """For each value of each choice, the closest protocol that has it: how much that choice matters."""
    rows = []
    for factor in FACTORS:
        for value in dict.fromkeys(getattr(fit.protocol, factor) for fit in fits):
            best = min(
                (fit for fit in fits if getattr(fit.protocol, factor) == value), key=lambda fit: fit.distance
            )
            rows.append({"choice": factor, "value": value, "distance": best.distance})
    return rows
