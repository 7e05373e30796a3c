"""The targets of ``llr-cvx reproduce``: run missing trials, write the files, return a summary."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from llr_cvx.experiments import findings, plans, results, statistics, tables
from llr_cvx.experiments.benchmarks import BENCHMARKS
from llr_cvx.experiments.ceilings import ceilings, section
from llr_cvx.experiments.comparison.report import detectors
from llr_cvx.experiments.figure1 import figure1
from llr_cvx.experiments.forensics.target import forensics
from llr_cvx.experiments.session import (
    Setting,
    closing,
    failures,
    protocol_section,
    run_and_store,
    run_stored,
    timing,
    write,
)
from llr_cvx.experiments.study import protocol
from llr_cvx.experiments.variants import report
from llr_cvx.experiments.variants.trials import MEASURES, VARIANTS, labels, plan
from llr_cvx.store import Record


def table1(setting: Setting) -> dict[str, Any]:
    """Table 1 from the registry."""
    rows = tables.table1_rows()
    return {"rows": rows, "files": write(setting.out, "table1", [tables.table1()], {"table1": rows})}


def table2(setting: Setting) -> dict[str, Any]:
    """Table 2: all methods on all sets."""
    records, facts = run_stored(setting, "table2", plans.table2(setting.trials, setting.seed, setting.protocol))
    rows = tables.table2_rows(records, BENCHMARKS)
    parts = [
        "# Table 2: outlier detection on the benchmark sets",
        tables.table2(rows),
        section(ceilings(setting, BENCHMARKS)),
        closing(facts),
        protocol_section(setting, BENCHMARKS),
    ]
    files = write(setting.out, "table2", parts, {"table2": rows, "table2_trials": statistics.flat(records)})
    return {"rows": rows, **facts, "files": files}


def exact(setting: Setting) -> dict[str, Any]:
    """LLR by `solve_fast` against LLR by the conic solver, on the first draws of Table 2."""
    records, facts = run_stored(setting, "exact", plans.exact(setting.trials, setting.seed, setting.protocol))
    rows = [_exact_row(record) for record in records]
    parts = [
        "# LLR by solve_fast against the exact conic model",
        "The first draws of Table 2, solved twice. The last columns are (J of the conic solver - J of solve_fast) / J "
        "and the difference of the two AUCs.",
        tables.markdown(list(rows[0]), tables.rounded([row.values() for row in rows], ".6g")),
        failures(facts),
        timing(facts),
        protocol_section(setting),
    ]
    return {"rows": rows, **facts, "files": write(setting.out, "exact", parts, {"exact": rows})}


def _exact_row(record: Record) -> dict[str, Any]:
    fast, slow = record["results"]["llr"], record["results"]["llr_exact"]
    row = {"set": record["cell"], "trial": record["trial"]}
    for name, result in (("fast", fast), ("conic", slow)):
        row |= {f"{name} J": result.get("objective", ""), f"{name} gap": result.get("gap", "")}
        row |= {f"{name} seconds": result["seconds"]}
    both = "objective" in fast and "objective" in slow
    row["relative difference of J"] = (slow["objective"] - fast["objective"]) / fast["objective"] if both else ""
    row["difference of AUC"] = slow["auc"] - fast["auc"] if both else ""
    return row


def variants(setting: Setting) -> dict[str, Any]:
    """Figure 1 with other outliers, and planted features found or missed."""
    from llr_cvx.experiments.variants.figure import draw

    setting = replace(setting, protocol=plans.synthetic_protocol(setting.protocol))
    choices = {"protocol": setting.protocol.as_dict(), "methods": labels(), "variants": VARIANTS}
    tasks = plan(setting.trials, setting.seed, setting.protocol)
    records, facts = run_and_store(setting, "variants", tasks, choices)
    trials = statistics.wide(records, MEASURES)
    values = report.read(trials)
    found = report.findings(values)
    parts = [
        "# Figure 1 with other outliers",
        "![Figure 1 with other outliers](variants.png)",
        "\n".join(f"- *{name}*: {variant.text}." for name, variant in VARIANTS.items()),
        tables.bullets(found),
        report.sections(values),
        closing(facts),
        protocol_section(setting),
    ]
    files = write(setting.out, "variants", parts, {"variants_trials": trials}, draw(values))
    return {"findings": dict(found), **facts, "files": files}


def summary_page(setting: Setting) -> dict[str, Any]:
    """The front page of the results: what holds and what does not, from the other targets' files."""
    stored = results.read(setting.out)
    try:
        found = findings.findings(stored)
    except Exception as error:  # tables that do not fit together can make the sentences raise almost anything
        raise ValueError(f"the results in {setting.out} are incomplete or damaged: {error!r}") from error
    return {"findings": dict(found), "files": write(setting.out, "README", [findings.page(found)], {})}


#: Targets of the command.
TARGETS: dict[str, Callable[[Setting], dict[str, Any]]] = {
    "table1": table1,
    "figure1": figure1,
    "table2": table2,
    "exact": exact,
    "protocol": protocol,
    "forensics": forensics,
    "variants": variants,
    "detectors": detectors,
    "summary": summary_page,
}
