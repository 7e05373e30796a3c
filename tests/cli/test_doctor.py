"""`llr-cvx doctor`: it reports what is here, and every check of the self-test can fail."""

from __future__ import annotations

import dataclasses
import json
import re
import subprocess
import sys
from pathlib import Path

import cvxpy as cp
import numpy as np
import pytest
from click.testing import CliRunner, Result

from llr_cvx.cli import cmd_doctor as module
from llr_cvx.cli import main


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["doctor", *map(str, arguments)])


def failed() -> set[str]:
    return {check.name for check in module.self_test() if not check.passed}


def test_a_healthy_installation(tmp_path: Path) -> None:
    result = run("--json", tmp_path / "report.json")
    assert result.exit_code == 0, result.output
    report = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    assert report["healthy"] is True
    assert report["versions"]["numpy"] == np.__version__
    assert {"CLARABEL", "SCS"} <= set(report["conic_solvers"]) <= set(cp.installed_solvers())
    assert "OSQP" not in report["conic_solvers"]  # no exponential cones
    assert report["blas"]
    assert [check["name"] for check in report["self_test"]] == [
        *("solve_exact", "solve_irls", "solve_fast"),
        *("agreement", "certify", "checker"),
    ]
    for words in (np.__version__, "CLARABEL", "threads", "confirms the proof and rejects a false one", "All is well"):
        assert words in result.stdout


def test_a_missing_extra_is_no_fault_and_says_what_to_type(monkeypatch: pytest.MonkeyPatch) -> None:
    real = module.extras.installed_version
    monkeypatch.setattr(module.extras, "installed_version", lambda n: None if n == "matplotlib" else real(n))
    result = run()
    assert result.exit_code == 0
    assert re.search(r'plots +missing matplotlib: pip install .*\[plots\]"', result.stdout)


@pytest.mark.parametrize("solver", ["solve_exact", "solve_irls", "solve_fast"])
def test_a_solver_that_raises_is_reported(solver: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*args: object, **kwargs: object) -> None:
        raise RuntimeError("no such luck")

    monkeypatch.setattr(module, solver, broken)
    result = run()
    assert result.exit_code == 1
    assert f"BAD  {solver}" in result.stdout
    assert "RuntimeError: no such luck" in result.stdout
    assert "SOMETHING IS WRONG" in result.stdout


def test_a_solver_that_stops_early_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    real = module.solve_irls
    monkeypatch.setattr(module, "solve_irls", lambda problem, tol: real(problem, tol, max_iter=1))
    assert "solve_irls" in failed()


def test_a_wrong_objective_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    real = module.solve_fast

    def wrong(problem, tol):
        s = real(problem, tol)
        c = dataclasses.replace(s.certificate, primal=s.certificate.primal * 1.01, dual=s.certificate.dual * 1.01)
        return dataclasses.replace(s, certificate=c)

    monkeypatch.setattr(module, "solve_fast", wrong)
    assert {"agreement", "checker"} <= failed()


def test_a_certificate_that_proves_nothing_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    real = module.certify
    monkeypatch.setattr(module, "certify", lambda problem, W: real(problem, W + 1.0))
    assert failed() == {"certify"}


@pytest.mark.parametrize("answer", [True, False])
def test_a_checker_with_one_answer_for_all_is_seen(answer: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module.checker, "check", lambda *args: {"confirmed": answer})
    assert failed() == {"checker"}


def test_no_conic_solver_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "conic_solvers", list)
    assert run().exit_code == 1


def test_bad_output_folder(tmp_path: Path) -> None:
    assert run("--json", tmp_path / "no" / "report.json").exit_code == 2


def test_python_dash_m() -> None:
    done = subprocess.run([sys.executable, "-m", "llr_cvx", "--help"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("Usage: python -m llr_cvx [OPTIONS] COMMAND")
    assert "doctor" in done.stdout


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_completion_that_is_documented(shell: str) -> None:
    page = (Path(__file__).parents[2] / "docs" / "index.md").read_text(encoding="utf-8")
    (variable, value) = re.findall(rf"(_LLR_CVX_COMPLETE)=({shell}_source) llr-cvx", page)[0]
    script = CliRunner().invoke(main, prog_name="llr-cvx", env={variable: value})
    assert "_LLR_CVX_COMPLETE" in script.output
    words = {"COMP_WORDS": "llr-cvx do", "COMP_CWORD": "do" if shell == "fish" else "1"}
    completed = CliRunner().invoke(main, prog_name="llr-cvx", env={variable: f"{shell}_complete", **words})
    assert "doctor" in completed.output
    assert "verify" not in completed.output
