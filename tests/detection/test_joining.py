"""New rows joining the model: every certificate rechecked, an independent solver, closed forms, hostile data."""

from __future__ import annotations

from decimal import Decimal, localcontext

import cvxpy as cp
import numpy as np
import pytest
from builders import entropy_of
from sizes import in_long, thinned

from llr_cvx.detection import joining
from llr_cvx.detection.joining import JOIN_TOL, join_rows
from llr_cvx.detection.row_problems import TINY, Dual, RowProblems, proven_by_u, share
from llr_cvx.oracles import decoupled_weight


def draw(kind, seed=0, M=60, K=5, d=7):
    rng = np.random.default_rng(seed)
    x, anchors = rng.normal(size=(M, d)), rng.normal(size=(M, K, d)) * rng.choice([0.05, 1.0], size=(M, 1, 1))
    radii = rng.choice([0.01, 0.1, 1.0, 10.0], size=(M, 1)) * rng.random((M, K))
    if kind == "sparse":
        anchors *= rng.random(anchors.shape) < 0.2
    elif kind == "equal anchors":
        anchors[:, 1:3] = anchors[:, :1]
    elif kind == "zero anchors":
        anchors[:] = 0.0
    elif kind == "one anchor":
        anchors, radii = anchors[:, :1], radii[:, :1]
    elif kind == "one feature":
        x, anchors = x[:, :1], anchors[:, :, :1]
    elif kind == "uneven radii":
        radii = 10.0 ** rng.uniform(-200, 1, size=radii.shape)
    elif kind == "no coupling":
        radii[:] = 0.0
    elif kind == "zero rows":
        x[:] = 0.0
    elif kind == "large entries":
        x[:, 0] *= 10.0 ** rng.uniform(0, 4, size=M)
    elif kind == "tied entries":
        x = np.sign(x)
        anchors = np.round(anchors)
    return x, anchors, radii


KINDS = [
    "plain",
    "sparse",
    "equal anchors",
    "zero anchors",
    "one anchor",
    "one feature",
    "uneven radii",
    "no coupling",
    "zero rows",
    "large entries",
    "tied entries",
]


def slow_objective(x, anchors, radii, lambda2, w):
    coupling = sum(c * np.sqrt(((w - a) ** 2).sum()) for c, a in zip(radii, anchors, strict=True))
    return np.logaddexp(0.0, w @ x) + coupling + lambda2 * np.abs(w).sum() ** 2


def slow_dual(x, anchors, lambda2, alpha, U):
    v = alpha * x + U.sum(axis=0)
    return entropy_of(alpha) - (U * anchors).sum() - np.abs(v).max() ** 2 / (4.0 * lambda2)


def exact_gap(x, anchors, radii, lambda2, w, alpha, U, V, least=0):
    """(J - D) / max(J, least) computed exactly, for v as U has it, or V with the strongest anchor's u as V has it."""
    with localcontext() as context:
        context.prec = 500
        x, w, V = ([Decimal(t) for t in a.tolist()] for a in (x, w, V))
        anchors, U = ([[Decimal(t) for t in row] for row in a.tolist()] for a in (anchors, U))
        radii, lambda2, alpha = [Decimal(t) for t in radii.tolist()], Decimal(lambda2), Decimal(float(alpha))

        def size(a):
            return sum(t * t for t in a).sqrt()

        def inner(a, b):
            return sum(s * t for s, t in zip(a, b, strict=True))

        def dual(U, v):
            if any(size(u) > c for u, c in zip(U, radii, strict=True)):
                return Decimal("-Infinity")
            H = -sum(p * p.ln() for p in (alpha, 1 - alpha) if p > 0)
            return H - sum(map(inner, U, anchors)) - max(map(abs, v)) ** 2 / (4 * lambda2)

        z, distances = inner(w, x), [size([s - t for s, t in zip(w, a, strict=True)]) for a in anchors]
        loss = z if z > 2000 else (1 + z.exp()).ln()
        J = loss + inner(radii, distances) + lambda2 * sum(map(abs, w)) ** 2
        v = [alpha * x[k] + sum(u[k] for u in U) for k in range(len(x))]
        strongest = radii.index(max(radii))
        implied = [t + a - b for t, a, b in zip(U[strongest], V, v, strict=True)]
        moved = [implied if j == strongest else u for j, u in enumerate(U)]
        return float((J - max(dual(U, v), dual(moved, V))) / max(J, least))


