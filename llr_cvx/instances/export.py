"""Export instances for solvers in other languages: .npz, MAT, CSV, JSON and CBF, and as a CVXPY program."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
from scipy.io import savemat

from llr_cvx import archive, checker
from llr_cvx.arrays import FloatArray
from llr_cvx.instances.library import Instance
from llr_cvx.problem import Problem
from llr_cvx.proofs.files import save_certificate


def export_instance(instance: Instance, folder: str | Path) -> Path:
    """Write one instance to folder/<name>/ and return that path.

    The files of `export_problem`; certificate.npz, .json and .mat, W.csv, alpha.csv and U.csv; instance.json with the
    lambdas and the proven interval; and cvxpy_problem.py. `README_TEMPLATE` explains them. The reference point of a
    large instance is solved for first.
    """
    target = export_problem(instance.problem, Path(folder) / instance.name)
    d, point = instance.problem.shape[1], instance.point
    for ending in ("npz", "json"):
        save_certificate(target / f"certificate.{ending}", instance.certificate, instance.W)
    with archive.replacing(target / "certificate.mat") as stream:
        savemat(stream, point._asdict() | {"lower": instance.lower, "upper": instance.upper}, oned_as="column")
    _write_csv(target / "W.csv", [f"w{k}" for k in range(d)], point.W)
    _write_csv(target / "alpha.csv", ["alpha"], point.alpha[:, None])
    _write_csv(target / "U.csv", [f"u{k}" for k in range(d)], point.U)
    facts = {name: None if value != value else value for name, value in instance.facts.items()}
    _write(target / "instance.json", json.dumps(facts, indent=1, allow_nan=False))
    _write(target / "cvxpy_problem.py", CVXPY_TEMPLATE.format(**instance.facts))
    return target


def export_problem(problem: Problem, target: Path) -> Path:
    """Write a problem without its solution: problem.npz, problem.mat, problem.cbf, samples.csv and edges.csv."""
    target.mkdir(parents=True, exist_ok=True)
    problem.save(target / "problem.npz")
    arrays = {name: np.asarray(getattr(problem, name), dtype=float) for name in checker.PROBLEM}
    with archive.replacing(target / "problem.mat") as stream:
        savemat(stream, arrays | {"B": problem.incidence.tocsc()}, oned_as="column")
    features = [f"x{k}" for k in range(problem.shape[1])]
    _write_csv(target / "samples.csv", ["y", *features], np.column_stack([problem.y, problem.X]))
    rows = zip(*problem.edges.T.tolist(), problem.weights, strict=True)
    _write_csv(target / "edges.csv", ["i", "j", "weight"], rows)
    _write(target / "problem.cbf", "".join(line + "\n" for line in cbf_lines(problem)))
    return target


def cbf_lines(problem: Problem) -> Iterator[str]:
    """Eq. (5) in the conic benchmark format (CBF), which MOSEK, JuMP's MathOptInterface, SCIP-SDP and others read.

    With W row by row as the first N d variables:

        minimise   sum_i t_i + lambda1 sum_e omega_e s_e + lambda2 sum_i q_i
        subject to p_ik >= |w_ik|,  2 q_i (1/2) >= (sum_k p_ik)^2,  s_e >= ||w_i - w_j||_2,
                   a_i >= exp(-y_i w_i.x_i - t_i),  b_i >= exp(-t_i),  a_i + b_i <= 1
    """
    N, d = problem.shape
    n_cells, size = N * d, 2 * N * d + 4 * N + len(problem.edges)
    W = np.arange(n_cells).reshape(N, d).tolist()
    q, t, a, b = (range(2 * n_cells + block * N, 2 * n_cells + (block + 1) * N) for block in range(4))
    s = range(2 * n_cells + 4 * N, size)
    yield "# Localized logistic regression, Eq. (5); the first N*d variables are W, row by row."
    yield from ("VER", "3", "", "OBJSENSE", "MIN", "", "VAR", f"{size} 1", f"F {size}", "")

    cones: list[str] = []
    rows: list[tuple[float, list[tuple[int, float]]]] = []  # a constant, and variables with their coefficients

    def cone(kind: str, *members: tuple[float, list[tuple[int, float]]]) -> None:
        cones.append(f"{kind} {len(members)}")
        rows.extend(members)

    bounds = [(0.0, [(w + n_cells, 1.0), (w, sign)]) for sign in (-1.0, 1.0) for w in range(n_cells)]
    cone("L+", *bounds, *((1.0, [(a_i, -1.0), (b_i, -1.0)]) for a_i, b_i in zip(a, b, strict=True)))
    for i in range(N):  # (q, 1/2, sum p) in the rotated cone
        cone("QR", (0.0, [(q[i], 1.0)]), (0.5, []), (0.0, [(w + n_cells, 1.0) for w in W[i]]))
    for i in range(N):  # (u, 1, r) in EXP means u >= exp(r)
        slope = (-problem.y[i] * problem.X[i]).tolist()
        margin = [(w, x) for w, x in zip(W[i], slope, strict=True) if x]
        cone("EXP", (0.0, [(a[i], 1.0)]), (1.0, []), (0.0, [(t[i], -1.0), *margin]))
        cone("EXP", (0.0, [(b[i], 1.0)]), (1.0, []), (0.0, [(t[i], -1.0)]))
    for s_e, i, j in zip(s, *problem.edges.T.tolist(), strict=True):
        cone("Q", (0.0, [(s_e, 1.0)]), *((0.0, [(w, 1.0), (v, -1.0)]) for w, v in zip(W[i], W[j], strict=True)))

    yield from ("CON", f"{len(rows)} {len(cones)}", *cones)
    costs = [*((x, 1.0) for x in t), *((x, problem.lambda2) for x in q), *zip(s, problem.radii.tolist(), strict=True)]
    A = [(row, j, value) for row, (_, terms) in enumerate(rows) for j, value in terms]
    constants = [(row, value) for row, (value, _) in enumerate(rows)]
    for name, entries in (("OBJACOORD", costs), ("ACOORD", A), ("BCOORD", constants)):
        lines = [" ".join(map(repr, entry)) for entry in entries if entry[-1]]
        yield from ("", name, str(len(lines)), *lines)


CVXPY_TEMPLATE = '''"""{name} as a CVXPY problem: {description}.

