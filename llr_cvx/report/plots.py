"""Plots of the weight matrix, scores, convergence, one outlier's reasons, a path, and the choice of lambda.

Each function draws on the given Axes, or on a new figure, and returns the Axes. The colours are the
colour-blind safe palette of Okabe and Ito, and nothing is shown by colour alone. Orange is for what is outlier-like,
here and on the page. Of many features the strongest are shown, and the rest is summed up.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from llr_cvx.detection.explanation import Explanation
from llr_cvx.detection.ranking import selected_features
from llr_cvx.extras import needed
from llr_cvx.solution import Solution, Trace

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from llr_cvx.detection.selection import LambdaCurve

BLUE, ORANGE, GREEN, GREY, INK = "#0072B2", "#D55E00", "#009E73", "#8C8C8C", "#222222"
#: Markers and colours of lines; none is that of outliers.
STYLES = tuple(zip("os^Dv*", (BLUE, GREEN, "#CC79A7", "#E69F00", INK, "#56B4E9"), strict=True))
#: The most features that the weight matrix shows one by one.
MAX_FEATURES = 40


def plot_weights(
    W: ArrayLike,
    *,
    outliers: ArrayLike | None = None,
    names: Sequence[str] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """The weight matrix, one column per sample and one line per feature, with outliers marked (Fig. 1b).

    Parameters
    ----------
    W : array-like of shape (N, d)
        For example `detector.coef_`.
    outliers : array-like of int, optional
        Rows of W to mark with triangles above the matrix.
    names : sequence of str, optional
        Feature names.
    """
    W = np.asarray(W, dtype=float)
    d, order = W.shape[1], np.arange(W.shape[1])
    if d > MAX_FEATURES:
        order = np.argsort(-np.abs(W).max(axis=0), kind="stable")
    rest, W = np.abs(W[:, order[MAX_FEATURES:]]).max(initial=0.0), W[:, order[:MAX_FEATURES]]
    ax = _axes(ax, (7.0, 3.2 if d <= MAX_FEATURES else 6.4))
    limit = float(np.abs(W).max()) or 1.0
    image = ax.imshow(W.T, aspect="auto", cmap="PuOr", vmin=-limit, vmax=limit, interpolation="nearest")
    ax.figure.colorbar(image, ax=ax, pad=0.02).set_label("weight")
    ax.set_xlabel("sample")
    more = f", strongest first\n{d - MAX_FEATURES} more: |weight| up to {rest:.2g}" if d > MAX_FEATURES else ""
    ax.set_ylabel(f"feature{more}")
    if names is not None or d <= 12 or more:
        shown = [str(k if names is None else names[k]) for k in order[:MAX_FEATURES]]
        ax.set_yticks(range(len(shown)), shown, fontsize=None if len(shown) <= 15 else "x-small")
    if outliers is not None and np.size(outliers):
        rows = np.asarray(outliers, dtype=int)
        above = ax.get_xaxis_transform()
        ax.plot(rows, np.full(len(rows), 1.03), "v", color=ORANGE, ms=5, transform=above, clip_on=False)
        ax.annotate(
            "▼ outlier",
            (1.0, 1.06),
            xycoords="axes fraction",
            ha="right",
            va="bottom",
            color=ORANGE,
            fontsize="small",
        )
    return ax


def plot_scores(
    log_ratio: ArrayLike,
    *,
    y: ArrayLike | None = None,
    offset: float | None = None,
    outliers: ArrayLike | None = None,
    intervals: tuple[ArrayLike, ArrayLike] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """log r of every sample, with the threshold (Fig. 1c); low is outlier-like.

    Parameters
    ----------
    log_ratio : array-like of shape (N,)
    y : array-like, optional
        +1 for known inliers, -1 for test rows; they get different markers.
    offset : float, optional
        The threshold; test rows below it are circled.
    outliers : array-like of int, optional
        Rows known to be outliers, drawn as filled triangles.
    intervals : (lower, upper), optional
        Proven interval of each log r, drawn as bars.
    """
    z = np.asarray(log_ratio, dtype=float)
    ax = _axes(ax, (7.0, 3.2))
    rows = np.arange(len(z))
    known = np.zeros(len(z), bool) if y is None else np.asarray(y, dtype=float) > 0
    planted = np.zeros(len(z), bool)
    if outliers is not None:
        planted[np.asarray(outliers, dtype=int)] = True
    if intervals is not None:
        low, high = (np.asarray(end, dtype=float) for end in intervals)
        ax.vlines(rows, low, high, color=GREY, lw=1, zorder=1)
    for mask, mark, colour, label in (
        (known, "s", GREY, "known inlier"),
        (~known & ~planted, "o", BLUE, "test row"),
        (planted, "^", ORANGE, "outlier"),
    ):
        if mask.any():
            ax.plot(rows[mask], z[mask], mark, color=colour, ms=4 if mark != "^" else 6, label=label, zorder=2)
    if offset is not None:
        ax.axhline(offset, color=INK, ls="--", lw=1, label="threshold")
        below = (z < offset) & ~known
        if below.any():
            ax.scatter(
                *(rows[below], z[below]),
                s=90,
                facecolors="none",
                edgecolors=INK,
                label="below the threshold",
                zorder=3,
            )
    ax.set_xlabel("sample")
    ax.set_ylabel("log r")
    ax.margins(x=0.02)
    _legend(ax, loc="best", ncols=2)
    return ax


def plot_convergence(trace: Trace, *, show: Literal["objective", "gap"] = "objective", ax: Axes | None = None) -> Axes:
    """The objective and its proven lower bound at each iteration (Fig. 1d).

    Parameters
    ----------
    trace : Trace
        `solution.trace` of an iterative solver.
    show : "objective" or "gap"
        The smallest J(W) so far, the proven lower bound and, where the steps are those of IRLS, the smoothed
        objective; or the relative gap between the first two, on a logarithmic axis.
    """
    ax = _axes(ax, (5.0, 3.4))
    steps = np.arange(1, len(trace.best) + 1)
    if show == "gap":
        gap = np.divide(trace.best - trace.dual, trace.best, out=np.zeros(len(steps)), where=trace.best > 0)
        ax.semilogy(steps, np.maximum(gap, 1e-17), "o-", color=BLUE, ms=3)
        ax.set_ylabel("proven relative gap")
    elif show == "objective":
        ax.plot(steps, trace.best, "o-", color=BLUE, ms=3, label="best J(W)")
        irls = np.isfinite(trace.smoothed_objective)
        if irls.any():
            ax.plot(steps[irls], trace.smoothed_objective[irls], "x", color=INK, label="smoothed objective (IRLS)")
        ax.plot(steps, trace.dual, ":", color=GREEN, lw=2, label="proven lower bound")
        # The first bounds may be far below; show what happens near the optimum.
        last = float(trace.best[-1])
        ax.set_ylim(last - 0.5 * (float(trace.best[0]) - last or 1.0), None)
        ax.set_ylabel("objective")
        _legend(ax)
    else:
        raise ValueError(f'show must be "objective" or "gap", got {show!r}')
    ax.set_xlabel("iteration")
    ax.locator_params(axis="x", integer=True)
    _bare(ax)
    return ax


def plot_contributions(
    explanation: Explanation, *, title: str | None = None, limit: int = 12, ax: Axes | None = None
) -> Axes:
    """One outlier's reasons as bars, strongest on top: left pushes towards outlier, right away from it."""
    ordered = sorted(explanation.reasons, key=lambda r: -abs(r.contribution))
    names = [f"{r.feature} = {r.shown}" for r in ordered[:limit]]
    pushes = [r.contribution for r in ordered[:limit]]
    if rest := ordered[limit:]:
        names.append(f"{len(rest)} more features")
        pushes.append(sum(r.contribution for r in rest))
    ax = _axes(ax, (6.0, 0.9 + 0.42 * max(2, len(names))))
    place = np.arange(len(names))
    bars = ax.barh(place, pushes, color=[ORANGE if push < 0 else BLUE for push in pushes], height=0.6)
    ax.bar_label(bars, [f"{push:+.3g}" for push in pushes], padding=3, fontsize="small")
    ax.set_yticks(place, names)
    ax.set_ylim(max(2, len(names)) - 0.5, -0.5)  # the strongest on top, one alone no wider than others
    ax.axvline(0.0, color=INK, lw=0.8)
    ax.margins(x=0.3)
    ax.set_xlabel("contribution to log r")
    ax.set_title(title or f"row {explanation.row}: r = {explanation.ratio:.3g}", fontsize="medium")
    _bare(ax)
    return ax


