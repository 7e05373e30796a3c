"""Hostile input: a clear error or the same answer, never a crash, a warning, or a false "optimal"."""

import json
import pickle
import warnings
import zipfile

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from scipy import sparse
from sizes import in_long, thinned

import llr_cvx as llr
from llr_cvx.cli import main
from llr_cvx.instances import load_instance
from llr_cvx.instances.drill import SOLVERS, drill, hostile_problem
from llr_cvx.proofs.ball_arithmetic import enclose
from llr_cvx.solution import ConvergenceWarning
from llr_cvx.verdicts.traces import verify_trace
from llr_cvx.verdicts.weights import verify

INSTANCE = load_instance("same-twins")
P = INSTANCE.problem
N, d = P.shape
SOLVE = pytest.mark.parametrize("solve", SOLVERS.values(), ids=SOLVERS)

# Every function that takes an array: how to call it with that one argument replaced, and a good value for it.
CALLS = {
    "Problem X": (lambda v: llr.Problem(v, P.y, P.edges, P.weights), P.X),
    "Problem y": (lambda v: llr.Problem(P.X, v, P.edges, P.weights), P.y),
    "Problem edges": (lambda v: llr.Problem(P.X, P.y, v, P.weights), P.edges),
    "Problem weights": (lambda v: llr.Problem(P.X, P.y, P.edges, v), P.weights),
    "from_samples X_inlier": (lambda v: llr.Problem.from_samples(v, P.X), P.X + np.arange(d)),
    "from_samples X_test": (lambda v: llr.Problem.from_samples(P.X, v), P.X + np.arange(d)),
    "similarity_graph X": (lambda v: llr.similarity_graph(v, 3)[1], P.X),
    "objective W": (P.objective, INSTANCE.W),
    "parts W": (P.parts, INSTANCE.W),
    "scores W": (P.scores, INSTANCE.W),
    "log_ratio W": (P.log_ratio, INSTANCE.W),
    "alpha W": (P.alpha, INSTANCE.W),
    "certify W": (lambda v: llr.certify(P, v).dual, INSTANCE.W),
    "certify alpha": (lambda v: llr.certify(P, INSTANCE.W, v, INSTANCE.U).dual, INSTANCE.alpha),
    "certify U": (lambda v: llr.certify(P, INSTANCE.W, INSTANCE.alpha, v).dual, INSTANCE.U),
    "verify W": (lambda v: verify(P, v).objective, INSTANCE.W),
    "solve_irls W0": (lambda v: llr.solve_irls(P, W0=v).objective, INSTANCE.W),
    "solve_fast W0": (lambda v: llr.solve_fast(P, W0=v).objective, INSTANCE.W),
    "enclose W": (lambda v: enclose(P, v, INSTANCE.alpha, INSTANCE.U).primal_high, INSTANCE.W),
    "enclose alpha": (lambda v: enclose(P, INSTANCE.W, v, INSTANCE.U).dual_low, INSTANCE.alpha),
    "enclose U": (lambda v: enclose(P, INSTANCE.W, INSTANCE.alpha, v).dual_low, INSTANCE.U),
    "verify_trace iterates": (lambda v: verify_trace([v, v], P).values, INSTANCE.W),
}


def with_entry(array, value):
    """A float copy with one entry replaced."""
    changed = np.array(array, dtype=float)
    changed.flat[changed.size // 2] = value
    return changed


BAD = {
    "NaN": lambda a: with_entry(a, np.nan),
    "inf": lambda a: with_entry(a, np.inf),
    "-inf": lambda a: with_entry(a, -np.inf),
    "None": lambda a: None,
    "text": lambda a: "abc",
    "strings": lambda a: np.asarray(a).astype(str),
    "complex": lambda a: np.asarray(a) + 1j,
    "objects": lambda a: np.full(np.shape(a), object()),
    "scalar": lambda a: 3.0,
    "dict": lambda a: {"a": 1},
    "too deep": lambda a: np.asarray(a)[None],
    "a row short": lambda a: np.asarray(a)[:-1],
    "ragged": lambda a: [[1.0], [1.0, 2.0]],
    "dates": lambda a: np.full(np.shape(a), np.datetime64("2020-01-01")),
    "sparse": lambda a: sparse.csr_array(np.atleast_2d(a)),
}

#: A set of samples may have any number of rows, and these arguments may be left out.
ANY_LENGTH = {"from_samples X_inlier", "from_samples X_test", "similarity_graph X"}
OPTIONAL = {"certify alpha", "certify U", "solve_irls W0", "solve_fast W0"}


@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize("call", CALLS)
def test_bad_arrays_are_refused_in_words(call, bad):
    function, good = CALLS[call]
    if call in {"a row short": ANY_LENGTH, "None": OPTIONAL}.get(bad, ()):
        function(BAD[bad](good))
        return
    with pytest.raises((TypeError, ValueError)) as caught:
        function(BAD[bad](good))
    argument = call.split()[-1].replace("iterates", "W")
    related = {"X": ("X", "y", "edges"), "edges": ("edges", "weights")}.get(argument, (argument,))
    assert any(name in str(caught.value) for name in related), str(caught.value)


def read_only(array):
    array = np.array(array, dtype=float)
    array.setflags(write=False)
    return array


SAME = {
    "list": lambda a: np.asarray(a).tolist(),
    "Fortran order": lambda a: np.asfortranarray(a, dtype=float),
    "read-only": read_only,
    "strided": lambda a: np.repeat(np.asarray(a, dtype=float), 2, axis=0)[::2],
    "big-endian": lambda a: np.asarray(a).astype(">f8"),
    "float128": lambda a: np.asarray(a).astype(np.longdouble),
    "data frame": lambda a: pd.DataFrame(a) if np.ndim(a) == 2 else pd.Series(a),
    "objects": lambda a: np.asarray(a).astype(object),
}


def flat(value):
    if isinstance(value, llr.Problem):
        return [value.objective(np.ones(value.shape))]
    return np.ravel(value)


@pytest.mark.parametrize("form", thinned(SAME, 3))
@pytest.mark.parametrize("call", CALLS)
def test_every_form_of_the_same_numbers_gives_the_same_answer(call, form):
    function, good = CALLS[call]
    given = SAME[form](good)
    before = np.array(given, dtype=float)
    np.testing.assert_array_equal(flat(function(given)), flat(function(good)))
    np.testing.assert_array_equal(np.array(given, dtype=float), before)  # and the input is left alone


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int8, np.int64, np.uint8])
def test_narrow_types_are_widened_exactly(dtype):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 100, size=(N, d)).astype(dtype)
    p = llr.Problem(X, P.y.astype(np.int8), P.edges.astype(np.uint16), np.ones(len(P.edges), dtype=np.float32))
    assert p.X.dtype == np.float64
    np.testing.assert_array_equal(p.X, X.astype(float))
    W = rng.integers(0, 3, size=(N, d)).astype(dtype)
    assert p.objective(W) == p.objective(W.astype(float))


