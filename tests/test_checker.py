"""The independent checker: it believes nothing, and no perturbed certificate gets past it."""

import ast
import io
import json
import runpy
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from sizes import in_long, thinned

import llr_cvx
from llr_cvx import checker
from llr_cvx.instances import load_instance
from llr_cvx.instances.recipes import RECIPES
from llr_cvx.proofs.ball_arithmetic import enclose
from llr_cvx.proofs.certificate import certificate
from llr_cvx.proofs.files import certificate_arrays, load_certificate, problem_arrays, save_certificate

SOURCE = Path(checker.__file__)


@pytest.fixture(scope="module")
def instance():
    return load_instance("fused-some")


@pytest.fixture(scope="module")
def claim(instance):
    """The problem and its certificate as plain arrays."""
    return problem_arrays(instance.problem), certificate_arrays(instance.certificate, instance.W)


def run(*arguments, cwd):
    """The checker as a script, copied away, in a Python that cannot import the package."""
    shutil.copy(SOURCE, cwd / "checker.py")
    command = [sys.executable, "-I", "checker.py", *map(str, arguments)]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=60)


def test_one_short_file_on_numpy_and_the_standard_library_only():
    text = SOURCE.read_text()
    assert len(text.splitlines()) <= 150
    imported = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            imported |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0
            imported.add(node.module.split(".")[0])
    assert imported - set(sys.stdlib_module_names) == {"numpy"}


