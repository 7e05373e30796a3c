"""Every method of the paper behind one interface: ``METHODS[key].score(X_inlier, X_test)``, higher is more normal.

>>> import numpy as np
>>> from llr_cvx.experiments.methods import METHODS
>>> inliers = np.random.default_rng(0).normal(size=(50, 2))
>>> METHODS["maxnorm"].score(inliers, [[0.1, 0.2], [5.0, 0.0]]).tolist()
[-0.2, -5.0]

tests/experiments/test_twins.py states the convex ones in CVXPY, and compares.
"""

from __future__ import annotations

from dataclasses import replace

from llr_cvx.experiments.methods import localized, logistic, lokdr, ratio, unsupervised
from llr_cvx.experiments.methods._base import Method, Outcome, Property

__all__ = ["EXACT", "METHODS", "Method", "Outcome", "Property"]

NONLINEAR, SELECTS_FEATURES, RATIO_BASED, CONVEX = Property

_ALL = (
    Method(
        key="kde",
        label="KDE",
        properties=NONLINEAR,
        parameters="Gaussian; density of the inliers; width by leave-one-out likelihood over 12 values",
        fit=unsupervised.kde,
    ),
    Method(
        key="osvm",
        label="OSVM",
        properties=NONLINEAR | CONVEX,
        parameters="pooled samples; Gaussian width = median distance (paper); nu = 0.5 (libSVM's default)",
        fit=unsupervised.osvm,
    ),
    Method(
        key="lof",
        label="LOF",
        properties=NONLINEAR,
        parameters="model built on the inliers (paper); number of neighbours as in the protocol",
        fit=unsupervised.lof,
    ),
    Method(
        key="l1lr",
        label="ℓ1-LR",
        properties=SELECTS_FEATURES | RATIO_BASED | CONVEX,
        parameters="lambda as in the protocol: by 5-fold deviance over 9 values, or 0.1 lambda_max",
        fit=logistic.l1_logistic,
    ),
    Method(
        key="klr",
        label="KLR",
        properties=NONLINEAR | RATIO_BASED | CONVEX,
        parameters="Gaussian width = median distance; 200 centres; lambda by 5-fold deviance over 5 values",
        fit=logistic.kernel_logistic,
    ),
    Method(
        key="kliep",
        label="KLIEP",
        properties=NONLINEAR | RATIO_BASED | CONVEX,
        parameters="100 centres (authors); width by 5-fold likelihood over 8 multiples of the median distance",
        fit=ratio.kliep,
    ),
    Method(
        key="ulsif",
        label="uLSIF",
        properties=NONLINEAR | RATIO_BASED | CONVEX,
        parameters="100 centres, width and lambda by leave-one-out over the 9 x 9 grid of the authors' software",
        fit=ratio.ulsif,
    ),
    Method(
        key="rulsif",
        label="RuLSIF",
        properties=NONLINEAR | RATIO_BASED | CONVEX,
        parameters="beta = 1/2; 100 centres, width and lambda by 5 folds over the authors' 5 x 5 grid",
        fit=ratio.rulsif,
    ),
    Method(
        key="maxnorm",
        label="max-norm",
        properties=NONLINEAR | SELECTS_FEATURES,
        parameters="none: -‖x‖∞, the limit of LLR without a constant as lambda1 → 0",
        fit=localized.max_norm,
    ),
    Method(
        key="lokdr",
        label="LoKDR",
        properties=NONLINEAR | SELECTS_FEATURES | RATIO_BASED,
        parameters="width = distance to the 10th neighbour; features added while they help significantly, at 5 %",
        fit=lokdr.lokdr,
    ),
    Method(
        key="llr",
        label="LLR",
        properties=NONLINEAR | SELECTS_FEATURES | RATIO_BASED | CONVEX,
        parameters="lambda1 = 0.1, lambda2 = 1 (paper); graph as in the protocol; solved to a proven gap",
        fit=localized.llr,
    ),
)

#: Every method by its key, in the order of the tables.
METHODS = {method.key: method for method in _ALL}

#: LLR by the conic solver: a check on LLR by `solve_fast`, not a separate method.
EXACT = replace(METHODS["llr"], key="llr_exact", label="LLR (exact)", fit=localized.llr_exact)
