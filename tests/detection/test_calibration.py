"""p-values: the arithmetic, and the guarantees over many batches.

Statistical bounds are one-sided: a share or a rate may exceed its nominal value by two or three standard errors of its
mean over independent batches. Seeds are fixed.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import false_discovery_control
from sizes import in_long
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer

from llr_cvx.detection import calibration as cal
from llr_cvx.detection.estimator import LLRDetector
from llr_cvx.detection.scalers import ConditionalScaler, InlierScaler
from llr_cvx.detection.selection import LLRDetectorCV
from llr_cvx.detection.settings import DETECTION
from llr_cvx.proofs.certificate import certificate

LEVELS = (0.01, 0.05, 0.1)
LAMBDAS = [(0.1, 1.0), (0.5, 0.01), (0.01, 0.1), (3.0, 0.1), (0.0, 1.0), (30.0, 1.0)]


# ---- arithmetic ------------------------------------------------------------------------------------------


def test_pvalues_count_calibration_scores_that_are_not_above():
    rng = np.random.default_rng(0)
    held, scores = rng.integers(0, 6, 30), rng.integers(-1, 8, 50)  # many ties
    expected = [(1 + sum(h <= s for h in held)) / 31 for s in scores]
    assert cal.conformal_pvalues(scores, held).tolist() == expected


def test_the_offset_says_the_same_as_the_pvalues():
    rng = np.random.default_rng(1)
    for m in (1, 2, 9, 10, 19, 30, 99):
        held, scores = rng.integers(0, 2 * m, m).astype(float), rng.integers(-2, 2 * m + 2, 80).astype(float)
        p = cal.conformal_pvalues(scores, held)
        for level in (*LEVELS, 0.3, 1 / (m + 1), 0.7, 0.999):
            # Compared as whole numbers: p (m + 1) <= level (m + 1)
            below = np.rint(p * (m + 1)) <= level * (m + 1) + 1e-9
            assert np.array_equal(scores < cal.score_offset(held, level), below)


def test_benjamini_hochberg_is_scipys():
    rng = np.random.default_rng(2)
    for _ in range(50):
        p = np.ceil(rng.random(rng.integers(1, 40)) ** 3 * 50) / 50
        for fdr in (0.05, 0.1, 0.33):
            assert np.array_equal(cal.benjamini_hochberg(p, fdr), false_discovery_control(p) <= fdr * (1 + 1e-12))
    assert cal.benjamini_hochberg([], 0.1).shape == (0,)
    assert not cal.benjamini_hochberg([np.nan, 0.9], 0.1).any()


def test_evalues_of_one_split_decide_as_benjamini_hochberg():
    rng = np.random.default_rng(4)
    for _ in range(50):
        scores, held = rng.integers(-9, 9, 20).astype(float), rng.integers(-4, 12, 40).astype(float)
        e, p = cal.conformal_evalues(scores, held, 0.2), cal.conformal_pvalues(scores, held)
        assert np.array_equal(cal.e_benjamini_hochberg(e, 0.2), cal.benjamini_hochberg(p, 0.2))
    assert not cal.e_benjamini_hochberg(np.zeros(3), 0.1).any()


def test_evalues_averaged_over_splits_control_false_discoveries_and_depend_less_on_the_seed():
    """Scores given, so that only the split is random: 20 of 100 test rows are outliers, 150 of 200 inliers held out."""
    false, found, change = [], [], {"one split": [], "20 splits": []}
    for seed in range(100):
        rng = np.random.default_rng(seed)
        known, test = rng.normal(size=200), np.concatenate([rng.normal(size=80), rng.normal(-3.5, size=20)])

        def flagged(splits, fdr, known=known, test=test, rng=rng):
            e = [cal.conformal_evalues(test, rng.permutation(known)[:150], fdr) for _ in range(splits)]
            return cal.e_benjamini_hochberg(np.mean(e, axis=0), 0.1)

        first = flagged(20, 0.05)
        false.append(first[:80].sum() / max(1, first.sum()))
        found.append(first[80:].mean())
        change["20 splits"].append(np.mean(first != flagged(20, 0.05)))
        change["one split"].append(np.mean(flagged(1, 0.1) != flagged(1, 0.1)))
    assert np.mean(false) <= 0.1 + 2 * np.std(false) / 10
    assert np.mean(found) > 0.5
    assert np.mean(change["20 splits"]) < 0.7 * np.mean(change["one split"])


def test_the_smallest_discovery_is_the_smallest():
    for m in (9, 19, 50, 133, 999):
        for n in (1, 2, 7, 36, 100):
            for fdr in (0.1, 0.2):
                k = cal.smallest_discovery(m, n, fdr)
                lowest = [1 / (m + 1)] * min(k, n) + [1.0] * (n - k)
                assert cal.benjamini_hochberg(lowest, fdr).any() == (k <= n)
                assert not cal.benjamini_hochberg([1 / (m + 1)] * (k - 1) + [1.0] * (n - k + 1), fdr).any()


def test_equal_ratios_that_rounding_sets_apart_are_equal():
    assert 0.29 * 100 < 29
    assert cal.score_offset(np.arange(99.0), 0.29) == 28.0  # the 29th lowest
    assert 0.7 / 7 < 0.1
    assert cal.bh_level([0.1, *[1.0] * 6], fdr=0.7) == 0.7 / 7
    assert cal.benjamini_hochberg([0.1, *[1.0] * 6], fdr=0.7).tolist() == [True, *[False] * 6]
    assert 1 / (1 / 49) > 49
    assert cal.rows_needed(1 / 49) == 48


def test_the_held_out_rows_are_drawn():
    draws = [cal.hold_out(np.arange(90), 0.1, "fdr", np.random.RandomState(seed)) for seed in range(20)]
    assert len({tuple(rows) for rows in draws}) == 20
    assert set(np.concatenate(draws)) == set(range(90))


def test_a_batch_is_bad_only_if_it_is_surely_and_clearly_below():
    level, share = cal.BATCH_LEVEL, cal.BATCH_SHARE
    assert cal.BatchVerdict(below=share, pvalue=level).bad
    assert not cal.BatchVerdict(below=share - 1e-6, pvalue=0.0).bad
    assert not cal.BatchVerdict(below=1.0, pvalue=level + 1e-6).bad


def test_how_many_are_held_out():
    def sizes(n, level):
        return len(cal.hold_out(np.arange(n), level, "fdr", np.random.RandomState(0)))

    assert [sizes(n, 0.1) for n in (10, 20, 40, 60, 80, 90, 200)] == [9, 10, 20, 30, 50, 60, 133]
    assert [sizes(n, 0.01) for n in (100, 120, 200)] == [99, 99, 133]
    with pytest.raises(ValueError, match=r"fdr=0.01 needs at least 99 held-out .* give at least 100.* at least 0.0101"):
        sizes(99, 0.01)
    rows = cal.hold_out(np.arange(5, 50), 0.1, "fdr", np.random.RandomState(3))
    assert np.all(np.diff(rows) > 0)
    assert set(rows) <= set(range(5, 50))


def test_batches_are_judged_as_a_whole():
    rng = np.random.default_rng(0)
    held = rng.normal(size=60)
    clean, mixed, bad = rng.normal(size=40), rng.normal(size=40), rng.normal(-4, size=40)
    mixed[:12] -= 6
    assert not cal.judge_batch(clean, held).differs
    assert cal.BatchVerdict(0.63, 0.001).differs
    assert not cal.BatchVerdict(0.63, 0.001).bad
    assert not cal.judge_batch(mixed, held).bad  # 30 % outliers: the rows are bad, not the batch
    assert cal.judge_batch(mixed, held).pvalue < 0.05
    assert cal.judge_batch(bad, held).bad
    assert cal.judge_batch(bad, held).below > 0.98
    assert not cal.judge_batch(bad[:1], held).bad  # one row is not a batch: its own p says it
    level = np.mean([cal.judge_batch(rng.normal(size=15), rng.normal(size=20)).pvalue <= 0.05 for _ in range(400)])
    assert level <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 400)
    assert cal.judge_batch(np.zeros(3), np.zeros(5)) == cal.BatchVerdict(0.5, 1.0)


# ---- exchangeability, bit by bit ----------------------------------------------------------------------------


def batch(seed, n_inlier=40, n_test=20, d=3, shift=0.0, outliers=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_inlier + n_test, d))
    X[len(X) - outliers :] += shift
    return X, np.repeat([1, -1], [n_inlier, n_test])


DETECTORS = {
    "plain": LLRDetector(fdr=0.1, random_state=0),
    "detection": LLRDetector(**DETECTION, false_alarm=0.1, random_state=0, fit_intercept=True),
    "scaled": LLRDetector(fdr=0.1, random_state=0, scaler=ConditionalScaler(), graph_columns=[0, 2]),
    "irls": LLRDetector(fdr=0.1, random_state=0, solver="irls"),
    "chosen": LLRDetectorCV(fdr=0.1, lambda1s=[0.1, 1.0], lambda2s=[0.1, 1.0], cv=3),
}


@pytest.mark.parametrize("name", [in_long(name) if name == "chosen" else name for name in DETECTORS])
@pytest.mark.parametrize("ties", [in_long(False), True])
def test_calibration_rows_and_test_rows_change_places_without_a_trace(name, ties):
    """The fit sees the set of unlabelled rows: exchanging two of them exchanges their scores, to the last bit."""
    X, y = batch(5, outliers=4, shift=4.0)
    if ties:
        X = np.rint(X)  # a lattice: distances tie everywhere
        X += 1e-3 * np.arange(len(X))[:, None] * (np.arange(3) == 0)  # but no two rows are equal
    detector = clone(DETECTORS[name]).set_params(sigma=2.0 if ties else "median").fit(X, y)
    held, scores = detector.calibration_rows_, detector.log_ratio_.copy()
    assert np.all(y[held] == 1)
    unlabelled = np.concatenate([held, np.flatnonzero(y < 0)])
    mixed = np.random.default_rng(0).permutation(unlabelled)
    Z = X.copy()
    Z[unlabelled] = X[mixed]
    detector.fit(Z, y)
    assert np.array_equal(detector.calibration_rows_, held)
    assert np.array_equal(detector.log_ratio_[unlabelled], scores[mixed])


def test_equal_rows_are_not_told_apart_by_their_place():
    """Among equal rows the order is random: calibration rows do not always come first."""
    X, y = batch(0, d=2)
    X[:, :] = np.sign(X)  # four different rows in all
    first = []
    for seed in range(120):
        detector = LLRDetector(0.01, 1.0, sigma=1.0, fdr=0.1, random_state=seed, tol=1e-2, new_rows=None).fit(X, y)
        i, test = detector.calibration_rows_, np.flatnonzero(y < 0)
        same = (X[i][:, None] == X[test][None]).all(axis=2)
        below = detector.log_ratio_[i][:, None] < detector.log_ratio_[test][None]
        above = detector.log_ratio_[i][:, None] > detector.log_ratio_[test][None]
        first.append((below & same).sum() - (above & same).sum())
    assert abs(np.mean(first)) <= 3 * np.std(first) / np.sqrt(len(first)) + 1e-12


def test_a_permutation_of_the_test_rows_permutes_everything():
    X, y = batch(2)
    a = LLRDetector(fdr=0.1, random_state=1).fit(X, y)
    order = np.concatenate([np.arange(40), 40 + np.random.default_rng(0).permutation(20)])
    b = LLRDetector(fdr=0.1, random_state=1).fit(X[order], y)
    assert np.array_equal(a.pvalues_[order], b.pvalues_, equal_nan=True)
    assert np.array_equal(a.coef_[order], b.coef_)
    for detector in (a, b):  # restored to the order of the rows given, proof and all
        solution = detector.solution_
        again = certificate(solution.problem, solution.W, solution.certificate.alpha, solution.certificate.U)
        assert again.primal == pytest.approx(solution.certificate.primal, rel=1e-13)
        assert again.dual == pytest.approx(solution.certificate.dual, rel=1e-13)
        assert again.proves(1e-8)
        assert np.array_equal(solution.problem.X, X if detector is a else X[order])


# ---- guarantees over many batches ---------------------------------------------------------------------------


def gaussian(rng, n):
    return rng.normal(size=(n, 2))


def heavy(rng, n):
    """Cauchy, rounded: outliers, ties and duplicates."""
    return np.clip(np.rint(rng.standard_cauchy(size=(n, 2))), -1e3, 1e3)


BENIGN = (lambda data: data.data[data.target == 1])(load_breast_cancer())


def benign(rng, n):
    return BENIGN[rng.permutation(len(BENIGN))[:n], :4]


#: draw, inliers, parameters; every batch takes the next of LAMBDAS. With fewer than 99 held out, no p is below 0.01.
CLEAN = {
    "gaussian, small m": (gaussian, 24, {"false_alarm": 0.1}),
    "heavy tails, ties, duplicates": (heavy, 40, {"fdr": 0.05}),
    "breast cancer": (benign, 105, {"false_alarm": 0.01, "scaler": InlierScaler()}),
    "gaussian": (gaussian, 130, {"false_alarm": 0.01}),
    "heavy tails, ties, duplicates, m = 99": (heavy, 130, {"false_alarm": 0.01}),
}
QUICK = list(CLEAN)[:3]
MORE = [*((name, 25) for name in QUICK[1:]), *((name, 400) for name in CLEAN)]


def clean_shares(draw, n_inlier, parameters, batches, pvalues):
    """Share of p <= level in each clean batch, for each level."""
    shares = []
    for seed in range(batches):
        rng = np.random.default_rng(seed)
        rows = draw(rng, n_inlier + 20)
        y = np.repeat([1, -1], [n_inlier, 10])
        lambdas = LAMBDAS[seed % len(LAMBDAS)]
        detector = LLRDetector(*lambdas, tol=1e-2, n_neighbors=4, random_state=seed, **parameters).fit(rows[:-10], y)
        p = pvalues(detector, y, rows[-10:])
        shares.append([[np.mean(q <= level) for level in LEVELS] for q in p])
    return np.array(shares)


def excess(shares):
    """By how many standard errors the mean share exceeds its level: one number per kind of row and level."""
    error = shares.std(axis=0) / np.sqrt(len(shares)) + 1e-12
    return (shares.mean(axis=0) - LEVELS) / error


def fitted_and_new(detector, y, new):
    assert np.isnan(detector.pvalues_[y > 0]).all()
    return detector.pvalues_[y < 0], detector.pvalues(new)


@pytest.mark.filterwarnings("ignore::llr_cvx.graph.GraphWarning", "ignore::llr_cvx.solution.ConvergenceWarning")
@pytest.mark.parametrize(("name", "batches"), [(QUICK[0], 25), *map(in_long, MORE)])
def test_p_is_small_as_rarely_as_it_says(name, batches):
    shares = clean_shares(*CLEAN[name], batches, fitted_and_new)
    assert np.all(excess(shares) <= 3)
    reachable = shares.mean(axis=(0, 1))[-1]
    assert reachable > 0.03  # and not because p were never small


def test_the_check_sees_a_broken_calibration():
    """Calibrated on rows that were fitted as inliers, p is far too small."""

    def broken(detector, y, new):
        model = np.setdiff1d(np.flatnonzero(y > 0), detector.calibration_rows_)
        return [cal.conformal_pvalues(detector.log_ratio_[y < 0], detector.log_ratio_[model])]

    assert excess(clean_shares(gaussian, 60, {"fdr": 0.1, "new_rows": None}, 30, broken)).max() > 5


def discoveries(share, seed, n_inlier=200, n_test=40, **parameters):
    """(false discovery proportion, share of the outliers found) of one batch."""
    k = round(share * n_test)
    X, y = batch(seed, n_inlier, n_test, outliers=k, shift=np.array([4.0, -4.0, 0.0]))
    detector = LLRDetector(**DETECTION, fdr=0.1, random_state=seed, tol=1e-2, new_rows=None, **parameters)
    found = np.flatnonzero(detector.fit_predict(X, y)[n_inlier:] < 0)
    false = np.count_nonzero(found < n_test - k)
    return false / max(1, len(found)), (len(found) - false) / k


@pytest.mark.parametrize(
    ("share", "n_inlier", "power"), [in_long((0.05, 300, 0.5)), in_long((0.2, 200, 0.7)), (0.5, 100, 0.7)]
)
@pytest.mark.parametrize("batches", [20, in_long(60)])
def test_false_discoveries_are_as_rare_as_promised(share, n_inlier, power, batches):
    fdp, found = np.array([discoveries(share, seed, n_inlier) for seed in range(batches)]).T
    assert fdp.mean() <= 0.1 + 2 * fdp.std() / np.sqrt(len(fdp))
    assert found.mean() >= power
