"""Ball arithmetic: what it reports is a proof, so every interval must contain the exact value."""

import builtins
import math
import time
from fractions import Fraction

import numpy as np
import pytest
from builders import is_exactly_feasible

import llr_cvx as llr
from llr_cvx.instances import load_instance
from llr_cvx.instances.drill import hostile_problem
from llr_cvx.proofs import ball_arithmetic
from llr_cvx.proofs.ball_arithmetic import enclose, exactly_feasible


def fraction_parts(problem, W, alpha, U):
    """Exact rationals: scores, ||w_i||_1, squared edge lengths, ||v_i||_inf."""
    F = [[Fraction(x) for x in row] for row in W.tolist()]
    X = [[Fraction(x) for x in row] for row in problem.X.tolist()]
    scores = [sum(a * b for a, b in zip(x, w, strict=True)) for x, w in zip(X, F, strict=True)]
    sizes = [sum(map(abs, w)) for w in F]
    squares = [sum((a - b) ** 2 for a, b in zip(F[i], F[j], strict=True)) for i, j in problem.edges.tolist()]
    v = [[-Fraction(a) * int(y) * x for x in row] for a, y, row in zip(alpha, problem.y, X, strict=True)]
    for (i, j), u in zip(problem.edges.tolist(), U.tolist(), strict=True):
        for k, x in enumerate(u):
            v[i][k] += Fraction(x)
            v[j][k] -= Fraction(x)
    return scores, sizes, squares, [max(map(abs, row)) for row in v]


@pytest.mark.parametrize("name", ["pair-apart", "islands", "zeros", "bad-scales", "planted-clusters"])
def test_values_agree_with_exact_rational_arithmetic(name):
    """Sums in exact fractions, the transcendental functions in doubles: the ball must lie within their error."""
    instance = load_instance(name)
    p, W = instance.problem, instance.W
    proof = enclose(p, W, instance.alpha, instance.U)
    scores, sizes, squares, v_max = fraction_parts(p, W, proof.alpha, proof.U)
    J = math.fsum(
        [math.log1p(math.exp(-abs(float(z)))) + max(-int(y) * float(z), 0.0) for z, y in zip(scores, p.y, strict=True)]
        + [float(Fraction(p.lambda2) * a**2) for a in sizes]
        + [p.lambda1 * w * math.sqrt(s) for s, w in zip(squares, p.weights, strict=True)]
    )
    a = proof.alpha[(proof.alpha > 0) & (proof.alpha < 1)].tolist()
    H = math.fsum(-x * math.log(x) - (1 - x) * math.log1p(-x) for x in a)
    D = H - float(sum(m**2 for m in v_max) / (4 * Fraction(p.lambda2)))
    slack = 1e-14 * J
    assert proof.primal_low - slack <= J <= proof.primal_high + slack
    assert proof.dual_low - slack <= D <= proof.dual_high + slack
    assert proof.primal_high - proof.primal_low <= 4 * math.ulp(J)
    assert proof.dual_high - proof.dual_low <= 4 * math.ulp(J)


def test_known_value_is_enclosed_to_one_ulp():
    """J(0) = N log 2; D at alpha = 1/2, U = 0 in closed form."""
    p = llr.Problem([[1.0], [2.0]], [1, -1], [[0, 1]], [1.0], lambda1=0.3, lambda2=1.0)
    proof = enclose(p, np.zeros((2, 1)), [0.5, 0.5], [[0.0]])
    two_log_two = 2 * math.log(2)
    assert proof.primal_low <= two_log_two <= proof.primal_high
    assert proof.primal_high <= math.nextafter(proof.primal_low, math.inf)
    assert proof.dual_low <= two_log_two - (0.25 + 1.0) / 4 <= proof.dual_high
    assert proof.gap >= proof.primal_high - proof.dual_low


def test_doubles_lie_outside_the_ball_that_they_enclose():
    flint = pytest.importorskip("flint")
    with ball_arithmetic._precision(flint):
        for k in range(1, 60):
            low, high = ball_arithmetic._outwards(flint.arb(k) / 49, flint)
            assert Fraction(low) <= Fraction(k, 49) <= Fraction(high)
            assert high <= math.nextafter(low, math.inf)


def test_the_gap_is_rounded_upwards():
    proof = ball_arithmetic.Enclosure(-(2.0**-60), 0.0, 1.0, 1.0, np.zeros(1), np.zeros((0, 1)))
    assert Fraction(proof.gap) >= 1 + Fraction(1, 2**60)


def test_a_far_point_is_projected_onto_its_ball_and_not_to_its_centre():
    p = llr.Problem([[1.0], [2.0]], [1, -1], [[0, 1]], [1.0], lambda1=0.3, lambda2=1.0)
    for length in (0.31, 0.6, 1e6):
        assert exactly_feasible(p, [0.5, 0.5], [[length]])[1][0, 0] == pytest.approx(0.3, rel=1e-12)


def test_the_precision_of_the_caller_comes_back():
    flint = pytest.importorskip("flint")
    before = flint.ctx.prec
    p = llr.Problem([[1.0], [2.0]], [1, -1], [[0, 1]], [1.0], lambda1=0.3, lambda2=1.0)
    enclose(p, np.zeros((2, 1)), [0.5, 0.5], [[0.0]])
    assert flint.ctx.prec == before != ball_arithmetic.PRECISION


