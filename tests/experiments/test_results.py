"""The committed results: complete, proved, made with the protocol that the study chooses, and what the docs say."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from llr_cvx.cli import main
from llr_cvx.cli.cmd_reproduce import DEFAULT_TRIALS
from llr_cvx.experiments import findings, plans, statistics, study, tables
from llr_cvx.experiments import results as stored
from llr_cvx.experiments.benchmarks import BENCHMARKS
from llr_cvx.experiments.methods import METHODS
from llr_cvx.experiments.printed import DOUBTFUL, PRINTED_METHODS, TABLE2
from llr_cvx.experiments.protocol import Protocol

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "results"
TRIALS = 100


@pytest.fixture(scope="module")
def results():
    return stored.read(RESULTS)


def said(results, subject):
    return dict(findings.findings(results))[subject]


# ---- the protocol ----------------------------------------------------------------------------------------


def test_the_default_protocol_is_the_closest_of_the_study(results):
    finals = [row["distance"] for row in results.protocol if row["trials"] == results.protocol[0]["trials"]]
    assert finals == sorted(finals)
    assert len(finals) < len(results.protocol)
    assert study.protocol_of(results.protocol[0]) == Protocol()


def test_the_study_is_that_of_its_trials():
    """The whole report, ranking included, from the stored AUCs."""
    rows = tables.read_csv(RESULTS / "protocol_trials.csv")
    trials = DEFAULT_TRIALS["protocol"]
    fits = study.two_stages(rows, trials, Protocol())
    text = (RESULTS / "protocol.md").read_text(encoding="utf-8")
    assert study.report(fits, Protocol(), trials) in text
    kept = tables.read_csv(RESULTS / "protocol.csv")
    for row, again in zip(kept, fits, strict=True):
        assert {name: row[name] for name in plans.FACTORS} == {name: again[name] for name in plans.FACTORS}
        assert row["distance"] == pytest.approx(again["distance"], rel=1e-9)
    changed = [{**row, "trial 0": 0.5} if row["label"] == "osvm" else row for row in rows]
    fits = study.two_stages(changed, trials, Protocol())
    assert study.report(fits, Protocol(), trials) not in text


def test_table2_and_the_exact_check_were_made_with_it(results):
    assert results.made_with == Protocol()
    report = (RESULTS / "exact.md").read_text(encoding="utf-8")
    for name, value in Protocol().in_words().items():
        assert f"| `{name}` | {value} |" in report


def test_the_study_tried_every_combination_once(results):
    tried = [study.protocol_of(row) for row in results.protocol]
    assert len(set(tried)) == len(tried)
    assert set(tried) == set(plans.protocol_grid(Protocol()))


def test_the_study_says_where_the_default_stands(results):
    text = (RESULTS / "protocol.md").read_text(encoding="utf-8")
    assert "The default protocol of this package is the closest." in text
    assert f" {len(study.tied(results.protocol))} protocols, the closest among them, are further" in text
    assert "It is the default." in said(results, "Protocol")
    second = replace(results, protocol=[results.protocol[1], results.protocol[0], *results.protocol[2:]])
    assert "The default is number 2." in said(second, "Protocol")


@pytest.mark.parametrize("key", ["osvm", "l1lr", "ulsif"])
def test_the_baselines_have_the_printed_means_and_standard_deviations(results, key):
    """Root mean squares over the sets, from the 100 trials."""
    z, log = [], []
    for name in BENCHMARKS:
        aucs = [r["auc"] for r in results.table2_trials if (r["cell"], r["method"]) == (name, key)]
        printed = TABLE2[name][key]
        z.append((np.mean(aucs) - printed.mean) / printed.sd)
        log.append(np.log(np.std(aucs, ddof=1) / printed.sd))
    assert np.sqrt(np.mean(np.square(z))) <= 0.6
    assert np.sqrt(np.mean(np.square(log))) <= 0.3


# ---- the trials ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "cells"), [("table2", BENCHMARKS), ("figure1", [f"d={d}" for d in plans.DIMENSIONS])])
def test_all_trials_are_there_and_llr_is_proved_in_each(results, name, cells):
    rows = getattr(results, f"{name}_trials")
    keys = [(row["cell"], row["method"], row["trial"]) for row in rows]
    assert len(set(keys)) == len(keys)
    assert set(keys) == {(cell, key, trial) for cell in cells for key in METHODS for trial in range(TRIALS)}
    assert [row for row in rows if row["failed"] != ""] == []
    assert max(row["gap"] for row in rows if row["method"] == "llr") <= Protocol().tol


def test_means_are_those_of_the_trials(results):
    aucs: dict[tuple[str, str], list[float]] = {}
    for row in (*results.table2_trials, *results.figure1_trials):
        aucs.setdefault((row["cell"], row["method"]), []).append(row["auc"])
    rows = [(row["set"], row) for row in results.table2 if row["set"] != "Average"]
    rows += [(f"d={row['d']}", row) for row in results.figure1]
    assert len(rows) == len(aucs)
    for cell, row in rows:
        assert row["mean"] == pytest.approx(np.mean(aucs[cell, row["method"]]), abs=1e-12)
        assert row["sd"] == pytest.approx(np.std(aucs[cell, row["method"]], ddof=1), abs=1e-12)


def test_the_exact_solver_agrees_on_every_set(results):
    assert {row["set"] for row in results.exact} == set(BENCHMARKS)
    for row in results.exact:
        assert abs(row["relative difference of J"]) <= Protocol().tol
        assert abs(row["difference of AUC"]) <= 0.002


def test_the_full_runs_keep_their_time(results):
    """Everything about the paper in 20 minutes on two cores."""
    assert sum(results.seconds.values()) <= 2 * 20 * 60


# ---- what is said about them -------------------------------------------------------------------------------


def test_findings_against_the_trials(results):
    """Every number that matters, recomputed from the trials and the printed table."""
    mean = {
        (name, key): np.mean([r["auc"] for r in results.table2_trials if (r["cell"], r["method"]) == (name, key)])
        for name in BENCHMARKS
        for key in METHODS
    }
    z = {
        (name, key): (mean[name, key] - TABLE2[name][key].mean) / TABLE2[name][key].sd
        for name in BENCHMARKS
        for key in PRINTED_METHODS
    }
    text = said(results, "Baselines")
    own = {cell: value for cell, value in z.items() if cell[1] != "llr"}
    assert f"{sum(abs(v) <= 1 for v in own.values())} of 35 printed means" in text
    assert f"over the {TRIALS} trials" in text
    assert f"OSVM {np.sqrt(np.mean([z[name, 'osvm'] ** 2 for name in BENCHMARKS])):.2f} and " in text
    assert len(re.findall(r"\([+-]\d+\.\d\)", text)) == sum(abs(v) > 1 for v in own.values())
    assert f"({max(own.values(), key=abs):+.1f})" in text

    average = {key: np.mean([mean[name, key] for name in BENCHMARKS]) for key in METHODS}
    llr = said(results, "LLR in Table 2")
    assert f"it averages {average['llr']:.3f} here and 0.712 in print" in llr
    place = sorted(PRINTED_METHODS, key=lambda key: -average[key]).index("llr") + 1
    assert f"number {place} here and 1 in print" in llr
    assert f"{max(average.values()):.3f}; the max-norm test" in llr
    assert f"has {average['maxnorm']:.3f}." in llr


def test_findings_follow_the_numbers(results):
    """Different results give different sentences."""
    better = [{**row, "gap": 1e-9} if row["method"] == "llr" else row for row in results.table2_trials]
    same = [{**row, "gap": 1e-9} if row["method"] == "llr" else row for row in results.figure1_trials]
    assert "at most 1.00e-09" in said(replace(results, table2_trials=better, figure1_trials=same), "Proofs")
    broken = [{**results.table2_trials[0], "failed": "no luck"}, *results.table2_trials[1:]]
    assert "failed trials: 1." in said(replace(results, table2_trials=broken), "Proofs")
    met = [{**row, "difference_in_paper_sd": 0.0} for row in results.table2]
    assert said(replace(results, table2=met), "Baselines").endswith("deviation: none.")
    last = [{**row, "mean": 0.0} if row["method"] == "llr" else row for row in results.figure1]
    assert "at 0 of 10 dimensions" in said(replace(results, figure1=last), "Figure 1")
    assert "trials of Table 2, with the default," in said(results, "Baselines")
    other = replace(Protocol(), lof_neighbors=20)
    assert "with a protocol with `lof_neighbors` 20," in said(replace(results, made_with=other), "Baselines")
    alone = [{**row, "excess": float(i), "excess_standard_error": 0.0} for i, row in enumerate(results.protocol)]
    assert "1 are within two standard errors" in said(replace(results, protocol=alone), "Protocol")


def test_the_order_of_methods_where_it_is_significant(results):
    """LLR ahead of the five printed baselines on the synthetic data, behind the best of them on the benchmark sets."""
    aucs: dict[tuple[str, str], list[float]] = {}
    for row in (*results.table2_trials, *results.figure1_trials):
        aucs.setdefault((row["cell"], row["method"]), []).append(row["auc"])
    column = {key: np.array(values) for key, values in aucs.items()}
    for d in plans.DIMENSIONS[1:]:
        for key in plans.BASELINES:
            difference = column[f"d={d}", "llr"] - column[f"d={d}", key]
            assert difference.mean() > 0
            assert statistics.differs(column[f"d={d}", "llr"], column[f"d={d}", key])
    worse = [s for s in BENCHMARKS if statistics.differs(column[s, "llr"], column[s, "kde"])]
    means = {s: column[s, "llr"].mean() - column[s, "kde"].mean() for s in worse}
    assert sum(value < 0 for value in means.values()) >= 4
    best = dict.fromkeys(BENCHMARKS, False)
    for row in results.table2:
        if row["set"] in best and row["method"] == "llr":
            by_method = {key: column[row["set"], key] for key in METHODS}
            assert row["bold"] == ("llr" in statistics.comparable(by_method))


def test_the_doubtful_value_is_the_one_that_the_average_contradicts():
    name, key = DOUBTFUL
    rows = {s: TABLE2[s][key].mean for s in BENCHMARKS}
    assert np.mean(list(rows.values())) != pytest.approx(TABLE2["Average"][key].mean, abs=1e-3)
    rows[name] = 1 - rows[name]
    assert np.mean(list(rows.values())) == pytest.approx(TABLE2["Average"][key].mean, abs=1e-3)


def test_the_front_page_is_what_the_command_writes(results):
    assert (RESULTS / "README.md").read_text(encoding="utf-8") == findings.page(findings.findings(results)) + "\n", (
        "run `llr-cvx reproduce summary`"
    )


def test_the_docs_say_what_the_results_say(results):
    text = (ROOT / "docs" / "reproduction.md").read_text(encoding="utf-8")
    section = " ".join(text.split("## What holds and what does not\n")[1].split("\n## ")[0].split())
    listed = re.findall(r"- \*\*(.+?):\*\*", section)
    assert {"What the baselines decide", "Baselines", "LLR in Table 2", "Conclusion", "Figure 1"} <= set(listed)
    for subject in listed:
        line = tables.bullets([tables.Finding(subject, said(results, subject))])
        assert line in section, f"docs/reproduction.md should say:\n{line}"


def truncated(folder, name, n_lines):
    for path in RESULTS.iterdir():
        if path.suffix in (".csv", ".md"):
            lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
            (folder / path.name).write_text("".join(lines[: n_lines if path.name == name else None]), encoding="utf-8")
    before = (folder / "README.md").read_text(encoding="utf-8")
    result = CliRunner().invoke(main, ["reproduce", "summary", "--out", str(folder)])
    assert result.exit_code == 1
    assert (folder / "README.md").read_text(encoding="utf-8") == before
    return " ".join(result.output.split())


@pytest.mark.long
def test_summary_of_part_of_the_study_says_what_is_missing(tmp_path):
    said = truncated(tmp_path, "protocol.csv", 30)
    assert "protocol.csv has no row with scaling none: run `llr-cvx reproduce protocol` again" in said


def test_summary_of_part_of_a_table_says_that_it_is_incomplete(tmp_path):
    said = truncated(tmp_path, "exact.csv", 1)
    assert f"the results in {tmp_path} are incomplete or damaged" in said
    assert "Traceback" not in said


def test_summary_without_results_says_what_to_run(tmp_path):
    result = CliRunner().invoke(main, ["reproduce", "summary", "--out", str(tmp_path)])
    assert result.exit_code == 1
    assert "table2.csv does not exist: run `llr-cvx reproduce table2" in result.output
    assert list(tmp_path.iterdir()) == []
