"""Plots: each draws its data on the given Axes, without a display."""

from __future__ import annotations

from dataclasses import replace
from importlib.resources import files

import numpy as np
import pytest
from sizes import in_long

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

from llr_cvx.datasets import make_synthetic  # noqa: E402
from llr_cvx.detection.estimator import LLRDetector  # noqa: E402
from llr_cvx.detection.explanation import Explanation  # noqa: E402
from llr_cvx.detection.features import FeatureValue  # noqa: E402
from llr_cvx.detection.selection import LambdaCurve  # noqa: E402
from llr_cvx.report import plots  # noqa: E402
from llr_cvx.solution import Trace  # noqa: E402
from llr_cvx.solvers.irls import solve_irls  # noqa: E402


@pytest.fixture(autouse=True)
def _close():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def detector():
    inlier, test, _ = make_synthetic(6, 0, 40, 20, 4)
    return LLRDetector(contamination=0.2).fit(np.vstack([inlier, test]), np.repeat([1, -1], [40, 24]))


@pytest.fixture(scope="module")
def path(detector):
    problem = detector.solution_.problem
    return [solve_irls(problem.with_lambdas(lambda1=value), tol=1e-9) for value in (0.01, 0.1, 1.0)]


def curve():
    loss = np.random.default_rng(0).uniform(0.5, 0.7, size=(4, 2, 5))
    return LambdaCurve(np.array([0.01, 0.1, 1.0, 3.0]), np.array([0.1, 1.0]), loss, baseline=0.69)


def draw(ax):
    """Render, so that bad labels and overflows show; warnings are errors."""
    ax.figure.canvas.draw()
    return ax


def test_each_returns_the_axes_it_was_given(detector, path):
    e = detector.explain_table()[0]
    for function, arguments in [
        (plots.plot_weights, (detector.coef_,)),
        (plots.plot_scores, (detector.log_ratio_,)),
        (plots.plot_convergence, (detector.solution_.trace,)),
        (plots.plot_contributions, (e,)),
        (plots.plot_path, (path,)),
        (plots.plot_lambda_curve, (curve(),)),
    ]:
        _, ax = plt.subplots()
        assert function(*arguments, ax=ax) is ax
        draw(ax)
        own = draw(function(*arguments))
        assert own is not ax
        assert own.get_xlabel()


def test_weights_show_the_matrix_and_mark_the_outliers(detector):
    ax = draw(plots.plot_weights(detector.coef_, outliers=[60, 61, 63], names=list("abcdef")))
    (image,) = ax.get_images()
    np.testing.assert_array_equal(image.get_array(), detector.coef_.T)
    low, high = image.get_clim()
    assert low == -high  # white is zero
    (marks,) = ax.get_lines()
    assert marks.get_xdata().tolist() == [60, 61, 63]
    assert [t.get_text() for t in ax.get_yticklabels()] == list("abcdef")


@pytest.mark.parametrize("d", [30, in_long(300)])
def test_many_features_are_shown_strongest_first_and_the_rest_summed_up(d):
    rng = np.random.default_rng(0)
    W, names = rng.normal(size=(50, d)), [f"f{k}" for k in range(d)]
    ax = draw(plots.plot_weights(W, names=names))
    (image,) = ax.get_images()
    ticks = [t.get_text() for t in ax.get_yticklabels()]
    if d == 30:
        np.testing.assert_array_equal(image.get_array(), W.T)
        assert ticks == names
    else:
        peaks = np.abs(np.asarray(image.get_array())).max(axis=1)
        assert len(peaks) == plots.MAX_FEATURES == len(ticks)
        assert np.all(np.diff(peaks) <= 0)
        assert ticks[0] == f"f{np.abs(W).max(axis=0).argmax()}"
        assert "260 more: |weight| up to " in ax.get_ylabel()
    reasons = [FeatureValue(f"f{k}", k, 1.0, (0.0, 1.0), contribution=-1.0 / (k + 1)) for k in range(d)]
    e = Explanation(1, 0, -1.0, 0.3, (-1.0, -1.0), True, tuple(reasons), None, 0, 1, ())
    bars = draw(plots.plot_contributions(e))
    assert len(bars.patches) == 13
    assert bars.get_yticklabels()[-1].get_text() == f"{d - 12} more features"
    assert sum(bar.get_width() for bar in bars.patches) == pytest.approx(sum(r.contribution for r in reasons))
    assert {matplotlib.colors.to_hex(bar.get_facecolor()).upper() for bar in bars.patches} == {plots.ORANGE}


def test_one_colour_is_for_outliers_only():
    assert plots.ORANGE not in [colour for _, colour in plots.STYLES]
    style = files("llr_cvx.report").joinpath("page.css").read_text(encoding="utf-8")
    assert f"--out: {plots.ORANGE.lower()};" in style


