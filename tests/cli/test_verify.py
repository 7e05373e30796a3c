"""`llr-cvx verify`, the main job: what it prints, and that each single thing it checks can fail."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path

import numpy as np
import pytest
from builders import random_problem
from click.testing import CliRunner, Result

import llr_cvx as llr
from llr_cvx.cli import cmd_verify as module
from llr_cvx.cli import main
from llr_cvx.solution import Solution, SolverError


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["verify", *map(str, arguments)])


SMALL = ("--size", 24, "--dim", 3)


def test_the_default_run_proves_everything_and_fits_the_screen() -> None:
    result = run()
    assert result.exit_code == 0, result.output
    for pair in ("CLARABEL and IRLS", "CLARABEL and FAST", "IRLS and FAST"):
        assert f"{pair} agree" in result.stdout
    assert "All holds to a relative gap of 1e-06." in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 100
    table = {cells[0]: cells[1:] for cells in map(str.split, result.stdout.splitlines()) if cells[-1:] == ["optimal"]}
    assert list(table) == ["CLARABEL", "IRLS", "FAST"]
    assert [float(cells[0]) for cells in table.values()] == pytest.approx([float(table["IRLS"][0])] * 3, rel=1e-6)
    assert [cells[3] for cells in table.values()] == ["–", "yes", "–"]
    assert "solving with FAST" in result.stderr


def test_json_has_the_same_numbers(tmp_path: Path) -> None:
    result = run(*SMALL, "--json", tmp_path / "r.json")
    data = json.loads((tmp_path / "r.json").read_text())
    assert result.exit_code == 0
    assert data["holds"] is True
    assert data["problem"]["N"] == 24
    assert data["problem"]["lambda1"] == 0.1
    assert [row["solver"] for row in data["rows"]] == ["CLARABEL", "IRLS", "FAST"]
    assert [row["monotone"] for row in data["rows"]] == [None, True, None]
    for row in data["rows"]:
        assert f"{row['objective']:.10f}" in result.stdout
        assert row["relative_gap"] <= 1e-6
        assert row["objective"] - row["lower_bound"] == pytest.approx(row["relative_gap"] * row["objective"], abs=1e-15)
    assert [pair["agree"] for pair in data["agreement"]] == [True] * 3


def test_a_saved_problem_with_other_lambdas(tmp_path: Path) -> None:
    p = random_problem(3, N=20, d=2, lambda1=0.2, lambda2=0.5)
    p.save(tmp_path / "p.npz")
    out = run(tmp_path / "p.npz", "--solver", "irls").stdout
    assert "Problem(N=20, d=2" in out
    assert f"{llr.solve_irls(p).objective:.10f}" in out
    assert "lambda1=0.7, lambda2=0.5" in run(tmp_path / "p.npz", "--lambda1", 0.7, "--solver", "irls").stdout


def write_samples(folder: Path) -> tuple[Path, Path, llr.Problem]:
    X_inlier, X_test, _ = llr.make_synthetic(3, 0, 12, 6, 2)
    for name, X in (("a.csv", X_inlier), ("b.csv", X_test)):
        np.savetxt(folder / name, X, delimiter=",", fmt="%.17g", header="u,v,w", comments="")
    return folder / "a.csv", folder / "b.csv", llr.Problem.from_samples(X_inlier, X_test, 0.3, 0.2, 4, 1.5)


def test_two_csv_files_and_a_W_to_judge(tmp_path: Path) -> None:
    a, b, p = write_samples(tmp_path)
    options = ("--inliers", a, "--test", b, "--lambda1", 0.3, "--lambda2", 0.2, "--neighbors", 4, "--sigma", 1.5)
    s = llr.solve_exact(p)
    np.save(tmp_path / "good.npy", s.W)
    np.savez(tmp_path / "bad.npz", W=s.W + 0.01)
    good = run(*options, "--W", tmp_path / "good.npy")
    assert good.exit_code == 0, good.output
    assert f"{s.objective:.10f}" in good.stdout
    assert "good.npy: accepted" in good.stdout
    bad = run(*options, "--W", tmp_path / "bad.npz", "--json", tmp_path / "r.json")
    assert bad.exit_code == 1
    assert "bad.npz: rejected" in bad.stdout
    assert "NOT everything holds." in bad.stdout
    assert json.loads((tmp_path / "r.json").read_text())["holds"] is False


def test_verify_and_detect_read_the_same_files_alike(tmp_path: Path) -> None:
    """With detect's scaling, verify judges the very problem that detect solves: ids, dropped columns, order."""
    a, b, _ = write_samples(tmp_path)
    rows = [line.split(",") for line in b.read_text().splitlines()[1:]]
    b.write_text("w,name,u,v,note\n" + "".join(f"{w},S{k},{u},{v},?\n" for k, (u, v, w) in enumerate(rows)))
    files = ("--inliers", a, "--test", b, "--id", "name", "--drop", "note", "--json", tmp_path / "r.json")
    both = (*files, "--tol", "1e-8")
    found = CliRunner().invoke(main, ["detect", *map(str, both)])
    assert found.exit_code == 0, found.output
    detected = json.loads((tmp_path / "r.json").read_text())["certificate"]
    result = run(*both, "--scale", "standard", "--solver", "fast")
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith(f"{a} + {b}, standard scaling: Problem(N=20, d=3")
    verified = json.loads((tmp_path / "r.json").read_text())["rows"][0]
    assert verified["objective"] == pytest.approx(detected["objective"], rel=1e-12)
    assert run(*both, "--solver", "irls").stdout.startswith(f"{a} + {b}, as they are: ")


