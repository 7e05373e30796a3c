"""What a type checker tells users about a fitted detector."""

from __future__ import annotations

import inspect
from typing import Self, get_type_hints

import numpy as np
import pytest

from llr_cvx.datasets import make_synthetic
from llr_cvx.detection.estimator import LLRDetector
from llr_cvx.detection.selection import LLRDetectorCV


@pytest.mark.parametrize("kind", [LLRDetector, LLRDetectorCV])
def test_fitted_attributes_are_typed_and_fit_returns_self(kind: type[LLRDetector]) -> None:
    inlier, test, _ = make_synthetic(2, 0, 20, 8, 2)
    options = {"lambda1s": (0.1, 1.0), "cv": 2} if kind is LLRDetectorCV else {}
    detector = kind(**options).fit(np.vstack([inlier, test]), np.repeat([1, -1], [20, 10]))
    fitted = {name for name in vars(detector) if name.endswith("_") and not name.startswith("_")}
    assert fitted >= {"coef_", "log_ratio_", "offset_", "solution_"}
    assert fitted <= set(get_type_hints(kind))
    assert get_type_hints(kind.fit)["return"] is Self
    assert all(
        p.annotation is not inspect.Parameter.empty
        for p in inspect.signature(kind.fit).parameters.values()
        if p.name != "self"
    )
