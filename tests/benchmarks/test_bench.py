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
from llr_cvx.benchmarks import plan, sensitivity
from llr_cvx.benchmarks import tables as report
from llr_cvx.benchmarks.conic import Attempt, cheapest, measure_conic
from llr_cvx.benchmarks.measure import SOLVERS, Record, Rules, blas_threads, instance, measure_path, measure_solver
from llr_cvx.cli import cmd_bench as cli
from llr_cvx.cli import main
from llr_cvx.datasets import make_synthetic
from llr_cvx.problem import Problem
from llr_cvx.processes import peak_memory
from llr_cvx.solution import Solution, SolverError
from llr_cvx.solvers import conic as conic_solvers
from llr_cvx.solvers import settings
from llr_cvx.solvers.exact import solve_exact
from llr_cvx.solvers.fast.solver import solve_fast

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


@pytest.mark.parametrize(("solver", "monotone"), [("IRLS", True), ("FAST", None)])
def test_a_solver_is_measured_as_often_as_asked_on_fresh_copies(
    solver: str, monotone: bool | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []
    original = SOLVERS[solver]
    monkeypatch.setitem(SOLVERS, solver, lambda p, *a, **k: seen.append(p) or original(p, *a, **k))
    p = random_problem(0)
    r = measure_solver("race", solver, p, 1e-9, 5, Rules(runs=3))
    assert r.certified
    assert (r.solver, r.runs, r.seed, r.N, r.d) == (solver, 3, 5, *p.shape)
    assert r.monotone is monotone
    assert len({id(q) for q in [p, *seen]}) == 4
    assert 0 < r.seconds


def test_a_descent_that_rises_is_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    def rising(p: Problem, *args: Any, **options: Any) -> Solution:
        s = original(p, *args, **options)
        return replace(s, trace=replace(s.trace, smoothed_objective=1.0 + np.arange(s.n_iter)))

    original = SOLVERS["IRLS"]
    monkeypatch.setitem(SOLVERS, "IRLS", rising)
    assert measure_solver("plane", "IRLS", random_problem(0), 1e-6, 0, ONCE).monotone is False


def test_long_runs_are_not_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "REPEAT_SECONDS", 1e-9)
    assert measure_solver("race", "FAST", random_problem(0), 1e-6, 0, Rules(runs=9)).runs == 1


@pytest.mark.parametrize("solver", sorted(SOLVERS))
def test_a_gap_that_is_missed_has_no_time(solver: str, monkeypatch: pytest.MonkeyPatch) -> None:
    original = SOLVERS[solver]
    monkeypatch.setitem(SOLVERS, solver, lambda p, *a, **k: original(p, *a, **k, max_iter=1))
    r = measure_solver("race", solver, random_problem(0), 1e-6, 0, ONCE)
    assert math.isnan(r.seconds)
    assert not r.certified
    assert 1e-6 < r.reached < 1


@pytest.mark.parametrize("penalty", ["lambda1", "lambda2"])
@pytest.mark.parametrize("values", [[0.01, 0.1, 1.0], [1.0, 0.1, 0.01]])
def test_a_path_and_its_cold_twin_solve_the_same_points(
    penalty: str, values: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    solved: dict[bool, list[float]] = {True: [], False: []}  # by whether started from a W

    def spy(p: Problem, *args: Any, W0: Any = None, **options: Any) -> Solution:
        solved[W0 is not None].append(getattr(p, penalty))
        return solve_fast(p, *args, W0=W0, **options)

    monkeypatch.setattr(bench, "solve_fast", spy)
    monkeypatch.setattr("llr_cvx.solvers.path.solve_fast", spy)
    warm, cold = measure_path(random_problem(1), penalty, values, 1e-6, 1, ONCE)
    assert (warm.solver, cold.solver) == ("FAST path", "FAST cold")
    assert warm.setting == f"{penalty} {values[0]:g} to {values[-1]:g}"
    assert warm.points == cold.points == 3
    assert warm.certified
    assert cold.certified
    assert solved == {True: values[1:], False: [values[0], *values]}


def test_one_bad_point_spoils_a_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "solve_fast", lambda p, tol: solve_fast(p, tol, max_iter=1 if p.lambda1 == 0.1 else 300))
    warm, cold = measure_path(random_problem(1), "lambda1", [0.01, 0.1, 1.0], 1e-6, 1, ONCE)
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


