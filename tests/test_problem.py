"""Problem: the objective by hand and by finite differences, storage, and that nothing in it can be changed."""

from __future__ import annotations

import dataclasses
import pickle
import re
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from builders import random_problem, slow_dual_vectors, slow_objective

import llr_cvx as llr
from llr_cvx.archive import load_array
from llr_cvx.solution import Solution, Trace


def three_samples() -> llr.Problem:
    return llr.Problem(
        X=[[1.0, 0.0], [0.0, 2.0], [1.0, 1.0]],
        y=[1, -1, -1],
        edges=[[0, 1], [1, 2]],
        weights=[0.5, 2.0],
        lambda1=0.1,
        lambda2=0.25,
    )


def test_objective_by_hand() -> None:
    """Scores 1, 0, -1; ||w_0 - w_1|| = 1, ||w_1 - w_2|| = 5; ||w_i||_1 = 1, 0, 7."""
    p, W = three_samples(), [[1.0, 0.0], [0.0, 0.0], [3.0, -4.0]]
    logistic = 2 * 0.31326168751822286 + 0.6931471805599453  # log(1 + e^-1) twice, log 2
    assert p.parts(W) == pytest.approx((logistic, 0.1 * (0.5 * 1 + 2 * 5), 0.25 * (1 + 0 + 49)), rel=1e-15)
    assert p.objective(W) == pytest.approx(logistic + 1.05 + 12.5, rel=1e-15)
    assert isinstance(p.objective(W), float)
    assert p.scores(W).tolist() == [1.0, 0.0, -1.0]
    assert p.log_ratio(W) == pytest.approx(np.log(2 / 1) + np.array([1.0, 0.0, -1.0]))


@pytest.mark.parametrize("seed", range(4))
def test_objective_equals_the_sum_written_out(seed: int) -> None:
    p = random_problem(seed, N=20, d=seed + 1, lambda1=0.3, lambda2=0.2)
    W = np.random.default_rng(seed).standard_normal(p.shape)
    assert p.objective(W) == pytest.approx(slow_objective(p, W), rel=1e-14)


def test_alpha_is_minus_the_slope_of_the_logistic_term() -> None:
    p = random_problem(0, N=20, d=4, lambda1=0.0, lambda2=1.0)
    W = np.random.default_rng(0).standard_normal(p.shape)
    step, h = np.random.default_rng(1).standard_normal(p.shape), 1e-6
    slope = (p.parts(W + h * step).logistic - p.parts(W - h * step).logistic) / (2 * h)
    assert slope == pytest.approx(-(p.alpha(W) * p.y) @ (p.X * step).sum(axis=1), rel=1e-8)


def test_dual_vectors_follow_their_definition() -> None:
    p = random_problem(3, N=20, d=4)
    rng = np.random.default_rng(0)
    alpha, U = rng.random(20), rng.standard_normal((len(p.edges), 4))
    assert np.allclose(p.dual_vectors(alpha, U), slow_dual_vectors(p, alpha, U), rtol=0, atol=1e-13)


def test_log_ratio_has_the_prior_of_the_test_samples_over_the_inliers() -> None:
    p = random_problem(0, N=30, d=2)
    n_inlier = int((p.y > 0).sum())
    assert n_inlier != 15
    assert p.log_ratio(np.zeros(p.shape)) == pytest.approx(np.full(30, np.log((30 - n_inlier) / n_inlier)))


@pytest.mark.parametrize("margin", [-750.0, -1e5, 750.0, 1e5])
def test_margins_beyond_710_neither_overflow_nor_vanish(margin: float) -> None:
    p = llr.Problem([[1.0], [1.0]], [1, -1], [], [], lambda1=0.0, lambda2=1.0)
    W = [[margin], [0.0]]
    assert p.parts(W).logistic == pytest.approx(max(-margin, 0.0) + np.log(2.0), rel=1e-15)
    assert p.alpha(W).tolist() == [1.0 if margin < 0 else 0.0, 0.5]


def test_entries_whose_squares_leave_the_range_of_doubles() -> None:
    p = llr.Problem([[0.0], [0.0]], [1, -1], [[0, 1]], [1.0], lambda1=1.0, lambda2=0.0)
    for size in (1e-200, 1e200):
        assert p.parts([[size], [0.0]]).network == pytest.approx(size, rel=1e-15)
    overflowing = llr.Problem([[0.0], [0.0]], [1, -1], [], [], lambda2=1.0)
    assert overflowing.objective([[1e200], [0.0]]) == np.inf


