"""`llr-cvx instances drill`: kept, resumed, and with the time left."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from llr_cvx.cli import main
from llr_cvx.instances import drill as module
from llr_cvx.instances.drill import Finding, Outcome, Report, drill


def test_an_interrupted_drill_goes_on_where_it_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    seen: list[int] = []
    original = module.examine

    def examine(seed: int, *rest: Any) -> Outcome:
        if len(seen) == 4 and not (tmp_path / "interrupted").exists():
            (tmp_path / "interrupted").touch()
            raise KeyboardInterrupt
        seen.append(seed)
        return original(seed, *rest)

    monkeypatch.setattr(module, "examine", examine)
    arguments = ["instances", "drill", "--problems", "10", "--first-seed", "3", "--json", str(tmp_path / "d.json")]
    assert CliRunner().invoke(main, arguments).exit_code != 0
    assert not (tmp_path / "d.json").exists()
    done = CliRunner().invoke(main, arguments)
    assert done.exit_code == 0, done.output
    assert seen == list(range(3, 13))
    assert "with 4 finished" in done.stderr
    assert "4/10 problems" in done.stderr
    assert " s left" in done.stderr
    *_, whole = drill(10, first_seed=3)
    found = json.loads((tmp_path / "d.json").read_text())
    for name in ("problems", "optimal", "unproved", "checked", "verdicts"):
        assert found[name] == getattr(whole, name)
    assert list((tmp_path / "cache" / "llr-cvx").iterdir()) == []


def test_an_outcome_survives_the_file() -> None:
    outcome = Outcome(3, True, 0.25, [Finding("warning", 3, "words")])
    row = {"seed": 3, "optimal": True, "seconds": 0.25, "findings": [vars(outcome.findings[0])]}
    assert Outcome.from_dict(json.loads(json.dumps(row))) == outcome
    report = Report()
    report.add(outcome)
    report.add(Outcome(4, None, float("nan"), []))
    assert (report.problems, report.optimal, report.unproved, report.checked, report.count("warning")) == (
        2,
        1,
        0,
        1,
        1,
    )