@pytest.mark.parametrize("lambda2", thinned([0.01, 1.0, 100.0], 3))
@pytest.mark.parametrize("kind", KINDS)
def test_every_row_is_proved_and_the_proof_can_be_rechecked(kind, lambda2):
    x, anchors, radii = draw(kind)
    found = join_rows(x, anchors, radii, lambda2)
    assert found.relative_gap.max() <= JOIN_TOL <= 1e-8
    assert np.all(np.hypot.reduce(found.U, axis=2) <= radii)
    assert np.all((found.alpha >= 0) & (found.alpha <= 1))
    for m in range(len(x)):
        J = slow_objective(x[m], anchors[m], radii[m], lambda2, found.W[m])
        D = slow_dual(x[m], anchors[m], lambda2, found.alpha[m], found.U[m])
        assert J - D <= 1.1e-9 * J + 1e-14
        assert J - D == pytest.approx(found.relative_gap[m] * J, abs=1e-13 * (1.0 + J))
    own = found.alpha[:, None] * x
    assert np.all(np.abs(own + found.U.sum(axis=1) - found.V) <= 4e-15 * (np.abs(own) + np.abs(found.U).sum(axis=1)))


@pytest.mark.parametrize("kind", ["plain", in_long("sparse"), in_long("equal anchors"), "tied entries"])
def test_an_independent_solver_agrees(kind):
    x, anchors, radii = draw(kind, seed=1, M=3)
    for lambda2 in (0.01, 1.0):
        found = join_rows(x, anchors, radii, lambda2)
        for m in range(len(x)):
            w = cp.Variable(x.shape[1])
            coupling = sum(c * cp.norm(w - a) for c, a in zip(radii[m], anchors[m], strict=True))
            J = cp.logistic(w @ x[m]) + coupling + lambda2 * cp.square(cp.norm1(w))
            cp.Problem(cp.Minimize(J)).solve(solver="CLARABEL")
            mine, other = (slow_objective(x[m], anchors[m], radii[m], lambda2, v) for v in (found.W[m], w.value))
            assert other * (1 - 1e-6) <= mine <= other * (1 + 2e-9)
            assert mine * (1 - found.relative_gap[m]) <= other * (1 + 1e-12)  # the bound is below every J
            assert found.W[m] @ x[m] == pytest.approx(w.value @ x[m], abs=1e-3)


def test_a_wrong_weight_vector_is_not_proved():
    """The gap of any w covers its true suboptimality, so a corrupted answer cannot pass."""
    x, anchors, radii = draw("plain")
    rows = RowProblems(x, anchors, radii, np.ones(len(x)), np.ones(len(x)))
    found = join_rows(x, anchors, radii, 1.0)
    D = proven_by_u(rows, Dual(found.alpha, found.U, found.V))
    best = rows.objective(found.W)
    rng = np.random.default_rng(0)
    for size in (1e-3, 1e-1, 1.0):
        wrong = found.W + size * rng.normal(size=found.W.shape)
        J = rows.objective(wrong)
        gap = share(J, D)
        assert np.all(gap * J >= (J - best) * (1 - 1e-6) - 1e-9)
        assert np.median(gap) > JOIN_TOL


def test_selected_features_attain_the_dual_maximum():
    x, anchors, radii = draw("sparse")
    found = join_rows(x, anchors, radii, 1.0)
    size = np.abs(found.V)
    assert np.all(size.max(axis=1) > 0.0)  # also where w = 0, or there would be no order of the features
    weighty = np.abs(found.W) > 1e-3 * np.abs(found.W).max(axis=1, keepdims=True)
    assert np.all((size / size.max(axis=1, keepdims=True))[weighty] > 1 - 1e-4)
    assert 0.05 < np.mean(found.W == 0.0) < 0.95  # exact zeros, not small numbers


