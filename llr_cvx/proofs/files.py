"""Certificates as files: a format that a solver in any language can write, and `llr_cvx/checker.py` reads.

One certificate is one .npz archive or one .json object with these entries (W and U row by row):

    ========  =======  ==========================================================================
    name      shape    meaning
    ========  =======  ==========================================================================
    W         (N, d)   one weight vector a sample
    alpha     (N,)     dual point of the logistic terms, in [0, 1]
    U         (E, d)   dual point of the edges, in the order of the problem's edges; [] for none
    primal    scalar   a number >= J(W)
    dual      scalar   a number <= D(alpha, U), a lower bound of the optimum
    ========  =======  ==========================================================================

Other entries are ignored. A dual point slightly outside its domain is moved into it before anything is
computed. JSON numbers are decimal with 17 significant digits, which gives back the same doubles.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from llr_cvx import archive, checker
from llr_cvx import validation as check
from llr_cvx.arrays import FloatArray
from llr_cvx.problem import Problem
from llr_cvx.proofs.certificate import Certificate, certificate


def certificate_arrays(cert: Certificate, W: ArrayLike) -> dict[str, FloatArray]:
    """The entries of the format for a certificate of W."""
    return {
        "W": check.weight_matrix(W, (len(cert.alpha), cert.U.shape[1])),
        "alpha": cert.alpha,
        "U": cert.U,
        "primal": np.asarray(cert.primal + cert.rounding),
        "dual": np.asarray(cert.dual),
    }


def problem_arrays(problem: Problem) -> dict[str, FloatArray]:
    """The entries of a problem as `llr_cvx.checker` wants them."""
    return {name: np.asarray(getattr(problem, name), dtype=float) for name in checker.PROBLEM}


def save_certificate(path: str | Path, cert: Certificate, W: ArrayLike) -> None:
    """Write a certificate and its W to `path`, as .json or .npz by its ending.

    >>> import tempfile
    >>> from llr_cvx import certify
    >>> p = Problem([[1.0], [2.0]], [1, -1], [[0, 1]], [1.0], lambda1=0.5, lambda2=1.0)
    >>> W = [[0.1], [-0.1]]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_certificate(f"{folder}/mine.json", certify(p, W), W)
    ...     back, W_back = load_certificate(f"{folder}/mine.json", p)
    >>> W_back.tolist()
    [[0.1], [-0.1]]
    """
    arrays = certificate_arrays(cert, W)
    if _is_json(path):
        with archive.replacing(path, "w", encoding="utf-8") as stream:
            json.dump({name: array.tolist() for name, array in arrays.items()}, stream)
    else:
        archive.save(path, arrays)


def load_certificate(path: str | Path, problem: Problem) -> tuple[Certificate, FloatArray]:
    """Read (certificate, W); its values are recomputed, the claims in the file are not used.

    Raises FileNotFoundError, or ValueError for any other file that is not a certificate of this problem.
    """
    _is_json(path)
    try:
        arrays = checker.read(str(path), checker.CERTIFICATE)
    except FileNotFoundError:
        raise FileNotFoundError(f"{path} does not exist") from None
    except Exception as error:  # damaged bytes can make zipfile, zlib, json and NumPy raise almost anything
        raise ValueError(f"{path} is not a readable certificate: {error}") from error
    W = check.weight_matrix(arrays["W"], problem.shape)
    U = arrays["U"].reshape(-1, problem.shape[1]) if arrays["U"].size == 0 else arrays["U"]
    return certificate(problem, W, arrays["alpha"], U), W


def _is_json(path: str | Path) -> bool:
    suffix = Path(path).suffix.lower()
    if suffix not in (".json", ".npz"):
        raise ValueError(f"{path}: a certificate is a .json or an .npz file, got the ending {suffix!r}")
    return suffix == ".json"
