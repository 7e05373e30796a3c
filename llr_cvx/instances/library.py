"""Load, build and store the instances: the problem, a reference W and dual point, and the proven interval of J*."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from llr_cvx import archive, checker
from llr_cvx.arrays import FloatArray
from llr_cvx.instances.generators import RECIPES
from llr_cvx.instances.planted import Planted
from llr_cvx.oracles import solve_decoupled
from llr_cvx.problem import Problem
from llr_cvx.proofs.ball_arithmetic import enclose
from llr_cvx.proofs.certificate import Certificate, certificate
from llr_cvx.solvers.fast.solver import solve_fast

#: Where the package stores its instances.
DATA_DIR = Path(__file__).parent / "data"

#: Largest relative width (upper - lower) / upper of an instance.
MAX_RELATIVE_WIDTH = 1e-9

_STORED = ("W", "alpha", "U", "lower", "upper")


@dataclass(frozen=True, eq=False)
class Instance:
    """A problem with proven bounds on its optimal value.

    Attributes
    ----------
    name, description : str
    problem : Problem
    W : array of shape (N, d)
        A reference solution.
    alpha, U : arrays of shapes (N,) and (E, d)
        A dual point, feasible in exact arithmetic.
    lower, upper : float
        lower <= J* <= upper, proved in ball arithmetic: lower <= D(alpha, U) and J(W) <= upper.
    """

    name: str
    description: str
    problem: Problem
    W: FloatArray = field(repr=False)
    alpha: FloatArray = field(repr=False)
    U: FloatArray = field(repr=False)
    lower: float
    upper: float

    @property
    def relative_width(self) -> float:
        """(upper - lower) / upper."""
        return (self.upper - self.lower) / self.upper

    @property
    def certificate(self) -> Certificate:
        """The certificate of the reference W."""
        return certificate(self.problem, self.W, self.alpha, self.U)


def list_instances() -> list[str]:
    """The names of all instances.

    >>> "paper-d10" in list_instances()
    True
    """
    return list(RECIPES)


def load_instance(name: str) -> Instance:
    """Load one instance by name.

    >>> load_instance("pair-apart").problem
    Problem(N=2, d=1, edges=1, lambda1=0.1, lambda2=0.3)
    """
    return read_instance(name, DATA_DIR)


def read_instance(name: str, folder: str | Path) -> Instance:
    """Load one instance from a folder that `write_instance` filled."""
    if name not in RECIPES:
        raise ValueError(f"no instance is called {name!r}: choose one of {', '.join(RECIPES)}")
    path = Path(folder) / f"{name}.npz"
    stored = archive.load(path, required=(*checker.PROBLEM, *_STORED))
    X, y, edges, weights = (stored[key] for key in ("X", "y", "edges", "weights"))
    problem = Problem(X, y, edges, weights, float(stored["lambda1"]), float(stored["lambda2"]))
    return Instance(
        name=name,
        description=RECIPES[name].description,
        problem=problem,
        W=stored["W"],
        alpha=stored["alpha"],
        U=stored["U"],
        lower=float(stored["lower"]),
        upper=float(stored["upper"]),
    )


def build_instance(name: str) -> Instance:
    """Generate the problem, solve it and prove its interval, which may be at most `MAX_RELATIVE_WIDTH` wide."""
    made = RECIPES[name].make()
    if isinstance(made, Planted):
        return _proved(name, *made)
    if not made.radii.any():
        W = solve_decoupled(made)
        return _proved(name, made, W, made.alpha(W), np.zeros((len(made.edges), made.shape[1])))
    solution = solve_fast(made, tol=MAX_RELATIVE_WIDTH / 10)
    return _proved(name, made, solution.W, solution.certificate.alpha, solution.certificate.U)


def recertify(instance: Instance) -> Instance:
    """Prove the interval of a stored instance again; raise if the proof does not reach the stored bounds."""
    proved = _proved(instance.name, instance.problem, instance.W, instance.alpha, instance.U)
    if not instance.lower <= proved.lower <= proved.upper <= instance.upper:
        raise RuntimeError(
            f"{instance.name}: stored interval [{instance.lower!r}, {instance.upper!r}], "
            f"proved [{proved.lower!r}, {proved.upper!r}]"
        )
    return proved


def _proved(name: str, problem: Problem, W: FloatArray, alpha: FloatArray, U: FloatArray) -> Instance:
    proof = enclose(problem, W, alpha, U)
    instance = Instance(
        *(name, RECIPES[name].description, problem, W, proof.alpha, proof.U, proof.dual_low, proof.primal_high)
    )
    if not instance.relative_width <= MAX_RELATIVE_WIDTH:
        raise RuntimeError(
            f"{name}: the proven interval has relative width {instance.relative_width:.1e} > {MAX_RELATIVE_WIDTH:g}"
        )
    return instance


def write_instance(instance: Instance, folder: str | Path) -> Path:
    """Store an instance as one .npz file in `folder`."""
    path = Path(folder) / f"{instance.name}.npz"
    arrays = {key: np.asarray(getattr(instance.problem, key)) for key in checker.PROBLEM}
    arrays |= {key: np.asarray(getattr(instance, key)) for key in _STORED}
    archive.save(path, arrays)
    return path
