"""Fault drill: solvers that raise, panic, return NaN, stop early or lie are caught and reported as such."""

import warnings
from dataclasses import replace

import cvxpy as cp
import numpy as np
import pytest
from click.testing import CliRunner
from cvxpy.reductions.solvers import defines
from cvxpy.reductions.solvers.conic_solvers.clarabel_conif import CLARABEL
from sizes import in_long

import llr_cvx as llr
from llr_cvx.cli import main
from llr_cvx.instances import load_instance
from llr_cvx.instances.drill import drill
from llr_cvx.solution import SolverError

NAME = "FAULTY"


class Panic(BaseException):
    """What a panic in a compiled solver looks like: not an Exception."""


class Faulty(CLARABEL):
    """Clarabel under another name, with a fault before or after the solve."""

    def __init__(self, before=None, after=None, **options):
        super().__init__()
        self.before, self.after, self.options = before, after, options

    def name(self):
        return NAME

    def solve_via_data(self, data, warm_start, verbose, solver_opts, solver_cache=None):
        if self.before:
            self.before()
        return super().solve_via_data(data, warm_start, verbose, self.options | solver_opts, None)

    def invert(self, solution, inverse_data):
        result = super().invert(solution, inverse_data)
        if self.after:
            self.after(result)
        return result


@pytest.fixture
def register(monkeypatch):
    """Install a faulty solver in CVXPY for one test."""

    def install(**fault):
        monkeypatch.setitem(defines.SOLVER_MAP_CONIC, NAME, Faulty(**fault))
        monkeypatch.setattr(defines, "INSTALLED_SOLVERS", [*defines.INSTALLED_SOLVERS, NAME])
        monkeypatch.setattr(defines, "CONIC_SOLVERS", [*defines.CONIC_SOLVERS, NAME])
        monkeypatch.setattr(defines, "INSTALLED_CONIC_SOLVERS", [*defines.INSTALLED_CONIC_SOLVERS, NAME])
        assert NAME in cp.installed_solvers()

    return install


@pytest.fixture
def instance():
    return load_instance("fused-some")


def raiser(error):
    def fault():
        raise error

    return fault


def spoil(values):
    """Apply a function to every primal array of a CVXPY solution."""

    def fault(solution):
        for key, value in (solution.primal_vars or {}).items():
            solution.primal_vars[key] = values(np.asarray(value, dtype=float))

    return fault


def test_the_wrapper_itself_is_harmless(register, instance):
    register()
    s = llr.solve_exact(instance.problem, solver=NAME)
    assert (s.status, s.solver) == ("optimal", NAME)
    assert s.objective == pytest.approx(instance.upper, rel=1e-7)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (RuntimeError("factorisation failed"), "RuntimeError: factorisation failed"),
        (Panic("called `Option::unwrap()`"), "Panic: called"),
        (cp.error.SolverError("gave up"), "gave up"),
        (ZeroDivisionError("division by zero"), "ZeroDivisionError"),
    ],
)
def test_raise_and_panic_become_a_clear_error(register, instance, error, words):
    register(before=raiser(error))
    with pytest.raises(SolverError, match=words):
        llr.solve_exact(instance.problem, solver=NAME)


