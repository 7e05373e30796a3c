"""Write instance.js, and still.png, the picture for print: `python docs/interactive/make.py [CHROMIUM]`.

The instance is the paper's synthetic data in small, rounded so that it can be typed in by hand.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from llr_cvx import make_synthetic, similarity_graph

HERE = Path(__file__).parent


def instance() -> dict[str, object]:
    """Seven known inliers and seven test samples, the last three of them outliers; the graph of three neighbours."""
    X_inlier, X_test, _ = make_synthetic(d=3, random_state=0, n_inlier=7, n_test_inlier=4, n_outlier=3)
    X = np.round(np.vstack([X_inlier, X_test]), 1)
    edges, weights = similarity_graph(X, n_neighbors=3)
    y = [1] * len(X_inlier) + [-1] * len(X_test)
    return {"X": X.tolist(), "y": y, "edges": edges.tolist(), "weights": weights.tolist()}


def script() -> str:
    """The text of instance.js."""
    lines = [f"  {key}: {json.dumps(value)}," for key, value in instance().items()]
    return "\n".join(["/* Written by make.py. */", "const INSTANCE = {", *lines, "};", ""])


def main(browser: str = "chromium") -> None:
    """Write both files."""
    (HERE / "instance.js").write_text(script(), encoding="utf-8")
    with tempfile.TemporaryDirectory() as profile:
        options = ["--headless", "--no-sandbox", "--hide-scrollbars", f"--user-data-dir={profile}"]
        picture = ["--window-size=1200,1430", "--virtual-time-budget=5000", f"--screenshot={HERE / 'still.png'}"]
        address = (HERE / "index.html").as_uri() + "?still"
        subprocess.run([browser, *options, *picture, address], check=True, capture_output=True, timeout=60)


if __name__ == "__main__":
    main(*sys.argv[1:])
