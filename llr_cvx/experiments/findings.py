"""What the stored results say about the paper, in sentences whose numbers are all computed from them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from llr_cvx.experiments import tables
from llr_cvx.experiments.benchmarks import BENCHMARKS
from llr_cvx.experiments.methods import METHODS
from llr_cvx.experiments.plans import FACTORS
from llr_cvx.experiments.printed import DOUBTFUL, PRINTED_METHODS, TABLE2
from llr_cvx.experiments.protocol import Protocol
from llr_cvx.experiments.results import Results, Row, differences, protocol_of, tied


class Finding(NamedTuple):
    """A subject and what the results say about it."""

    subject: str
    text: str


def findings(results: Results) -> list[Finding]:
    """Which of the paper's results hold here and which do not."""
    about: dict[str, Callable[[Results], str]] = {
        "Protocol": _protocol,
        "What the printed table decides": _decided,
        "How close": _close,
        "Where it fails": _far,
        "LLR in Table 2": _llr,
        "Figure 1": _synthetic,
        "Proofs": _proofs,
        "Time": _time,
    }
    return [Finding(subject, sentence(results)) for subject, sentence in about.items()]


def bullets(items: Iterable[Finding]) -> str:
    """A Markdown list.

    >>> print(bullets([Finding("Time", "none.")]))
    - **Time:** none.
    """
    return "\n".join(f"- **{item.subject}:** {item.text}" for item in items)


def page(results: Results) -> str:
    """The front page of a folder of results."""
    return "\n\n".join(
        [
            "# The paper, regenerated",
            "Everything here is written by `llr-cvx reproduce`, this page by `llr-cvx reproduce summary`. Each "
            "report ends with its protocol: seed, scaling, K, σ, class roles, versions.",
            tables.markdown(
                ["report", "what it is", "with it", "command"],
                [[f"[{n}.md]({n}.md)", what, extra, f"`llr-cvx reproduce {n}`"] for n, what, extra in _REPORTS],
            ),
            "## What holds and what does not",
            bullets(findings(results)),
            "## About the methods",
            f"LoKDR is not run: {METHODS['lokdr'].why_not}. Every convex method is checked against its statement "
            "in CVXPY. Where a library differs from it, by how much and why is at the head of "
            "`llr_cvx/experiments/twins.py` and shown by `tests/experiments/test_twins.py`.",
        ]
    )


_REPORTS = (
    ("figure1", "Figure 1: AUC against d, weights, scores, convergence", "`.png`, `.svg`, `.csv`, all trials"),
    ("table1", "Table 1, from the properties that the methods declare", "`.csv`"),
    ("table2", "Table 2, all methods, beside the printed values", "`.csv`, all trials"),
    ("exact", "LLR by IRLS against the exact conic model on a few draws of Table 2", "`.csv`"),
    ("protocol", "how far from the printed table each choice of what the paper leaves open is", "`.csv`"),
)


# ---- the protocol study ---------------------------------------------------------------------------


def _protocol(results: Results) -> str:
    first, second = results.protocol[:2]
    choices = ", ".join(f"`{name}` {first[name]}" for name in FACTORS)
    name, key = DOUBTFUL
    without = min(results.protocol, key=lambda row: float(row["distance_without_doubtful"]))
    return (
        f"of {len(results.protocol)} protocols the closest to all printed values has {choices}. "
        f"{_standing(results)} Its distance, the root mean square difference in printed standard deviations, is "
        f"{first['distance']:.2f}. The next one has {_change(first, second)} and is further by "
        f"{second['distance'] - first['distance']:.3f} ± {second['excess_standard_error']:.3f}; "
        f"{len(tied(results.protocol))} are within two standard errors. Without {METHODS[key].label} on {name}, a "
        f"printed value that the paper's own average contradicts, the distance is "
        f"{first['distance_without_doubtful']:.2f}, and the smallest one "
        f"{without['distance_without_doubtful']:.2f}, with {_change(first, without)}."
    )


def _change(first: Row, other: Row) -> str:
    return _listed([f"`{name}` {other[name]}" for name in FACTORS if first[name] != other[name]] or ["the same"])


def _standing(results: Results) -> str:
    place = 1 + [protocol_of(row) for row in results.protocol].index(Protocol())
    return "It is the default." if place == 1 else f"The default is number {place}."


def _decided(results: Results) -> str:
    level = tied(results.protocol)
    excluded, free = [], []
    for name, values in FACTORS.items():
        left = {row[name] for row in level}
        out = [value for value in values if value not in left]
        excluded += [f"`{name}` {value} ({_nearest(results.protocol, name, value):.2f})" for value in out]
        free += [f"`{name}`"] if len(left) > 1 else []
    return (
        f"no protocol within two standard errors of the closest has {_listed(excluded, 'or')}; in brackets the "
        f"smallest distance with it. {_listed(free)} stay open between the other values."
    )


def _nearest(study: Sequence[Row], name: str, value: Any) -> float:
    return min(float(row["distance"]) for row in study if row[name] == value)


# ---- Table 2 --------------------------------------------------------------------------------------


def _run_with(results: Results) -> str:
    """The protocol of Table 2, called the default only if it is."""
    default = Protocol()
    other = [name for name in FACTORS if getattr(results.made_with, name) != getattr(default, name)]
    if not other:
        return "the default"
    return f"a protocol with {_listed([f'`{name}` {getattr(results.made_with, name)}' for name in other])}"


def _rms(values: Iterable[float]) -> float:
    return float(np.sqrt(np.mean(np.square(list(values)))))


