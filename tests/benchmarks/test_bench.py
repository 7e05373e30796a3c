"""llr-cvx bench: who reached which gap, ratios and promises. How long it takes is nothing that a test can know."""

from __future__ import annotations

import json
import math
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from builders import random_problem
from click.testing import CliRunner, Result

from llr_cvx.benchmarks import conic as bench_conic
from llr_cvx.benchmarks import measure as bench
from llr_cvx.benchmarks import tables as report
from llr_cvx.benchmarks.conic import Attempt, cheapest, measure_conic
from llr_cvx.benchmarks.measure import Record, Rules, instance, measure_irls, measure_path
from llr_cvx.benchmarks.resources import blas_threads, peak_memory
from llr_cvx.cli import cmd_bench as cli
from llr_cvx.cli import main
from llr_cvx.datasets import make_synthetic
from llr_cvx.problem import Problem
from llr_cvx.solution import Solution, SolverError
from llr_cvx.solvers import conic as conic_solvers
from llr_cvx.solvers.exact import solve_exact
from llr_cvx.solvers.irls import solve_irls

ONCE = Rules(runs=1)


def record(solver: str = "IRLS", seconds: float = 1.0, **changes: Any) -> Record:
    """A cell of the race on the paper's setting."""
    return replace(Record("race", solver, 310, 50, 0.1, 1.0, 0, 1e-6, seconds, reached=1e-8), **changes)


def missed(solver: str, **changes: Any) -> Record:
    return record(solver, math.nan, reached=3e-4, **changes)


# ---- measuring --------------------------------------------------------------------------------------------


def test_the_instance_is_the_paper_s() -> None:
    X_inlier, X_test, _ = make_synthetic(4, 7)
    p = instance(310, 4, seed=7)
    assert np.array_equal(p.X, np.vstack([X_inlier, X_test]))
    assert (p.n_neighbors, p.lambda1, p.lambda2) == (5, 0.1, 1.0)


@pytest.mark.parametrize("N", [8, 62, 1000])
def test_other_sizes_keep_both_classes(N: int) -> None:
    p = instance(N, 2, seed=0)
    assert p.shape == (N, 2)
    assert np.mean(p.y > 0) == pytest.approx(200 / 310, abs=0.15)


def test_irls_is_measured_as_often_as_asked_on_fresh_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    original = bench.solve_irls
    monkeypatch.setattr(bench, "solve_irls", lambda p, *a, **k: seen.append(p) or original(p, *a, **k))
    p = random_problem(0)
    r = measure_irls("race", p, 1e-9, 5, Rules(runs=3))
    assert r.certified
    assert (r.runs, r.seed, r.N, r.d) == (3, 5, *p.shape)
    assert len({id(q) for q in [p, *seen]}) == 4
    assert 0 < r.seconds


def test_long_runs_are_not_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "REPEAT_SECONDS", 1e-9)
    assert measure_irls("race", random_problem(0), 1e-6, 0, Rules(runs=9)).runs == 1


def test_a_gap_that_irls_misses_has_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    original = bench.solve_irls
    monkeypatch.setattr(bench, "solve_irls", lambda p, *a, **k: original(p, *a, **k, max_iter=1))
    r = measure_irls("race", random_problem(0), 1e-6, 0, ONCE)
    assert math.isnan(r.seconds)
    assert not r.certified
    assert 1e-6 < r.reached < 1


def test_a_path_and_its_cold_twin_solve_the_same_points(monkeypatch: pytest.MonkeyPatch) -> None:
    solved: dict[bool, list[float]] = {True: [], False: []}  # by whether started from a W
    original = bench.solve_irls

    def spy(p: Problem, *args: Any, W0: Any = None, **options: Any) -> Solution:
        solved[W0 is not None].append(p.lambda1)
        return original(p, *args, W0=W0, **options)

    monkeypatch.setattr(bench, "solve_irls", spy)
    monkeypatch.setattr("llr_cvx.solvers.path.solve_irls", spy)
    lambda1s = [0.01, 0.1, 1.0]
    warm, cold = measure_path(random_problem(1), lambda1s, 1e-6, 1, ONCE)
    assert (warm.solver, cold.solver) == ("IRLS path", "IRLS cold")
    assert warm.points == cold.points == 3
    assert warm.certified
    assert cold.certified
    assert solved == {True: lambda1s[1:], False: [0.01, *lambda1s]}


