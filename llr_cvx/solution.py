"""What every solver returns: W, what is proved about it, and how it ended."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from llr_cvx.arrays import FloatArray, IntArray, read_only
from llr_cvx.graph import component_labels
from llr_cvx.problem import Problem
from llr_cvx.proofs.certificate import Certificate

#: Every status a solution can have, and what it means.
STATUSES = {
    "optimal": "the certificate proves a relative gap of at most tol",
    "inaccurate": "the solver ended, but its W is not proved optimal to tol; the gap reached is in the certificate",
    "iteration_limit": "max_iter was reached before tol; W is the best found",
    "time_limit": "time_limit was reached before tol; W is the best found",
    "uncertified": "lambda2 = 0: optimality is proved among bounded W only (see the certificate)",
}


class SolverError(RuntimeError):
    """A solver gave no usable W at all."""


class ConvergenceWarning(UserWarning):
    """A solver stopped before the requested gap was proved."""


@dataclass(frozen=True, eq=False)
class Trace:
    """Per-iteration history of an iterative solver.

    Attributes
    ----------
    phase : array of str
        The method that made each iterate; "irls" for IRLS steps.
    objective, best : arrays
        J(W) of that iterate, and its running minimum.
    smoothed_objective : array
        J_epsilon(W); NaN outside IRLS. Where lambda1 omega_e is larger than any optimal U_e can be, J_epsilon is that
        of the problem with a smaller one, which is what IRLS iterates on (`llr_cvx.solvers.run.capped`).
    dual : array
        The largest lower bound so far, before rounding is charged; for lambda2 = 0 that on bounded W.
    epsilon : array
        The smoothing in force; 0 outside IRLS.
    seconds : array
        Time since the start.
    """

    phase: NDArray[np.str_]
    objective: FloatArray
    best: FloatArray
    smoothed_objective: FloatArray
    dual: FloatArray
    epsilon: FloatArray
    seconds: FloatArray

    def __post_init__(self) -> None:
        for f in fields(self):
            object.__setattr__(self, f.name, read_only(getattr(self, f.name)))

    def is_monotone(self, rtol: float = 1e-12) -> bool:
        """Whether J_epsilon never rises by more than rtol, relatively, from one IRLS step to the next.

        Nothing is claimed of other phases: there J may rise. Without an IRLS step there is nothing to violate.
        """
        irls = np.concatenate([[False], self.phase == "irls", [False]])
        starts, ends = np.flatnonzero(irls[1:] & ~irls[:-1]), np.flatnonzero(irls[:-1] & ~irls[1:])
        runs = [self.smoothed_objective[i:j] for i, j in zip(starts, ends, strict=True)]
        return all(np.isfinite(values).all() and first_rise(values, rtol) is None for values in runs)


def first_rise(values: FloatArray, rtol: float = 1e-12) -> int | None:
    """Index of the first value that is above its predecessor by more than rtol, relatively; None if none is."""
    values = np.asarray(values, dtype=float)
    rises = np.flatnonzero(~(values[1:] <= values[:-1] + rtol * np.abs(values[:-1])))
    return int(rises[0]) + 1 if rises.size else None


@dataclass(frozen=True, eq=False)
class Solution:
    """W with its proof.

    Attributes
    ----------
    problem : Problem
    W : array of shape (N, d)
        Read-only, as all arrays here: the certificate is that of this W. Take ``W.copy()`` to change it.
    objective : float
        J(W), recomputed from W.
    status, message : str
        One of `STATUSES`, and what happened in words.
    certificate : Certificate
    solver : str
    seconds : float
    n_iter : int
    trace : Trace or None
        For iterative solvers.

    Examples
    --------
    >>> from llr_cvx import Problem, solve_fast
    >>> p = Problem([[1.0], [2.0]], [1, -1], [[0, 1]], [1.0], lambda1=0.1, lambda2=1.0)
    >>> s = solve_fast(p)
    >>> s.status, s.W.shape, s.certificate.dual <= s.objective
    ('optimal', (2, 1), True)
    """

    problem: Problem = field(repr=False)
    W: FloatArray = field(repr=False)
    objective: float
    status: str
    message: str
    certificate: Certificate = field(repr=False)
    solver: str
    seconds: float
    n_iter: int = 0
    trace: Trace | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "W", read_only(self.W))

    @property
    def log_ratio(self) -> FloatArray:
        """log r of each pooled row; low means outlier."""
        return self.problem.log_ratio(self.W)

    @cached_property
    def support(self) -> NDArray[np.bool_]:
        """Where W is not exactly zero: the features selected for each sample.

        Conic solvers leave no exact zeros and no exactly equal rows. `solve_irls` and `solve_fast` round to them; for
        tol <= 1e-9 they are mostly those of the optimum, but that is not proved.
        """
        return read_only(self.W != 0.0)

    @cached_property
    def clusters(self) -> IntArray:
        """A label for each sample; samples joined by edges along which rows of W are exactly equal share it.

        As for `support`, of use with `solve_irls` and `solve_fast`.
        """
        live = self.problem.edges[self.problem.weights > 0]
        fused = np.all(self.W[live[:, 0]] == self.W[live[:, 1]], axis=1)
        return read_only(component_labels(self.problem.shape[0], live[fused]))

    def __str__(self) -> str:
        return f"{self.solver}: {self.status} ({self.message}), {self.seconds:.3g} s\n{self.certificate}"
