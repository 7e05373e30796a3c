"""Random problems of the kinds that data really has: the second generator of the drill.

`varied_problem` draws, from one seed per problem, N from 20 to 400 and d from 2 to 60 (both log-uniform), samples of
one of seven kinds (`KINDS`), columns of mixed scale one time in four, K from 1 to 30 neighbours, and both lambdas
log-uniform between 1e-4 and 1e3. A tenth of the test samples are shifted in a few features.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np

from llr_cvx.arrays import FloatArray
from llr_cvx.graph import GraphWarning
from llr_cvx.problem import Problem

Draw = Callable[[np.random.Generator, int, int], FloatArray]


def _clustered(rng: np.random.Generator, N: int, d: int) -> FloatArray:
    centres = 4.0 * rng.standard_normal((max(2, N // 25), d))
    return centres[rng.integers(len(centres), size=N)] + 0.3 * rng.standard_normal((N, d))


def _correlated(rng: np.random.Generator, N: int, d: int) -> FloatArray:
    factors = rng.standard_normal((N, max(1, d // 8)))
    return factors @ rng.standard_normal((factors.shape[1], d)) + 0.1 * rng.standard_normal((N, d))


def _duplicated(rng: np.random.Generator, N: int, d: int) -> FloatArray:
    return rng.standard_normal((max(2, N // 4), d))[rng.integers(max(2, N // 4), size=N)]


#: Kind of samples -> how they are drawn.
KINDS: dict[str, Draw] = {
    "gaussian": lambda rng, N, d: rng.standard_normal((N, d)),
    "clustered": _clustered,
    "correlated": _correlated,
    "heavy-tailed": lambda rng, N, d: rng.standard_t(2, size=(N, d)),
    "sparse binary": lambda rng, N, d: (rng.random((N, d)) < 0.1).astype(float),
    "duplicates": _duplicated,
    "counts": lambda rng, N, d: rng.poisson(2.0, size=(N, d)).astype(float),
}


def varied_problem(seed: int) -> Problem:
    """One problem of the stated generator.

    >>> varied_problem(0)
    Problem(N=40, d=29, edges=95, lambda1=186.48, lambda2=0.649211)
    """
    rng = np.random.default_rng([20261117, seed])
    N, d = int(20 * 20.0 ** rng.random()), int(2 * 30.0 ** rng.random())
    X = list(KINDS.values())[seed % len(KINDS)](rng, N, d)
    n_inlier = int(rng.integers(N // 4, 3 * N // 4))
    shifted = np.arange(N) >= N - max(1, (N - n_inlier) // 10)
    X = X + np.where(shifted[:, None] & (rng.random(d) < 2.0 / d), 3.0, 0.0)
    if rng.random() < 0.25:
        X = X * 10.0 ** rng.uniform(-3, 3, size=d)
    K = int(rng.integers(1, min(30, N - 1) + 1))
    lambda1, lambda2 = 10.0 ** rng.uniform(-4, 3, size=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GraphWarning)  # isolated rows and duplicates are wanted here
        return Problem.from_samples(X[:n_inlier], X[n_inlier:], lambda1, lambda2, n_neighbors=K)