def test_one_bad_point_spoils_a_path(monkeypatch: pytest.MonkeyPatch) -> None:
    original = bench.solve_irls
    monkeypatch.setattr(
        bench, "solve_irls", lambda p, tol: original(p, tol, max_iter=1 if p.lambda1 == 0.1 else 300)
    )
    warm, cold = measure_path(random_problem(1), [0.01, 0.1, 1.0], 1e-6, 1, ONCE)
    assert warm.certified
    assert not cold.certified
    assert math.isnan(cold.seconds)


@pytest.mark.parametrize("solver", ["CLARABEL", "SCS"])
def test_conic_solvers_are_driven_to_the_gap(solver: str) -> None:
    p = random_problem(3, N=20, d=2)
    told: list[str] = []
    found = measure_conic(p, solver, (1e-3, 1e-6), 3, ONCE, told.append)
    assert [r.gap for r in found] == [1e-3, 1e-6]
    assert all(r.certified for r in found)
    assert all(r.seconds > r.compile_seconds > 0 for r in found)
    assert any(solver in line for line in told)
    assert p.graph not in conic_solvers._MODELS  # compiled on a copy: nothing left for the next solver


def test_a_tighter_tolerance_starts_from_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """CVXPY would hand SCS the answer to the looser tolerance, and it would be done at once."""
    answers: list[Solution] = []
    monkeypatch.setattr(
        bench_conic, "solve_exact", lambda *a, **k: answers.append(solve_exact(*a, **k)) or answers[-1]
    )
    bench_conic.attempts(random_problem(0, N=20, d=2), "SCS", 1e-8, ONCE, lambda _: None)
    assert len(answers) > 2
    for tolerance, s in zip((1e-3, 1e-4, 1e-5), answers, strict=False):
        cold = solve_exact(random_problem(0, N=20, d=2), "SCS", eps_abs=tolerance, eps_rel=tolerance)
        assert np.array_equal(s.W, cold.W)


def test_the_compiled_model_is_used_again(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = []
    original = cp.reductions.solvers.solving_chain.SolvingChain.apply
    monkeypatch.setattr(
        cp.reductions.solvers.solving_chain.SolvingChain,
        "apply",
        lambda self, *a, **k: compiled.append(1) or original(self, *a, **k),
    )
    _, runs = bench_conic.attempts(random_problem(0, N=16, d=2), "CLARABEL", 1e-11, ONCE, lambda _: None)
    assert len(runs) > 1
    assert len(compiled) == 1


def test_a_solver_that_gives_up_is_not_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_args: object, **_options: object) -> None:
        raise SolverError("no W")

    monkeypatch.setattr(bench_conic, "solve_exact", fails)
    found = measure_conic(random_problem(0), "SCS", (1e-3, 1e-6), 0, ONCE, lambda _: None)
    assert [r.setting for r in found] == ["1e-03: no W"] * 2
    assert all(math.isnan(r.seconds) and not r.certified for r in found)


def test_a_time_limit_ends_the_race(monkeypatch: pytest.MonkeyPatch) -> None:
    p = random_problem(0, N=30, d=3)
    _, runs = bench_conic.attempts(p, "SCS", 1e-300, replace(ONCE, time_limit=1e-3), lambda _: None)
    assert len(runs) == 1
    assert not runs[0].solved


def test_a_solver_that_is_not_installed_is_shown_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench_conic.cp, "installed_solvers", lambda: ["CLARABEL"])
    (r,) = measure_conic(random_problem(0), "SCS", (1e-3,), 0, ONCE, lambda _: None)
    assert r.setting == "not installed"
    assert not r.certified