@pytest.mark.parametrize("ending", ["npz", "json"])
def test_script_confirms_a_certificate_from_files(instance, tmp_path, ending):
    instance.problem.save(tmp_path / "problem.npz")
    save_certificate(tmp_path / f"certificate.{ending}", instance.certificate, instance.W)
    done = run("problem.npz", f"certificate.{ending}", "--tol", "1e-9", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["confirmed"]
    assert result["dual_low"] <= instance.upper
    assert result["primal_high"] >= instance.lower
    assert result["relative_gap"] < 1e-9


def test_the_tolerance_is_met_or_not(claim):
    problem, arrays = claim
    gap = checker.check(problem, arrays | {"W": 1.01 * arrays["W"], "primal": np.array(1e9)})["relative_gap"]
    for tol, met in ((0.99 * gap, False), (1.01 * gap, True)):
        result = checker.check(problem, arrays | {"W": 1.01 * arrays["W"], "primal": np.array(1e9)}, tol=tol)
        assert result["confirmed"] == met
        assert met or result["reasons"] == [f"relative gap {gap:.3e} is above tol {tol}"]


def test_a_u_outside_its_ball_by_a_hair_proves_no_more_than_its_end():
    """D rises along this U beyond its ball: by 1e-12 for what is outside by 1e-10 of the radius."""
    X, edges = np.array([[1.0], [-1.0]]), np.array([[0, 1]])
    data = (X, np.array([1.0, -1.0]), edges, np.array([0.1]), 1.0, 1.0)
    alpha = np.array([0.5, 0.0])
    inside, outside = (checker.dual(data, alpha, np.array([[u]])) for u in (0.1, 0.1 * (1 + 1e-10)))
    exact = np.log(2.0) - (0.4**2 + 0.1**2) / 4.0
    assert exact - 1e-13 < inside[0] < exact
    assert exact - 1e-13 < outside[0] < exact
    assert outside[2] > 0.0


def test_script_rejects_a_lie_and_a_wide_gap(instance, tmp_path):
    instance.problem.save(tmp_path / "problem.npz")
    arrays = certificate_arrays(instance.certificate, instance.W)
    lie = {name: array.tolist() for name, array in arrays.items()} | {"primal": 0.9 * instance.lower}
    (tmp_path / "lie.json").write_text(json.dumps(lie))
    done = run("problem.npz", "lie.json", cwd=tmp_path)
    assert done.returncode == 1
    assert "below J(W)" in done.stdout
    zero = np.zeros(instance.problem.shape)
    save_certificate(tmp_path / "wide.json", certificate(instance.problem, zero, instance.alpha, instance.U), zero)
    assert run("problem.npz", "wide.json", cwd=tmp_path).returncode == 0
    assert run("problem.npz", "wide.json", "--tol", "1e-6", cwd=tmp_path).returncode == 1


@pytest.mark.parametrize("name", thinned((name for name in RECIPES if RECIPES[name].stored), 5))
def test_checker_and_ball_arithmetic_agree(name):
    """The checker's own rounding bounds must contain what the ball arithmetic proves."""
    instance = load_instance(name)
    result = checker.check(
        problem_arrays(instance.problem), certificate_arrays(instance.certificate, instance.W), tol=1e-9
    )
    assert result["confirmed"], result["reasons"]
    proof = enclose(instance.problem, instance.W, instance.alpha, instance.U)
    claims = certificate_arrays(instance.certificate, instance.W)
    assert claims["dual"] <= proof.dual_low
    assert claims["primal"] >= proof.primal_high
    assert result["dual_low"] <= proof.dual_high
    assert result["primal_low"] <= proof.primal_low <= proof.primal_high <= result["primal_high"]


# ---- any one number perturbed ---------------------------------------------------------------------------

PERTURBED = ["W", "alpha", "U", "primal", "dual"]


@pytest.mark.parametrize("name", ["fused-some", *map(in_long, ("planted-clusters", "pair-fused", "decoupled"))])
@pytest.mark.parametrize("field", PERTURBED)
@pytest.mark.parametrize("factor", [1.0 + 1e-3, 1.0 - 1e-3])
def test_no_perturbed_number_is_falsely_accepted(name, field, factor):
    """Every entry of the field in turn: rejected, or all that is confirmed stays true."""
    instance = load_instance(name)
    problem = problem_arrays(instance.problem)
    arrays = certificate_arrays(instance.certificate, instance.W)
    rejected = 0
    entries = list(np.ndindex(arrays[field].shape))
    for entry in entries[:: max(1, len(entries) // 150)]:
        changed = arrays[field].copy()
        changed[entry] *= factor
        result = checker.check(problem, arrays | {field: changed})
        # Whatever the file says, the interval reported is true.
        assert result["dual_low"] <= instance.upper
        assert result["primal_high"] >= instance.lower
        if result["confirmed"]:
            claim_low = float(changed if field == "dual" else arrays["dual"])
            claim_high = float(changed if field == "primal" else arrays["primal"])
            assert claim_low <= instance.upper * (1 + 1e-12)
            assert claim_high >= instance.lower * (1 - 1e-12)
        rejected += not result["confirmed"]
    down = factor < 1
    if (field, down) in {("primal", True), ("dual", False)}:
        assert rejected == 1  # a claim that is too good
    if (field, down) in {("primal", False), ("dual", True)}:
        assert rejected == 0  # a wider interval is still true


@pytest.mark.parametrize("field", ["X", "y", "weights", "lambda1", "lambda2"])
def test_certificate_of_another_problem_is_not_confirmed(claim, field):
    problem, arrays = claim
    other = problem | {field: -problem[field] if field == "y" else problem[field] * 1.01}
    result = checker.check(other, arrays, tol=1e-9)
    assert not result["confirmed"]


def test_dual_point_outside_its_domain_is_moved_in_and_reported(instance, claim):
    problem, arrays = claim
    result = checker.check(problem, arrays | {"U": 1.5 * arrays["U"], "alpha": arrays["alpha"] + 0.2})
    assert not result["confirmed"]
    assert result["dual_violation"] > 1e-3
    assert result["dual_low"] <= instance.upper
    far = checker.check(problem, arrays | {"U": 1e300 * arrays["U"], "dual": np.asarray(0.0)})
    assert far["dual_low"] <= instance.upper


@pytest.mark.parametrize("name", ["fused-some", "fused-none", "paper-d10", "bad-scales", "lambda2-tiny", "wide"])
def test_a_claim_may_be_wrong_by_rounding_alone(name):
    """Half a trillionth beyond what is true is a lie."""
    instance = load_instance(name)
    problem = problem_arrays(instance.problem)
    arrays = certificate_arrays(instance.certificate, instance.W)
    proof = enclose(instance.problem, instance.W, instance.alpha, instance.U)
    for field, value in (("dual", proof.dual_high * (1 + 5e-13)), ("primal", proof.primal_low * (1 - 5e-13))):
        assert checker.check(problem, arrays)["confirmed"]
        assert not checker.check(problem, arrays | {field: np.asarray(value)})["confirmed"]


def test_terms_that_cancel_prove_only_what_their_rounding_leaves():
    """U = fl(alpha x) makes every computed v vanish; the true one is 1e-18, and with this lambda2 that is a lot."""
    x, alpha = np.random.default_rng(0).uniform(0.1, 1.0, (1, 5)), 1.0 / 3.0
    problem = llr_cvx.Problem(x[[0, 0]], [1, -1], [[0, 1]], [1.0], lambda1=10.0, lambda2=1e-36)
    W, alphas = np.zeros((2, 5)), np.full(2, alpha)
    arrays = {"W": W, "alpha": alphas, "U": alpha * x, "primal": np.asarray(2.0), "dual": np.asarray(0.0)}
    result = checker.check(problem_arrays(problem), arrays)
    assert result["dual_low"] <= max(enclose(problem, W, alphas, alpha * x).dual_high, 0.0)


def test_alpha_above_one_proves_nothing():
    """Three samples at 1, one at 0.3: alpha = 5 for the last would make every v_i vanish and D = 3 log 2 > J*."""
    problem = llr_cvx.Problem(
        [[1.0], [1.0], [1.0], [0.3]],
        [1, 1, 1, -1],
        [[0, 3], [1, 3], [2, 3]],
        np.ones(3),
        lambda1=10.0,
        lambda2=1e-3,
    )
    best = llr_cvx.solve_irls(problem, tol=1e-9)
    assert best.objective < 2.0
    W = np.zeros((4, 1))
    arrays = {"W": W, "alpha": np.array([0.5, 0.5, 0.5, 5.0]), "U": np.full((3, 1), 0.5)}
    result = checker.check(problem_arrays(problem), arrays | {"primal": np.asarray(3.0), "dual": np.asarray(2.0)})
    assert not result["confirmed"]
    assert result["dual_low"] <= best.objective
    assert result["dual_violation"] == 4.0


def test_alpha_below_zero_is_moved_in_and_reported(claim):
    problem, arrays = claim
    negative, zero = (np.where(np.arange(len(arrays["alpha"])) == 3, a, arrays["alpha"]) for a in (-0.25, 0.0))
    moved, inside = (checker.check(problem, arrays | {"alpha": alpha}) for alpha in (negative, zero))
    assert moved["dual_violation"] == 0.25
    assert inside["dual_violation"] < 1e-12
    assert moved["dual_low"] == inside["dual_low"]


def test_infinite_objective_is_never_confirmed(claim):
    problem, arrays = claim
    huge = checker.check(problem, arrays | {"W": arrays["W"] + 1e200, "primal": np.asarray(1e308)})
    assert not huge["confirmed"]
    assert huge["relative_gap"] == np.inf


# ---- bad files ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"W": [[1.0]]}, "not of this problem"),
        ({"alpha": [np.nan] * 64}, "finite"),
        ({"alpha": [[0.5] * 64]}, "1 dimension"),
        ({"primal": "12"}, "finite numbers"),
        ({"dual": [True]}, "finite numbers"),
        ({"U": None}, "finite numbers"),
    ],
)
def test_bad_certificate_is_unreadable(claim, instance, tmp_path, change, words):
    _, arrays = claim
    instance.problem.save(tmp_path / "problem.npz")
    content = {name: array.tolist() for name, array in arrays.items()} | change
    (tmp_path / "c.json").write_text(json.dumps(content))
    done = run("problem.npz", "c.json", cwd=tmp_path)
    assert done.returncode == 2
    assert words in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("edges", [[1, 0]], "i < j"),
        ("edges", [[0, 0]], "i < j"),
        ("edges", [[1, 1]], "i < j"),
        ("edges", [[0, 99]], "join rows"),
        ("edges", [[0, 0.5]], "row numbers"),
        ("y", [1.0, 2.0], "label"),
        *map(
            in_long,
            (
                ("edges", [[0, 2]], "join rows"),
                ("lambda1", -1.0, ">= 0"),
                ("lambda2", -1.0, ">= 0"),
                ("weights", [-1.0], ">= 0"),
            ),
        ),
        ("X", [1.0, 2.0], "2 dimension"),
    ],
)
def test_bad_problem_is_unreadable(tmp_path, field, value, words):
    problem = {
        **{"X": [[1.0], [2.0]], "y": [1, -1], "edges": [[0, 1]], "weights": [1.0], "lambda1": 1.0, "lambda2": 1.0},
        field: value,
    }
    (tmp_path / "p.json").write_text(json.dumps(problem))
    certificate = {"W": [[0.0], [0.0]], "alpha": [0.5, 0.5], "U": [[0.0]], "primal": 2.0, "dual": 0.0}
    (tmp_path / "c.json").write_text(json.dumps(certificate))
    done = run("p.json", "c.json", cwd=tmp_path)
    assert done.returncode == 2
    assert words in done.stderr


