"""What the readings say about LLR's printed column, in tables and sentences computed from the stored trials."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import chi2

from llr_cvx.arrays import FloatArray
from llr_cvx.experiments import statistics, tables
from llr_cvx.experiments.benchmarks import BENCHMARKS
from llr_cvx.experiments.forensics.readings import MEASURES, POOLED, TEST
from llr_cvx.experiments.printed import PRINTED_TRIALS, TABLE2
from llr_cvx.experiments.study import noise, squared_distances

Row = Mapping[str, Any]

#: Resamples and seed of the bootstrap behind the standard errors.
RESAMPLES, SEED = 200, 0

#: The leak that needs no further run: penalties chosen for each set by the labels of the test rows.
ORACLE = "leak: λ chosen for each set by the test labels"


class Evidence(NamedTuple):
    """How one reading, judged by one measure, compares with LLR's printed column.

    Attributes
    ----------
    draw, label, measure : str
    aucs : array of shape (7, trials)
    distance, error : float
        Root mean square over the sets of (mean - printed mean) / printed sd, and its bootstrap standard error.
    sds : float
        Root mean square of log(sd / printed sd).
    within : int
        Sets whose mean is within half a printed sd.
    p : float
        Chance of so large a difference of all means if they were equal: chi-squared with one term per set.
    """

    draw: str
    label: str
    measure: str
    aucs: FloatArray
    distance: float
    error: float
    sds: float
    within: int
    p: float

    @property
    def name(self) -> str:
        """The reading in words."""
        return f"{self.label} ({self.draw})"

    @property
    def means(self) -> FloatArray:
        """Mean AUC of each set."""
        return np.asarray(np.nanmean(self.aucs, axis=1))


def weigh(draw: str, label: str, measure: str, aucs: FloatArray) -> Evidence:
    """Compare the AUCs of a reading, one row per set, with the printed column."""
    z2, log2 = (values[:, 0] for values in squared_distances(aucs[:, None], BENCHMARKS, ("llr",)))
    rng = np.random.default_rng(SEED)
    picks = rng.integers(aucs.shape[1], size=(RESAMPLES, aucs.shape[1]))
    resampled = np.moveaxis(aucs[:, picks], 0, 1)[:, :, None]  # resample, set, method, trial
    again = np.sqrt(squared_distances(resampled, BENCHMARKS, ("llr",))[0].mean(axis=(1, 2)))
    printed = np.array([TABLE2[name]["llr"].mean for name in BENCHMARKS])
    sd = np.array([TABLE2[name]["llr"].sd for name in BENCHMARKS])
    variance = np.nanvar(aucs, axis=1, ddof=1) / aucs.shape[1] + sd**2 / PRINTED_TRIALS
    chi = float(((np.nanmean(aucs, axis=1) - printed) ** 2 / variance).sum())
    within = int((z2 <= 0.25).sum())
    return Evidence(
        draw, label, measure, aucs, float(np.sqrt(z2.mean())), float(np.std(again)), float(np.sqrt(log2.mean())),
        within, float(chi2.sf(chi, len(BENCHMARKS))),
    )  # fmt: skip


def evidence(rows: Sequence[Row]) -> list[Evidence]:
    """All readings by all measures, closest first; readings that gave no AUC on some set are left out."""
    found = []
    for measure in MEASURES:
        by_cell = statistics.by_trial(rows, measure)
        keys = dict.fromkeys((cell.partition("/")[2], label) for cell, label in by_cell)
        columns = {key: np.array([by_cell[f"{s}/{key[0]}", key[1]] for s in BENCHMARKS]) for key in keys}
        whole = {key: aucs for key, aucs in columns.items() if (np.isfinite(aucs).sum(axis=1) > 1).all()}
        found += [weigh(*key, measure, aucs) for key, aucs in whole.items()]
        if measure == TEST:
            found += _oracles(whole)
    return sorted(found, key=lambda item: item.distance)


def _oracles(columns: Mapping[tuple[str, str], FloatArray]) -> list[Evidence]:
    """For each draw with a grid of penalties, the best penalties of each set: what a look at the labels gains."""
    found = []
    for draw in dict.fromkeys(draw for draw, label in columns if label.startswith("penalties: ")):
        grid = np.array([aucs for (d, label), aucs in columns.items() if d == draw and label.startswith("penalties: ")])
        best = np.nanmean(grid, axis=2).argmax(axis=0)
        found.append(weigh(draw, "penalties: chosen by the labels", ORACLE, grid[best, np.arange(len(best))]))
    return found


def table_rows(items: Sequence[Evidence]) -> list[dict[str, Any]]:
    """One row per reading and measure, as in the CSV file."""
    return [
        {
            "judged_by": item.measure,
            "draw": item.draw,
            "reading": item.label,
            "trials": item.aucs.shape[1],
            "mean_auc": float(item.means.mean()),
            "distance": item.distance,
            "standard_error": item.error,
            "sds": item.sds,
            "within_half_sd": item.within,
            "p": item.p,
            **dict(zip(BENCHMARKS, item.means.tolist(), strict=True)),
        }
        for item in items
    ]


#: The columns of `_cells`.
HEADER = ["mean AUC", "distance", "±", "sds", "within ½ sd"]


def _cells(item: Evidence) -> list[str]:
    numbers = [f"{item.means.mean():.3f}", *(f"{value:.2f}" for value in (item.distance, item.error, item.sds))]
    return [*numbers, f"{item.within} of {len(BENCHMARKS)}"]


def table(items: Sequence[Evidence]) -> str:
    """Readings as Markdown."""
    body = [[item.label, item.draw, *_cells(item), *(f"{auc:.3f}" for auc in item.means)] for item in items]
    return tables.markdown(["reading", "draw", *HEADER, *BENCHMARKS], body)


def honest(items: Sequence[Evidence]) -> list[Evidence]:
    """The readings judged on test rows, closest first."""
    return [item for item in items if item.measure == TEST]


def leaks(items: Sequence[Evidence]) -> list[Evidence]:
    """The readings judged with a leak, closest first."""
    return [item for item in items if item.measure != TEST]


def sections(items: Sequence[Evidence], fresh: Sequence[Evidence], shown: int = 12) -> str:
    """The tables of the report."""
    own, leaky = honest(items), leaks(items)
    trials = own[0].aucs.shape[1]
    kinds = []
    for kind in dict.fromkeys(item.label.partition(": ")[0] for item in own):
        some = [item for item in own if item.label.startswith(f"{kind}: ")]
        spread = f"{some[0].distance:.2f} to {some[-1].distance:.2f}"
        kinds.append([kind, len(some), spread, some[0].name])
    return "\n\n".join(
        [
            "## Readings on test rows",
            f"{len(own)} readings over {trials} trials each. *distance* is the root mean square over the sets of "
            "(mean - printed mean) / printed standard deviation, with its bootstrap standard error; *sds* that of "
            "log(standard deviation / printed). A reading that is the paper's own would come to "
            f"{noise(trials)[0]:.2f} and {noise(trials)[1]:.2f} by sampling alone. The closest {shown}; all are in "
            "`forensics.csv`.",
            table(own[:shown]),
            tables.markdown(["kind of reading", "readings", "distances", "closest"], kinds),
            "## Leaks",
            f"*{POOLED}* scores the known inliers too and counts them as normal rows that were recognised: the model "
            f"was told so. *{ORACLE.removeprefix('leak: ')}* tunes on what it is judged by. Neither is a way to "
            f"judge a detector, and neither is used anywhere else in this package. The closest {shown} of "
            f"{len(leaky)}:",
            table(leaky[:shown]),
            "## On fresh draws",
            "The closest reading of many is closer than it deserves. The default, the closest on test rows, the "
            f"closest leak and the leak with λ1 and λ2 exchanged, on {fresh[0].aucs.shape[1]} draws that took no "
            "part in the choice:",
            tables.markdown(
                ["judged by", "reading", "draw", *HEADER, "p"],
                [[item.measure, item.label, item.draw, *_cells(item), f"{item.p:.2g}"] for item in fresh],
            ),
            "p is the chance of means so different from all seven printed ones if the reading were the paper's own.",
        ]
    )
