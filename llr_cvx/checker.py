"""Independent checker of an LLR certificate, with NumPy only: python checker.py PROBLEM CERTIFICATE [--tol 1e-6].

PROBLEM: X (N,d), y (N,) of +1/-1, edges (E,2) with i < j, weights (E,) >= 0, lambda1, lambda2 >= 0.
CERTIFICATE: W (N,d), alpha (N,), U (E,d) and the claims primal >= J(W) and dual <= D(alpha, U).
Both are .npz archives, or .json files with one object of (nested) lists under these names.

    J(W) = sum_i log(1+exp(-y_i w_i.x_i)) + lambda1 sum_e omega_e ||w_i-w_j||_2 + lambda2 sum_i ||w_i||_1^2
    D(alpha,U) = sum_i H(alpha_i) - sum_i ||v_i||_inf^2 / (4 lambda2)  <= J(W) for every W, where
    0 <= alpha_i <= 1, ||U_e||_2 <= lambda1 omega_e, H(a) = -a log a - (1-a) log(1-a) and
    v_i = -alpha_i y_i x_i + sum_{e=(i,j)} U_e - sum_{e=(j,i)} U_e.

No claim is believed: J and D are recomputed with a bound on every rounding error (exp, log: 4 ulp) after the
dual point was moved into its domain, so J* lies in [dual_low, primal_high] whatever the file says. The claims
are confirmed if they contain that interval up to rounding. Exit: 0 confirmed, 1 rejected, 2 unreadable.
"""

import io
import json
import math
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

Array = NDArray[np.float64]
ULP = 2.0**-52
PROBLEM = {"X": 2, "y": 1, "edges": 2, "weights": 1, "lambda1": 0, "lambda2": 0}  # name: dimensions
CERTIFICATE = {"W": 2, "alpha": 1, "U": 2, "primal": 0, "dual": 0}


def read(path: str, fields: dict[str, int]) -> dict[str, Array]:
    """Read the named arrays; sizes are checked before memory is taken, and nothing is executed."""
    data = Path(path).read_bytes()  # once: a pipe serves as well
    found: Any = None if data[:2] == b"PK" else json.loads(data)
    if found is None:
        archive = zipfile.ZipFile(io.BytesIO(data))
        found = {x.filename[:-4]: _member(archive, x) for x in archive.infolist() if x.filename[:-4] in fields}
    if missing := [name for name in fields if name not in found]:
        raise ValueError(f"{path}: {', '.join(missing)} missing")
    return {name: numbers(found[name], name, ndim) for name, ndim in fields.items()}


def _member(archive: zipfile.ZipFile, item: zipfile.ZipInfo) -> NDArray[Any]:
    with archive.open(item) as stream:
        header = npy.read_array_header_1_0 if npy.read_magic(stream) == (1, 0) else npy.read_array_header_2_0
        shape, fortran, dtype = header(stream)
        size = math.prod(shape) * dtype.itemsize
        if dtype.hasobject or not 0 <= size <= min(item.file_size, 2**33):
            raise ValueError(f"{item.filename} claims {size} bytes of {dtype}: more than it holds, or no numbers")
        return np.frombuffer(stream.read(size), dtype).reshape(shape, order="F" if fortran else "C")


def numbers(value: Any, name: str, ndim: int) -> Array:
    """A finite float64 array of `ndim` dimensions; an empty list may stand for an empty matrix."""
    a = np.asarray(value)
    if a.size and (a.ndim != ndim or a.dtype.kind not in "iuf" or not np.isfinite(np.float64(a)).all()):
        raise ValueError(f"{name} must be an array of finite numbers with {ndim} dimension(s)")
    return a.astype(float)


def validate(problem: dict[str, Array], certificate: dict[str, Array]) -> tuple[Any, ...]:
    """(X, y, edges, omega, lambda1, lambda2), W, alpha, U with shapes, signs and edges checked."""
    X, y, omega, edges = problem["X"], problem["y"], problem["weights"], problem["edges"].reshape(-1, 2)
    lambda1, lambda2 = float(problem["lambda1"]), float(problem["lambda2"])
    if X.ndim != 2 or not X.size or y.shape != X.shape[:1] or np.any(np.abs(y) != 1):
        raise ValueError(f"X has shape {X.shape}, y {y.shape}: one label +1 or -1 for each row expected")
    if np.any(edges != np.floor(edges)) or np.any(edges < 0) or np.any(edges[:, 0] >= edges[:, 1]):
        raise ValueError("edges must be pairs of row numbers i < j")
    if np.any(edges >= len(X)) or omega.shape != (len(edges),) or min([lambda1, lambda2, *omega]) < 0:
        raise ValueError("edges must join rows of X, each with one weight >= 0; lambda1 and lambda2 >= 0")
    W, alpha, U = certificate["W"], certificate["alpha"], certificate["U"].reshape(-1, X.shape[1])
    if W.shape != X.shape or alpha.shape != y.shape or len(U) != len(edges):
        raise ValueError(f"W, alpha, U have shapes {W.shape}, {alpha.shape}, {U.shape}: not of this problem")
    return (X, y, edges.astype(int), omega, lambda1, lambda2), W, alpha, U


def total(terms: Array) -> float:
    """Sum with one rounding; inf if it may overflow or a term is not a number."""
    return math.fsum(terms.ravel()) if np.abs(terms).sum() < math.inf else math.inf


