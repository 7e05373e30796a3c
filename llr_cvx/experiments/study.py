"""Find the protocol closest to the printed values of the baselines, which share what the paper leaves open.

LLR takes no part: its printed column is what the reproduction tests, so it must not choose the protocol.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from llr_cvx.arrays import FloatArray
from llr_cvx.experiments.benchmarks import BENCHMARKS
from llr_cvx.experiments.plans import BASELINES, DRAW_FACTORS, FACTORS, study_cell, study_label
from llr_cvx.experiments.printed import DOUBTFUL, PRINTED_TRIALS, TABLE2
from llr_cvx.experiments.protocol import Protocol

#: How many of the closest draws the second stage looks at with more trials, and how many times as many.
FINALISTS, FINAL_FACTOR = 4, 3

#: Number and seed of the bootstrap resamples behind the standard errors.
BOOTSTRAP_RESAMPLES, BOOTSTRAP_SEED = 200, 0


class Fit(NamedTuple):
    """How a protocol compares with the paper.

    Attributes
    ----------
    protocol : Protocol
    distance : float
        sqrt(means^2 + 2 sds^2). The divergence of two normal distributions is z^2/2 + log(sd ratio)^2 to second order,
        so this is the square root of twice the mean divergence of printed and measured results.
    excess, excess_error : float
        Its distance minus that of the closest protocol with as many trials, and the bootstrap standard error of that.
    trials : int
        Trials in each cell: more for the finalists.
    means, sds : float
        Root mean squares, over sets and baselines, of z = (mean here - printed mean) / printed sd, and of
        log(sd here / printed sd); without the printed value that the paper contradicts (`printed.DOUBTFUL`).
    with_doubtful : float
        The distance with that value.
    by_method : dict
        (means, sds) of each baseline alone.
    """

    protocol: Protocol
    distance: float
    excess: float
    excess_error: float
    trials: int
    means: float
    sds: float
    with_doubtful: float
    by_method: dict[str, tuple[float, float]]


def rank(
    aucs: Mapping[tuple[str, str], FloatArray],
    protocols: Sequence[Protocol],
    trials: int,
    sets: Sequence[str] = BENCHMARKS,
) -> list[Fit]:
    """The protocols, closest first, from the first trials of each cell and label."""
    values = np.array(
        [[[aucs[study_cell(s, p), study_label(m, p)][:trials] for m in BASELINES] for s in sets] for p in protocols]
    )
    sure = np.array([[(s, m) != DOUBTFUL for m in BASELINES] for s in sets])
    z2, log2 = squared_distances(values, sets)
    distance = _distance(z2, log2, sure)
    error = _excess_error(values, sets, sure, int(np.argmin(distance)))
    fits = [
        Fit(
            protocol=protocol,
            distance=float(distance[p]),
            excess=float(distance[p] - distance.min()),
            excess_error=float(error[p]),
            trials=trials,
            means=float(np.sqrt(z2[p][sure].mean())),
            sds=float(np.sqrt(log2[p][sure].mean())),
            with_doubtful=float(_distance(z2[p], log2[p], np.ones_like(sure))),
            by_method={
                m: (float(np.sqrt(z2[p, sure[:, k], k].mean())), float(np.sqrt(log2[p, sure[:, k], k].mean())))
                for k, m in enumerate(BASELINES)
            },
        )
        for p, protocol in enumerate(protocols)
    ]
    return sorted(fits, key=lambda fit: fit.distance)


def squared_distances(
    values: FloatArray, sets: Sequence[str], methods: Sequence[str] = tuple(BASELINES)
) -> tuple[FloatArray, FloatArray]:
    """z^2 and log(sd ratio)^2 of AUCs (..., set, method, trial); infinite where fewer than two trials gave one."""
    printed = np.array([[TABLE2[s][m].mean for m in methods] for s in sets])
    sd = np.array([[TABLE2[s][m].sd for m in methods] for s in sets])
    n = np.isfinite(values).sum(axis=-1)
    mean = np.nansum(values, axis=-1) / np.maximum(n, 1)
    square = np.nansum((values - mean[..., None]) ** 2, axis=-1) / np.maximum(n - 1, 1)
    least = 1e-3 * sd  # a spread of zero has no logarithm
    log = 0.5 * np.log(np.maximum(square, least**2) / sd**2)
    known = n > 1
    return np.where(known, ((mean - printed) / sd) ** 2, np.inf), np.where(known, log**2, np.inf)


def noise(trials: int) -> tuple[float, float]:
    """Root mean squares of z and of log(sd ratio) that sampling alone gives, were the protocol the paper's own.

    >>> [round(value, 2) for value in noise(100)]
    [0.14, 0.1]
    """
    means = 1 / trials + 1 / PRINTED_TRIALS
    sds = 0.5 / max(trials - 1, 1) + 0.5 / (PRINTED_TRIALS - 1)
    return float(np.sqrt(means)), float(np.sqrt(sds))


def _distance(z2: FloatArray, log2: FloatArray, cells: FloatArray) -> FloatArray:
    return np.asarray(np.sqrt((z2 + 2.0 * log2)[..., cells].mean(axis=-1)))


def _excess_error(values: FloatArray, sets: Sequence[str], cells: FloatArray, closest: int) -> FloatArray:
    """Bootstrap over trials, which all protocols share, so that common variation cancels."""
    rng = np.random.default_rng(BOOTSTRAP_SEED)
    trials = values.shape[-1]
    excess = []
    with np.errstate(invalid="ignore"):  # nan for protocols that lack an AUC: their distance is infinite
        for _ in range(BOOTSTRAP_RESAMPLES):
            chosen = rng.integers(trials, size=trials)
            distance = _distance(*squared_distances(values[..., chosen], sets), cells)
            excess.append(distance - distance[closest])
        return np.asarray(np.std(excess, axis=0))


def marginals(fits: Sequence[Fit]) -> list[dict[str, Any]]:
    """For each value of each choice, the closest protocol with it: how much the choice matters."""
    rows = []
    for factor, options in FACTORS.items():
        for value in options:
            best = min((fit for fit in fits if getattr(fit.protocol, factor) == value), key=lambda fit: fit.distance)
            rows.append(
                {"choice": factor, "value": value, "distance": best.distance, "means": best.means, "sds": best.sds}
            )
    return rows


def tied(fits: Sequence[Fit]) -> list[Fit]:
    """The protocols of the last stage that are at most two standard errors further from the paper than the closest."""
    return [fit for fit in fits if fit.trials == fits[0].trials and fit.excess <= 2.0 * fit.excess_error]


def finalists(fits: Sequence[Fit]) -> list[Protocol]:
    """The protocols that share a draw with one of the closest, in the order of the fits.

    Beside the closest draws these are, for each choice, the closest with each value that is not yet excluded.
    """
    draws = dict.fromkeys(draw_of(fit.protocol) for fit in fits)
    level = {draw_of(fit.protocol): None for fit in tied(fits)}
    kept = set(list(draws)[:FINALISTS])
    for k, name in enumerate(DRAW_FACTORS):
        kept |= {next(d for d in draws if d[k] == value) for value in FACTORS[name] if value in {d[k] for d in level}}
    return [fit.protocol for fit in fits if draw_of(fit.protocol) in kept]


def draw_of(protocol: Protocol) -> tuple[Any, ...]:
    """The choices that decide how samples are drawn and scaled."""
    return tuple(getattr(protocol, name) for name in DRAW_FACTORS)