def test_row_numbers_are_explained_and_row_names_noted(tmp_path: Path) -> None:
    a, b, _ = write_samples(tmp_path)
    assert "rows: 0 to 11 are the known inliers, 12 to 19 the test samples\n" in run("--inliers", a, "--test", b).stdout
    for path in (a, b):
        header, *rows = path.read_text().splitlines()
        path.write_text(f"no,{header}\n" + "".join(f"{k},{row}\n" for k, row in enumerate(rows)))
    assert "note: column 'no' looks like row names" in run("--inliers", a, "--test", b, "--solver", "irls").stderr
    mixed = llr.Problem([[1.0], [2.0], [3.0]], [1, -1, 1], [], [], 0.0, 1.0)
    mixed.save(tmp_path / "p.npz")
    assert "rows: 0 to 2, as in the saved problem" in run(tmp_path / "p.npz", "--solver", "irls").stdout


def test_a_gap_that_rounding_made_negative_is_shown_as_zero(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def crossed(by: float) -> object:
        return lambda *_: module.Numbers(2.0, 2.0 * (1 + by), -by)

    for by, shown in ((2e-16, "0"), (0.5, "-5.0e-01")):  # the second is an error, and has to be seen
        monkeypatch.setattr(module, "numbers", crossed(by))
        result = run(*SMALL, "--solver", "irls", "--json", tmp_path / "r.json")
        (row,) = [line.split() for line in result.stdout.splitlines() if line.startswith("IRLS ")]
        assert row[3] == shown
        assert json.loads((tmp_path / "r.json").read_text())["rows"][0]["relative_gap"] == -by


def test_a_far_outlier_is_told_in_one_line(tmp_path: Path) -> None:
    a, b, _ = write_samples(tmp_path)
    b.write_text(b.read_text() + "1e5,1e5,1e5\n")
    result = run("--inliers", a, "--test", b, "--solver", "irls")
    assert result.exit_code == 0
    assert "warning: 1 sample(s) lie so far away" in result.stderr
    assert "(rows 20)" in result.stderr


def test_the_tolerance_decides() -> None:
    result = run(*SMALL, "--solver", "CLARABEL", "--tol", 1e-15)
    assert result.exit_code == 1
    assert "inaccurate" in result.stdout
    assert "CLARABEL: CLARABEL said optimal; proven relative gap" in result.stdout


def test_lambda2_zero_is_not_called_proved(tmp_path: Path) -> None:
    X = np.random.default_rng(0).standard_normal((40, 2))
    llr.Problem.from_samples(X[:20], X[20:], lambda1=10.0, lambda2=0.0, sigma=10.0).save(tmp_path / "p.npz")
    result = run(tmp_path / "p.npz", "--solver", "CLARABEL")
    assert result.exit_code == 1
    assert "uncertified" in result.stdout
    assert "lambda2 = 0: there is no unconditional proof" in result.stdout


def test_a_time_limit_ends_in_words_and_not_in_optimal(tmp_path: Path) -> None:
    size = ("--size", 60, "--dim", 5)
    np.save(tmp_path / "W.npy", np.zeros((60, 5)))
    result = run(*size, "--time-limit", 1e-6, "--W", tmp_path / "W.npy", "--json", tmp_path / "r.json")
    assert result.exit_code == 1
    rows = {row["solver"]: row for row in json.loads((tmp_path / "r.json").read_text())["rows"]}
    assert rows["CLARABEL"]["verdict"] in ("inaccurate", "failed")
    assert rows["IRLS"]["verdict"] == rows["FAST"]["verdict"] == "time_limit"
    assert rows["W.npy"]["verdict"] == "rejected"
    assert "IRLS: " in result.stdout
    assert run(*size, "--time-limit", 600, "--solver", "irls").exit_code == 0


# ---- each check can fail ------------------------------------------------------------------------------------


def rising(problem: llr.Problem, tol: float) -> Solution:
    """IRLS whose J_epsilon rises once."""
    s = llr.solve_irls(problem, tol)
    values = s.trace.smoothed_objective.copy()
    values[np.flatnonzero(s.trace.phase == "irls")[-1]] = values[0] * 1.01
    return dataclasses.replace(s, trace=dataclasses.replace(s.trace, smoothed_objective=values))


def test_a_descent_that_rises_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(module.OWN, "IRLS", rising)
    result = run(*SMALL, "--json", tmp_path / "r.json")
    assert result.exit_code == 1
    assert re.search(r"^IRLS .* NO .* not monotone$", result.stdout, re.MULTILINE)
    assert [row["monotone"] for row in json.loads((tmp_path / "r.json").read_text())["rows"]] == [None, False, None]


def test_of_the_fast_solver_no_descent_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(module.OWN, "FAST", rising)
    assert run(*SMALL, "--solver", "fast").exit_code == 0


def test_solvers_that_disagree_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A wrong objective with a wrong bound beside it looks optimal alone, and is caught by the other solver."""

    def wrong(problem: llr.Problem, tol: float) -> Solution:
        s = llr.solve_fast(problem, tol)
        shift = 1e-4 * s.objective
        c = dataclasses.replace(s.certificate, primal=s.objective + shift, dual=s.certificate.dual + shift)
        return dataclasses.replace(s, objective=s.objective + shift, certificate=c)

    monkeypatch.setitem(module.OWN, "FAST", wrong)
    result = run(*SMALL)
    assert result.exit_code == 1
    assert "CLARABEL and IRLS agree" in result.stdout
    assert "CLARABEL and FAST DISAGREE" in result.stdout
    assert "IRLS and FAST DISAGREE" in result.stdout


def test_a_solver_that_fails_is_a_row_of_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(problem: llr.Problem, solver: str, tol: float) -> Solution:
        raise SolverError(f"{solver} failed: it had a bad day")

    monkeypatch.setattr(module, "solve_exact", failing)
    result = run(*SMALL)
    assert result.exit_code == 1
    assert "CLARABEL: CLARABEL failed: it had a bad day" in result.stdout
    assert "optimal" in result.stdout  # the other solver's row is still there


# ---- bad input: exit 2, one line, nothing solved or written -----------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["none.npz"], "none.npz does not exist"),
        (["--solver", "FOO"], "solver 'FOO' is not installed"),
        (["--tol", "0"], "tol must be a finite number > 0, got 0.0"),
        (["--time-limit", "0"], "0.0 is not in the range x>0"),
        (["--time-limit", "9", "--solver", "OSQP"], "--time-limit works with IRLS, FAST, CLARABEL, SCS only: got OSQP"),
        (["--tol", "x"], "'x' is not a valid float"),
        (["--lambda1", "-1"], "lambda1 must be a finite number >= 0, got -1.0"),
        (["--lambda1", "0", "--lambda2", "0"], "lambda1 and lambda2 are both 0"),
        (
            ["--neighbors", "99"],
            "n_neighbors must be smaller than the number of pooled samples: got 99 for 93 rows",
        ),
        (["--sigma", "wide"], "a number > 0 or \"median\" is needed, got 'wide'"),
        (["--sigma", "0"], "a number > 0 or \"median\" is needed, got '0'"),
        (["--inliers", "a.csv"], "--inliers and --test go together"),
        (["p.npz", "--neighbors", "3"], "p.npz holds samples and graph already"),
        (["--inliers", "a.csv", "--test", "missing.csv"], "missing.csv, line 3, column 'v' is empty"),
        (["--inliers", "a.csv", "--test", "narrow.csv"], "a.csv has 'w', which narrow.csv has not"),
        (["--inliers", "a.csv", "--test", "bare.csv"], "a.csv has a header line and bare.csv has none"),
        (["--drop", "u"], "--drop is about the columns of two files"),
        (["p.npz", "--scale", "none"], "p.npz holds samples and graph already"),
        (["--W", "wrong.npy"], "W has shape (2, 2) but the problem needs (93, 10)"),
        (["--W", "none.npy"], "none.npy does not exist"),
        (["--size", "3"], "3 is not in the range x>=8"),
        (["cut.npz"], "cut.npz is not a readable .npz file"),
        (["--json", "no/such/folder.json"], "cannot write no/such/folder.json: its folder does not exist"),
    ],
)
def test_bad_input(arguments: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_samples(tmp_path)
    random_problem(0).save("p.npz")
    Path("cut.npz").write_bytes(Path("p.npz").read_bytes()[:200])
    Path("missing.csv").write_text("u,v,w\n1,2,3\n4,,6\n")
    Path("narrow.csv").write_text("u,v\n1,2\n")
    Path("bare.csv").write_text("1,2,3\n4,5,6\n")
    np.save("wrong.npy", np.zeros((2, 2)))
    before = sorted(f.name for f in tmp_path.iterdir())
    output = [] if "--json" in arguments else ["--json", "out.json"]
    result = run(*arguments, *output)
    assert result.exit_code == 2, result.output
    assert message in " ".join(result.stderr.split())
    assert "solving" not in result.stderr
    assert "Traceback" not in result.output
    assert sorted(f.name for f in tmp_path.iterdir()) == before


def test_help_teaches() -> None:
    text = " ".join(run("--help").output.split())
    for word in (
        "proven J* >=",
        "Exit 0",
        "--inliers",
        "--W",
        "--json",
        "Examples:",
        "as detect does",
        "counted from 0",
        "default: CLARABEL, IRLS and FAST",
        "– where nothing of the kind is promised",
    ):
        assert word in text
    top = CliRunner().invoke(main, ["--help"]).output
    assert "verify" in top
    assert CliRunner().invoke(main, ["--version"]).exit_code == 0


def test_rigorous_bounds_enclose_the_floating_ones(tmp_path: Path) -> None:
    pytest.importorskip("flint", reason="python-flint (extra rigorous) is not installed")
    np.save(tmp_path / "W.npy", np.zeros((24, 3)))
    plain, proof = tmp_path / "plain.json", tmp_path / "proof.json"
    arguments = (*SMALL, "--solver", "IRLS", "--W", tmp_path / "W.npy")
    assert run(*arguments, "--json", plain).exit_code == 1
    assert run(*arguments, "--rigorous", "--json", proof).exit_code == 1
    a, b = json.loads(plain.read_text()), json.loads(proof.read_text())
    assert (a["rigorous"], b["rigorous"]) == (False, True)
    assert [row["verdict"] for row in b["rows"]] == ["optimal", "rejected"]
    for x, y in zip(a["rows"], b["rows"], strict=True):
        assert y["lower_bound"] <= x["lower_bound"] * (1 + 1e-12)
        assert y["objective"] >= x["objective"] * (1 - 1e-12)
        assert y["relative_gap"] == pytest.approx(x["relative_gap"], abs=1e-12)


def test_a_gap_that_only_rounding_closes_is_not_proved(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("flint", reason="python-flint (extra rigorous) is not installed")
    p = random_problem(0)
    wide = module.Numbers(2.0, 1.0, 0.5)
    monkeypatch.setattr(module, "numbers", lambda *_: wide)
    row = module.solver_row(p, "IRLS", 1e-6, rigorous=True)
    assert (row.verdict, row.holds) == ("inaccurate", False)
    assert "every rounding error counted" in row.message


def test_rigorous_without_flint_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> None:
        raise ImportError('rigorous enclosures need python-flint: pip install "llr-cvx[rigorous]"')

    monkeypatch.setattr(module, "require_flint", missing)
    result = run(*SMALL, "--rigorous")
    assert result.exit_code == 2
    assert 'pip install "llr-cvx[rigorous]"' in result.output