def plot_path(
    solutions: Sequence[Solution],
    *,
    show: Literal["weights", "clusters", "features", "gap"] = "weights",
    row: int | None = None,
    names: Sequence[str] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """A regularization path against the lambda that varies along it.

    Parameters
    ----------
    solutions : sequence of Solution
        From `regularization_path`.
    show : "weights", "clusters", "features" or "gap"
        The weights of one sample; the number of distinct weight vectors; the mean number of features per sample;
        or the proven relative gap of every point.
    row : int, optional
        The sample whose weights are shown; by default the one with the lowest score at the first point.
    names : sequence of str, optional
        Feature names.
    """
    solutions = _path(solutions)
    N, d = solutions[0].problem.shape
    if row is not None and not 0 <= row < N:
        raise ValueError(f"row must be a sample from 0 to {N - 1}, got {row!r}")
    if names is not None and len(names) != d:
        raise ValueError(f"names must have {d} entries, one per feature, got {len(names)}")
    ax = _axes(ax, (5.5, 3.4))
    lambdas, axis = np.array([s.problem.lambda1 for s in solutions]), "λ₁"
    if len(set(lambdas)) == 1 and len({s.problem.lambda2 for s in solutions}) > 1:
        lambdas, axis = np.array([s.problem.lambda2 for s in solutions]), "λ₂"
    if show == "weights":
        which = int(np.argmin(solutions[0].log_ratio)) if row is None else row
        W = np.array([s.W[which] for s in solutions])
        _weight_lines(ax, lambdas, W, names)
        ax.set_ylabel(f"weights of sample {which}")
    elif show == "clusters":
        ax.plot(lambdas, [len(np.unique(s.clusters)) for s in solutions], "o-", color=BLUE, ms=4)
        ax.set_ylabel("distinct weight vectors")
    elif show == "features":
        used = [selected_features(s.problem.X, s.W).sum(axis=1).mean() for s in solutions]
        ax.plot(lambdas, used, "o-", color=BLUE, ms=4)
        ax.set_ylabel("features per sample (mean)")
    elif show == "gap":
        gaps = [max(s.certificate.relative_gap, 1e-17) for s in solutions]
        ax.plot(lambdas, gaps, "o-", color=BLUE, ms=4)
        ax.set_yscale("log")
        ax.set_ylabel("proven relative gap")
    else:
        raise ValueError(f'show must be "weights", "clusters", "features" or "gap", got {show!r}')
    _lambda_axis(ax, lambdas, axis)
    return ax


def plot_lambda_curve(curve: LambdaCurve, *, ax: Axes | None = None) -> Axes:
    """Held-out loss against lambda1, one line per lambda2, with the best and one-standard-error choices."""
    ax = _axes(ax, (5.5, 3.6))
    for j, lambda2 in enumerate(curve.lambda2s):
        mark, colour = STYLES[j % len(STYLES)]
        error = curve.standard_error[:, j]
        label = f"λ₂ = {lambda2:g}"
        ax.errorbar(curve.lambda1s, curve.loss[:, j], error, fmt=f"{mark}-", color=colour, ms=4, capsize=2, label=label)
    ax.axhline(curve.baseline, color=GREY, ls="--", lw=1, label="W = 0")
    lambda1, lambda2 = curve.best
    at = curve.loss[np.flatnonzero(curve.lambda1s == lambda1)[0], np.flatnonzero(curve.lambda2s == lambda2)[0]]
    ax.plot([lambda1], [at], "o", mfc="none", mec=INK, ms=12, label=f"best: λ₁ = {lambda1:.3g}")
    ax.axvline(curve.one_standard_error[0], color=INK, ls=":", lw=1, label="within one standard error")
    ax.set_ylabel("held-out loss")
    _lambda_axis(ax, curve.lambda1s)
    _legend(ax)
    return ax


# ---- shared pieces ---------------------------------------------------------------------------------------


def _axes(ax: Axes | None, size: tuple[float, float]) -> Axes:
    if ax is not None:
        return ax
    axes: Axes = needed("matplotlib.pyplot", "plots", "plots").subplots(figsize=size, layout="constrained")[1]
    return axes


def _weight_lines(
    ax: Axes, lambdas: np.ndarray[Any, Any], W: np.ndarray[Any, Any], names: Sequence[str] | None
) -> None:
    """One line per feature that is ever used; the strongest six are named."""
    peak = np.abs(W).max(axis=0)
    strongest = [int(k) for k in np.argsort(-peak)[:6] if peak[k] > 0]
    for other in np.flatnonzero(peak > 0):
        if int(other) not in strongest:
            ax.plot(lambdas, W[:, other], color=GREY, lw=0.8)
    for k, (mark, colour) in zip(strongest, STYLES, strict=False):
        ax.plot(lambdas, W[:, k], f"{mark}-", color=colour, ms=4, label=names[k] if names else f"feature {k}")
    ax.axhline(0.0, color=INK, lw=0.6)
    if strongest:
        _legend(ax)


def _path(solutions: Sequence[Solution]) -> list[Solution]:
    if isinstance(solutions, Solution) or not all(isinstance(s, Solution) for s in solutions):
        raise TypeError("solutions must be a list of Solution, as returned by regularization_path")
    if not len(solutions):
        raise ValueError("solutions is empty: at least one point of a path is needed")
    return list(solutions)


def _lambda_axis(ax: Axes, lambdas: ArrayLike, name: str = "λ₁") -> None:
    positive = np.asarray(lambdas)[np.asarray(lambdas) > 0]
    if positive.size == np.size(lambdas):
        ax.set_xscale("log")
    elif positive.size:
        ax.set_xscale("symlog", linthresh=float(positive.min()))
    ax.set_xlabel(name)
    _bare(ax)


def _legend(ax: Axes, **options: Any) -> None:
    ax.legend(fontsize="small", frameon=False, **options)
    _bare(ax)


def _bare(ax: Axes) -> None:
    ax.spines[["top", "right"]].set_visible(False)
