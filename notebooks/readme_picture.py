"""Draw the picture of the README: outliers of two kinds, and the features that give each one away.

Run it with `python notebooks/readme_picture.py`; it writes readme_picture.png beside itself.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import llr_cvx as llr
from llr_cvx.archive import replacing


def draw(path: Path) -> None:
    """Two kinds of outliers among Gaussian inliers, scored and explained; one PNG file."""
    rng = np.random.default_rng(0)
    d, n_inlier, n_test = 6, 120, 60
    X_inlier = rng.standard_normal((n_inlier, d))
    X_test = rng.standard_normal((n_test + 6, d))
    X_test[n_test : n_test + 3, 0] += 5.0
    X_test[n_test + 3 :, 3] -= 5.0

    problem = llr.Problem.from_samples(X_inlier, X_test, lambda1=0.1, lambda2=0.1)
    solution = llr.solve_exact(problem)
    test = problem.y < 0
    log_r = solution.log_ratio[test]
    contributions = (solution.W * problem.X)[test]
    worst = np.argsort(log_r)[:8]

    plt.rcParams.update({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False})
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.4, 3.4), layout="constrained", width_ratios=(1.1, 1))
    figure.get_layout_engine().set(wspace=0.06)
    left.scatter(*X_inlier[:, [0, 3]].T, s=12, marker="s", c="0.8", label="known inliers")
    dots = left.scatter(*X_test[:, [0, 3]].T, s=26, c=log_r, cmap="cividis", edgecolors="k", linewidths=0.4)
    left.scatter([], [], s=26, c=[plt.get_cmap("cividis")(0.8)], edgecolors="k", linewidths=0.4, label="test samples")
    for rank, i in enumerate(worst[:6]):
        left.annotate(str(rank + 1), X_test[i, [0, 3]], xytext=(5 if rank % 2 else -11, 3), textcoords="offset points")
    left.set(xlabel="feature 1", ylabel="feature 4", title="which samples are outliers?")
    left.legend(frameon=False, loc="lower right", fontsize=8)
    figure.colorbar(dots, ax=left, label="log density ratio (low: outlier)")

    size = np.abs(contributions).max()
    picture = right.imshow(contributions[worst], cmap="PuOr", vmin=-size, vmax=size, aspect="auto")
    right.set_xticks(range(d), [str(k + 1) for k in range(d)])
    right.set_yticks(range(len(worst)), [str(k + 1) for k in range(len(worst))])
    right.set(xlabel="feature", ylabel="test samples, most outlying first", title="and because of what?")
    figure.colorbar(picture, ax=right, label="share of the log ratio, $w_{ik}\\,x_{ik}$")
    with replacing(path) as stream:
        figure.savefig(stream, format="png", dpi=110, metadata={"Software": None})
    plt.close(figure)


if __name__ == "__main__":
    plt.switch_backend("agg")
    draw(Path(__file__).with_suffix(".png"))