Needs only NumPy and CVXPY, and reads problem.npz beside it without pickle:

    python cvxpy_problem.py [SOLVER]
"""

import sys
from pathlib import Path

import cvxpy as cp
import numpy as np

# Proved: LOWER <= optimal value <= UPPER.
LOWER, UPPER = {lower!r}, {upper!r}


def build():
    """The problem and its variable W, one row per sample."""
    with np.load(Path(__file__).with_name("problem.npz"), allow_pickle=False) as data:
        X, y, edges, weights = (data[key] for key in ("X", "y", "edges", "weights"))
        lambda1, lambda2 = float(data["lambda1"]), float(data["lambda2"])
    W = cp.Variable(X.shape, name="W")
    J = cp.sum(cp.logistic(-cp.multiply(y, cp.sum(cp.multiply(X, W), axis=1))))
    J += lambda2 * cp.sum_squares(cp.norm(W, 1, axis=1))
    if len(edges):
        J += lambda1 * (weights @ cp.norm(W[edges[:, 0]] - W[edges[:, 1]], 2, axis=1))
    return cp.Problem(cp.Minimize(J)), W


if __name__ == "__main__":
    problem, W = build()
    value = float(problem.solve(solver=sys.argv[1] if len(sys.argv) > 1 else None))
    print(f"{{problem.status}}: {{value!r}}, proved optimum between {{LOWER!r}} and {{UPPER!r}}")
'''

README_TEMPLATE = """# Localized logistic regression: problems with a proven optimum

Each folder holds one problem,

    minimise over W:  J(W) = sum_i log(1 + exp(-y_i w_i.x_i))
                             + lambda1 sum_e weight_e ||w_i - w_j||_2 + lambda2 sum_i ||w_i||_1^2,

with an interval proved to contain its optimal value J*, rounding errors included, and the W and the dual point
(alpha, U) that prove it. No data needs Python to be read.

| file | contents |
|---|---|
| `instance.json` | N samples, d features, the number of edges, lambda1, lambda2, `lower` <= J* <= `upper`, \
and the shares of nonzero entries (`active`) and of fused edges (`fused`) of the reference W |
| `samples.csv` | N rows: y (+1 known inlier, -1 test sample), then the features x0, x1, ... |
| `edges.csv` | one undirected edge per row: i < j, counted from 0 in the order of `samples.csv`, and its weight |
| `W.csv` | the reference W, row i for sample i |
| `alpha.csv`, `U.csv` | the dual point: alpha_i for each sample, U_e for each edge in the order of `edges.csv` |
| `problem.npz`, `certificate.npz`, `certificate.json` | the same arrays for NumPy and for the checker |
| `problem.mat`, `certificate.mat` | the same for MATLAB and Octave, with `lower` and `upper`; `edges` counts from 0, \
and the sparse matrix `B` has the rows w_i - w_j of all edges as `B * W` |
| `cvxpy_problem.py` | the problem in CVXPY, from `problem.npz`, with the proven interval; run it or import `build` |
| `problem.cbf` | the problem in the conic benchmark format; its first N d variables are W, row by row |

Numbers are written in the shortest form that restores the same doubles.

## Recheck a proof

`checker.py` needs only NumPy; it recomputes J and the dual value and trusts no claim:

    python checker.py {example}/problem.npz {example}/certificate.json --tol 1e-9

It exits with status 0 if the proof holds. The formulas are at its top, for translation to any language.

## Judge a solver

An objective below `lower` is wrong; one above `upper` is too large by at least the difference. For a verdict on a W
of your own (`.npy`, `.npz` or `.csv`, one row per sample), with llr_cvx installed:

    llr-cvx verify {example}/problem.npz --W mine.csv

## The problems

| name | N | d | edges | lambda1 | lambda2 | J* >= | J* <= | what is special |
|---|---|---|---|---|---|---|---|---|
{table}
"""


def write_guide(folder: str | Path) -> None:
    """Add to a folder of exported instances a README.md that explains them, and the checker."""
    facts = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(Path(folder).glob("*/instance.json"))]
    keys = ("name", "N", "d", "edges", "lambda1", "lambda2", "lower", "upper", "description")
    table = "\n".join("| " + " | ".join(str(one[key]) for key in keys) + " |" for one in facts)
    _write(Path(folder) / "README.md", README_TEMPLATE.format(table=table, example=facts[0]["name"]))
    _write(Path(folder) / "checker.py", Path(checker.__file__).read_text(encoding="utf-8"))


def _write_csv(path: Path, header: list[str], rows: Iterable[Iterable[float]] | FloatArray) -> None:
    """Write numbers in the shortest form that restores the same doubles."""
    lines = (",".join(str(x) if isinstance(x, int) else repr(float(x)) for x in row) for row in rows)
    _write(path, "".join(line + "\n" for line in (",".join(header), *lines)))


def _write(path: Path, text: str) -> None:
    with archive.replacing(path, "w", encoding="utf-8") as stream:
        stream.write(text)