def test_a_problem_cannot_be_changed() -> None:
    X = np.ones((2, 1))
    p = llr.Problem(X, [1, -1], [[0, 1]], [1.0])
    X[:] = 5.0
    assert p.X.tolist() == [[1.0], [1.0]]
    with pytest.raises(dataclasses.FrozenInstanceError):
        p.lambda1 = 2.0
    sparse = [a for B in (p.incidence, p.incidence_T) for a in (B.data, B.indices, B.indptr)]
    for array in (p.X, p.y, p.edges, p.weights, *sparse):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 7


@pytest.mark.parametrize("solve", [llr.solve_irls, llr.solve_exact])
def test_an_answer_cannot_be_changed_under_its_proof(solve: Callable[[llr.Problem], Solution]) -> None:
    s = solve(random_problem(0))
    arrays = [s.W, s.support, s.clusters, s.certificate.alpha, s.certificate.U, s.certificate.y]
    arrays += s.certificate.score_bounds
    arrays += [getattr(s.trace, f.name) for f in dataclasses.fields(Trace)] if s.trace else []
    for array in arrays:
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 7
    mine = s.W.copy()
    mine[0] = 7  # a copy is free


# ---- sizes whose squares leave the range of doubles -----------------------------------------------------


@pytest.mark.parametrize("c", [1e-150, 1e-75, 1e75])
def test_any_unit_whose_square_is_a_double(c: float) -> None:
    """The same problem in other units has the same J and the same proof, without a warning on the way."""
    p = random_problem(0)
    other = llr.Problem(c * p.X, p.y, p.edges, p.weights, c * p.lambda1, c**2 * p.lambda2)
    s = llr.solve_irls(other)
    assert s.status == "optimal"
    assert s.objective == pytest.approx(llr.solve_irls(p).objective, rel=2e-6)
    assert llr.certify(other, s.W).relative_gap <= 1e-6


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (
            {"X": [[1.0, 0.0], [-1e200, 0.0]]},
            r"the largest value of X is -1e\+200 \(row 1, column 0\), not between",
        ),
        (
            {"X": [[1e-200, 0.0], [0.0, 0.0]]},
            r"the largest value of X is 1e-200 .*; rescale the features \(with the sa",
        ),
        ({"lambda1": 1e300}, r"lambda1 must be at most 1e\+150, got 1e\+300: .* rescale the features"),
        ({"lambda2": 1e300}, r"lambda2 must be at most 1e\+150, got 1e\+300: .* take a smaller one"),
        ({"weights": [1e200]}, r"weights must be at most 1e\+150, got 1e\+200 at row 0: scale them down"),
    ],
)
def test_sizes_beyond_that_are_refused_with_the_fix(changed: dict[str, Any], message: str) -> None:
    good = {"X": np.eye(2), "y": [1, -1], "edges": [[0, 1]], "weights": [1.0], "lambda1": 0.1, "lambda2": 1.0}
    with pytest.raises(ValueError, match=message):
        llr.Problem(**(good | changed))


def test_with_lambdas_changes_the_lambdas_alone() -> None:
    p = random_problem(0)
    q = p.with_lambdas(lambda2=0.5)
    assert (q.lambda1, q.lambda2, q.sigma, q.n_neighbors) == (p.lambda1, 0.5, p.sigma, p.n_neighbors)
    assert np.array_equal(p.X, q.X)
    assert q.graph is p.graph
    assert q.X is p.X
    with pytest.raises(ValueError, match=r"lambda2 must be a finite number >= 0, got -1"):
        p.with_lambdas(lambda2=-1)


def assert_equal_problems(p: llr.Problem, q: llr.Problem) -> None:
    for name in ("X", "y", "edges", "weights", "lambda1", "lambda2", "sigma", "n_neighbors"):
        assert np.array_equal(getattr(p, name), getattr(q, name)), name


def test_save_and_load_give_the_same_problem_back(tmp_path: Path) -> None:
    for k, p in enumerate((random_problem(0), three_samples(), llr.Problem([[1.0], [2.0]], [1, -1], [], []))):
        p.save(tmp_path / f"{k}.npz")
        assert_equal_problems(p, llr.Problem.load(tmp_path / f"{k}.npz"))
    assert sorted(f.name for f in tmp_path.iterdir()) == ["0.npz", "1.npz", "2.npz"]


def test_a_pickle_leaves_what_was_compiled_behind() -> None:
    p = random_problem(0, N=12, d=2)
    llr.solve_exact(p)
    q = pickle.loads(pickle.dumps(p))
    assert_equal_problems(p, q)
    assert q.graph is not p.graph


def test_a_failed_save_leaves_the_old_file_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "p.npz"
    three_samples().save(path)
    before = path.read_bytes()

    def disk_full(stream: object, **_arrays: object) -> None:
        stream.write(b"half of it")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez_compressed", disk_full)
    with pytest.raises(OSError, match="No space left"):
        random_problem(0).save(path)
    assert path.read_bytes() == before
    assert [f.name for f in tmp_path.iterdir()] == ["p.npz"]