def npz_with(path, name, header, payload):
    """An .npz whose member `name` has a header of our choice."""
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, header)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"{name}.npy", stream.getvalue() + payload)


def test_sizes_are_checked_before_memory_is_taken(tmp_path):
    npz_with(tmp_path / "c.npz", "W", {"descr": "<f8", "fortran_order": False, "shape": (10**9, 10**4)}, b"\0" * 80)
    with pytest.raises(ValueError, match="more than it holds"):
        checker.read(str(tmp_path / "c.npz"), {"W": 2})


def test_pickles_are_refused(tmp_path):
    np.savez(tmp_path / "c.npz", W=np.array([{"a": 1}], dtype=object))
    with pytest.raises(ValueError, match="no numbers"):
        checker.read(str(tmp_path / "c.npz"), {"W": 1})


def test_truncated_and_missing_files(instance, tmp_path):
    instance.problem.save(tmp_path / "problem.npz")
    whole = (tmp_path / "problem.npz").read_bytes()
    (tmp_path / "half.npz").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "text.json").write_text("{")
    (tmp_path / "list.json").write_text("[1, 2]")
    for other in ("half.npz", "nowhere.npz", "text.json", "list.json", "problem.npz"):
        done = run("problem.npz", other, cwd=tmp_path)
        assert done.returncode == 2
        assert "Traceback" not in done.stderr
    assert run(cwd=tmp_path).returncode == 2


