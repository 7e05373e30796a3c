"""From a proof to rounding error: minimise on the face that the multipliers show, and complete the dual there."""

from __future__ import annotations

from llr_cvx.problem import Problem
from llr_cvx.solvers.best import Best
from llr_cvx.solvers.fast.completion import complete_dual
from llr_cvx.solvers.fast.descent import descend
from llr_cvx.solvers.fast.face import face_of
from llr_cvx.solvers.fast.multipliers import Lagrangian

BUDGET = 400  # conjugate gradient iterations


def polish(problem: Problem, at: Lagrangian, best: Best) -> None:
    """Keep the minimiser on the face if it is better: then W is exact there."""
    if problem.lambda2 == 0:  # the face may have flat directions, in which Newton's method would run away
        return
    face, done = descend(face_of(problem, at.sparse, at.fused), BUDGET, accuracy=1e-13)
    W, objective = face.W, problem.objective(face.W)
    if done:
        alpha, U = complete_dual(face, problem.radii[:, None] * at.u, target=objective * (1.0 - 1e-14))
        best.bound(alpha, U)
    best.primal(W, objective)
