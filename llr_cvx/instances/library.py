"""Load, build and store the instances: the problem, a reference W and dual point, and the proven interval of J*.

A small instance is stored whole. Of a large one the package holds only the interval, a digest of the problem for which
it was proved, and the sizes of the active set: the samples are generated anew whenever it is loaded, and the reference
point is solved for when it is asked for.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from llr_cvx import archive, checker
from llr_cvx.arrays import FloatArray
from llr_cvx.instances.planted import Planted
from llr_cvx.instances.recipes import RECIPES
from llr_cvx.oracles import solve_decoupled
from llr_cvx.problem import Problem
from llr_cvx.proofs.ball_arithmetic import enclose
from llr_cvx.proofs.certificate import Certificate, certificate
from llr_cvx.solvers.fast.solver import solve_fast

#: Where the package stores its instances.
DATA_DIR = Path(__file__).parent / "data"

#: Largest relative width (upper - lower) / upper of an instance.
MAX_RELATIVE_WIDTH = 1e-9

#: Relative gap to which reference points are solved, and the smaller one of those that are stored.
REFERENCE_GAP, STORED_GAP = MAX_RELATIVE_WIDTH / 10, 1e-13

#: The interval of an instance that is not stored whole is widened by this share of its upper end on both sides: any
#: point of gap REFERENCE_GAP then proves it again, on any machine.
MARGIN = 2 * REFERENCE_GAP

#: What is stored of an instance: whole, or what is claimed about a problem that is generated anew.
_WHOLE = (*checker.PROBLEM, "W", "alpha", "U", "lower", "upper")
_CLAIMS = ("lower", "upper", "active", "fused", "digest")


class ReferencePoint(NamedTuple):
    """A solution W and a dual point (alpha, U), feasible in exact arithmetic, that prove an interval of J*."""

    W: FloatArray
    alpha: FloatArray
    U: FloatArray


@dataclass(frozen=True, eq=False)
class Instance:
    """A problem with proven bounds on its optimal value.

    Attributes
    ----------
    name, description : str
    problem : Problem
    lower, upper : float
        lower <= J* <= upper, proved in ball arithmetic: lower <= D(alpha, U) and J(W) <= upper.
    active, fused : float
        Share of the entries of the reference W that are not zero, and of the edges along which it is constant; the
        optimal W need not be unique. `fused` is NaN without edges.
    stored : ReferencePoint or None
        The reference point, unless it has to be solved for.
    W, alpha, U : arrays of shapes (N, d), (N,) and (E, d)
        The reference point; for a large instance the first use takes a solve, up to half a minute for N = 5,000.
    """

    name: str
    description: str
    problem: Problem
    lower: float
    upper: float
    active: float
    fused: float
    stored: ReferencePoint | None = field(default=None, repr=False)

    @cached_property
    def point(self) -> ReferencePoint:
        """The reference point, stored or solved for."""
        return self.stored or reference_point(self.problem)

    @property
    def W(self) -> FloatArray:
        """Reference solution."""
        return self.point.W

    @property
    def alpha(self) -> FloatArray:
        """Dual point of the logistic terms."""
        return self.point.alpha

    @property
    def U(self) -> FloatArray:
        """Dual point of the edges."""
        return self.point.U

    @property
    def relative_width(self) -> float:
        """(upper - lower) / upper."""
        return (self.upper - self.lower) / self.upper

    @property
    def certificate(self) -> Certificate:
        """The certificate of the reference W."""
        return certificate(self.problem, *self.point)

    @cached_property
    def facts(self) -> dict[str, Any]:
        """What is known about it, in plain numbers and words, without solving anything."""
        names = {"name": self.name, "description": self.description}
        claims = {"lower": self.lower, "upper": self.upper, "active": self.active, "fused": self.fused}
        return names | sizes(self.problem) | claims


def sizes(problem: Problem) -> dict[str, float]:
    """Sizes and penalties of a problem."""
    (N, d), n_edges = problem.shape, len(problem.edges)
    return {"N": N, "d": d, "edges": n_edges, "lambda1": problem.lambda1, "lambda2": problem.lambda2}


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
    """Load one instance from a folder that `write_instance` filled.

    Raises FileNotFoundError if it is not there, ValueError if its file is damaged.
    """
    if name not in RECIPES:
        raise ValueError(f"no instance is called {name!r}: choose one of {', '.join(RECIPES)}")
    path, recipe = Path(folder) / f"{name}.npz", RECIPES[name]
    found = archive.load(path, required=_WHOLE if recipe.stored else _CLAIMS)
    try:
        instance = _stored(name, found) if recipe.stored else _regenerated(name, found)
        if not -np.inf < instance.lower <= instance.upper < np.inf:
            raise ValueError(f"J* cannot lie between {instance.lower!r} and {instance.upper!r}")
        if instance.stored is not None and not instance.certificate.dual <= instance.upper:
            raise ValueError(f"its own dual point proves more than {instance.upper!r}")
    except (TypeError, ValueError) as error:
        raise ValueError(f"{path} is not a valid instance: {error}") from error
    return instance


def _stored(name: str, found: dict[str, NDArray[Any]]) -> Instance:
    """From a file that holds the problem and its reference point."""
    values: dict[str, Any] = {key: value.item() if value.ndim == 0 else value for key, value in found.items()}
    problem = Problem(**{key: values[key] for key in checker.PROBLEM})
    point = ReferencePoint(values["W"], values["alpha"], values["U"])
    return _instance(name, problem, values["lower"], values["upper"], point)


def _regenerated(name: str, found: dict[str, NDArray[Any]]) -> Instance:
    """From a file that holds only what was proved of a problem that its recipe generates."""
    problem, _ = _make(name)
    if digest(problem) != str(found["digest"]):
        raise RuntimeError(
            f"{name}: the samples generated here differ from those whose interval is stored; prove it for these by "
            f"llr-cvx instances regenerate --only {name}"
        )
    lower, upper, active, fused = (float(found[key]) for key in _CLAIMS[:-1])
    return Instance(name, RECIPES[name].description, problem, lower, upper, active, fused)


def _instance(name: str, problem: Problem, lower: float, upper: float, point: ReferencePoint) -> Instance:
    """An instance with its reference point; the sizes of the active set are counted in W."""
    apart = (problem.incidence @ point.W).any(axis=1)
    active, fused = float(np.mean(point.W != 0)), 1.0 - float(np.mean(apart)) if len(apart) else float("nan")
    return Instance(name, RECIPES[name].description, problem, lower, upper, active, fused, point)


def digest(problem: Problem) -> str:
    """SHA-256 of the numbers that define a problem, as little-endian doubles.

    >>> digest(load_instance("pair-apart").problem)[:8]
    'da8e4a92'
    """
    arrays = (np.asarray(getattr(problem, key), dtype="<f8") for key in checker.PROBLEM)
    return hashlib.sha256(b"".join(np.ascontiguousarray(array).tobytes() for array in arrays)).hexdigest()


def _make(name: str) -> tuple[Problem, ReferencePoint | None]:
    """Generate a problem, and its optimum if that is planted."""
    made = RECIPES[name].make()
    return (made.problem, ReferencePoint(*made[1:])) if isinstance(made, Planted) else (made, None)


def reference_point(problem: Problem, gap: float = REFERENCE_GAP) -> ReferencePoint:
    """Solve to a relative gap, in closed form where there is one."""
    if not problem.radii.any():
        W = solve_decoupled(problem)
        return ReferencePoint(W, problem.alpha(W), np.zeros((len(problem.edges), problem.shape[1])))
    solution = solve_fast(problem, tol=gap)
    return ReferencePoint(solution.W, solution.certificate.alpha, solution.certificate.U)


def build_instance(name: str) -> Instance:
    """Generate the problem, solve it and prove its interval, which may be at most `MAX_RELATIVE_WIDTH` wide."""
    problem, planted = _make(name)
    gap, margin = (STORED_GAP, 0.0) if RECIPES[name].stored else (REFERENCE_GAP, MARGIN)
    return _proved(name, problem, planted or reference_point(problem, gap), margin)


def recertify(instance: Instance) -> Instance:
    """Prove the interval of a stored instance again; raise if the proof does not reach the stored bounds."""
    proved = _proved(instance.name, instance.problem, instance.point, 0.0)
    if not instance.lower <= proved.lower <= proved.upper <= instance.upper:
        raise RuntimeError(
            f"{instance.name}: stored interval [{instance.lower!r}, {instance.upper!r}], "
            f"proved [{proved.lower!r}, {proved.upper!r}]"
        )
    return proved


def _proved(name: str, problem: Problem, point: ReferencePoint, margin: float) -> Instance:
    """The instance with the interval that the point proves, widened by `margin` on both sides."""
    proof = enclose(problem, *point)
    wider = margin * proof.primal_high
    lower, upper = proof.dual_low - wider, proof.primal_high + wider
    instance = _instance(name, problem, lower, upper, ReferencePoint(point.W, proof.alpha, proof.U))
    if not instance.relative_width <= MAX_RELATIVE_WIDTH:
        raise RuntimeError(
            f"{name}: the proven interval has relative width {instance.relative_width:.1e} > {MAX_RELATIVE_WIDTH:g}"
        )
    return instance


def write_instance(instance: Instance, folder: str | Path) -> Path:
    """Store an instance as one .npz file in `folder`, whole or, for a large one, its claims only."""
    path = Path(folder) / f"{instance.name}.npz"
    if RECIPES[instance.name].stored:
        held = {key: getattr(instance.problem, key) for key in checker.PROBLEM} | instance.point._asdict()
    else:
        held = {"active": instance.active, "fused": instance.fused, "digest": digest(instance.problem)}
    arrays = {key: np.asarray(value) for key, value in held.items()}
    arrays |= {"lower": np.asarray(instance.lower), "upper": np.asarray(instance.upper)}
    archive.save(path, arrays)
    return path