def _close(results: Results) -> str:
    z = differences(results.table2)
    within = sum(abs(value) <= 1 for value in z.values())
    columns = {key: _rms(value for (_, method), value in z.items() if method == key) for key in PRINTED_METHODS}
    nearest = sorted(columns, key=lambda key: columns[key])
    return (
        f"over the {_trials(results.table2)} trials of Table 2 the distance of {_run_with(results)} is "
        f"{_rms(z.values()):.2f}; {within} of {len(z)} printed values are met within one printed standard "
        "deviation. By method: " + ", ".join(f"{METHODS[key].label} {columns[key]:.2f}" for key in nearest) + "."
    )


def _far(results: Results) -> str:
    z = differences(results.table2)
    far = sorted((item for item in z.items() if abs(item[1]) > 1), key=lambda item: -abs(item[1]))
    cells = [f"{METHODS[key].label} on {name} ({value:+.1f})" for (name, key), value in far]
    return f"farther than one printed standard deviation: {_listed(cells)}."


def _llr(results: Results) -> str:
    here = {row["method"]: row["mean"] for row in results.table2 if row["set"] == "Average"}
    printed = {key: cell.mean for key, cell in TABLE2["Average"].items()}
    bold = [row["set"] for row in results.table2 if row["method"] == "llr" and row["bold"]]
    level = [name for name in bold if name in BENCHMARKS]
    best_in_print = sum(TABLE2[name]["llr"].bold for name in BENCHMARKS)
    best = max(here, key=lambda key: here[key])
    return (
        f"it averages {here['llr']:.3f} here and {printed['llr']:.3f} in print, number "
        f"{_place(here, PRINTED_METHODS)} here and {_place(printed, PRINTED_METHODS)} in print of the "
        f"{len(PRINTED_METHODS)} methods compared there. Printed as the best on {best_in_print} of "
        f"{len(BENCHMARKS)} sets, it is here, among all {len(here)} methods, the best or level with the best on "
        f"{len(level)}: {_listed(level)}. "
        f"The best average is that of {METHODS[best].label}, {here[best]:.3f}; the max-norm test, which optimises "
        f"nothing, has {here['maxnorm']:.3f}."
    )


def _place(means: Mapping[str, float], keys: Iterable[str]) -> int:
    return 1 + sum(means[key] > means["llr"] for key in keys)


# ---- Figure 1, proofs, time -------------------------------------------------------------------------


def _synthetic(results: Results) -> str:
    auc: dict[str, dict[int, float]] = {}
    for row in results.figure1:
        auc.setdefault(row["method"], {})[row["d"]] = row["mean"]
    dims = sorted(auc["llr"])
    others = [key for key in PRINTED_METHODS if key != "llr"]
    lead = {d: auc["llr"][d] - max(auc[key][d] for key in others) for d in dims}
    ahead = [
        f"{METHODS[key].label} at d = {', '.join(str(d) for d in dims if auc[key][d] > auc['llr'][d])}"
        for key in auc
        if key not in PRINTED_METHODS and any(auc[key][d] > auc["llr"][d] for d in dims)
    ]
    behind = [auc["llr"][d] - auc["maxnorm"][d] for d in dims]
    return (
        f"on the synthetic data LLR is ahead of the other methods of the paper's comparison at "
        f"{sum(value > 0 for value in lead.values())} of {len(dims)} dimensions, by {lead[dims[0]]:.3f} at "
        f"d = {dims[0]} and {lead[dims[-1]]:.3f} at d = {dims[-1]} (AUC {auc['llr'][dims[-1]]:.3f}). Of the "
        f"methods that the paper leaves out, ahead of LLR: {_listed(ahead)}. The max-norm test, which LLR without "
        f"a constant becomes as λ1 → 0, is behind it by {min(behind):.3f} to {max(behind):.3f}."
    )


def _proofs(results: Results) -> str:
    trials = [row for row in (*results.table2_trials, *results.figure1_trials) if row["method"] == "llr"]
    failed = [row for row in (*results.table2_trials, *results.figure1_trials) if row["failed"] != ""]
    J = max(abs(row["relative difference of J"]) for row in results.exact)
    auc = max(abs(row["difference of AUC"]) for row in results.exact)
    return (
        f"the {len(trials)} LLR solutions behind both are proved to a relative gap of at most "
        f"{max(row['gap'] for row in trials):.2e}; failed trials: {len(failed) or 'none'}. The exact conic model, "
        f"solved for {len(results.exact)} of the draws of Table 2, has the same J to {J:.1e} of J and the same AUC "
        f"to {auc:.4f}."
    )


def _time(results: Results) -> str:
    parts = []
    for name, rows in (("Table 2", results.table2_trials), ("Figure 1(a)", results.figure1_trials)):
        clock = results.clock["table2" if rows is results.table2_trials else "figure1"]
        llr = sum(row["seconds"] for row in rows if row["method"] == "llr")
        share = llr / sum(row["seconds"] for row in rows)
        parts.append(f"{name} took {clock / 60:.1f} minutes, {share:.0%} of the processor time for LLR")
    return "; ".join(parts) + " (the machine is named in the reports)."


def _trials(rows: Sequence[Row]) -> int:
    return max(int(row["trials"]) for row in rows if row["set"] in BENCHMARKS)


def _listed(items: Sequence[str], last: str = "and") -> str:
    """A comma-separated list in words; "none" if it is empty.

    >>> _listed(["a", "b", "c"]), _listed([])
    ('a, b and c', 'none')
    """
    if len(items) < 2:
        return items[0] if items else "none"
    return ", ".join(items[:-1]) + f" {last} {items[-1]}"