def test_certifying_is_not_charged_to_a_conic_solver(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock ticks by one a call: between start and stop of a run nobody else may look at it."""
    ticks = iter(range(1000))
    rules = Rules(clock=lambda: float(next(ticks)))
    monkeypatch.setattr(bench_conic, "certify", lambda p, W: next(ticks) and original(p, W))
    original = sys.modules["llr_cvx.verdicts.dual_search"].certify
    compile_seconds, runs = bench_conic.attempts(random_problem(0, N=16, d=2), "SCS", 1e-300, rules, lambda _: None)
    assert compile_seconds == 1.0
    assert {a.seconds for a in runs} == {1.0}


def test_cheapest_is_not_the_loosest() -> None:
    runs = [Attempt("a", 5.0, 2e-4), Attempt("b", 3.0, 1e-5), Attempt("c", 4.0, 1e-7), Attempt("d", 9.0, 1e-3)]
    assert cheapest(runs, 1e-3).setting == "b"
    assert cheapest(runs, 1e-6).setting == "c"
    none = cheapest(runs, 1e-9)
    assert math.isnan(none.seconds)
    assert (none.setting, none.reached) == ("c", 1e-7)


@pytest.mark.parametrize("seed", range(6))
def test_fused_edges_are_seen_before_the_rows_are_equal(seed: int) -> None:
    """The dual tells at a gap of 1e-4 most of what equal rows tell at 1e-9, and nothing else."""
    p = random_problem(seed, N=40, d=4, lambda1=0.3)
    rough, fine = solve_irls(p, 1e-4), solve_irls(p, 1e-9)
    i, j = p.edges.T
    exact = np.mean(np.all(fine.W[i] == fine.W[j], axis=1))
    assert 0.2 < exact < 0.9
    assert 0.6 * exact < bench.fused_share(fine) <= exact
    assert 0.6 * exact < bench.fused_share(rough) <= exact


@pytest.mark.parametrize(("lambda1", "share"), [(1e-4, 0.0), (1e6, 1.0)])
def test_nothing_or_everything_is_fused(lambda1: float, share: float) -> None:
    assert measure_irls("race", random_problem(2, lambda1=lambda1), 1e-9, 0, ONCE).fused_share == share


def test_memory_is_that_of_the_new_process_alone() -> None:
    ballast = np.ones(50_000_000)  # 400 MB that the child must not be charged for
    r = bench.measure_apart("large", 40, 3, 1, 0.1, 1.0, 1e-6, ONCE)
    assert r.certified
    assert (r.part, r.N, r.d) == ("large", 40, 3)
    assert r.peak_bytes is not None
    assert 20e6 < r.peak_bytes < ballast.nbytes
    assert (peak_memory() or 0) > ballast.nbytes


def test_all_libraries_get_the_same_threads() -> None:
    from threadpoolctl import threadpool_info

    with blas_threads(1):
        assert {library["num_threads"] for library in threadpool_info()} == {1}


# ---- ratios and promises ----------------------------------------------------------------------------------


def test_ratios_are_taken_seed_by_seed() -> None:
    fast = [record(seconds=1.0, seed=0), record(seconds=4.0, seed=1), record(seconds=1.0, seed=2)]
    slow = [record("SCS", 10.0, seed=0), record("SCS", 20.0, seed=1), missed("SCS", seed=2)]
    assert report.ratios(slow, fast) == [10.0, 5.0]


@pytest.mark.parametrize(
    ("kept", "broken"),
    [
        ([record(), record("CLARABEL", 100.0)], [record(), record("CLARABEL", 99.0)]),
        ([record(), record("SCS", 20.0)], [record(), record("SCS", 19.0)]),
        ([record(d=10), record("SCS", 10.0, d=10)], [record(d=10), record("SCS", 9.0, d=10)]),
        ([record(), record(seconds=4.0, gap=1e-9)], [record(), record(seconds=4.1, gap=1e-9)]),
        (
            [record(part="size", d=20, N=1000, gap=1e-4), record(seconds=24, part="size", d=20, N=16000, gap=1e-4)],
            [record(part="size", d=20, N=1000, gap=1e-4), record(seconds=25, part="size", d=20, N=16000, gap=1e-4)],
        ),
        (
            [record("IRLS path", 1.0, part="path", points=20), record("IRLS cold", 2.0, part="path", points=20)],
            [record("IRLS path", 1.1, part="path", points=20), record("IRLS cold", 2.0, part="path", points=20)],
        ),
        (
            [record(part="coupled", N=5000, d=20, lambda1=1.0, fused_share=0.6)],
            [record(part="coupled", N=5000, d=20, lambda1=1.0, fused_share=0.5)],
        ),
        (
            [record(part="large", N=100_000, d=20, peak_bytes=2 * 2**30)],
            [record(part="large", N=100_000, d=20, peak_bytes=2 * 2**30 + 1)],
        ),
    ],
)
def test_a_promise_is_kept_or_broken(kept: list[Record], broken: list[Record]) -> None:
    assert [p.holds for p in report.promises(kept)] == [True]
    assert [p.holds for p in report.promises(broken)] == [False]
    assert "NOT KEPT" in report.table(broken)


def test_a_rival_that_misses_the_gap_proves_nothing() -> None:
    (promise,) = report.promises([record(), missed("CLARABEL")])
    assert promise.holds is None
    assert promise.measured == "CLARABEL came to 3.0e-04"


def test_an_uncertified_answer_keeps_no_promise() -> None:
    big = record(part="large", N=100_000, d=20, peak_bytes=1)
    assert report.promises([replace(big, reached=1.0)])[0].holds is False
    assert report.promises([replace(big, peak_bytes=None)])[0].holds is None


def test_other_settings_are_not_held_to_the_promises() -> None:
    assert report.promises([record(lambda1=0.2), record("CLARABEL", 1.0, lambda1=0.2)]) == []


# ---- table and figure -------------------------------------------------------------------------------------

EVERYTHING = [
    *(record(s, 123.456, d=d, seed=k) for d in (10, 50) for s in ("IRLS", "CLARABEL") for k in (0, 1)),
    *(missed("SCS", d=50, seed=k, setting=f"1e-0{k}: no W at all") for k in (0, 1)),
    *(record(seconds=1.0 + k, part="size", N=10**k, d=20, gap=1e-4) for k in (3, 4, 5)),
    *(record(seconds=1.0 + d, part="dim", N=1000, d=d, gap=1e-4) for d in (10, 20)),
    *(record(f"IRLS {way}", 2.0, part="path", setting="lambda1 0.01 to 1", points=20) for way in ("path", "cold")),
    *(record(part="plane", d=50, gap=1e-12, lambda1=l1, lambda2=l2) for l1 in (0.1, 1.0) for l2 in (0.01, 1.0)),
    record(part="coupled", N=5000, d=20, lambda1=1.0, fused_share=0.75),
    record(part="large", N=100_000, d=20, peak_bytes=2**30, fused_share=0.0),
]


def test_the_table_fits_and_shows_every_part() -> None:
    text = report.table(EVERYTHING, report.facts(1, 2))
    assert max(map(len, text.splitlines())) <= 100
    for word in (
        "cvxpy",
        "BLAS thread",
        "growth with N",
        "growth with d",
        "Regularization path",
        "on the plane",
        "lambda2 = 0.01",
        "1.00 GiB",
        "75.0%",
    ):
        assert word in text
    (line,) = [line for line in text.splitlines() if " SCS " in line and "IRLS at" not in line]
    assert "not reached" in line
    assert "3.0e-04" in line


def test_the_table_has_the_ratio_and_its_range() -> None:
    rows = [record(seed=0), record(seed=1), record("SCS", 30.0, seed=0), record("SCS", 50.0, seed=1)]
    assert "40x (30 to 50)" in report.table(rows)


@pytest.mark.parametrize(("suffix", "magic"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")])
def test_the_figure_is_written(tmp_path: Path, suffix: str, magic: bytes) -> None:
    pytest.importorskip("matplotlib")
    path = tmp_path / f"bench.{suffix}"
    assert cli.draw(EVERYTHING, str(path)) == f"figure: {path}"
    assert path.read_bytes().startswith(magic)


def test_the_figure_shows_what_was_not_reached() -> None:
    pytest.importorskip("matplotlib")
    from llr_cvx.benchmarks.figure import figure

    drawn = figure(EVERYTHING)
    assert [ax.get_title() for ax in drawn.axes] == [
        "Time to a proof",
        "Growth with N",
        "Growth with d",
        "Path of 20 points",
    ]
    legend = [text.get_text() for text in drawn.axes[0].get_legend().get_texts()]
    assert "SCS, d = 50 (not 1e-06)" in legend


def test_without_matplotlib_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "llr_cvx.benchmarks.figure", raising=False)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert "matplotlib is not installed" in cli.draw(EVERYTHING, str(tmp_path / "x.png"))
    assert list(tmp_path.iterdir()) == []


# ---- the command ------------------------------------------------------------------------------------------

SMALL = ["--quick", "--n", "24", "--d", "2,11", "--gaps", "1e-3,1e-6", "--sizes", "40,80,5000", "--dims", "2,3"]
SMALL += ["--points", "3", "--repeats", "1"]


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["bench", *arguments])


def test_one_run_one_table_one_figure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli, "DIM_N", 40)
    files = tmp_path / "bench.svg", tmp_path / "bench.json"
    result = run(*SMALL, "--figure", str(files[0]), "--json", str(files[1]))
    assert result.exit_code == 0, result.output
    assert max(map(len, result.stdout.splitlines())) <= 100
    assert "IRLS to 1e-03" in result.stderr
    data = json.loads(files[1].read_text())
    cells = {(r["part"], r["solver"], r["N"], r["d"], r["gap"]) for r in data["records"]}
    assert cells == {
        *(("race", s, 24, 2, gap) for s in ("IRLS", "CLARABEL", "SCS") for gap in (1e-3, 1e-6)),
        *(("race", "IRLS", 24, 11, gap) for gap in (1e-3, 1e-6)),
        *(("size", "IRLS", N, 20, 1e-4) for N in (40, 80)),
        *(("dim", "IRLS", 40, d, 1e-4) for d in (2, 3)),
        *(("path", f"IRLS {way}", 24, d, 1e-6) for way in ("path", "cold") for d in (2, 11)),
    }
    assert all(r["certified"] for r in data["records"])
    assert data["options"]["seeds"] == [0]
    assert "left out" in data["head"][-1]
    assert files[0].exists()


def test_coupled_and_large_come_on_request(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(bench, "instance", lambda *cell: cell)
    monkeypatch.setattr(bench, "measure_irls", lambda *a, **k: asked.append(a) or record(part="coupled"))
    monkeypatch.setattr(bench, "measure_apart", lambda *a, **k: asked.append(a) or record(part="large"))
    result = run("--part", "coupled", "--part", "large", "--part", "million", "--no-figure")
    assert result.exit_code == 0, result.output
    assert asked[0][1] == (5_000, 20, 0, 1.0, 1.0)
    assert asked[1][:3] == ("large", 100_000, 20)
    assert asked[2][:3] == ("million", 1_000_000, 5)


def test_the_plane_comes_on_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli, "LAMBDA1S", (0.01, 1.0))
    monkeypatch.setattr(cli, "LAMBDA2S", (0.1, 1.0))
    result = run("--part", "plane", "--n", "24", "--d", "2,3", "--no-figure")
    assert result.exit_code == 0, result.output
    assert max(map(len, result.stdout.splitlines())) <= 100
    assert result.stdout.count("on the plane") == 2
    assert "kept       8 cells of the plane: certified to 1e-12" in result.stdout


def test_irls_missing_a_gap_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "measure_irls", lambda *a, **k: missed("IRLS", part="size"))
    result = run("--part", "size", "--sizes", "40", "--no-figure")
    assert result.exit_code == 1
    assert "not reached" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--d", "10,x"], "'10,x' is no list of numbers"),
        (["--d", "0"], "0 is out of range"),
        (["--gaps", "1e-3,0"], "0.0 is out of range"),
        (["--gaps", "nan"], "nan is out of range"),
        (["--sizes", "4"], "4 is out of range: finite and at least 8"),
        (["--figure", "x.txt"], "must end in one of .png"),
        (["--json", "no/such/folder/x.json"], "the folder of no/such/folder/x.json does not exist"),
        (["--part", "marathon"], "'marathon' is not one of"),
        (["--lambda1", "-1"], "-1.0 is not in the range"),
        (["--threads", "0"], "0 is not in the range"),
    ],
)
def test_bad_options_are_refused_before_anything_runs(arguments: list[str], message: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert message in re.sub(r"\s+", " ", result.output)


def test_the_help_teaches() -> None:
    text = run("--help").output
    for word in ("race", "coupled", "large", "Exit 0", "Examples", "--json"):
        assert word in text
