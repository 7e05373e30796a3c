"""Judges of notebook 7, the paper, reproduced."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from course.exercises import judge, require
from course.results import stored
from llr_cvx.experiments import plans
from llr_cvx.experiments.benchmarks import BENCHMARKS
from llr_cvx.experiments.methods import METHODS
from llr_cvx.experiments.printed import PRINTED_METHODS, PRINTED_TRIALS, TABLE2

ROUNDING = 0.0005  # half a unit of the last printed digit


@judge("7.1")
def standard_errors(n_close: Sequence[int]) -> str:
    """Sets on which the means differ by less than two standard errors of their difference."""
    truth = dict.fromkeys(PRINTED_METHODS, 0)
    for row in stored.table2:
        if row["set"] in BENCHMARKS and row["method"] in truth:
            printed = TABLE2[row["set"]][row["method"]]
            error = np.hypot(row["sd"] / row["trials"] ** 0.5, printed.sd / PRINTED_TRIALS**0.5)
            truth[row["method"]] += bool(abs(row["mean"] - printed.mean) < 2 * error)
    require(len(n_close) == len(truth), f"expected {len(truth)} numbers, one per method")
    for (key, n), answer in zip(truth.items(), n_close, strict=True):
        require(answer == n, f"{METHODS[key].label} is not within two standard errors on {answer} sets")
    every = [METHODS[key].label for key, n in truth.items() if n == len(BENCHMARKS)]
    none = [METHODS[key].label for key, n in truth.items() if n == 0]
    return f"on all sets {', '.join(every) or 'no method'}, on none {', '.join(none) or 'no method'}"


@judge("7.2")
def deviation_of_the_average(deviation_of: str) -> str:
    """Which deviation of the printed rows is nearest to the one printed beside the average."""
    means = np.array([[TABLE2[name][key].mean for key in PRINTED_METHODS] for name in BENCHMARKS])
    sds = np.array([[TABLE2[name][key].sd for key in PRINTED_METHODS] for name in BENCHMARKS])
    printed = np.array([TABLE2["Average"][key].sd for key in PRINTED_METHODS])
    within = (sds**2).mean(axis=0)
    candidates = {"sets": means.std(axis=0, ddof=1), "within": within**0.5, "all": (within + means.var(axis=0)) ** 0.5}
    off = {name: float(np.median(np.abs(value - printed))) for name, value in candidates.items()}
    require(deviation_of in off, f"choose one of {', '.join(off)}")
    words = f"it is off by {off[deviation_of]:.4f} (median of the methods)"
    require(deviation_of == min(off, key=lambda name: off[name]), f"{words}; another one is closer")
    return words


@judge("7.3")
def not_the_average_of_its_rows(low: float, high: float) -> str:
    """An interval that holds every average that the rows allow, and none that rounds to the printed one."""
    mean = np.mean([TABLE2[name]["llr"].mean for name in BENCHMARKS])
    printed = TABLE2["Average"]["llr"].mean
    require(
        low <= mean - ROUNDING + 1e-9 and high >= mean + ROUNDING - 1e-9,
        "there are seven numbers that round to the printed rows and whose average is not in your interval",
    )
    require(
        high < printed - ROUNDING or low > printed + ROUNDING,
        f"your interval holds numbers that are printed as {printed:.3f}",
    )
    apart = max(printed - ROUNDING - high, low - printed - ROUNDING)
    return f"what the rows allow and what is printed as {printed:.3f} are {apart:.4f} apart"


@judge("7.4")
def other_yardsticks(agreed: Iterable[str]) -> str:
    """Choices that have one value in the first five protocols of all three rankings."""
    last = [row for row in stored.protocol if row["trials"] == stored.protocol[0]["trials"]]
    top = sorted(last, key=lambda row: row["means"])[:5] + sorted(last, key=lambda row: row["sds"])[:5]
    top += sorted(last, key=lambda row: max(row[f"means_{key}"] for key in plans.BASELINES))[:5]
    values = {name: {row[name] for row in top} for name in plans.FACTORS}
    for name in (agreed := set(agreed)):
        require(name in values, f"no choice is called {name!r}: see plans.FACTORS")
        require(len(values[name]) == 1, f"the first five have {name} {', '.join(sorted(map(str, values[name])))}")
    truth = {name: next(iter(found)) for name, found in values.items() if len(found) == 1}
    require(agreed == set(truth), "they agree on more than that")
    return ", ".join(f"{name} is {value}" for name, value in truth.items()) + " by every rule"
