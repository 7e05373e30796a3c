"""The instance library: every stored interval is proved again, and exports are the same problems."""

import csv
import json
import re
import runpy
import subprocess
import sys
from dataclasses import replace
from itertools import pairwise

import cvxpy as cp
import numpy as np
import pytest
from click.testing import CliRunner
from scipy.io import loadmat
from sizes import in_long, thinned

import llr_cvx as llr
from llr_cvx import checker
from llr_cvx.cli import main
from llr_cvx.instances import library, list_instances, load_instance
from llr_cvx.instances.export import export_instance, export_problem
from llr_cvx.instances.generators import GRID, chain, complete, ring
from llr_cvx.instances.library import (
    DATA_DIR,
    MAX_RELATIVE_WIDTH,
    build_instance,
    read_instance,
    recertify,
    write_instance,
)
from llr_cvx.instances.planted import Planted, plant
from llr_cvx.instances.recipes import RECIPES
from llr_cvx.oracles import solve_decoupled

NAMES = list_instances()
STORED = [name for name in NAMES if RECIPES[name].stored]
LARGE = [name for name in NAMES if not RECIPES[name].stored]


def fused(instance):
    """Whether the reference rows are equal, for each edge."""
    return ~(instance.problem.incidence @ instance.W).any(axis=1)