def exit_code(*arguments, monkeypatch):
    """The checker as a script, in this process: any exception but SystemExit is a traceback."""
    monkeypatch.setattr(sys, "argv", ["checker.py", *map(str, arguments)])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(SOURCE), run_name="__main__")
    return ended.value.code


def patched(data, offset, value):
    """An archive with one byte of the first entry of its directory replaced."""
    at = data.index(b"PK\x01\x02") + offset
    return data[:at] + bytes([value]) + data[at + 1 :]


def garbled(data):
    """An archive whose first member begins with bytes that deflate never writes."""
    at = 30 + sum(int.from_bytes(data[k : k + 2], "little") for k in (26, 28))
    return data[:at] + b"\xff" * 8 + data[at + 8 :]


DAMAGE = {
    "no deflate data": garbled,
    "an unknown compression": lambda data: patched(data, 10, 99),
    "encryption": lambda data: patched(data, 8, 1),
    "half of it": lambda data: data[: len(data) // 2],
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_archive_is_unreadable_and_not_rejected(tmp_path, damage, monkeypatch, capsys):
    instance = load_instance("pair-fused")
    whole, broken = tmp_path / "whole.npz", tmp_path / "broken.npz"
    instance.problem.save(tmp_path / "problem.npz")
    save_certificate(whole, instance.certificate, instance.W)
    assert exit_code(tmp_path / "problem.npz", whole, monkeypatch=monkeypatch) == 0
    broken.write_bytes(DAMAGE[damage](whole.read_bytes()))
    assert exit_code(tmp_path / "problem.npz", broken, monkeypatch=monkeypatch) == 2
    assert exit_code(broken, whole, monkeypatch=monkeypatch) == 2
    assert "unreadable" in capsys.readouterr().err
    with pytest.raises(ValueError, match=r"broken\.npz is not a readable certificate"):
        load_certificate(broken, instance.problem)


def test_json_that_is_nested_too_deeply_is_unreadable(tmp_path, monkeypatch):
    (tmp_path / "deep.json").write_text('{"W": ' + "[" * 100_000)
    assert exit_code(tmp_path / "deep.json", tmp_path / "deep.json", monkeypatch=monkeypatch) == 2
    with pytest.raises(ValueError, match=r"deep\.json is not a readable certificate"):
        load_certificate(tmp_path / "deep.json", load_instance("pair-fused").problem)


@pytest.mark.parametrize("value", [np.longdouble("1e4000"), np.float16("inf"), np.datetime64("2020-01-01"), 1j])
def test_numbers_that_no_double_holds_are_refused(tmp_path, value):
    np.savez(tmp_path / "c.npz", W=np.full((2, 2), value))
    with np.errstate(over="ignore"), pytest.raises(ValueError, match="finite numbers"):
        checker.read(str(tmp_path / "c.npz"), {"W": 2})


@pytest.mark.parametrize("ending", [in_long("npz"), "json"])
def test_a_file_with_random_bytes_is_judged_or_unreadable(tmp_path, ending, monkeypatch, capsys):
    """Only the documented exit codes, and only the documented errors; a rejection has its reasons."""
    instance = load_instance("pair-fused")
    path = tmp_path / f"c.{ending}"
    instance.problem.save(tmp_path / "problem.npz")
    save_certificate(path, instance.certificate, instance.W)
    data = path.read_bytes()
    rng = np.random.default_rng(0)
    codes = []
    for _ in range(250):
        damaged = bytearray(data)
        for at in rng.integers(len(data), size=rng.integers(1, 4)):
            damaged[at] = rng.integers(256)
        path.write_bytes(damaged)
        codes.append(exit_code(tmp_path / "problem.npz", path, monkeypatch=monkeypatch))
        printed = capsys.readouterr()
        assert bool(printed.out) == (codes[-1] != 2) == (not printed.err)
        if codes[-1] == 1:
            assert json.loads(printed.out)["reasons"]
        if codes[-1] == 2:
            with pytest.raises(ValueError, match=r"."):
                load_certificate(path, instance.problem)
        else:
            load_certificate(path, instance.problem)
    assert codes.count(2) > 150


@pytest.mark.parametrize("seed", range(4))
def test_a_damaged_problem_is_judged_or_unreadable(tmp_path, seed, monkeypatch, capsys):
    instance = load_instance("pair-fused")
    path = tmp_path / "problem.npz"
    instance.problem.save(path)
    save_certificate(tmp_path / "c.json", instance.certificate, instance.W)
    data = path.read_bytes()
    rng = np.random.default_rng(seed)
    for _ in range(60):
        damaged = bytearray(data)
        for at in rng.integers(len(data), size=rng.integers(1, 4)):
            damaged[at] = rng.integers(256)
        path.write_bytes(damaged)
        assert exit_code(path, tmp_path / "c.json", monkeypatch=monkeypatch) in (0, 1, 2)
        capsys.readouterr()


# ---- the format, from the package's side ------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["npz", "json"])
def test_certificates_survive_the_file_exactly(instance, tmp_path, ending):
    path = tmp_path / f"c.{ending}"
    save_certificate(path, instance.certificate, instance.W)
    back, W = load_certificate(path, instance.problem)
    np.testing.assert_array_equal(W, instance.W)
    np.testing.assert_array_equal(back.alpha, instance.certificate.alpha)
    np.testing.assert_array_equal(back.U, instance.certificate.U)
    assert back.dual == instance.certificate.dual


def test_problem_without_edges(tmp_path):
    problem = llr_cvx.Problem([[1.0], [2.0]], [1, -1], [], [], lambda1=0.0, lambda2=1.0)
    W = np.zeros((2, 1))
    save_certificate(tmp_path / "c.json", llr_cvx.certify(problem, W), W)
    back, _ = load_certificate(tmp_path / "c.json", problem)
    assert back.U.shape == (0, 1)


def test_loading_says_what_is_wrong(instance, tmp_path):
    with pytest.raises(ValueError, match=r"\.json or an \.npz"):
        save_certificate(tmp_path / "c.txt", instance.certificate, instance.W)
    with pytest.raises(FileNotFoundError, match="does not exist"):
        load_certificate(tmp_path / "none.json", instance.problem)
    (tmp_path / "c.json").write_text("{}")
    with pytest.raises(ValueError, match="W, alpha, U, primal, dual missing"):
        load_certificate(tmp_path / "c.json", instance.problem)
