"""The judge on answers without any process: what is known beforehand, claims at the edge, and reference points."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from llr_cvx.arena.answers import Answer
from llr_cvx.arena.judge import CLAIM_RTOL, Known, Row, judge_run
from llr_cvx.arena.sandbox import Limits, Outcome
from llr_cvx.instances import load_instance
from llr_cvx.verdicts.weights import Reference

GIVEN = load_instance("fused-some")
J = GIVEN.problem.objective(GIVEN.W)
DONE = Outcome("exit", code=0, seconds=1.0)


def point() -> Reference:
    return Reference(GIVEN.W, GIVEN.alpha, GIVEN.U)


def refused() -> Reference:
    raise AssertionError("the reference point was asked for")


def judged(answer: Answer, known: Known | None = None, outcome: Outcome = DONE, tol: float = 1e-6) -> Row:
    return judge_run(GIVEN.problem, known, outcome, answer, tol, Limits(60.0))


def known(solve: Any = point, ready: bool = True) -> Known:
    return Known(GIVEN.lower, GIVEN.upper, solve, ready)


@pytest.mark.parametrize("share", [0.0, 0.5, 0.99, 1 - 1e-6, 1.0])
def test_all_ways_to_a_proof_agree(share: float) -> None:
    """With a stored reference, with bounds alone, and with nothing known but a search."""
    answer = Answer(W=share * GIVEN.W)
    rows = [judged(answer, one) for one in (known(), known(ready=False), None)]
    assert len({row.status for row in rows}) == 1
    true = GIVEN.problem.objective(share * GIVEN.W) - J
    for row in rows:
        low, high = row.suboptimality
        assert low - 1e-12 <= true <= high + 1e-12
        assert high - low < 1e-8 * J


def test_a_proof_does_not_wait_for_a_reference_point() -> None:
    row = judged(Answer(W=GIVEN.W), known(refused, ready=False))
    assert row.status == "proved"
    assert row.residuals == {}  # there is no dual point to compute them with
    own = judged(Answer(W=0.9 * GIVEN.W, alpha=GIVEN.alpha, U=GIVEN.U), known(refused, ready=False))
    assert own.status == "not proved"
    assert "of the gap is in" in own.reason
    assert own.residuals["selection"] > 0


def test_a_failure_is_explained_by_a_reference_point_that_takes_a_solve() -> None:
    row = judged(Answer(W=0.9 * GIVEN.W), known(ready=False))
    assert row.status == "not proved"
    assert "of the gap is in" in row.reason


def test_an_own_dual_point_can_prove_what_the_library_does_not() -> None:
    weak = Known(0.5 * GIVEN.lower, GIVEN.upper, refused, ready=False)
    assert judged(Answer(W=GIVEN.W, alpha=GIVEN.alpha, U=GIVEN.U), weak).status == "proved"


def test_a_bad_dual_point_does_no_harm() -> None:
    answer = Answer(W=GIVEN.W, alpha=np.full_like(GIVEN.alpha, 7.0), U=1e9 * np.ones_like(GIVEN.U))
    assert judged(answer, known()).status == "proved"
    assert judged(answer).status == "proved"


@pytest.mark.parametrize(
    ("claims", "status"),
    [
        ({"objective": J * (1 - 0.1 * CLAIM_RTOL)}, "proved"),
        ({"objective": J * (1 - 10 * CLAIM_RTOL)}, "false claim"),
        ({"objective": 2 * J}, "proved"),
        ({"objective": float("nan")}, "false claim"),
        ({"dual": GIVEN.upper * (1 + 0.1 * CLAIM_RTOL)}, "proved"),
        ({"dual": GIVEN.upper * (1 + 10 * CLAIM_RTOL)}, "false claim"),
        ({"dual": float("inf")}, "false claim"),
        ({"dual": -1.0}, "proved"),
        ({"trace": [J + 1, J]}, "proved"),
        ({"trace": [J + 1, 0.9 * J]}, "false claim"),
    ],
)
def test_claims_at_the_edge(claims: dict[str, Any], status: str) -> None:
    assert judged(Answer(W=GIVEN.W, claims=claims), known()).status == status


def test_what_is_wrong_to_its_own_disadvantage_or_unfounded_is_noted() -> None:
    row = judged(Answer(W=GIVEN.W, claims={"objective": 2 * J, "trace": [J]}), known())
    assert any("too large" in note for note in row.notes)
    assert any("without their iterates: not counted" in note for note in row.notes)


@pytest.mark.parametrize(
    ("epsilons", "smoothed"), [([1e-1, 1e-2, 1e-3], True), ([1e-3, 1e-2, 1e-3], False), ([np.nan] * 3, None)]
)
def test_smoothed_monotonicity_needs_a_smoothing_that_shrinks(epsilons: list[float], smoothed: bool | None) -> None:
    iterates = [share * GIVEN.W for share in (0.5, 0.9, 1.0)]
    answer = Answer(W=GIVEN.W, iterates=iterates, stamps=np.arange(3.0), epsilons=np.array(epsilons))
    row = judged(answer, known())
    assert (row.monotone, row.monotone_smoothed) == (True, smoothed)


def test_a_clock_that_says_less_than_nothing_or_more_than_all() -> None:
    answer = Answer(W=GIVEN.W, iterates=[GIVEN.W], stamps=np.array([-5.0]), facts={"seconds": 99.0})
    row = judged(answer, known())
    assert row.seconds == 1.0  # no more than the whole process took
    assert row.time_to["1e-09"] == 0.0


@pytest.mark.parametrize("signal", [9, 11, 63])
def test_any_signal_has_a_name(signal: int) -> None:
    row = judged(Answer(), known(), Outcome("exit", code=-signal))
    assert row.status == "crash"
    assert str(signal) in row.reason or "SIG" in row.reason