def test_strong_coupling_gives_the_anchor_itself_and_none_the_closed_form():
    x, anchors, _ = draw("plain", M=20)
    radii = np.tile([100.0, 1e-3, 1e-3, 1e-3, 1e-3], (20, 1))
    assert np.array_equal(join_rows(x, anchors, radii, 0.1).W, anchors[:, 0])
    alone = join_rows(x, anchors, 0.0 * radii, 0.1).W
    k = np.abs(x).argmax(axis=1)
    expected = np.zeros_like(x)
    expected[np.arange(20), k] = -np.sign(x[np.arange(20), k]) * decoupled_weight(np.abs(x).max(axis=1), 0.1)
    assert np.array_equal(alone, expected)


@pytest.mark.parametrize("d", [1, *map(in_long, (3, 7, 8, 20))])
def test_each_row_is_solved_on_its_own_to_the_last_bit(d):
    x, anchors, radii = draw("plain", M=41, d=d)
    x[::3, d // 2] *= 10.0 ** np.linspace(0, 100, 14)
    together = join_rows(x, anchors, radii, 0.3)
    for other in (
        np.vstack([join_rows(x[m : m + 1], anchors[m : m + 1], radii[m : m + 1], 0.3).W for m in range(41)]),
        join_rows(x[::-1], anchors[::-1], radii[::-1], 0.3).W[::-1],
        np.vstack([join_rows(x[s], anchors[s], radii[s], 0.3).W for s in (slice(0, 3), slice(3, None))]),
    ):
        assert np.array_equal(together.W, other)


def test_no_rows():
    assert join_rows(np.empty((0, 3)), np.empty((0, 2, 3)), np.empty((0, 2)), 1.0).W.shape == (0, 3)


@pytest.mark.parametrize("lambda2", [1.0, 0.01])
@pytest.mark.parametrize("d", [1, 5, in_long(20), in_long(100)])
@pytest.mark.parametrize("size", thinned([1e4, 1e5, 1e6, 1e7, 1e8, 1e12, 1e15, 1e20, 1e50, 1e100, 1e150], 5))
def test_a_huge_entry_of_a_coupled_row_makes_it_an_outlier_and_is_proved(size, d, lambda2):
    """The coupling pulls w_k to either side: to a score of -size, or against the loss to one of about -log(size)."""
    drawn = []
    for kind in ("plain", "sparse", "zero anchors"):
        for sign in (1.0, -1.0):
            x, anchors, radii = draw(kind, M=12, d=d)
            x[:, d // 2] = sign * size
            radii[:6] = radii.max()  # these may follow their anchors to w.x > 0, where they are allowed to
            drawn.append((x, anchors, radii))
    x, anchors, radii = map(np.concatenate, zip(*drawn, strict=True))  # each row is solved on its own: see above
    found = join_rows(x, anchors, radii, lambda2)
    assert found.relative_gap.max() <= JOIN_TOL
    assert np.all(np.hypot.reduce(found.U, axis=2) <= radii)
    for m in range(0, len(x), 6):
        gap = exact_gap(x[m], anchors[m], radii[m], lambda2, *(part[m] for part in found[:4]))
        assert gap <= found.relative_gap[m]
    if size >= 1e8:  # no coupling is as strong as such an entry
        assert np.all((found.W * x).sum(axis=1) < -10.0)


def draw_hostile(seed, M=40, K=5, d=7):
    """Rows with one or several entries of 1e4 to 1e150, alike or not, and every kind of anchors, strong or weak."""
    rng = np.random.default_rng(seed)
    x, anchors = rng.normal(size=(M, d)), rng.normal(size=(M, K, d)) * 10.0 ** rng.choice([-3, 0, 1], size=(M, 1, 1))
    radii = 10.0 ** rng.uniform(-12, 3, size=(M, 1)) * np.where(
        rng.random((M, 1)) < 0.5, rng.random((M, K)), 10.0 ** rng.uniform(-9, 0, size=(M, K))
    )
    for m in range(M):
        huge = rng.permutation(d)[: rng.choice([1, 1, 2, 3, 100])]
        exponent = rng.uniform(4, 150)
        exponents = rng.choice([np.full(len(huge), exponent), rng.uniform(4, exponent, size=len(huge))])
        x[m, huge] = rng.choice([-1.0, 1.0], size=len(huge)) * 10.0**exponents
        kind = rng.choice(["zero", "sparse", "dense", "zero rows", "sparse zero rows", "zero entries"])
        if kind == "zero":
            anchors[m] = 0.0
        if "sparse" in kind:
            anchors[m] *= rng.random((K, d)) < 0.2
        if "zero rows" in kind:
            anchors[m, rng.random(K) < 0.5] = 0.0
        if kind == "zero entries":
            anchors[m][:, huge] = 0.0
    return x, anchors, radii


@pytest.mark.parametrize("lambda2", [1e-4, 1e-2, 1.0, 1e3])
@pytest.mark.parametrize("d", [1, *map(in_long, (2, 5)), 20])
@pytest.mark.parametrize("K", [1, in_long(2), 8])
def test_huge_entries_are_proved_whatever_the_anchors_are(K, d, lambda2):
    x, anchors, radii = draw_hostile(d, K=K, d=d)
    found = join_rows(x, anchors, radii, lambda2)
    assert found.relative_gap.max() <= JOIN_TOL


def test_a_row_that_long_steps_do_not_prove_is_proved_by_cautious_ones():
    """One row in 20,280: long steps end at a gap of 3e-8."""
    x, anchors, radii = (part[17:18] for part in draw_hostile(120, K=2, d=20))
    assert join_rows(x, anchors, radii, 1e3).relative_gap[0] <= JOIN_TOL


def test_steps_that_would_leap_over_the_bend_of_the_loss_end_there():
    """Where the pull of the anchors turns the score, steps leapt to and fro: 4 of these rows ended at gaps of 31 %."""
    rng = np.random.default_rng(0)
    x = 10.0 ** rng.uniform(0, 5, size=(200, 1)) * rng.choice([-1.0, 1.0], size=(200, 20))
    anchors = rng.normal(size=(200, 2, 20)) * 10.0 ** rng.uniform(-3, 1, size=(200, 1, 1))
    radii = 10.0 ** rng.uniform(0, 4, size=(200, 1)) * rng.random((200, 2))
    assert join_rows(x, anchors, radii, 1e-6).relative_gap.max() <= JOIN_TOL


@pytest.mark.parametrize("size", thinned([1e8, 1e12, 1e20, 1e100, 1e150], 4))
@pytest.mark.parametrize("d", [2, 20])
def test_several_huge_entries_make_a_coupled_row_an_outlier_and_are_proved(size, d):
    """Their terms in w.x cancel: nothing would be left of a score that is computed from w."""
    for kind in ("plain", "zero anchors"):
        x, anchors, radii = draw(kind, d=d)
        x[:, :2] = size * np.sign(x[:, :2])
        found = join_rows(x, anchors, radii, 0.01)
        assert found.relative_gap.max() <= JOIN_TOL
        assert np.all((found.W * x).sum(axis=1) < -10.0)
        ones = np.ones(len(x))
        rows = RowProblems(x, anchors, radii, 0.01 * ones, ones)
        assert np.all(rows.objective(found.W) <= rows.objective(joining._decoupled(x, rows.lambda2)))


def test_tied_entries_with_weak_coupling_are_proved():
    """The coupling alone decides between the features: bounds and weights that cancel would hide it."""
    rng = np.random.default_rng(0)
    x, anchors = 1e4 * rng.choice([-1.0, 1.0], size=(40, 20)), 0.1 * rng.normal(size=(40, 2, 20))
    found = join_rows(x, anchors, 10.0 ** rng.uniform(-13, -7, size=(40, 2)), 1.0)
    assert found.relative_gap.max() <= JOIN_TOL


def test_an_anchor_that_is_optimal_itself_is_proved_however_strong_its_pull():
    """J is 1e-9 times what the radius would make of it."""
    x, anchor = np.array([[-1e8, -1e8, -0.6]]), np.array([[[0.001, -0.0007, 0.0004]]])
    found = join_rows(x, anchor, np.array([[100.0]]), 1e-4)
    assert np.array_equal(found.W, anchor[0])
    assert found.relative_gap[0] <= JOIN_TOL


@pytest.mark.parametrize("kind", ["fitted alike", "nearly zero", "weights that underflow"])
def test_huge_rows_beside_the_anchors_of_such_rows_are_proved(kind):
    """An anchor that is optimal to the last bit, or J far below c_j ||a_j||: what is left of w - a_j is rounding."""
    rng = np.random.default_rng(0)
    for size in (1e4, 1e8, 1e20, 1e80, 1e149):
        for lambda2 in (0.01, 1.0):
            x = rng.choice([-1.0, 1.0], size=(20, 4)) * size * rng.choice([1.0, 1e-6, 1e-12], size=(20, 4))
            radii = 10.0 ** rng.uniform(-2, 1, size=(20, 1)) * rng.random((20, 3))
            anchors = np.repeat(joining._decoupled(x, np.full(20, lambda2))[:, None], 3, axis=1)
            anchors *= 1.0 + 1e-3 * rng.normal(size=(20, 1, 1))
            if kind == "nearly zero":
                anchors = rng.normal(size=(20, 1, 4)) * np.ones((20, 3, 1)) / np.sqrt(size)
            if kind == "weights that underflow":
                anchors, radii = rng.normal(size=(20, 3, 4)), 10.0 ** rng.uniform(-300, -100, size=(20, 3))
            found = join_rows(x, anchors, radii, lambda2)
            assert found.relative_gap.max() <= JOIN_TOL
            for m in (0,):
                gap = exact_gap(x[m], anchors[m], radii[m], lambda2, *(part[m] for part in found[:4]))
                assert gap <= found.relative_gap[m]


@pytest.mark.parametrize("weak", ["absent", "any", "that underflow"])
def test_weak_anchors_beside_strong_ones_without_weights_are_proved(weak):
    """In units in which J and the strongest radius are 1, the weak anchors' squares overflowed."""
    rng = np.random.default_rng(0)
    for lambda2 in (1e-4, 1.0, 1e4):
        x = rng.choice([-1.0, 1.0], size=(30, 4)) * 10.0 ** rng.uniform([[80.0]] * 30, 150, size=(30, 4))
        anchors, radii = rng.normal(size=(30, 4, 4)), 10.0 ** rng.uniform(-300, 0, size=(30, 4))
        anchors[:, :2], radii[:, 0] = 0.0, 10.0 ** rng.uniform(-20, 2, size=30)
        if weak == "absent":
            radii[:, 2:] = 0.0
        elif weak == "that underflow":
            radii = 10.0 ** rng.uniform(-300, -290, size=(30, 4))
        found = join_rows(x, anchors, radii, lambda2)
        assert found.relative_gap.max() <= JOIN_TOL
        assert np.all(np.hypot.reduce(found.U, axis=2) <= radii)
        for m in range(0, 30, 6):
            gap = exact_gap(x[m], anchors[m], radii[m], lambda2, *(part[m] for part in found[:4]), least=Decimal(TINY))
            assert gap <= found.relative_gap[m]


def test_an_alpha_that_underflows_still_proves_its_row():
    x = np.array([[1e155, 1.0], [-1e157, 2.0], [1e158, 1e158]])
    found = join_rows(x, np.zeros((3, 1, 2)), np.array([[0.0], [1e-200], [1e-180]]), 1e3)
    assert found.relative_gap.max() <= JOIN_TOL
    assert np.all((found.alpha > 0.0) & (found.alpha < 1e-302))


def test_anchors_that_agree_in_all_but_some_digits_and_cancel_are_proved():
    """The pulls of three on either side add up to 0 but for rounding, beside which nothing else of v is left."""
    rng = np.random.default_rng(1)
    x, radii = rng.normal(size=(200, 2)), 100.0 * rng.random((200, 1))
    x[:, 0] = 10.0 ** rng.uniform(20, 150, size=200)
    anchors = np.repeat(joining._decoupled(x, np.full(200, 1e-6))[:, None], 6, axis=1)
    anchors *= 1.0 + 10.0 ** rng.uniform(-14, -8, size=(200, 1, 1)) * rng.normal(size=(200, 6, 1))
    assert join_rows(x, anchors, np.repeat(radii, 6, axis=1), 1e-6).relative_gap.max() <= JOIN_TOL


def test_subnormal_numbers_prove_nothing_false():
    """J of an entry of 1e200 is 1e-394, and a radius of 1e-320 has three digits."""
    x, anchors = np.array([[1e200, 1.0], [1e100, 2.0]]), np.ones((2, 2, 2))
    radii = np.array([[0.0, 0.0], [1e-110, 1.234e-320]])
    found = join_rows(x, anchors, radii, 1.0)
    assert found.relative_gap.max() <= JOIN_TOL
    for m in range(2):
        parts = [part[m] for part in found[:4]]
        gap = exact_gap(x[m], anchors[m], radii[m], 1.0, *parts, least=Decimal(TINY))
        assert gap <= found.relative_gap[m]


@pytest.mark.parametrize("d", [20, 100])
def test_many_features_with_a_small_penalty_are_proved_in_few_steps(d, monkeypatch):
    """Once the steps became tiny here, because the start was too close to the boundary of the cones."""
    monkeypatch.setattr(joining, "MAX_STEPS", 60)
    for kind in ("plain", "sparse"):
        x, anchors, radii = draw(kind, d=d)
        assert join_rows(x, anchors, radii, 0.01).relative_gap.max() <= JOIN_TOL


@pytest.mark.parametrize("size", [1e-310, 1e-200, 1e-100, 1e-59, 1e-30])
def test_a_row_that_is_nearly_zero_is_proved(size):
    x, anchors, radii = draw("plain")
    found = join_rows(size * x, anchors, radii, 1.0)
    assert np.all(found.relative_gap <= JOIN_TOL)


def test_what_is_proved_holds_in_exact_arithmetic():
    """Scales at which the terms of v cancel and J is tiny: once 27 of 37 claims were false."""
    rng = np.random.default_rng(0)
    cases = []
    for power in (1, 8, 16, 22):
        x, anchors = rng.normal(size=(30, 1)) * 10.0**power, rng.normal(size=(30, 5, 1)) * 10.0 ** (4 - power)
        cases.append((x, anchors, rng.random((30, 5)) * 1e7, 1e-11))
    cases += [(*draw_hostile(seed, K=3, d=4), 10.0 ** (seed - 2)) for seed in range(4)]
    by_v = 0
    for x, anchors, radii, lambda2 in cases:
        found = join_rows(x, anchors, radii, lambda2)
        rows = RowProblems(x, anchors, radii, np.full(len(x), lambda2), np.ones(len(x)))
        u_proves = share(rows.objective(found.W), proven_by_u(rows, Dual(found.alpha, found.U, found.V))) <= JOIN_TOL
        for m in np.flatnonzero(found.relative_gap <= JOIN_TOL):
            gap = exact_gap(x[m], anchors[m], radii[m], lambda2, *(part[m] for part in found[:4]))
            assert gap <= found.relative_gap[m]
            by_v += not u_proves[m]
    assert by_v > 20  # rows whose v alone cannot come from a rounded u