@pytest.mark.parametrize("name", thinned(STORED, 9))
def test_interval_is_proved_again(name):
    instance = load_instance(name)
    proved = recertify(instance)
    assert proved.relative_width <= instance.relative_width <= MAX_RELATIVE_WIDTH == 1e-9
    # The generator still produces the stored problem (libraries may differ in the last digits).
    made = RECIPES[name].make()
    problem = made.problem if isinstance(made, Planted) else made
    np.testing.assert_allclose(problem.X, instance.problem.X, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(problem.weights, instance.problem.weights, rtol=1e-9)
    np.testing.assert_array_equal(problem.edges, instance.problem.edges)
    np.testing.assert_array_equal(problem.y, instance.problem.y)
    assert problem.lambda1 == pytest.approx(instance.problem.lambda1, rel=1e-9)
    assert problem.lambda2 == pytest.approx(instance.problem.lambda2, rel=1e-9)


@pytest.mark.parametrize("solve", [llr.solve_irls, llr.solve_fast])
@pytest.mark.parametrize("name", thinned(STORED, 18))
def test_both_solvers_land_in_the_interval(name, solve):
    instance = load_instance(name)
    s = solve(instance.problem, tol=1e-9)
    assert s.status == "optimal"
    assert instance.lower * (1 - 1e-12) <= s.objective <= instance.upper * (1 + 2e-9)
    assert s.certificate.dual <= instance.upper * (1 + 1e-12)


@pytest.mark.parametrize("name", [name if name.endswith("-300") else in_long(name) for name in LARGE])
def test_the_interval_of_a_large_instance_agrees_with_a_fresh_solve(name):
    instance = load_instance(name)
    assert instance.relative_width <= MAX_RELATIVE_WIDTH
    s = llr.solve_fast(instance.problem, tol=1e-6)
    assert s.status == "optimal"
    assert instance.lower <= s.objective <= instance.upper * (1 + 2e-6)
    assert s.certificate.dual <= instance.upper


@pytest.mark.long
@pytest.mark.parametrize("name", ["wide-300", in_long("size-500")])
def test_a_large_interval_is_proved_again_by_a_fresh_solve(name):
    instance = load_instance(name)
    assert instance.stored is None
    proved = recertify(instance)
    assert proved.relative_width <= 0.5 * instance.relative_width
    assert proved.active == pytest.approx(instance.active, abs=2e-3)
    assert proved.fused == pytest.approx(instance.fused, abs=2e-3)
    width = instance.upper - instance.lower
    with pytest.raises(RuntimeError, match="stored interval"):
        recertify(replace(proved, lower=instance.lower + width, upper=instance.upper + width))


def test_a_generator_that_changed_is_noticed(tmp_path, monkeypatch):
    write_instance(load_instance("wide-300"), tmp_path)
    assert read_instance("wide-300", tmp_path).lower == load_instance("wide-300").lower
    problem = load_instance("wide-300").problem
    X = problem.X.copy()
    X[3, 7] = np.nextafter(X[3, 7], np.inf)
    other = llr.Problem(X, problem.y, problem.edges, problem.weights, problem.lambda1, problem.lambda2)
    monkeypatch.setitem(RECIPES, "wide-300", replace(RECIPES["wide-300"], make=lambda: other))
    with pytest.raises(RuntimeError, match="regenerate --only wide-300"):
        read_instance("wide-300", tmp_path)


@pytest.mark.parametrize("name", [in_long(name) if name.endswith("5000") else name for name in LARGE])
def test_large_problems_are_on_a_grid_that_every_machine_hits(name):
    p = load_instance(name).problem
    for values in (p.X, p.weights):
        np.testing.assert_array_equal(values / GRID, np.round(values / GRID))


@pytest.mark.parametrize("name", ["pair-apart", "fused-some", "islands", "opposite-twins", "planted-clusters"])
def test_conic_solver_lands_in_the_interval(name):
    instance = load_instance(name)
    s = llr.solve_exact(instance.problem)
    assert instance.lower * (1 - 1e-12) <= s.objective <= instance.upper * (1 + 1e-6)


def test_recertification_notices_a_wrong_interval():
    instance = load_instance("fused-some")
    with pytest.raises(RuntimeError, match="stored interval"):
        recertify(replace(instance, lower=instance.lower * (1 + 1e-12), upper=instance.upper * (1 + 1e-12)))
    with pytest.raises(RuntimeError, match="relative width"):
        recertify(replace(instance, stored=instance.point._replace(U=0.99 * instance.U)))


# ---- what the library spans -----------------------------------------------------------------------------


def test_the_library_spans_what_it_promises():
    assert len(NAMES) == 60
    instances = {name: load_instance(name) for name in STORED}
    shapes = np.array([i.problem.shape for i in instances.values()])
    assert shapes[:, 0].min() == 2
    assert shapes[:, 1].min() == 1
    assert shapes[:, 1].max() == 100
    shares = {name: fused(i).mean() for name, i in instances.items() if len(i.problem.edges)}
    assert shares["fused-none"] == 0
    assert 0 < shares["fused-some"] < 0.5 < shares["fused-most"] < 1
    assert shares["fused-all"] == 1
    assert shares["lambda1-huge"] == 1
    assert instances["decoupled"].problem.lambda1 == 0
    assert instances["lambda2-tiny"].problem.lambda2 <= 1e-5
    assert instances["lambda2-huge"].problem.lambda2 >= 1e5
    assert len(instances["isolated"].problem.graph.isolated) == 10
    assert instances["islands"].problem.graph.n_components == 7
    degrees = np.bincount(instances["star"].problem.edges.ravel())
    assert degrees[0] == 39
    assert degrees[1:].max() == 1
    assert len(instances["complete"].problem.edges) == 24 * 23 // 2
    twins = instances["opposite-twins"].problem
    np.testing.assert_array_equal(twins.X[:16], twins.X[16:])
    np.testing.assert_array_equal(twins.y[:16], -twins.y[16:])
    scales = np.abs(instances["bad-scales"].problem.X).max(axis=0)
    assert scales.max() / scales.min() > 1e7
    for d in (10, 50):
        X_inlier, X_test, _ = llr.make_synthetic(d, 0)
        np.testing.assert_allclose(instances[f"paper-d{d}"].problem.X, np.vstack([X_inlier, X_test]), rtol=1e-12)


def test_the_size_ladder():
    rungs = [load_instance(name).problem for name in NAMES if name.startswith("size-")]
    assert [p.shape for p in rungs] == [(N, 10) for N in (100, 200, 500, 1000, 2000, 5000)]
    assert len({(p.lambda1, p.lambda2) for p in rungs}) == 1


def relative_slacks(instance):
    """1 - |v_ik| / M_i of unselected features, 1 - ||U_e|| / radius of fused edges, ||d_e|| / ||w_i|| of the others."""
    p = instance.problem
    v = np.abs(p.dual_vectors(instance.alpha, instance.U))
    selection = (1 - v / v.max(axis=1, keepdims=True))[instance.W == 0]
    together = fused(instance)
    fusion = 1 - np.linalg.norm(instance.U, axis=1)[together] / p.radii[together]
    d = np.linalg.norm(p.incidence @ instance.W, axis=1)[~together]
    return selection, fusion, d / np.linalg.norm(instance.W[p.edges[~together, 0]], axis=1)


def test_the_regimes_are_what_they_say():
    ties, _, _ = relative_slacks(load_instance("near-ties-planted"))
    assert len(ties) > 100
    assert ties.max() <= 2.1e-6
    assert ties.min() > 0.9e-6
    _, fusion, _ = relative_slacks(load_instance("barely-fused"))
    assert len(fusion) > 100
    assert 0.9e-6 < fusion.min() <= fusion.max() <= 2.1e-6
    _, _, distance = relative_slacks(load_instance("nearly-fused"))
    assert np.mean((distance > 0) & (distance < 1e-5)) > 0.8
    X = load_instance("near-ties").problem.X
    np.testing.assert_allclose(X[:, :6], X[:, 6:], rtol=1e-5)
    assert not np.any(X[:, :6] == X[:, 6:])
    for name, decades in (("mixed-scales", 3), ("mixed-clusters", 2)):
        scale = np.abs(load_instance(name).problem.X).max(axis=0)
        assert scale.max() / scale.min() > 10.0**decades
    for name in ("wide-300", "wide-1000"):
        N, d = load_instance(name).problem.shape
        assert d >= 7 * N
    for name, edges in (("path-1000", 999), ("path-5000", 4999)):
        p = load_instance(name).problem
        np.testing.assert_array_equal(p.edges, chain(edges + 1))
    spectrum = np.linalg.svd(load_instance("correlated-tiny").problem.X, compute_uv=False)
    assert spectrum[3] < 0.2 * spectrum[1]  # two factors and the shift of the outliers
    assert load_instance("clustered-tiny").problem.graph.n_components == 6
    assert max(load_instance(f"{kind}-tiny").problem.lambda2 for kind in ("clustered", "correlated")) <= 1e-4


def test_the_network_lasso_is_the_limit_of_its_instances():
    """J_0 <= J and J* falls with lambda2, so every upper end holds for lambda2 = 0; below, by lambda2 sum ||w||_1^2."""
    limits = [load_instance(name) for name in NAMES if name.startswith("network-lasso")]
    assert [i.problem.lambda2 for i in limits] == [1e-2, 1e-4, 1e-6]
    assert all("network lasso" in i.description for i in limits)
    assert all(a.lower > b.upper for a, b in pairwise(limits))
    W = llr.solve_fast(limits[0].problem.with_lambdas(lambda2=0.0), tol=1e-9).W
    for instance in limits:
        p = instance.problem
        J0 = p.with_lambdas(lambda2=0.0).objective(W)
        assert J0 <= instance.upper
        R = np.abs(W).sum(axis=1).max()
        assert J0 + p.lambda2 * len(W) * R**2 >= J0 + p.lambda2 * np.sum(np.abs(W).sum(axis=1) ** 2) >= instance.lower
    assert limits[-1].upper - J0 <= 1e-4 * J0


def test_closed_forms_match():
    for name in ("decoupled", "no-edges", "exclusive-logistic"):
        instance = load_instance(name)
        W = solve_decoupled(instance.problem)
        assert instance.problem.objective(W) == pytest.approx(instance.upper, rel=1e-14)


# ---- planted optima -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [n for n in NAMES if n.startswith("planted")])
def test_planted_optimum_satisfies_the_optimality_conditions(name):
    """The dual conditions of Sec. 2, recomputed here from the definition."""
    made = RECIPES[name].make()
    p, W = made.problem, made.W
    np.testing.assert_allclose(made.alpha, p.alpha(W), rtol=1e-12)
    D = W[p.edges[:, 0]] - W[p.edges[:, 1]]
    length = np.linalg.norm(D, axis=1)
    apart = length > 0
    np.testing.assert_allclose(
        made.U[apart], (p.radii[apart] / length[apart])[:, None] * D[apart], rtol=1e-9, atol=1e-12
    )
    assert np.all(np.linalg.norm(made.U[~apart], axis=1) < p.radii[~apart])
    v = p.dual_vectors(made.alpha, made.U)
    M = 2 * p.lambda2 * np.abs(W).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(v[W != 0], (-M * np.sign(W))[W != 0], rtol=1e-9, atol=1e-12)
    assert np.all(np.abs(v) <= M * (1 + 1e-9) + 1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_planting_any_structure(seed):
    rng = np.random.default_rng(seed)
    N, d = int(rng.integers(4, 20)), int(rng.integers(1, 6))
    chosen = (rng.random(d) < 0.7) | (np.arange(d) == 0)
    W = rng.standard_normal((3, d))[rng.integers(0, 3, N)] * chosen * 10.0 ** rng.integers(-3, 4)
    edges = (chain, ring, complete)[seed % 3](N)
    made = plant(W, edges, rng.uniform(0.5, 2.0, len(edges)), 1.0, 1.0, rng)
    c = llr.certify(made.problem, made.W, made.alpha, made.U)
    assert abs(c.relative_gap) < 1e-13
    other = made.W * (1 + 0.01 * rng.standard_normal(W.shape))
    assert made.problem.objective(other) > c.primal


# ---- files ------------------------------------------------------------------------------------------------


def test_unknown_name_and_missing_file(tmp_path):
    with pytest.raises(ValueError, match="no instance is called 'nothing'"):
        load_instance("nothing")
    with pytest.raises(FileNotFoundError, match="pair-fused"):
        read_instance("pair-fused", tmp_path)


def test_build_write_read(tmp_path):
    built = build_instance("pair-fused")
    write_instance(built, tmp_path)
    back = read_instance("pair-fused", tmp_path)
    np.testing.assert_array_equal(back.W, built.W)
    assert (back.lower, back.upper) == (built.lower, built.upper)


def test_the_stored_files_are_small():
    assert sum(path.stat().st_size for path in DATA_DIR.iterdir()) < 2e6
    assert sum((DATA_DIR / f"{name}.npz").stat().st_size for name in LARGE) < 2e4


def read_cbf(path):
    """A reader written for this test: cones, objective, A and b of a CBF file."""
    lines = [line for line in path.read_text().splitlines() if line and not line.startswith("#")]
    blocks, at = {}, 0
    while at < len(lines):
        key = lines[at]
        at += 1
        if key in ("VER", "OBJSENSE"):
            blocks[key] = lines[at]
            at += 1
            continue
        head = [int(x) for x in lines[at].split()]
        blocks[key] = (head, [line.split() for line in lines[at + 1 : at + 1 + head[-1]]])
        at += 1 + head[-1]
    return blocks


def solve_cbf(path):
    """Solve the CBF file, as it stands, with CVXPY; return the optimal value and x."""
    blocks = read_cbf(path)
    assert (blocks["VER"], blocks["OBJSENSE"]) == ("3", "MIN")
    (n, _), variables = blocks["VAR"]
    assert variables == [["F", str(n)]]
    (m, _), cones = blocks["CON"]
    A, b, c = np.zeros((m, n)), np.zeros(m), np.zeros(n)
    for i, j, value in blocks["ACOORD"][1]:
        A[int(i), int(j)] += float(value)
    for i, value in blocks["BCOORD"][1]:
        b[int(i)] = float(value)
    for j, value in blocks["OBJACOORD"][1]:
        c[int(j)] = float(value)
    x = cp.Variable(n)
    z = A @ x + b
    constraints, at = [], 0
    for kind, size in cones:
        part = z[at : at + int(size)]
        at += int(size)
        if kind == "L+":
            constraints.append(part >= 0)
        elif kind == "Q":
            constraints.append(cp.SOC(part[0], part[1:]))
        elif kind == "QR":  # 2 u v >= ||w||^2
            constraints.append(cp.SOC(part[0] + part[1], cp.hstack([part[0] - part[1], np.sqrt(2) * part[2]])))
        else:
            assert kind == "EXP"  # u0 >= u1 exp(u2 / u1)
            constraints.append(cp.ExpCone(part[2], part[1], part[0]))
    assert at == m
    return cp.Problem(cp.Minimize(c @ x), constraints).solve(solver="CLARABEL"), x.value


@pytest.mark.parametrize("name", ["pair-apart", "pair-fused", "same-twins", "no-edges"])
def test_cbf_file_has_the_certified_optimum(name, tmp_path):
    instance = load_instance(name)
    folder = export_instance(instance, tmp_path)
    value, x = solve_cbf(folder / "problem.cbf")
    assert value == pytest.approx(instance.upper, rel=1e-6)
    W = x[: instance.W.size].reshape(instance.W.shape)
    assert instance.problem.objective(W) == pytest.approx(instance.upper, rel=1e-5)


def test_export_is_exact(tmp_path):
    instance = load_instance("islands")
    folder = export_instance(instance, tmp_path)
    p = instance.problem
    for name, matrix in (("samples", np.column_stack([p.y, p.X])), ("W", instance.W), ("U", instance.U)):
        with open(folder / f"{name}.csv", newline="") as stream:
            rows = list(csv.reader(stream))
        np.testing.assert_array_equal(np.array(rows[1:], dtype=float), matrix)
    with open(folder / "edges.csv", newline="") as stream:
        rows = list(csv.reader(stream))[1:]
    np.testing.assert_array_equal([[int(i), int(j)] for i, j, _ in rows], p.edges)
    np.testing.assert_array_equal([float(w) for *_, w in rows], p.weights)
    facts = json.loads((folder / "instance.json").read_text())
    assert (facts["lower"], facts["upper"]) == (instance.lower, instance.upper)
    result = checker.check(
        checker.read(str(folder / "problem.npz"), checker.PROBLEM),
        checker.read(str(folder / "certificate.json"), checker.CERTIFICATE),
        tol=1e-9,
    )
    assert result["confirmed"]


@pytest.mark.parametrize("name", ["islands", "no-edges"])
def test_mat_files_are_exact(name, tmp_path):
    instance = load_instance(name)
    folder = export_instance(instance, tmp_path)
    p = instance.problem
    problem, proof = (loadmat(folder / f"{kind}.mat") for kind in ("problem", "certificate"))
    for key in ("X", "edges", "lambda1", "lambda2"):
        np.testing.assert_array_equal(problem[key], np.reshape(getattr(p, key), problem[key].shape))
    np.testing.assert_array_equal(problem["y"], p.y[:, None])
    np.testing.assert_array_equal(problem["weights"].ravel(), p.weights)
    np.testing.assert_array_equal((problem["B"] @ proof["W"]), p.incidence @ instance.W)
    for key in ("W", "U"):
        np.testing.assert_array_equal(proof[key], getattr(instance, key))
    np.testing.assert_array_equal(proof["alpha"], instance.alpha[:, None])
    assert (proof["lower"].item(), proof["upper"].item()) == (instance.lower, instance.upper)


@pytest.mark.parametrize("name", [in_long("pair-fused"), in_long("no-edges")])
def test_the_cvxpy_program_stands_alone(name, tmp_path):
    instance = load_instance(name)
    program = export_instance(instance, tmp_path) / "cvxpy_problem.py"
    assert "llr_cvx" not in program.read_text()
    command = [sys.executable, "-I", "-W", "error", str(program), "CLARABEL"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    status, value, lower, upper = re.fullmatch(r"(\w+): (\S+), .* (\S+) and (\S+)\n", done.stdout).groups()
    assert status == "optimal"
    assert (float(lower), float(upper)) == (instance.lower, instance.upper)
    assert float(value) == pytest.approx(instance.upper, rel=1e-6)


def test_the_cvxpy_program_states_the_same_problem(tmp_path):
    instance = load_instance("islands")
    program = export_instance(instance, tmp_path) / "cvxpy_problem.py"
    model, W = runpy.run_path(str(program))["build"]()
    W.value = np.random.default_rng(0).standard_normal(W.shape)
    assert model.objective.value == pytest.approx(instance.problem.objective(W.value), rel=1e-12)


def test_a_problem_is_exported_without_being_solved(tmp_path, monkeypatch):
    monkeypatch.setattr(library, "solve_fast", lambda *_, **__: pytest.fail("solved"))
    instance = load_instance("wide-300")
    target = export_problem(instance.problem, tmp_path / "mine")
    found = llr.Problem.load(target / "problem.npz")
    np.testing.assert_array_equal(found.X, instance.problem.X)


# ---- the command ------------------------------------------------------------------------------------------


def call(*arguments):
    return CliRunner().invoke(main, ["instances", *map(str, arguments)])


def test_command_list(tmp_path):
    done = call("list", "--json", tmp_path / "all.json")
    assert done.exit_code == 0, done.output
    rows = json.loads((tmp_path / "all.json").read_text())
    assert [row["name"] for row in rows] == NAMES
    header, *lines = done.output.splitlines()
    for word in ("active", "fused", "difficulty", "Clarabel"):
        assert word in header
    assert [line.split()[0] for line in lines] == NAMES
    for row in rows:
        instance = load_instance(row["name"]) if row["name"] in STORED else None
        assert row["difficulty"] in ("easy", "medium", "hard")
        assert row["effort"]["clarabel"]
        if instance:
            assert row["active"] == np.mean(instance.W != 0)
            assert row["fused"] == (pytest.approx(fused(instance).mean()) if row["edges"] else None)
    text = done.output
    for words in ("network lasso", "exclusive-regularised logistic regression", "size ladder", "failed, "):
        assert words in text


def test_command_export(tmp_path):
    done = call("export", tmp_path / "out", "--only", "pair-apart", "--only", "zeros")
    assert done.exit_code == 0, done.output
    out = tmp_path / "out"
    assert sorted(path.name for path in out.iterdir()) == ["README.md", "checker.py", "pair-apart", "zeros"]
    assert call("export", out, "--only", "islands").exit_code == 0
    guide = (out / "README.md").read_text()
    for name in ("islands", "pair-apart", "zeros"):  # everything in the folder, not only what was added last
        instance = load_instance(name)
        assert f"| {name} |" in guide
        assert f"| {instance.lower} | {instance.upper} |" in guide
    for file in (out / "islands").iterdir():
        assert f"`{file.name}`" in guide


def test_the_exported_guide_tells_how_to_recheck(tmp_path):
    assert call("export", tmp_path, "--only", "pair-fused").exit_code == 0
    recheck, judge = re.findall(r"^    ((?:python|llr-cvx) .*)$", (tmp_path / "README.md").read_text(), re.MULTILINE)
    program, *arguments = recheck.split()
    assert program == "python"
    done = subprocess.run([sys.executable, "-I", *arguments], cwd=tmp_path, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    (tmp_path / "mine.csv").write_text((tmp_path / "pair-fused" / "W.csv").read_text())
    paths = [str(tmp_path / word) if word.endswith((".npz", ".csv")) else word for word in judge.split()[1:]]
    result = CliRunner().invoke(main, [*paths, "--solver", "irls"])
    assert result.exit_code == 0, result.output
    assert "mine.csv: accepted" in result.output


def test_command_export_refuses_what_it_cannot_do(tmp_path):
    (tmp_path / "file").write_text("")
    assert call("export", tmp_path / "file" / "x", "--only", "zeros").exit_code != 0
    assert "no instance is called" in call("export", tmp_path, "--only", "none").output


def test_command_regenerate_and_check(tmp_path):
    done = call("regenerate", "--folder", tmp_path, "--only", "pair-fused", "--only", "planted-apart")
    assert done.exit_code == 0, done.output
    assert "2 of 2 proved" in done.output
    assert len(list(tmp_path.glob("*.npz"))) == 2
    done = call("check", "--only", "pair-fused", "--json", tmp_path / "check.json")
    assert done.exit_code == 0
    assert json.loads((tmp_path / "check.json").read_text())[0]["lower"] > 0