def test_save_into_a_missing_folder_names_the_file(tmp_path: Path) -> None:
    with pytest.raises(
        OSError, match=re.escape(f"cannot write {tmp_path / 'no' / 'p.npz'}: its folder does not exist")
    ):
        three_samples().save(tmp_path / "no" / "p.npz")


def test_load_names_the_file_and_what_is_wrong_with_it(tmp_path: Path) -> None:
    whole = tmp_path / "whole.npz"
    random_problem(0).save(whole)
    data = whole.read_bytes()
    cases = {
        "truncated": (data[: len(data) // 2], "is not a readable .npz file (truncated, damaged or foreign)"),
        "empty": (b"", "is not a readable .npz file (truncated, damaged or foreign)"),
        "text": (b"1,2,3\n", "is not a readable .npz file (truncated, damaged or foreign)"),
    }
    for name, (content, message) in cases.items():
        path = tmp_path / f"{name}.npz"
        path.write_bytes(content)
        with pytest.raises(ValueError, match=re.escape(f"{path} {message}")):
            llr.Problem.load(path)
    with pytest.raises(FileNotFoundError, match=re.escape(f"{tmp_path / 'none.npz'} does not exist")):
        llr.Problem.load(tmp_path / "none.npz")


def test_every_truncation_of_a_saved_problem_is_noticed(tmp_path: Path) -> None:
    whole = tmp_path / "whole.npz"
    three_samples().save(whole)
    data = whole.read_bytes()
    cut = tmp_path / "cut.npz"
    for length in range(0, len(data), 37):
        cut.write_bytes(data[:length])
        with pytest.raises(ValueError, match=r"cut\.npz"):
            llr.Problem.load(cut)


def test_a_changed_byte_is_noticed_or_harmless(tmp_path: Path) -> None:
    path = tmp_path / "p.npz"
    p = three_samples()
    p.save(path)
    data = path.read_bytes()
    rng = np.random.default_rng(0)
    messages = []
    for _ in range(300):
        damaged = bytearray(data)
        damaged[rng.integers(len(data))] ^= int(rng.integers(1, 256))
        path.write_bytes(damaged)
        try:
            assert_equal_problems(p, llr.Problem.load(path))
        except ValueError as error:
            messages.append(str(error))
    assert len(messages) > 150
    assert all(str(path) in message for message in messages)


def test_an_npz_of_something_else_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.npz"
    np.savez(path, a=np.ones(3))
    with pytest.raises(ValueError, match=r"is an \.npz of something else: it has no X, y, edges"):
        llr.Problem.load(path)
    np.savez(path, X=np.ones((2, 1)), y=[1, 5], edges=np.empty((0, 2)), weights=[], lambda1=0.1, lambda2=1.0)
    with pytest.raises(ValueError, match=r"other\.npz is not a valid problem: y must hold \+1"):
        llr.Problem.load(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("X.npy", b"not an array")
    with pytest.raises(ValueError, match=r"other\.npz"):
        llr.Problem.load(path)


class Exploit:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return pytest.fail, ("a pickle was executed",)


def test_nothing_in_a_file_is_executed(tmp_path: Path) -> None:
    path = tmp_path / "evil.npz"
    arrays = {"y": [1, -1], "edges": np.empty((0, 2)), "weights": [], "lambda1": 0.1, "lambda2": 1.0}
    np.savez(path, X=np.array([[Exploit()], [1.0]], dtype=object), **arrays)
    with pytest.raises(ValueError, match=r"evil\.npz .*it holds Python objects, which are not read"):
        llr.Problem.load(path)


def test_a_header_that_claims_more_than_there_is_takes_no_memory(tmp_path: Path) -> None:
    path = tmp_path / "W.npy"
    np.save(path, np.ones((64, 2)))
    data, shape = path.read_bytes(), b"(64, 2), }" + 8 * b" "
    assert shape in data
    path.write_bytes(data.replace(shape, b"(99999999, 2), }  "))
    with pytest.raises(ValueError, match=r"W\.npy .* claims 1599999984 bytes of float64, but it holds at most 1152"):
        load_array(path)
    path.write_bytes(data[:-9])
    with pytest.raises(ValueError, match=r"W\.npy .*it ends after 1015 of 1024 bytes"):
        load_array(path)


def test_an_archive_that_unpacks_to_too_much_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "bomb.npz"
    random_problem(0).save(path)
    monkeypatch.setattr("llr_cvx.archive.MAX_BYTES", 1000)
    with pytest.raises(ValueError, match=r"would unpack to \d+ bytes, more than the limit of 1000"):
        llr.Problem.load(path)
