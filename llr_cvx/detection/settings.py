"""Two named settings of the penalties; pass one as ``LLRDetector(**DETECTION)``.

docs/detect.md shows what each is good for, as measured by `python -m llr_cvx.experiments.decisions`.
"""

from __future__ import annotations

#: The paper's: few features per outlier. The default of `LLRDetector`.
PAPER = {"lambda1": 0.1, "lambda2": 1.0}
#: Stronger coupling and hardly any sparsity: finds more outliers, and blames more features for each.
DETECTION = {"lambda1": 0.5, "lambda2": 0.01}
SETTINGS = {"paper": PAPER, "detection": DETECTION}
