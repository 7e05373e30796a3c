"""`llr-cvx reproduce protocol`: the protocol study as a report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from llr_cvx.experiments import plans, statistics, study, tables
from llr_cvx.experiments.methods import METHODS
from llr_cvx.experiments.plans import BASELINES, FACTORS
from llr_cvx.experiments.protocol import Protocol
from llr_cvx.experiments.session import Setting, closing, environment, run_and_store, summary
from llr_cvx.store import Record


def protocol(setting: Setting) -> dict[str, Any]:
    """Run the study, write the report, and say where the default stands."""
    grid = plans.protocol_grid(setting.protocol)
    records, _ = _run(setting, grid, setting.trials)
    first = study.rank(statistics.by_trial(statistics.wide(records)), grid, setting.trials)
    more, clock = _run(setting, study.finalists(first), study.FINAL_FACTOR * setting.trials)
    known = {(record["cell"], record["trial"]): record for record in (*records, *more)}
    records = list(known.values())
    trials = statistics.wide(records)
    fits = two_stages(trials, setting.trials, setting.protocol)
    parts = [
        "# Protocol study: which choices come closest to the printed baselines",
        report(fits, setting.protocol, setting.trials),
        closing(records, clock),
        "## Versions",
        tables.protocol_list({}, environment(setting)),
    ]
    tables.write_csv(setting.out / "protocol.csv", rows(fits))
    tables.write_csv(setting.out / "protocol_trials.csv", trials)
    tables.write_text(setting.out / "protocol.md", "\n\n".join(parts))
    return {
        "closest": fits[0].protocol.as_dict(),
        "distance": fits[0].distance,
        "default_is_number": _place(fits, setting.protocol),
        **summary(records, clock),
        "files": ["protocol.md", "protocol.csv", "protocol_trials.csv"],
    }


def _run(setting: Setting, protocols: Sequence[Protocol], trials: int) -> tuple[list[Record], float]:
    """The trials of some protocols; both stages share one store."""
    tasks = plans.protocol_study(trials, setting.seed, protocols)
    return run_and_store(setting, "protocol", tasks, {"factors": FACTORS, "baselines": BASELINES})


def two_stages(rows: Sequence[Mapping[str, Any]], trials: int, base: Protocol) -> list[study.Fit]:
    """The finalists, ranked by all their trials, then the others by the trials that all have."""
    aucs = statistics.by_trial(rows)
    first = study.rank(aucs, plans.protocol_grid(base), trials)
    finalists = study.finalists(first)
    last = study.rank(aucs, finalists, study.FINAL_FACTOR * trials)
    return last + [fit for fit in first if fit.protocol not in finalists]


def rows(fits: Sequence[study.Fit]) -> list[dict[str, Any]]:
    """One row per protocol, closest first."""
    return [
        {
            **{factor: getattr(fit.protocol, factor) for factor in FACTORS},
            "distance": fit.distance,
            "excess": fit.excess,
            "excess_standard_error": fit.excess_error,
            "trials": fit.trials,
            "means": fit.means,
            "sds": fit.sds,
            "with_doubtful": fit.with_doubtful,
            **{f"means_{key}": means for key, (means, _) in fit.by_method.items()},
            **{f"sds_{key}": sds for key, (_, sds) in fit.by_method.items()},
        }
        for fit in fits
    ]


def report(fits: Sequence[study.Fit], default: Protocol, trials: int, shown: int = 12) -> str:
    """The protocol study as Markdown: rank of the default, closest protocols, effect of each choice."""
    means, sds = study.noise(study.FINAL_FACTOR * trials)
    labels = [f"{METHODS[key].label} {what}" for what in ("means", "sds") for key in BASELINES]
    header = [*FACTORS, "distance", "excess", "±", "trials", "means", "sds", "with LOF on Flare", *labels]
    body = [[f"{v:.2f}" if isinstance(v, float) else v for v in row.values()] for row in rows(fits[:shown])]
    choices = tables.markdown(
        ["choice", "value", "closest distance with it", "its means", "its sds"],
        [[f"{v:.2f}" if isinstance(v, float) else v for v in row.values()] for row in study.marginals(fits)],
    )
    return "\n\n".join(
        [
            f"Baselines only, since LLR's column is what is tested. All protocols are compared over {trials} trials, "
            f"then those with the {study.FINALISTS} closest draws, and with the closest one for each value that is "
            f"not yet excluded, over {study.FINAL_FACTOR * trials}. *means* is the root mean square of (mean here - "
            "printed mean) / printed standard deviation, *sds* that of log(standard deviation here / printed). The "
            "distance is √(means² + 2 sds²): its square is, to second order, twice the mean divergence of two "
            f"normal distributions. Were a finalist the paper's own, sampling alone would give {means:.2f} and "
            f"{sds:.2f}. LOF on Flare solar, 0.415, is left out: the average printed for LOF, 0.565, is that of its "
            "rows only if this one counts as 1 - 0.415. *excess* is the distance minus the closest one of the "
            "stage, with its bootstrap standard error.",
            _standing(fits, default),
            f"## The {shown} closest of {len(fits)} protocols",
            "All of them are in `protocol.csv`, the trials in `protocol_trials.csv`.",
            tables.markdown(header, body),
            "## What each choice matters",
            "For each value of each choice, the closest protocol that has it.",
            choices,
        ]
    )


def _place(fits: Sequence[study.Fit], default: Protocol) -> int:
    """The rank of the default: it and a fit agree in all that the study varies."""
    key = tuple(getattr(default, name) for name in FACTORS)
    return 1 + [tuple(getattr(fit.protocol, name) for name in FACTORS) for fit in fits].index(key)


def _standing(fits: Sequence[study.Fit], default: Protocol) -> str:
    """How many protocols are tied with the closest, and the rank of the default."""
    place = _place(fits, default)
    own = fits[place - 1]
    behind = f"number {place}, further away by {own.excess:.3f} ± {own.excess_error:.3f}"
    return (
        f"The default protocol of this package is {behind if place > 1 else 'the closest'}. {len(study.tied(fits))} "
        "protocols, the closest among them, are further away than it by at most two standard errors: these trials do "
        "not tell them apart."
    )