def norms(D: Array) -> Array:
    """Euclidean norms of rows, to (d + 4) ULP, without overflow."""
    scale = np.maximum(np.abs(D).max(axis=1, initial=0.0), 1e-300)
    return np.asarray(scale * np.sqrt(((D / scale[:, None]) ** 2).sum(axis=1)))


def primal(data: tuple[Any, ...], W: Array) -> tuple[float, float]:
    """(low, high) around J(W): J recomputed, and a bound on its rounding."""
    X, y, edges, omega, lambda1, lambda2 = data
    d, XW, lengths, radius = X.shape[1], X * W, norms(W[edges[:, 0]] - W[edges[:, 1]]), lambda1 * omega
    margin, off = y * XW.sum(axis=1), (d + 4) * ULP * np.abs(XW).sum(axis=1)  # off: proven error of a margin
    slope = np.exp(np.minimum(off - np.logaddexp(0.0, margin), 0.0))  # proven: no loss is steeper that near
    J = total(np.r_[np.logaddexp(0.0, -margin), radius * lengths, lambda2 * np.abs(W).sum(axis=1) ** 2])
    underflow = 1e-290 * (1 + total(lengths)) + 1e-320 * (total(radius) + len(W) * lambda2)
    error = (2 * d + 16) * ULP * J + total(off * slope) + underflow
    return (J - error, J + error) if math.isfinite(J + error) else (0.0, math.inf)


def dual(data: tuple[Any, ...], alpha: Array, U: Array) -> tuple[float, float, float]:
    """(proven lower bound of J*, its rounding bound, largest violation of the dual constraints)."""
    X, y, edges, omega, lambda1, lambda2 = data
    radius, length, a = lambda1 * omega, norms(U), np.clip(alpha, 0.0, 1.0)
    outside = max(float((length - radius).max(initial=0.0)), -float(alpha.min()), float(alpha.max()) - 1.0, 0.0)
    inside = np.where(radius > 1e-290, radius * (1 - (2 * X.shape[1] + 16) * ULP), 0.0)
    degree, penalties = np.bincount(edges.ravel(), minlength=len(X)), []
    for limit, safe in ((inside, 1.0), (radius, 0.0)):  # with all rounding errors, and without
        u = np.where((length > limit)[:, None], U / np.maximum(length, 1e-300)[:, None] * limit[:, None], U)
        v, size = -(a * y)[:, None] * X, a[:, None] * np.abs(X)
        for column, sign in ((0, 1.0), (1, -1.0)):
            np.add.at(v, edges[:, column], sign * u)
            np.add.at(size, edges[:, column], np.abs(u))
        v_max = np.abs(v).max(axis=1) + safe * ((degree + 3) * ULP * size.max(axis=1) + 1e-300)  # >= ||v_i||_inf
        penalties.append(total((v_max / (2 * math.sqrt(lambda2) or math.nan)) ** 2))
    a = a[(a > 0) & (a < 1)]
    entropy, (penalty, plain) = total(-a * np.log(a) - (1 - a) * np.log1p(-a)), penalties
    # An infinite penalty, as for lambda2 = 0, proves nothing; alpha = 0, U = 0 always prove J* >= 0.
    rounding = 32 * ULP * (entropy + penalty) + 2 * abs(penalty - plain) if penalty + plain < math.inf else 0.0
    return max(entropy - penalty - 16 * ULP * (entropy + penalty) - 1e-320 * len(y), 0.0), rounding, outside


def check(problem: dict[str, Array], certificate: dict[str, Array], tol: float | None = None) -> dict[str, Any]:
    """Recompute all; the verdict is in "confirmed", the reasons for a rejection in "reasons"."""
    data, W, alpha, U = validate(problem, certificate)
    with np.errstate(all="ignore"):  # an overflow ends as "not finite" below
        (low, high), (bound, rounding, outside) = primal(data, W), dual(data, alpha, U)
    claim, floor = float(certificate["primal"]), float(certificate["dual"])
    relative = (high - bound) / high if high < math.inf else math.inf
    faults = {
        "J(W) is not a finite number": high == math.inf,
        f"claimed primal {claim!r} is below J(W) >= {low!r}": claim < low,
        f"claimed dual {floor!r} is not proved by alpha and U: they prove {bound!r}": floor > bound + rounding,
        f"relative gap {relative:.3e} is above tol {tol}": tol is not None and not relative <= tol,
    }
    reasons = [words for words, found in faults.items() if found]
    values = {"dual_low": bound, "primal_low": low, "primal_high": high, "relative_gap": relative}
    return {"confirmed": not reasons, "reasons": reasons, **values, "dual_violation": outside}


if __name__ == "__main__":
    try:
        wanted = float(sys.argv[sys.argv.index("--tol") + 1]) if "--tol" in sys.argv else None
        result = check(read(sys.argv[1], PROBLEM), read(sys.argv[2], CERTIFICATE), wanted)
    except Exception as error:  # damaged bytes can make zipfile, zlib, json and NumPy raise almost anything
        sys.exit(print(f"unreadable: {error}; usage: checker.py PROBLEM CERTIFICATE", file=sys.stderr) or 2)
    sys.exit(print(json.dumps(result, indent=1)) or int(not result["confirmed"]))
