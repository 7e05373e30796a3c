"""What an entry says about its answer, compared with what is proved about it."""

from __future__ import annotations

import numpy as np

from llr_cvx.arena.answers import Answer
from llr_cvx.arrays import FloatArray

#: A claim is false if it is wrong by more than this, relatively: more than the arithmetic of any honest solver.
CLAIM_RTOL = 1e-9


def false_claims(
    J: float, lower: float, upper: float, own: float | None, values: FloatArray, answer: Answer, notes: list[str]
) -> list[str]:
    """Claims that are proved false: about J(W), about the optimum, and about the iterates.

    `lower` and `upper` enclose J*, `own` is what the entry's dual point proves, `values` are J of its iterates. Claims
    that are wrong to its own disadvantage, or that nothing is known about, become notes.
    """
    found = []
    room = CLAIM_RTOL * max(J, 1e-300)
    claimed = answer.claims.get("objective")
    if claimed is not None and not claimed >= J - room:
        found.append(f"it claims J(W) = {claimed:.12g}, but J(W) = {J:.12g}")
    elif claimed is not None and not claimed <= J + room:
        notes.append(f"it claims J(W) = {claimed:.12g}, which is too large: J(W) = {J:.12g}")
    dual = answer.claims.get("dual")
    if dual is not None and not dual <= upper + room:
        found.append(f"it claims J* >= {dual:.12g}, but J* <= {upper:.12g} is proved")
    elif dual is not None and own is not None and not dual <= own + room:
        found.append(f"it claims J* >= {dual:.12g}, but its dual point proves {own:.12g} only")
    if answer.values is not None and len(values):
        said = answer.values
        with np.errstate(invalid="ignore"):
            wrong = np.flatnonzero(np.abs(said - values) > CLAIM_RTOL * np.abs(values))
        if wrong.size:
            k = int(wrong[0])
            found.append(f"it reports J = {said[k]:.12g} for iterate {k}, but J = {values[k]:.12g}")
    trace = np.array(answer.claims.get("trace", []), dtype=float)
    below = np.flatnonzero(trace < lower - room)
    if below.size:
        found.append(f"its trace holds {trace[below[0]]:.12g}, but J* >= {lower:.12g} is proved")
    elif trace.size and len(trace) != len(values):
        notes.append(f"its trace of {len(trace)} values comes without their iterates: not counted")
    return found
