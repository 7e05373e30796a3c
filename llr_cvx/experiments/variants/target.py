"""`llr-cvx reproduce variants`: Figure 1 with other outliers, and planted features found or missed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from llr_cvx.experiments import statistics, tables
from llr_cvx.experiments.plans import synthetic_protocol
from llr_cvx.experiments.session import Setting, closing, protocol_section, run_and_store, summary
from llr_cvx.experiments.variants import report
from llr_cvx.experiments.variants.data import VARIANTS
from llr_cvx.experiments.variants.trials import MEASURES, labels, plan, run_trial
from llr_cvx.experiments.words import bullets


def variants(setting: Setting) -> dict[str, Any]:
    """Run all variants, and write report, tables and figure."""
    from llr_cvx.experiments.figures import save
    from llr_cvx.experiments.variants.figure import draw

    setting = replace(setting, protocol=synthetic_protocol(setting.protocol))
    tasks = plan(setting.trials, setting.seed, setting.protocol)
    choices = {"protocol": setting.protocol.as_dict(), "methods": labels(), "variants": VARIANTS}
    records, clock = run_and_store(setting, "variants", tasks, choices, run_trial)
    trials = statistics.wide(records, MEASURES)
    values = report.read(trials)
    found = report.findings(values)
    save(draw(values), setting.out / "variants")
    parts = [
        "# Figure 1 with other outliers",
        "![Figure 1 with other outliers](variants.png)",
        "\n".join(f"- *{name}*: {variant.text}." for name, variant in VARIANTS.items()),
        bullets(found),
        report.sections(values),
        closing(records, clock),
        protocol_section(setting),
    ]
    tables.write_csv(setting.out / "variants_trials.csv", trials)
    tables.write_text(setting.out / "variants.md", "\n\n".join(parts))
    return {
        "findings": dict(found),
        **summary(records, clock),
        "files": ["variants.md", "variants.png", "variants.svg", "variants_trials.csv"],
    }
