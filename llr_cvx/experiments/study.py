"""Find the protocol closest to the printed values of all methods on all sets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from llr_cvx.arrays import FloatArray
from llr_cvx.experiments.benchmarks import BENCHMARKS
from llr_cvx.experiments.plans import FACTORS, protocol_grid, study_cell, study_label
from llr_cvx.experiments.printed import DOUBTFUL, PRINTED_METHODS, TABLE2
from llr_cvx.experiments.protocol import Protocol
from llr_cvx.experiments.statistics import table
from llr_cvx.experiments.store import Record

#: Number and seed of the bootstrap resamples behind the standard errors.
BOOTSTRAP_RESAMPLES, BOOTSTRAP_SEED = 200, 0


class Fit(NamedTuple):
    """How a protocol compares with the paper.

    Attributes
    ----------
    protocol : Protocol
    distance : float
        Root mean square, over sets and methods, of (mean here - printed mean) / printed sd.
    excess_error : float
        Bootstrap standard error of its distance minus that of the closest protocol.
    distance_without : float
        The distance without the printed value that the paper itself contradicts (`printed.DOUBTFUL`).
    mean_difference : float
        Mean absolute difference of AUC.
    by_method : dict
        The distance for each method alone.
    """

    protocol: Protocol
    distance: float
    excess_error: float
    distance_without: float
    mean_difference: float
    by_method: dict[str, float]


def rank(records: Iterable[Record], base: Protocol, sets: Sequence[str] = BENCHMARKS) -> list[Fit]:
    """All protocols of the grid, closest first."""
    grid = protocol_grid(base)
    aucs = _aucs(list(records), grid, sets)
    printed = np.array([[TABLE2[s][m].mean for m in PRINTED_METHODS] for s in sets])
    sd = np.array([[TABLE2[s][m].sd for m in PRINTED_METHODS] for s in sets])
    doubtful = np.array([[(s, m) == DOUBTFUL for m in PRINTED_METHODS] for s in sets])

    here = _means(aucs)
    z2 = ((here - printed) / sd) ** 2
    distance = np.sqrt(z2.mean(axis=(1, 2)))
    error = _excess_error(aucs, printed, sd, int(np.argmin(distance)))
    fits = [
        Fit(
            protocol=protocol,
            distance=float(distance[p]),
            excess_error=float(error[p]),
            distance_without=float(np.sqrt(z2[p][~doubtful].mean())),
            mean_difference=float(np.abs(here[p] - printed).mean()),
            by_method=dict(zip(PRINTED_METHODS, np.sqrt(z2[p].mean(axis=0)).tolist(), strict=True)),
        )
        for p, protocol in enumerate(grid)
    ]
    return sorted(fits, key=lambda fit: fit.distance)


def _aucs(rows: list[Record], grid: Sequence[Protocol], sets: Sequence[str]) -> FloatArray:
    """AUC by protocol, set, method and trial."""
    tables = {cell: table(rows, cell) for cell in {row["cell"] for row in rows}}
    return np.array(
        [
            [[tables[study_cell(s, p)][study_label(m, p)] for m in PRINTED_METHODS] for s in sets]
            for p in grid
        ]
    )  # fmt: skip


def _means(aucs: FloatArray) -> FloatArray:
    """Mean over the trials that gave an AUC; infinity if none did, so that the protocol comes last."""
    n = np.isfinite(aucs).sum(axis=-1)
    return np.asarray(np.where(n > 0, np.nansum(aucs, axis=-1) / np.maximum(n, 1), np.inf))


def _excess_error(aucs: FloatArray, printed: FloatArray, sd: FloatArray, closest: int) -> FloatArray:
    """Bootstrap over trials, which all protocols share, so that common variation cancels."""
    rng = np.random.default_rng(BOOTSTRAP_SEED)
    trials = aucs.shape[-1]
    excess = []
    for _ in range(BOOTSTRAP_RESAMPLES):
        chosen = rng.integers(trials, size=trials)
        z2 = ((_means(aucs[..., chosen]) - printed) / sd) ** 2
        distance = np.sqrt(z2.mean(axis=(1, 2)))
        excess.append(distance - distance[closest])
    with np.errstate(invalid="ignore"):  # nan for protocols that lack an AUC: their distance is infinite
        return np.asarray(np.std(excess, axis=0))


def marginals(fits: Sequence[Fit]) -> list[dict[str, Any]]:
    """For each value of each choice, the distance of the closest protocol with it: how much the choice matters."""
    rows = []
    for factor, values in FACTORS.items():
        for value in values:
            having = [fit for fit in fits if getattr(fit.protocol, factor) == value]
            rows.append(
                {
                    "choice": factor,
                    "value": value,
                    "distance": min(fit.distance for fit in having),
                    "distance_without": min(fit.distance_without for fit in having),
                }
            )
    return rows


def tied(fits: Sequence[Fit]) -> list[Fit]:
    """The protocols that are at most two standard errors further from the paper than the closest."""
    return [fit for fit in fits if fit.distance - fits[0].distance <= 2.0 * fit.excess_error]
