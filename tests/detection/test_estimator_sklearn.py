"""scikit-learn's own checks of the detectors."""

from __future__ import annotations

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from llr_cvx.detection.estimator import LLRDetector
from llr_cvx.detection.selection import LLRDetectorCV

NEEDS_Y = "fits without y, but the method needs known inliers: fit refuses"
STRANGE_Y = "labels rows 1 and 2, which mean neither 'known inlier' nor 'unlabelled': fit refuses"
EXPECTED = {
    "check_outliers_fit_predict": NEEDS_Y,
    "check_outliers_train": NEEDS_Y,
    "check_estimators_dtypes": STRANGE_Y,
    "check_classifier_data_not_an_array": STRANGE_Y,
    "check_fit2d_1feature": STRANGE_Y,
}


CHOOSER = LLRDetectorCV(lambda1s=(0.1, 1.0), lambda2s=(1.0,), cv=2, n_neighbors=3)


CALIBRATED = LLRDetector(false_alarm=0.3, random_state=0)


@parametrize_with_checks([LLRDetector()], expected_failed_checks=lambda estimator: EXPECTED)
def test_estimator_checks(estimator, check):
    check(estimator)


@pytest.mark.long
@parametrize_with_checks([CALIBRATED, CHOOSER], expected_failed_checks=lambda estimator: EXPECTED)
def test_more_estimator_checks(estimator, check):
    check(estimator)