def test_dual_point_is_made_feasible_in_exact_arithmetic():
    """Norms equal to the radius up to rounding: in doubles they look feasible, in exact arithmetic many are not."""
    rng = np.random.default_rng(0)
    p = load_instance("large").problem
    U = rng.standard_normal((len(p.edges), p.shape[1]))
    U *= (p.radii / np.linalg.norm(U, axis=1))[:, None]
    alpha = rng.uniform(-0.5, 1.5, p.shape[0])
    assert not is_exactly_feasible(p, np.clip(alpha, 0, 1), U)
    a, u = exactly_feasible(p, alpha, U)
    assert is_exactly_feasible(p, a, u)
    np.testing.assert_allclose(u, U, rtol=1e-13)


def test_exact_feasibility_does_not_rest_on_the_floating_point_projection(monkeypatch):
    """Take the projection away: the exact test alone must shrink what is outside, by little or by much."""
    monkeypatch.setattr("llr_cvx.proofs.ball_arithmetic.feasible", lambda problem, alpha, U: (alpha, U.copy()))
    p = load_instance("islands").problem
    rng = np.random.default_rng(1)
    U = rng.standard_normal((len(p.edges), p.shape[1]))
    U *= (p.radii / np.linalg.norm(U, axis=1))[:, None] * rng.choice([0.5, 1.0, 1.0 + 1e-12, 3.0], len(U))[:, None]
    alpha = np.full(p.shape[0], 0.5)
    assert not is_exactly_feasible(p, alpha, U)
    assert is_exactly_feasible(p, *exactly_feasible(p, alpha, U))


def test_a_dual_point_that_is_feasible_is_left_alone():
    """On the very boundary of each ball: ||(3, 4)|| = 5."""
    p = llr.Problem(np.eye(2), [1, -1], [[0, 1]], [5.0], lambda1=2.0, lambda2=1.0)
    _, u = exactly_feasible(p, [0.5, 0.5], [[6.0, 8.0]])
    assert u.tolist() == [[6.0, 8.0]]


def test_far_infeasible_dual_point_still_gives_a_true_bound():
    instance = load_instance("fused-some")
    proof = enclose(instance.problem, instance.W, 3.0 * instance.alpha, 50.0 * instance.U)
    assert is_exactly_feasible(instance.problem, proof.alpha, proof.U)
    assert 0.0 <= proof.dual_low <= instance.upper


def test_radius_that_is_tiny_or_zero():
    p = llr.Problem([[1.0], [2.0], [3.0]], [1, -1, 1], [[0, 1], [1, 2]], [0.0, 5e-324], lambda1=0.3, lambda2=1.0)
    a, u = exactly_feasible(p, np.full(3, 0.5), np.ones((2, 1)))
    assert is_exactly_feasible(p, a, u)
    assert not u.any()


@pytest.mark.parametrize("seed", range(0, 40, 4))
def test_floats_lie_near_the_proof_on_hostile_problems(seed):
    p = hostile_problem(seed)
    rng = np.random.default_rng(seed)
    W = rng.standard_normal(p.shape) / np.abs(p.X).max()
    c = llr.certify(p, W)
    proof = enclose(p, W, c.alpha, c.U)
    assert proof.primal_low * (1 - 1e-12) <= c.primal <= proof.primal_high * (1 + 1e-12)
    assert proof.dual_low <= proof.primal_high


def test_huge_numbers_neither_overflow_nor_hang():
    p = llr.Problem([[1e150], [1.0]], [1, -1], [[0, 1]], [1.0], lambda1=1.0, lambda2=1.0)
    proof = enclose(p, [[-1e150], [0.0]], [0.5, 0.5], [[0.0]])
    assert proof.dual_low == 0.0
    assert proof.primal_low == pytest.approx(2e300)
    beyond = enclose(p, [[1e200], [0.0]], [0.5, 0.5], [[0.0]])
    assert beyond.primal_high == np.inf
    assert beyond.relative_gap == np.inf


def test_without_the_exclusive_penalty_the_bound_is_zero():
    p = llr.Problem([[1.0], [1.0]], [1, -1], [[0, 1]], [1.0], lambda1=1.0, lambda2=0.0)
    proof = enclose(p, np.zeros((2, 1)), [0.5, 0.5], [[0.5]])
    assert proof.dual_low == 0.0
    assert "proved in ball arithmetic" in str(proof)


def test_paper_size_within_a_minute():
    """N = 310, d = 50."""
    instance = load_instance("paper-d50")
    assert instance.problem.shape == (310, 50)
    began = time.perf_counter()
    proof = enclose(instance.problem, instance.W, instance.alpha, instance.U)
    assert time.perf_counter() - began < 60
    assert proof.relative_gap <= 1e-9


def test_missing_extra_is_named(monkeypatch):
    real = builtins.__import__

    def without_flint(name, *args, **kwargs):
        if name == "flint":
            raise ImportError
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without_flint)
    p = llr.Problem([[1.0], [1.0]], [1, -1], [], [], lambda1=0.0, lambda2=1.0)
    with pytest.raises(ImportError, match=r"pip install .*\[rigorous\]\""):
        enclose(p, np.zeros((2, 1)), [0.5, 0.5], np.zeros((0, 1)))
