"""What the stored results say about the paper, in sentences whose numbers are all computed from them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from llr_cvx.experiments import tables
from llr_cvx.experiments.benchmarks import BENCHMARKS
from llr_cvx.experiments.forensics import report as forensics
from llr_cvx.experiments.forensics.target import confirmed, pick
from llr_cvx.experiments.forensics.target import findings as conclusion
from llr_cvx.experiments.methods import METHODS
from llr_cvx.experiments.plans import BASELINES, FACTORS
from llr_cvx.experiments.printed import DOUBTFUL, PRINTED_METHODS, TABLE2
from llr_cvx.experiments.protocol import Protocol
from llr_cvx.experiments.results import Results
from llr_cvx.experiments.study import closest_with, noise, place, tied
from llr_cvx.experiments.tables import Finding, bullets, listed
from llr_cvx.experiments.variants import report as variants


def findings(results: Results) -> list[Finding]:
    """Which of the paper's results hold here and which do not."""
    return [
        Finding("Protocol", _protocol(results)),
        Finding("What the baselines decide", _decided(results)),
        Finding("Baselines", _baselines(results)),
        Finding("LLR in Table 2", _llr(results)),
        *_forensics(results),
        Finding("Figure 1", _synthetic(results)),
        *variants.findings(variants.read(results.variants_trials)),
        Finding("Proofs", _proofs(results)),
        Finding("Time", _time(results)),
    ]


#: Subjects that the reports have, and the front page leaves out.
DETAILS = ("Readings on test rows", "Leaks", "Ceilings", "LLR and one common model", "Two settings of λ", "Proofs")


def page(found: Iterable[Finding]) -> str:
    """The front page of a folder of results with these findings."""
    return "\n\n".join(
        [
            "# The paper, regenerated",
            "Written by `llr-cvx reproduce`; `arena.md` names its own command. Each report ends with its protocol and "
            "versions, and its trials are beside it.",
            tables.markdown(["report", "what it is"], [[f"[{n}]({n}.md)", what] for n, what in _REPORTS.items()]),
            "## What holds and what does not",
            bullets([item for item in found if item.subject not in DETAILS]),
        ]
    )


_REPORTS = {
    "figure1": "Figure 1: AUC against d, weights, scores, convergence",
    "variants": "Figure 1 with other outliers, and how well planted features are found",
    "table1": "Table 1, from the properties that the methods declare",
    "table2": "Table 2, all methods, beside the printed values and supervised ceilings",
    "exact": "LLR against the exact conic model on a few draws",
    "protocol": "which open choices come closest to the printed baselines",
    "forensics": "LLR's printed column against every reading, with leaks and ceilings",
    "detectors": "LLR beside other detectors on public data",
}


# ---- the protocol study ---------------------------------------------------------------------------


def _protocol(results: Results) -> str:
    first, second = results.protocol[:2]
    choices = ", ".join(f"`{name}` {first[name]}" for name in FACTORS)
    changes = [f"`{name}` {second[name]}" for name in FACTORS if first[name] != second[name]]
    number = place(results.protocol, Protocol())
    standing = "It is the default." if number == 1 else f"The default is number {number}."
    means, sds = noise(int(first["trials"]))
    name, key = DOUBTFUL
    return (
        f"of {len(results.protocol)} protocols the closest to the printed means and standard deviations of the "
        f"{len(BASELINES)} baselines has {choices}. {standing} Over {first['trials']} trials its means are off by "
        f"{first['means']:.2f} printed standard deviations (root mean square; sampling alone gives {means:.2f}) and "
        f"the logarithms of its standard deviations by {first['sds']:.2f} ({sds:.2f}), without {METHODS[key].label} "
        f"on {name}, a value that the paper's own average contradicts. The next one has "
        f"{listed(changes or ['the same'])} and is further by {second['excess']:.3f} ± "
        f"{second['excess_standard_error']:.3f}; {len(tied(results.protocol))} are within two standard errors."
    )


def _decided(results: Results) -> str:
    level = tied(results.protocol)
    excluded, free = [], []
    for name, values in FACTORS.items():
        left = {row[name] for row in level}
        out = [value for value in values if value not in left]
        excluded += [
            f"`{name}` {value} ({closest_with(results.protocol, name, value)['distance']:.2f})" for value in out
        ]
        free += [f"`{name}`"] if len(left) > 1 else []
    ten = closest_with(results.protocol, "n_outliers", "ten")
    return (
        f"no protocol within two standard errors of the closest, at {results.protocol[0]['distance']:.2f}, has "
        f"{listed(excluded, 'or')}; in brackets the smallest distance with it. With 10 outliers, as the paper says, "
        f"the closest has standard deviations that are off by {ten['sds']:.2f}. {listed(free)} stay open between the "
        "other values."
    )


# ---- Table 2 --------------------------------------------------------------------------------------


def _run_with(results: Results) -> str:
    """The protocol of Table 2, called the default only if it is."""
    default = Protocol()
    other = [name for name in FACTORS if getattr(results.made_with, name) != getattr(default, name)]
    if not other:
        return "the default"
    return f"a protocol with {listed([f'`{name}` {getattr(results.made_with, name)}' for name in other])}"


def _baselines(results: Results) -> str:
    own = {
        (row["set"], row["method"]): float(row["difference_in_paper_sd"])
        for row in results.table2
        if row["set"] in BENCHMARKS and row["method"] in BASELINES
    }
    within = sum(abs(value) <= 1 for value in own.values())
    columns = []
    for key in BASELINES:
        means, sds = tables.closeness(results.table2, key, [DOUBTFUL[0]] if key == DOUBTFUL[1] else [])
        columns.append(f"{METHODS[key].label} {means:.2f} and {sds:.2f}")
    far = sorted((item for item in own.items() if abs(item[1]) > 1), key=lambda item: -abs(item[1]))
    cells = [f"{METHODS[key].label} on {name} ({value:+.1f})" for (name, key), value in far]
    trials = max(int(row["trials"]) for row in results.table2 if row["set"] in BENCHMARKS)
    return (
        f"over the {trials} trials of Table 2, with {_run_with(results)}, {within} of {len(own)} "
        "printed means are met within one printed standard deviation. Root mean squares of the means' differences "
        f"and of the logarithms of the standard deviations' ratios: {listed(columns)} (without "
        f"{METHODS[DOUBTFUL[1]].label} on {DOUBTFUL[0]}). Farther than one standard deviation: {listed(cells)}."
    )


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
        f"{len(level)}{': ' * bool(level)}{listed(level) if level else ''}. "
        f"The best average is that of {METHODS[best].label}, {here[best]:.3f}; the max-norm test, which optimises "
        f"nothing, has {here['maxnorm']:.3f}."
    )


def _place(means: Mapping[str, float], keys: Iterable[str]) -> int:
    return 1 + sum(means[key] > means["llr"] for key in keys)


# ---- LLR's column -----------------------------------------------------------------------------------


def _forensics(results: Results) -> list[Finding]:
    items = forensics.evidence(results.forensics_trials)
    chosen = confirmed(items, results.made_with)
    fresh = pick(results.forensics_fresh, chosen)
    found = conclusion(items, fresh, results.ceilings)
    return [item for item in found if item.subject != "The column"]  # Table 2 has it over more trials


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
        f"methods that the paper leaves out, ahead of LLR: {listed(ahead)}. The max-norm test, which LLR without "
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
    processor = sum(results.seconds.values())
    return (
        f"all of this took {processor / 60:.1f} minutes of processor time, at least {processor / 120:.1f} on two cores."
    )