@pytest.mark.long
def test_a_tighter_tolerance_starts_from_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """CVXPY would hand SCS the answer to the looser tolerance, and it would be done at once."""
    answers: list[Solution] = []
    monkeypatch.setattr(bench_conic, "solve_exact", lambda *a, **k: answers.append(solve_exact(*a, **k)) or answers[-1])
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
def test_fused_edges_are_seen_before_the_rows_are_equal(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The dual tells at a gap of 1e-4 most of what equal rows tell at 1e-9, and hardly anything else.

    So with the phases of many samples, for which it is reported.
    """
    monkeypatch.setattr(settings, "DENSE", 10)
    p = random_problem(seed, N=40, d=4, lambda1=0.3)
    rough, fine = solve_fast(p, 1e-4), solve_fast(p, 1e-9)
    i, j = p.edges.T
    exact = np.mean(np.all(fine.W[i] == fine.W[j], axis=1))
    assert 0.2 < exact < 0.9
    assert 0.6 * exact < bench.fused_share(fine) <= exact
    assert 0.6 * exact < bench.fused_share(rough) <= 1.1 * exact


@pytest.mark.parametrize(("lambda1", "share"), [(1e-4, 0.0), (1e6, 1.0)])
def test_nothing_or_everything_is_fused(lambda1: float, share: float) -> None:
    assert measure_solver("race", "FAST", random_problem(2, lambda1=lambda1), 1e-9, 0, ONCE).fused_share == share


@pytest.mark.long
def test_memory_is_that_of_the_new_process_alone() -> None:
    ballast = np.ones(50_000_000)  # 400 MB that the child must not be charged for
    r = bench.measure_apart("large", (40, 3, 1, 0.1, 1.0), 1e-6, ONCE)
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


def cell(irls: float, fast: float = 1.0, **changes: Any) -> list[Record]:
    """One cell of the plane: seconds of both solvers."""
    changes = {"part": "plane", "gap": 1e-9, "reached": 1e-10} | changes
    return [
        record("IRLS", irls, **({"monotone": True} | changes)),
        record("FAST", fast, **changes | {"monotone": None}),
    ]


def growth(seconds: float) -> list[Record]:
    sizes = ((1000, 1.0), (16_000, seconds))
    return [record("FAST", t, part="size", d=20, N=N, gap=1e-4) for N, t in sizes]


def rivals(d: int, solver: str, seconds: float) -> list[Record]:
    """What CVXPY takes to 1e-6 where IRLS takes a second; the fast solver, faster still, must not count."""
    return [record("IRLS", d=d), record("FAST", 0.01, d=d), record(solver, seconds, d=d)]


@pytest.mark.parametrize(
    ("kept", "broken"),
    [
        (rivals(10, "CLARABEL", 60.0), rivals(10, "CLARABEL", 59.0)),
        (rivals(10, "SCS", 25.0), rivals(10, "SCS", 24.0)),
        (rivals(50, "CLARABEL", 600.0), rivals(50, "CLARABEL", 599.0)),
        (rivals(50, "SCS", 150.0), rivals(50, "SCS", 149.0)),
        ([record("FAST"), record("FAST", 4.0, gap=1e-9)], [record("FAST"), record("FAST", 4.1, gap=1e-9)]),
        (growth(24.0), growth(25.0)),
        (
            [record("FAST", part="coupled", N=5000, d=20, lambda1=1.0, fused_share=0.6)],
            [record("FAST", part="coupled", N=5000, d=20, lambda1=1.0, fused_share=0.5)],
        ),
        (
            [record("FAST", part="large", N=100_000, d=20, peak_bytes=2 * 2**30)],
            [record("FAST", part="large", N=100_000, d=20, peak_bytes=2 * 2**30 + 1)],
        ),
    ],
)
def test_a_promise_is_kept_or_broken(kept: list[Record], broken: list[Record]) -> None:
    assert [p.holds for p in report.promises(kept)] == [True]
    assert [p.holds for p in report.promises(broken)] == [False]
    assert "NOT KEPT" in report.table(broken)


@pytest.mark.parametrize(
    ("cells", "holds"),  # of: IRLS certified and monotone, FAST certified, median ratio, largest ratio
    [
        ([cell(1.0, lambda1=0.1), cell(1.5, lambda1=1.0), cell(4.0, lambda1=10.0)], [True, True, True, True]),
        ([cell(1.0, lambda1=0.1), cell(1.6, lambda1=1.0), cell(4.0, lambda1=10.0)], [True, True, False, True]),
        ([cell(1.0, lambda1=0.1), cell(1.5, lambda1=1.0), cell(4.1, lambda1=10.0)], [True, True, True, False]),
        ([cell(1.0), cell(1.0, lambda1=1.0, monotone=False)], [False, True, True, True]),
        ([cell(1.0), cell(math.nan, math.nan, lambda1=1.0, reached=2e-9)], [False, False, True, True]),
        ([cell(9.0, gap=1e-12, reached=1e-13)], [True]),  # only FAST is held to 1e-12
        ([cell(math.nan, math.nan, gap=1e-12, reached=1e-11)], [False]),
    ],
)
def test_the_promises_of_the_plane(cells: list[list[Record]], holds: list[bool]) -> None:
    assert [p.holds for p in report.promises([r for both in cells for r in both])] == holds


def test_a_rival_that_misses_the_gap_proves_nothing() -> None:
    (promise,) = report.promises([record(), missed("CLARABEL")])
    assert promise.holds is None
    assert promise.measured == "CLARABEL came to 3.0e-04"


def test_an_uncertified_answer_keeps_no_promise() -> None:
    big = record(part="large", N=100_000, d=20, peak_bytes=1)
    assert report.promises([replace(big, reached=1.0)])[0].holds is False
    assert report.promises([replace(big, peak_bytes=None)])[0].holds is None


def test_new_rows_are_held_to_their_rate_and_their_proof() -> None:
    new = record("JOIN", 5.0, part="new", d=20, gap=1e-8, reached=1e-9, points=20_000)
    assert [p.holds for p in report.promises([new])] == [True]
    assert "4,000 a second" in report.table([new])
    assert [p.holds for p in report.promises([replace(new, seconds=11.0)])] == [False]
    assert [p.holds for p in report.promises([replace(new, seconds=math.nan, reached=1e-3)])] == [False]


def test_other_settings_are_not_held_to_the_promises() -> None:
    assert report.promises([record(lambda1=0.2), record("CLARABEL", 1.0, lambda1=0.2)]) == []


# ---- table and figure -------------------------------------------------------------------------------------

EVERYTHING = [
    *(record(s, 123.456, d=d, seed=k) for d in (10, 50) for s in ("IRLS", "FAST", "CLARABEL") for k in (0, 1)),
    *(missed("SCS", d=50, seed=k, setting=f"1e-0{k}: no W at all") for k in (0, 1)),
    *(record(s, 1.0 + k, part="size", N=10**k, d=20, gap=1e-4) for k in (3, 4, 5) for s in ("IRLS", "FAST")),
    *(record("FAST", 1.0 + d, part="dim", N=1000, d=d, gap=1e-4) for d in (10, 20)),
    *(record(f"FAST {way}", 2.0, part="path", setting="lambda2 0.1 to 10", points=20) for way in ("path", "cold")),
    *(r for l1 in (0.1, 1.0) for l2 in (0.01, 0.1, 1.0, 10.0) for r in cell(3.0 * l1, lambda1=l1, lambda2=l2)),
    record("FAST", part="coupled", N=5000, d=20, lambda1=1.0, fused_share=0.75),
    record("FAST", part="large", N=100_000, d=20, peak_bytes=2**30, fused_share=0.0),
]


def test_the_table_fits_and_shows_every_part() -> None:
    text = report.table(EVERYTHING, report.facts(1, 2))
    assert max(map(len, text.splitlines())) <= 100
    for word in (
        "cvxpy",
        "BLAS thread",
        "Growth with N",
        "Growth with d",
        "Regularization path",
        "The plane to 1e-09",
        "IRLS / FAST: median 1.65x, largest 3x; J_epsilon monotone in 8 of 8 runs",
        "lambda2 = 0.01",
        "1.00 GiB",
        "75.0%",
    ):
        assert word in text
    (line,) = [line for line in text.splitlines() if " SCS " in line and "IRLS at" not in line]
    assert "not reached" in line
    assert "3.0e-04" in line


def test_the_race_has_the_ratio_to_either_solver() -> None:
    times = {"IRLS": (1.0, 1.0), "FAST": (0.5, 0.5), "SCS": (30.0, 50.0)}
    rows = [record(name, t, seed=k) for name, seconds in times.items() for k, t in enumerate(seconds)]
    assert re.search(r"SCS +40\.000 +\S+ +40x \(30 to 50\) +80x", report.table(rows))


def test_growth_has_the_ratio_of_irls_to_the_fast_solver() -> None:
    rows = [record(s, t, part="size", N=1000, d=20, gap=1e-4) for s, t in (("IRLS", 3.0), ("FAST", 2.0))]
    assert re.search(r"1,000 +20 +IRLS +3\.000 +1x +1x +1\.5x", report.table(rows))


def test_a_cell_of_the_plane_that_irls_missed_has_no_time() -> None:
    text = report.table(cell(math.nan, reached=3e-5) + cell(2.0, lambda1=1.0, monotone=False))
    assert re.search(r"^  0\.1 +– +– 3\.0e-05$", text, re.MULTILINE)
    assert "J_epsilon monotone in 1 of 2 runs" in text


@pytest.mark.long
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


@pytest.mark.long
def test_one_run_one_table_one_figure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "DIM_N", 40)
    monkeypatch.setattr(plan, "IRLS_N", 40)
    files = tmp_path / "bench.svg", tmp_path / "bench.json"
    result = run(*SMALL, "--figure", str(files[0]), "--json", str(files[1]))
    assert result.exit_code == 0, result.output
    assert max(map(len, result.stdout.splitlines())) <= 100
    assert "IRLS to 1e-03" in result.stderr
    data = json.loads(files[1].read_text())
    cells = {(r["part"], r["solver"], r["N"], r["d"], r["gap"]) for r in data["records"]}
    assert cells == {
        *(("race", s, 24, 2, gap) for s in ("IRLS", "FAST", "CLARABEL", "SCS") for gap in (1e-3, 1e-6)),
        *(("race", s, 24, 11, gap) for s in ("IRLS", "FAST") for gap in (1e-3, 1e-6)),
        *(("size", "FAST", N, 20, 1e-4) for N in (40, 80)),
        ("size", "IRLS", 40, 20, 1e-4),
        *(("dim", "FAST", 40, d, 1e-4) for d in (2, 3)),
        *(("path", f"FAST {way}", 24, d, 1e-6) for way in ("path", "cold") for d in (2, 11)),
    }
    assert all(r["certified"] for r in data["records"])
    assert data["options"]["seeds"] == [0]
    assert "left out" in data["head"][-1]
    assert files[0].exists()


def test_coupled_and_large_come_on_request(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(bench, "instance", lambda *cell: asked.append(cell) or random_problem(0))
    monkeypatch.setattr(bench, "measure_solver", lambda *a, **k: asked.append(a) or record(part="coupled"))
    monkeypatch.setattr(bench, "measure_apart", lambda *a, **k: asked.append(a) or record(part="large"))
    result = run("--part", "coupled", "--part", "large", "--part", "million", "--no-figure")
    assert result.exit_code == 0, result.output
    assert asked[0] == (5_000, 20, 0, 1.0, 1.0)
    assert asked[1][:2] == ("coupled", "FAST")
    assert asked[2][:2] == ("large", (100_000, 20, 0, 0.1, 1.0))
    assert asked[3][:2] == ("million", (1_000_000, 5, 0, 0.1, 1.0))


@pytest.mark.long
def test_the_plane_comes_on_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "LAMBDA1S", (0.01, 1.0))
    monkeypatch.setattr(plan, "LAMBDA2S", (0.1, 1.0))
    small = ("--part", "plane", "--n", "24", "--d", "2,3", "--no-figure")
    result = run(*small)
    assert result.exit_code == 0, result.output
    assert max(map(len, result.stdout.splitlines())) <= 100
    assert result.stdout.count("The plane to 1e-09") == 2
    assert "kept       plane: IRLS certified to 1e-09 and monotone in every run: 8 of 8" in result.stdout
    assert "kept       plane: FAST certified to 1e-12 in every run: 8 of 8" in run(*small, "--gap", "1e-12").stdout


def test_a_path_has_a_penalty_a_direction_and_a_gap(tmp_path: Path) -> None:
    options = ("--along", "lambda2", "--descending", "--gap", "1e-4", "--points", "2", "--lambda2", "2")
    run("--part", "path", "--n", "24", "--d", "2", *options, "--no-figure", "--json", str(tmp_path / "r.json"))
    records = json.loads((tmp_path / "r.json").read_text())["records"]
    assert [r["setting"] for r in records[::2]] == ["lambda2 2 to 0.2", "lambda2 20 to 0.2"]
    assert {r["gap"] for r in records} == {1e-4}


@pytest.mark.parametrize("solver", sorted(SOLVERS))
def test_a_gap_missed_by_either_solver_is_a_failure(solver: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = {name: record(name, part="size", N=40, d=20) for name in SOLVERS}
    found[solver] = missed(solver, part="size", N=40, d=20)
    monkeypatch.setattr(bench, "measure_solver", lambda part, name, *a, **k: found[name])
    result = run("--part", "size", "--sizes", "40", "--no-figure")
    assert result.exit_code == 1
    assert "not reached" in result.stdout


def test_a_descent_that_rises_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    found = {name: record(name, part="size", monotone=None if name == "FAST" else False) for name in SOLVERS}
    monkeypatch.setattr(bench, "measure_solver", lambda part, name, *a, **k: found[name])
    assert run("--part", "size", "--sizes", "40", "--no-figure").exit_code == 1


# ---- settings ---------------------------------------------------------------------------------------------


def test_every_setting_is_varied_and_stays_a_sensible_number() -> None:
    for name, value in sensitivity.tuned().items():
        for factor in (1 / 3, 3.0):
            tried = sensitivity.scaled(name, value, factor)
            assert type(tried) is type(value)
            assert np.all(np.array(tried) > 0)
            assert np.all(np.array(tried) < 1) or np.all(np.array(value) >= 1), name


def test_the_effect_of_a_setting_is_seen_and_the_setting_restored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A solver that misses its gaps with three times the setting: that comes first."""
    seen: list[float] = []

    def solve(p: Problem, tol: float, time_limit: float) -> Solution:
        seen.append(settings.LAST_EPSILON)
        return solve_fast(p, tol, max_iter=300 if settings.LAST_EPSILON < 2e-15 else 1)

    monkeypatch.setattr(sensitivity, "cases", lambda: [(random_problem(seed), 1e-9) for seed in (0, 1)])
    monkeypatch.setitem(SOLVERS, "FAST", solve)
    options = ("--part", "settings", "--only", "LAST_EPSILON", "--json", str(tmp_path / "r.json"))
    result = run(*options)
    assert result.exit_code == 0, result.output
    assert seen == [1e-15] * 4 + [3.33e-16] * 2 + [3e-15] * 2
    assert settings.LAST_EPSILON == 1e-15
    worse, better = json.loads((tmp_path / "r.json").read_text())["settings"]
    assert (worse["name"], worse["default"], worse["tried"]) == ("LAST_EPSILON", 1e-15, 3e-15)
    assert better["tried"] == 3.33e-16
    assert [effect["by_solver"]["FAST"][2] for effect in (worse, better)] == [2, 0]
    assert worse["by_solver"]["IRLS"][2] == 0
    assert max(map(len, result.stdout.splitlines())) <= 100
    assert result.stdout.index("3e-15") < result.stdout.index("3.33e-16")


def test_a_setting_is_restored_after_an_error() -> None:
    with pytest.raises(TypeError), sensitivity.changed("DENSE", None):
        solve_fast(random_problem(0))
    assert settings.DENSE > 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--d", "10,x"], "'x' is not a valid integer range. Got '10,x'; write numbers like 10,50."),
        (["--d", "0"], "0 is not in the range x>=1"),
        (["--gaps", "1e-3,0"], "0.0 is not in the range x>0"),
        (["--gaps", "nan"], "nan is not a finite number"),
        (["--sizes", "4"], "4 is not in the range x>=8"),
        (["--figure", "x.txt"], "must end in one of .png"),
        (["--json", "no/such/folder/x.json"], "cannot write no/such/folder/x.json: its folder does not exist"),
        (["--only", "NOTHING"], "'NOTHING' is not one of"),
        (["--gap", "0"], "0.0 is not in the range"),
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
    for word in ("race", "coupled", "large", "settings", "IRLS and FAST", "Exit 0", "Examples", "--json"):
        assert word in text


# ---- interrupted ------------------------------------------------------------------------------------------


def test_an_interrupted_run_goes_on_where_it_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was measured before the interruption is neither lost nor measured again."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    small = ("--part", "size", "--sizes", "40,50,60", "--no-figure", "--json", str(tmp_path / "r.json"))
    measured: list[tuple[str, int]] = []

    def count(part: str, solver: str, p: Problem, gap: float, *rest: Any, **options: Any) -> Record:
        if len(measured) == 4 and not (tmp_path / "interrupted").exists():
            (tmp_path / "interrupted").touch()
            raise KeyboardInterrupt
        measured.append((solver, p.shape[0]))
        return record(solver, float(len(measured)), part="size", N=p.shape[0], d=20, gap=gap)

    monkeypatch.setattr(bench, "measure_solver", count)
    assert run(*small).exit_code != 0
    assert not (tmp_path / "r.json").exists()
    result = run(*small)
    assert result.exit_code == 0, result.output
    assert "with 4 finished" in result.stderr
    assert re.search(r"\[6/6, about \d+ s left\] size: FAST to 1e-04, N = 60", result.stderr)
    assert measured == [(solver, N) for N in (40, 50, 60) for solver in ("IRLS", "FAST")]
    records = json.loads((tmp_path / "r.json").read_text())["records"]
    assert sorted(r["seconds"] for r in records) == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    assert list((tmp_path / "cache" / "llr-cvx").iterdir()) == []
    run(*small)
    assert len(measured) == 12  # a finished run is not resumed


def test_fresh_measures_everything_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    found: list[Any] = [record(part="size"), KeyboardInterrupt(), record(part="size"), record(part="size")]

    def measure(*_args: Any, **_options: Any) -> Record:
        item = found.pop(0)
        if isinstance(item, BaseException):
            raise item
        return item  # type: ignore[no-any-return]

    monkeypatch.setattr(bench, "measure_solver", measure)
    small = ("--part", "size", "--sizes", "40", "--no-figure")
    run(*small)
    assert run(*small, "--fresh").exit_code == 0
    assert found == []