def test_interrupt_is_not_swallowed(register, instance):
    register(before=raiser(KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        llr.solve_exact(instance.problem, solver=NAME)


def test_a_failed_solve_does_not_return_the_previous_answer(register, instance):
    """The compiled model is kept between solves; its old values must not leak out."""
    assert llr.solve_exact(instance.problem).status == "optimal"
    register(before=raiser(RuntimeError("broken")))
    with pytest.raises(SolverError, match="broken"):
        llr.solve_exact(instance.problem, solver=NAME)


@pytest.mark.parametrize("value", [np.nan, in_long(np.inf), in_long(-np.inf)])
def test_values_that_are_not_numbers(register, instance, value):
    register(after=spoil(lambda x: np.full_like(x, value)))
    with pytest.raises(SolverError, match="no finite W"):
        llr.solve_exact(instance.problem, solver=NAME)


def test_a_few_nans_are_enough(register, instance):
    def some(x):
        return np.where(np.arange(x.size).reshape(x.shape) % 50 == 7, np.nan, x)

    register(after=spoil(some))
    with pytest.raises(SolverError, match="no finite W"):
        llr.solve_exact(instance.problem, solver=NAME)


@pytest.mark.parametrize("status", ["infeasible", in_long("unbounded"), in_long("solver_error")])
def test_a_wrong_status_without_values(register, instance, status):
    def fault(solution):
        solution.status = status
        solution.primal_vars, solution.dual_vars = {}, {}

    register(after=fault)
    with pytest.raises(SolverError, match=NAME):
        llr.solve_exact(instance.problem, solver=NAME)


def test_stopping_early_under_the_name_of_optimal(register, instance):
    """Three iterations, and the status says optimal."""

    def lie(solution):
        solution.status = "optimal"

    register(after=lie, max_iter=3)
    s = llr.solve_exact(instance.problem, solver=NAME)
    assert s.status == "inaccurate"
    assert "said optimal" in s.message
    assert s.objective > instance.upper * (1 + 1e-4)
    assert s.certificate.dual <= instance.upper


@pytest.mark.parametrize("factor", [1.01, *map(in_long, (0.0, 0.9, -1.0, 1e3))])
def test_a_wrong_w_called_optimal(register, instance, factor):
    register(after=spoil(lambda x: factor * x))
    s = llr.solve_exact(instance.problem, solver=NAME, tol=1e-8)
    assert s.status == "inaccurate"
    assert s.objective == instance.problem.objective(s.W)
    assert s.certificate.dual <= instance.upper


@pytest.mark.parametrize(
    "spoiled", [lambda x: 1e6 * x, *map(in_long, (np.negative, lambda x: np.full_like(x, np.nan)))]
)
def test_lying_multipliers_prove_nothing_false(register, instance, spoiled):
    """A right W beside wrong multipliers: the bound stays below the optimum, whoever finds it."""

    def fault(solution):
        for key, value in solution.dual_vars.items():
            solution.dual_vars[key] = spoiled(np.asarray(value, dtype=float))

    register(after=fault)
    s = llr.solve_exact(instance.problem, solver=NAME)
    assert s.status == "optimal"
    assert s.certificate.dual <= instance.upper


def test_a_false_objective_value_is_recomputed(register, instance):
    def fault(solution):
        solution.opt_val = 0.0

    register(after=fault)
    s = llr.solve_exact(instance.problem, solver=NAME)
    assert s.objective == pytest.approx(instance.upper, rel=1e-7)


def test_warnings_of_a_solver_are_reported_in_the_message(register, instance):
    register(before=lambda: warnings.warn("ill conditioned", stacklevel=2))
    assert "ill conditioned" in llr.solve_exact(instance.problem, solver=NAME).message


def test_the_command_reports_a_failed_solver_and_goes_on(register, instance, tmp_path):
    instance.problem.save(tmp_path / "p.npz")
    register(before=raiser(RuntimeError("no licence")))
    done = CliRunner().invoke(main, ["verify", str(tmp_path / "p.npz"), "--solver", NAME, "--solver", "CLARABEL"])
    assert done.exit_code == 1
    assert "failed" in done.output
    assert "no licence" in done.output
    assert "CLARABEL" in done.output


# ---- the drill itself must be able to fail ------------------------------------------------------------------


def run_drill(solver, n=12):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        *_, report = drill(n, solver=solver)
    return report


def quiet(problem, tol, solve=llr.solve_fast):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return solve(problem, tol)


def test_drill_notices_a_solver_that_lies_about_w():
    def liar(problem, tol):
        s = quiet(problem, tol)
        return replace(s, W=1.5 * s.W + 1e-3, status="optimal")

    report = run_drill(liar)
    assert report.count("gap not confirmed") > 0
    assert report.count("wrong optimal") > 0


def test_drill_notices_a_solver_that_lies_about_its_proof():
    def liar(problem, tol):
        s = quiet(problem, tol)
        return replace(s, certificate=replace(s.certificate, dual=s.certificate.dual * (1 + 1e-6)))

    assert run_drill(liar).count("gap not confirmed") >= 10


def test_drill_notices_a_false_status():
    def liar(problem, tol):
        s = quiet(problem, tol)
        W = np.zeros_like(s.W)
        c = llr.certify(problem, W, s.certificate.alpha, s.certificate.U)
        return replace(s, W=W, certificate=c, status="optimal")

    report = run_drill(liar)
    assert report.count("gap not confirmed") == 0
    assert report.count("wrong optimal") >= 8  # W = 0 is optimal for the others


def test_drill_notices_a_descent_that_rises():
    def rising(problem, tol):
        s = quiet(problem, tol, llr.solve_irls)
        return replace(s, trace=replace(s.trace, smoothed_objective=1.0 + np.arange(len(s.trace.phase))))

    assert run_drill(rising, 5).count("not monotone") >= 3  # the others need no second step
    assert run_drill(llr.solve_irls, 5).findings == []


def test_drill_counts_exceptions_and_warnings():
    def breaks(problem, tol):
        raise ArithmeticError("broken")

    report = run_drill(breaks, 5)
    assert report.count("exception") == 5
    assert "ArithmeticError: broken" in str(report)

    def noisy(problem, tol):
        warnings.warn("overflow encountered", RuntimeWarning, stacklevel=2)
        return quiet(problem, tol)

    assert run_drill(noisy, 5).count("warning") == 5
