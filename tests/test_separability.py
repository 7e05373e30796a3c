"""Separability, and with it whether J has a minimiser for lambda2 = 0: right at every scale, never by a guess."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import special_ortho_group
from sizes import thinned

import llr_cvx as llr
from llr_cvx import separability
from llr_cvx.instances.generators import chain
from llr_cvx.separability import separable


def attained(Z: np.ndarray) -> bool:
    """Whether J has a minimiser for connected samples with y_i x_i = z_i and lambda2 = 0."""
    Z = np.asarray(Z, dtype=float)
    y = np.where(np.arange(len(Z)) % 2, -1.0, 1.0)
    return llr.Problem(y[:, None] * Z, y, chain(len(Z)), np.ones(len(Z) - 1), lambda1=1.0, lambda2=0.0).attained


def scaled(Z: np.ndarray, rng: np.random.Generator, spread: int) -> np.ndarray:
    """Rows and columns times powers of two, which is exact: the answer stays the same."""
    N, d = Z.shape
    return np.ldexp(np.ldexp(Z, rng.integers(-spread, spread + 1, (1, d))), rng.integers(-spread, spread + 1, (N, 1)))


def planted(seed: int, spread: int) -> tuple[np.ndarray, np.ndarray]:
    """Integer rows with a separating direction, most of them on its plane; and with rows that exclude every one."""
    rng = np.random.default_rng(seed)
    N, d = int(rng.integers(3, 14)), int(rng.integers(1, 6))
    v = rng.integers(-3, 4, d)
    v[0] = 1
    Z = rng.integers(-9, 10, (N, d))
    Z[:, 0] = np.where(rng.random(N) < 0.7, 0, rng.integers(0, 3, N)) - Z[:, 1:] @ v[1:]
    Z[0, 0] = 1 - Z[0, 1:] @ v[1:]
    assert (Z @ v).min() >= 0 < (Z @ v).max()
    opposed = np.vstack([Z, -rng.integers(1, 9, N) @ Z])  # sum_i mu_i z_i = 0 with all mu_i > 0
    return scaled(Z.astype(float), rng, spread), scaled(opposed.astype(float), rng, spread)


@pytest.mark.parametrize("spread", [0, 6, 20, 40])
@pytest.mark.parametrize("seed", thinned(range(25), 5))
def test_planted_answers_are_found_at_every_scale(seed: int, spread: int) -> None:
    yes, no = planted(seed, spread)
    assert not attained(yes)
    assert attained(no)


@pytest.mark.parametrize("small", [1e-4, 1e-8, 1e-10, 1e-12, 1e-15, 1e-100])
def test_a_small_feature_separates(small: float) -> None:
    p = llr.Problem([[1, small], [1, -small]], [1, -1], [[0, 1]], [1.0], 1.0, 0.0)
    assert not p.attained
    for solve in (llr.solve_irls, llr.solve_exact):
        with pytest.raises(ValueError, match=r"lambda2 = 0 and the 2 connected sample.*separable"):
            solve(p)
    twice = llr.Problem([[1, small], [1, -small], [1, small]], [1, -1, -1], chain(3), np.ones(2), 1.0, 0.0)
    assert not twice.attained  # the first and the last row lie on the plane, the second beside it
    assert attained([[1, small], [-1, small], [0, -small]])
    assert attained([[1, small], [-1, small], [1, -small], [-1, -small]])


@pytest.mark.parametrize("e", [2.0**-20, 2.0**-40, 2.0**-50, 2.0**-52])
def test_columns_that_are_almost_dependent(e: float) -> None:
    """v = (-1, 1) alone separates the first two rows; the third decides, and no scaling of columns helps."""
    pair = [[1, 1 + e], [-1, -1 + e]]
    assert not attained(pair)
    assert not attained([*pair, [-1, 1]])
    assert not attained([*pair, [1, 1]])
    assert attained([*pair, [1, -1]])
    assert attained([*pair, [1, 1], [-1, -1 - e]])


@pytest.mark.parametrize("seed", range(20))
def test_near_misses_of_a_rotated_cone(seed: int) -> None:
    """A narrow cone around the first row of Q separates; one more row keeps it or excludes it."""
    rng = np.random.default_rng(seed)
    Q = special_ortho_group.rvs(4, random_state=rng)
    Z = np.column_stack([np.full(12, 1e-12), np.vstack([np.eye(3), -np.eye(3), rng.standard_normal((6, 3))])]) @ Q
    Z *= 10.0 ** rng.uniform(-12, 12, (12, 1))
    assert not attained(Z)
    assert not attained(np.vstack([Z, Q[:1]]))
    assert attained(np.vstack([Z, -Q[:1]]))


@pytest.mark.long
def test_both_ways_to_the_answer_agree() -> None:
    rng = np.random.default_rng(0)
    undecided = 0
    for _ in range(150):
        N, d = rng.integers(1, 20), rng.integers(1, 6)
        Z = [rng.standard_normal((N, d)), rng.integers(-2, 3, (N, d)).astype(float)][rng.integers(2)]
        robust = separability._robustly(Z)
        assert robust in (None, separability._exactly(Z))
        undecided += robust is None
    assert undecided < 15


def test_nothing_separates_nothing() -> None:
    assert not separable(np.zeros((3, 2)))
    assert separable(np.array([[0.0, 0.0], [0.0, 1e-300]]))
    assert not separable(np.array([[1e150, 1e-170], [-1e150, -1e-170]]))
    assert separable(np.array([[1e150, 1e-170], [-1e150, 1e-170]]))


def test_a_linear_programme_that_fails_decides_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    class Failed:
        status = 4

    monkeypatch.setattr(separability, "linprog", lambda *_args, **_options: Failed)
    assert separable(np.array([[1.0, 1.0], [-1.0, 1.0]]))
    assert not separable(np.array([[1.0, 1.0], [-1.0, 1.0], [0.0, -1.0]]))


def test_one_hot_columns_with_a_constant_are_dependent_and_decided() -> None:
    rng = np.random.default_rng(0)
    y = rng.choice([-1.0, 1.0], 60)
    X = np.column_stack([np.ones(60), np.eye(3)[rng.integers(0, 3, 60)], rng.standard_normal((60, 2))])
    assert attained(y[:, None] * X)
    assert not attained(np.sign(X @ [0.0, 0.1, 0.2, 0.3, 1.0, 1.0])[:, None] * X)