@pytest.mark.parametrize("value", [np.nan, np.inf, -1.0, -np.inf, "a", None, [1.0], 1j, True])
@pytest.mark.parametrize("name", ["lambda1", "lambda2"])
def test_bad_lambdas(name, value):
    with pytest.raises((TypeError, ValueError), match=name):
        llr.Problem(P.X, P.y, P.edges, P.weights, **{name: value})


@pytest.mark.parametrize("value", [0.0, -1.0, np.nan, np.inf, "a", None, [1e-6]])
def test_bad_tolerances(value):
    for solve in (*SOLVERS.values(), llr.solve_exact, lambda p, tol: verify(p, INSTANCE.W, tol)):
        with pytest.raises((TypeError, ValueError), match="tol"):
            solve(P, tol=value)


@SOLVE
@pytest.mark.parametrize("value", [0, -1, 2.5, "a", None, np.nan, True])
def test_bad_iteration_limits(solve, value):
    with pytest.raises((TypeError, ValueError), match="max_iter"):
        solve(P, max_iter=value)


@SOLVE
@pytest.mark.parametrize("value", [0.0, -1.0, np.nan, "a"])
def test_bad_time_limits(solve, value):
    with pytest.raises((TypeError, ValueError), match="time_limit"):
        solve(P, time_limit=value)


@pytest.mark.parametrize("function", [*SOLVERS.values(), llr.solve_exact, lambda p: verify(p, INSTANCE.W)])
@pytest.mark.parametrize("value", [None, 3, "problem", P.X])
def test_something_else_than_a_problem(function, value):
    with pytest.raises((TypeError, AttributeError)):
        function(value)


# ---- a limit reached is never "optimal" -----------------------------------------------------------------------


@SOLVE
@pytest.mark.parametrize("name", ["fused-some", "fused-most", "lambda2-tiny", "one-inlier", "bad-scales"])
@pytest.mark.parametrize("max_iter", [1, 2, 3])
def test_iteration_limit_is_never_optimal_without_proof(solve, name, max_iter):
    instance = load_instance(name)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        s = solve(instance.problem, tol=1e-10, max_iter=max_iter)
    if s.status == "optimal":
        assert s.objective <= instance.upper * (1 + 1e-10)
    else:
        assert s.status == "iteration_limit"
        assert any(issubclass(w.category, ConvergenceWarning) for w in caught)
        assert s.certificate.relative_gap > 1e-10
    assert s.certificate.dual <= instance.upper


@SOLVE
def test_time_limit_is_never_optimal_without_proof(solve):
    instance = load_instance("large")
    with pytest.warns(ConvergenceWarning, match="time_limit"):
        s = solve(instance.problem, tol=1e-12, time_limit=1e-6)
    assert s.status == "time_limit"
    assert s.certificate.relative_gap > 1e-12


@SOLVE
def test_an_impossible_tolerance_ends_and_is_not_called_optimal_in_vain(solve):
    instance = load_instance("fused-most")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        s = solve(instance.problem, tol=1e-300)
    assert s.status != "optimal" or s.certificate.gap <= 0
    assert s.certificate.relative_gap < 1e-9


# ---- loading never executes -----------------------------------------------------------------------------------


