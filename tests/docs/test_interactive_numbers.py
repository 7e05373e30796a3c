"""docs/interactive/llr.js, run in a browser, computes what the package computes."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browser import run_script

import llr_cvx as llr
from llr_cvx.proofs.certificate import dual_objective
from llr_cvx.solvers.irls import plain_step
from llr_cvx.solvers.smoothing import smoothed

FOLDER = Path(__file__).parents[2] / "docs" / "interactive"
#: (lambda1, lambda2): hardly any coupling, some, much; the last one fuses every row.
PENALTIES = [(0.001, 1.0), (0.03, 0.1), (0.1, 1.0), (0.3, 0.02), (1.0, 0.1), (10.0, 3.0), (10.0, 0.1)]
EPSILONS = [1.0, 0.05, 1e-4]
TOL = 1e-8

#: For each penalty: values at a given W and V for each epsilon, and the solution.
PROGRAM = """
PENALTIES.map(([lambda1, lambda2]) => {
  const p = { ...INSTANCE, lambda1, lambda2 };
  const at = EPSILONS.map((epsilon) => {
    const here = LLR.smoothed(p, W, epsilon), above = LLR.majoriser(p, W, epsilon);
    return {
      J: here.objective, J_epsilon: here.value, gradient: here.gradient, dual: LLR.dual(p, here.alpha, here.U),
      touches: above.value(W), above: above.value(V), step: LLR.irlsStep(p, W, epsilon),
      slice: above.minimiser([[13, 0], [13, 1]]),
    };
  });
  const s = LLR.solve(p);
  return { at, s, structure: LLR.structure(p, s.W) };
})
"""


def instance() -> dict[str, Any]:
    """instance.js as the browser reads it: keys without quotes, else JSON."""
    text = (FOLDER / "instance.js").read_text(encoding="utf-8")
    return {key: json.loads(value) for key, value in re.findall(r"^  (\w+): (.*),$", text, re.MULTILINE)}


def problem(lambda1: float, lambda2: float) -> llr.Problem:
    return llr.Problem(**instance(), lambda1=lambda1, lambda2=lambda2)


@cache
def two_points() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    shape = np.shape(instance()["X"])
    W = np.round(rng.normal(size=shape), 2)
    W[2] = W[5]  # an edge of length 0, and a weight of 0
    W[3, 1] = 0.0
    return W, np.round(rng.normal(size=shape), 2)


@pytest.fixture(scope="module")
def computed(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    W, V = two_points()
    given = {"PENALTIES": PENALTIES, "EPSILONS": EPSILONS, "W": W.tolist(), "V": V.tolist()}
    constants = "".join(f"const {name} = {json.dumps(value)};" for name, value in given.items())
    scripts = "".join(f'<script src="{(FOLDER / name).as_uri()}"></script>' for name in ("instance.js", "llr.js"))
    return run_script(tmp_path_factory.mktemp("llr"), f"{scripts}<script>{constants}</script>", PROGRAM)


def quadratic(p: llr.Problem, W: np.ndarray, V: np.ndarray, epsilon: float) -> tuple[float, np.ndarray]:
    """The majoriser at V by its Taylor series about W, and its matrix: another way than that of the page."""
    at = smoothed(p, W, epsilon)
    m = p.y * p.scores(W)
    N, d = p.shape
    H = np.zeros((N, d, N, d))
    for (i, j), c in zip(p.edges, p.radii / at.a, strict=True):
        for r, s, sign in ((i, i, 1), (j, j, 1), (i, j, -1), (j, i, -1)):
            H[r, :, s, :] += sign * c * np.eye(d)
    for i in range(N):
        H[i, :, i, :] += np.tanh(m[i] / 2) / (2 * m[i]) * np.outer(p.X[i], p.X[i])
        H[i, :, i, :] += np.diag(2 * p.lambda2 * at.S[i] / at.b[i])
    H = H.reshape(N * d, N * d)
    step = (V - W).ravel()
    return at.value + at.gradient.ravel() @ step + 0.5 * step @ H @ step, H


@pytest.mark.parametrize("k", range(len(PENALTIES)), ids=[f"{a:g}-{b:g}" for a, b in PENALTIES])
def test_values_and_steps(computed: list[dict[str, Any]], k: int) -> None:
    p, (W, V) = problem(*PENALTIES[k]), two_points()
    for epsilon, found in zip(EPSILONS, computed[k]["at"], strict=True):
        at = smoothed(p, W, epsilon)
        above, H = quadratic(p, W, V, epsilon)
        expected = {
            "J": p.objective(W),
            "J_epsilon": at.value,
            "gradient": at.gradient,
            "dual": dual_objective(p, at.alpha, p.radii[:, None] * at.d_hat),
            "touches": at.value,
            "above": above,
            "step": W - np.linalg.solve(H, at.gradient.ravel()).reshape(W.shape),
        }
        for name, value in expected.items():
            np.testing.assert_allclose(found[name], value, rtol=TOL, atol=TOL, err_msg=f"{name}, epsilon = {epsilon}")
        plain = plain_step(p, at, 1e-13)
        assert plain is not None
        np.testing.assert_allclose(found["step"], plain.W, rtol=TOL, atol=TOL)
        pair = [13 * 3, 13 * 3 + 1]
        part = W.copy()
        part[13, :2] -= np.linalg.solve(H[np.ix_(pair, pair)], at.gradient[13, :2])
        np.testing.assert_allclose(found["slice"], part, rtol=TOL, atol=TOL)


@pytest.mark.parametrize("k", range(len(PENALTIES)), ids=[f"{a:g}-{b:g}" for a, b in PENALTIES])
def test_solutions(computed: list[dict[str, Any]], k: int) -> None:
    p, found = problem(*PENALTIES[k]), computed[k]["s"]
    best = llr.solve_fast(p, tol=1e-12)
    W, alpha, U = (np.array(found[name]) for name in ("W", "alpha", "U"))
    assert found["objective"] == pytest.approx(p.objective(W), rel=TOL)
    assert found["objective"] == pytest.approx(best.objective, rel=TOL)
    assert found["dual"] == pytest.approx(dual_objective(p, alpha, U), rel=TOL)
    assert found["dual"] == pytest.approx(best.certificate.dual, rel=TOL)
    assert (np.linalg.norm(U, axis=1) <= p.radii * (1 + 1e-12)).all()
    np.testing.assert_allclose(p.scores(W), p.scores(best.W), atol=1e-5)
    assert llr.verify(p, W, tol=TOL).accepted


@pytest.mark.parametrize("k", range(len(PENALTIES)), ids=[f"{a:g}-{b:g}" for a, b in PENALTIES])
def test_zeros_and_clusters(computed: list[dict[str, Any]], k: int) -> None:
    p, found = problem(*PENALTIES[k]), computed[k]["structure"]
    best = llr.solve_fast(p, tol=1e-12)
    assert (~np.array(found["zero"]) == best.support).all()
    pairs = set(zip(found["cluster"], best.clusters.tolist(), strict=True))
    assert len(pairs) == len(set(found["cluster"])) == len(set(best.clusters.tolist()))
