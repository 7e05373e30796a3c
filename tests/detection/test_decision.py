"""Decision rules: rounding alone flags no row."""

from __future__ import annotations

import numpy as np

from llr_cvx.detection.decision import far_out, fence


def test_scores_that_are_equal_but_for_rounding_lie_above_the_fence() -> None:
    scores = np.full(9, 0.3)
    scores[0] = 0.1 + 0.1 + 0.1 - 4e-16
    assert scores[0] < 0.3
    assert np.all(scores >= fence(scores))
    assert np.flatnonzero(np.append(scores, 0.2) < fence(np.append(scores, 0.2))).tolist() == [9]


def test_effects_that_are_equal_but_for_rounding_are_not_far_out() -> None:
    effects = np.full(9, 0.3)
    effects[4] = 0.1 + 0.2
    assert effects[4] > 0.3
    assert far_out(effects).size == 0
    assert far_out(np.append(effects, 0.31)).tolist() == [9]