def test_scores_show_every_row_once_and_ring_those_below(detector):
    y = detector.solution_.problem.y
    ax = draw(plots.plot_scores(detector.log_ratio_, y=y, offset=detector.offset_, outliers=range(60, 64)))
    drawn = {line.get_label(): line for line in ax.get_lines()}
    assert len(drawn["known inlier"].get_xdata()) == 40
    assert len(drawn["test row"].get_xdata()) == 20
    assert drawn["outlier"].get_xdata().tolist() == [60, 61, 62, 63]
    assert list(drawn["threshold"].get_ydata()) == [detector.offset_] * 2
    (rings,) = [c for c in ax.collections if c.get_label() == "below the threshold"]
    assert len(rings.get_offsets()) == len(detector.explain_table())


def test_scores_with_proven_intervals(detector):
    low, high = detector.solution_.certificate.score_bounds
    assert draw(plots.plot_scores(detector.log_ratio_, intervals=(low, high))).collections


def test_convergence_shows_objective_and_bound(detector):
    trace = detector.solution_.trace
    ax = draw(plots.plot_convergence(trace))
    by_name = {line.get_label(): line.get_ydata() for line in ax.get_lines()}
    np.testing.assert_array_equal(by_name["best J(W)"], trace.best)
    np.testing.assert_array_equal(by_name["proven lower bound"], trace.dual)
    gap = draw(plots.plot_convergence(trace, show="gap"))
    assert gap.get_yscale() == "log"
    (line,) = gap.get_lines()
    np.testing.assert_allclose(line.get_ydata(), np.maximum((trace.best - trace.dual) / trace.best, 1e-17))
    with pytest.raises(ValueError, match="show must be"):
        plots.plot_convergence(trace, show="speed")


def test_convergence_marks_the_smoothed_objective_of_irls_steps_only():
    phase = np.array(["irls", "irls", "splitting", "rounding"])
    J = np.array([3.0, 2.0, 2.5, 1.0])
    smoothed = np.array([3.5, 2.2, np.nan, np.nan])
    dual = np.array([-1.0, 0.5, 0.9, 1.0])
    trace = Trace(phase, J, np.minimum.accumulate(J), smoothed, dual, np.array([0.1, 0.1, 0, 0]), np.arange(4.0))
    drawn = {line.get_label(): line for line in draw(plots.plot_convergence(trace)).get_lines()}
    assert drawn["best J(W)"].get_ydata().tolist() == [3.0, 2.0, 2.0, 1.0]
    assert drawn["smoothed objective (IRLS)"].get_xdata().tolist() == [1, 2]
    without = draw(plots.plot_convergence(replace(trace, smoothed_objective=np.full(4, np.nan))))
    assert [line.get_label() for line in without.get_lines()] == ["best J(W)", "proven lower bound"]
    gap = draw(plots.plot_convergence(replace(trace, best=np.array([3.0, 2.0, 2.0, 0.0])), show="gap"))
    assert np.isfinite(gap.get_lines()[0].get_ydata()).all()


def test_contributions_are_bars_of_the_reasons(detector):
    e = detector.explain_table()[0]
    ax = draw(plots.plot_contributions(e))
    widths = sorted(bar.get_width() for bar in ax.patches)
    np.testing.assert_allclose(widths, sorted(r.contribution for r in e.reasons))
    assert e.reasons[0].feature in ax.get_yticklabels()[0].get_text()


@pytest.mark.parametrize("show", ["weights", "clusters", "features", "gap"])
def test_path_over_lambda1(path, show):
    ax = draw(plots.plot_path(path, show=show))
    assert ax.get_xscale() == "log"
    xs = [line.get_xdata() for line in ax.get_lines()]
    assert any(np.array_equal(x, [0.01, 0.1, 1.0]) for x in xs)


def test_path_over_lambda2(path):
    problem = path[0].problem
    ax = draw(plots.plot_path([solve_irls(problem.with_lambdas(lambda2=value)) for value in (0.1, 1.0)]))
    assert ax.get_xlabel() == "λ₂"
    assert any(np.array_equal(line.get_xdata(), [0.1, 1.0]) for line in ax.get_lines())
    assert draw(plots.plot_path(path[:1])).get_xlabel() == "λ₁"


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"solutions": []}, ValueError, "solutions is empty"),
        ({"solutions": None}, TypeError, "must be a list of Solution"),
        ({"solutions": [1, 2]}, TypeError, "must be a list of Solution"),
        ({"row": 64}, ValueError, "row must be a sample from 0 to 63"),
        ({"names": ["a"]}, ValueError, "names must have 6 entries, one per feature, got 1"),
    ],
)
def test_a_path_that_cannot_be_drawn_is_refused(path, change, error, message):
    arguments = {"solutions": path} | change
    if arguments["solutions"] is None:
        arguments["solutions"] = path[0]  # a single solution is not a path
    with pytest.raises(error, match=message):
        plots.plot_path(**arguments)
    assert not plt.get_fignums()


def test_path_of_a_chosen_row_and_bad_choice(path):
    ax = plots.plot_path(path, row=5, names=list("abcdef"))
    assert "sample 5" in ax.get_ylabel()
    with pytest.raises(ValueError, match="show must be"):
        plots.plot_path(path, show="everything")


def test_lambda_curve_marks_the_best():
    c = curve()
    ax = draw(plots.plot_lambda_curve(c))
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert f"best: λ₁ = {c.best[0]:.3g}" in labels
    assert "W = 0" in labels