class Bomb:
    """Leaves a mark when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


def test_a_pickle_in_an_archive_is_refused_and_not_run(tmp_path):
    mark = tmp_path / "executed"
    arrays = {name: np.asarray(getattr(P, name)) for name in ("X", "y", "edges", "weights", "lambda1", "lambda2")}
    arrays["X"] = np.array([Bomb(mark)], dtype=object)
    np.savez(tmp_path / "p.npz", **arrays)
    with pytest.raises(ValueError, match=r"p\.npz"):
        llr.Problem.load(tmp_path / "p.npz")
    (tmp_path / "raw.npz").write_bytes(pickle.dumps(Bomb(mark)))
    with pytest.raises(ValueError, match=r"raw\.npz"):
        llr.Problem.load(tmp_path / "raw.npz")
    assert not mark.exists()


def test_an_archive_that_claims_too_much_is_refused_before_memory_is_taken(tmp_path):
    P.save(tmp_path / "p.npz")
    with zipfile.ZipFile(tmp_path / "p.npz") as old, zipfile.ZipFile(tmp_path / "big.npz", "w") as new:
        for item in old.namelist():
            data = old.read(item)
            if item == "X.npy":
                header = data[:128].replace(b"(32, 5)", b"(32, 5000000000)").replace(b" " * 9 + b"\n", b"\n")
                assert header != data[:128]
                data = header + data[128:]
            new.writestr(item, data)
    with pytest.raises(ValueError, match=r"big\.npz"):
        llr.Problem.load(tmp_path / "big.npz")


@pytest.mark.parametrize("cut", [0, 1, 30, 100, 1000, -1, -20, -100])
def test_every_truncation_is_a_clear_error(tmp_path, cut):
    P.save(tmp_path / "p.npz")
    whole = (tmp_path / "p.npz").read_bytes()
    (tmp_path / "cut.npz").write_bytes(whole[:cut])
    with pytest.raises(ValueError, match=r"cut\.npz"):
        llr.Problem.load(tmp_path / "cut.npz")


@pytest.mark.parametrize("seed", range(30))
def test_a_flipped_byte_is_an_error_or_harmless(tmp_path, seed):
    P.save(tmp_path / "p.npz")
    whole = bytearray((tmp_path / "p.npz").read_bytes())
    rng = np.random.default_rng(seed)
    whole[rng.integers(len(whole))] ^= 1 << rng.integers(8)
    (tmp_path / "p.npz").write_bytes(bytes(whole))
    try:
        back = llr.Problem.load(tmp_path / "p.npz")
    except ValueError:
        with pytest.raises(ValueError, match=r"p\.npz"):
            llr.Problem.load(tmp_path / "p.npz")
    else:
        np.testing.assert_array_equal(back.X, P.X)


# ---- the drill --------------------------------------------------------------------------------------------------


def test_hostile_problems_are_reproducible_and_diverse():
    problems = [hostile_problem(seed) for seed in range(200)]
    again = hostile_problem(17)
    np.testing.assert_array_equal(again.X, problems[17].X)
    assert again.lambda1 == problems[17].lambda1
    shapes = np.array([p.shape for p in problems])
    assert shapes.min(axis=0).tolist() == [2, 1]
    assert shapes.max(axis=0)[0] >= 35
    assert shapes.max(axis=0)[1] == 8
    assert any(p.lambda1 == 0 for p in problems)
    assert min(p.lambda2 for p in problems) < 1e-6
    assert max(p.lambda2 for p in problems) > 1e4
    largest = [np.abs(p.X).max() for p in problems]
    assert max(largest) > 1e7
    assert min(largest) < 1e-5
    assert any(not len(p.edges) for p in problems)
    assert any((p.weights == 0).any() for p in problems)
    assert any(p.graph.n_components > 1 and len(p.edges) for p in problems)


@pytest.mark.parametrize("solver", sorted(SOLVERS))
@pytest.mark.parametrize(
    ("generator", "first", "n"), [("hostile", 0, 20), *map(in_long, [("hostile", 20, 40), ("varied", 6, 12)])]
)
def test_small_drill_finds_nothing(generator, first, n, solver):
    """`llr-cvx instances drill` with its 1000 problems is the full drill.

    The varied problems are of every kind, N from 21 to 313; two before and after them would take as long as all.
    """
    *_, report = drill(n, SOLVERS[solver], first_seed=first, generator=generator)
    assert report.findings == [], str(report)
    assert report.problems == report.checked == report.verdicts == len(report.solve_seconds) == n
    assert report.optimal + report.unproved == n
    assert report.optimal >= 0.95 * n


def test_drill_command(tmp_path):
    options = ["--generator", "varied", "--solver", "irls", "--problems", "2", "--tol", "1e-4"]
    done = CliRunner().invoke(main, ["instances", "drill", *options, "--json", str(tmp_path / "r.json")])
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("2 varied problems in ")
    assert "slowest tenth: " in done.stdout
    result = json.loads((tmp_path / "r.json").read_text())
    assert (result["generator"], result["solver"], result["problems"]) == ("varied", "irls", 2)
    assert result["slowest_tenth"]["seconds"] == max(result["solve_seconds"])
    assert not any(result["counts"].values())
