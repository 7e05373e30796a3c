"""Answers to the exercises of the notebooks: right ones from the solutions, and for each exercise a wrong one."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from nbformat.v4 import new_code_cell

CHECK = re.compile(r'^check\("(\d+\.\d+)"')
HEADING = re.compile(r"^### (\d+\.\d+) \((\w+)\)$", re.MULTILINE)
SOLUTION = re.compile(r"^## (\d+\.\d+)\n(.*?)^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)

#: A mistake that somebody may well make; the check must see it.
WRONG = {
    "1.1": "log_r_at_origin = 0.0",
    "1.2": "W_swapped = solution.W",
    "1.3": "W_any = np.zeros(problem.shape)\nbound = 100.0",
    "1.4": "lambda1_new, lambda2_new = 0.2, 2.0",
    "2.1": "def squared_norm(u, lambda2):\n    return 2 * lambda2 * u * (1 + np.exp(-u))",
    "2.2": "feature = 1",
    "2.3": "threshold = 0.1",
    "2.4": "n_vectors = 2",
    "3.1": "def remainder(a, a0):\n    return a**2 / (2 * a0) + a0 / 2 - a",  # true, and proves nothing
    "3.2": "first_C_e = 1.0",
    "3.3": "iterates = [np.zeros(problem.shape)] + [best.W] * 10",  # it falls, but no step leads there
    "3.4": "first_rise = 7",
    "4.1": "alpha = np.full(len(problem.y), 0.5)\nU = np.zeros((len(problem.edges), 10))",
    "4.2": "fit, network, selection = best.certificate.gap, 0.0, 0.0",
    "4.3": "tol = 3e-5",
    "4.4": 'bound_is = "higher"',
    "5.1": 'feature = "flavanoids"',
    "5.2": "n_outliers = 0",
    "5.3": "alpha, U = problem.alpha(np.zeros(problem.shape)), np.zeros((len(problem.edges), 13))",
    "5.4": "n_flagged = 71",
    "6.1": "minimiser = np.array([1.75, 0.75, 0.0])\ns = np.sign(minimiser)",
    "6.2": "lambda2_of_the_bug = 0.2",
    "6.3": "claim_confirmed = True\ninterval_changes = False",
    "6.4": "W_mine = run[100][0]",
    "7.1": "n_close = [7] * 6",
    "7.2": 'deviation_of = "sets"',
    "7.3": 'low = high = np.mean([TABLE2[name]["llr"].mean for name in BENCHMARKS])',
    "7.4": 'agreed = {"n_outliers", "inliers", "vehicle_outlier"}',
}


def solutions(path: Path) -> dict[str, str]:
    """The code of each solution in a Markdown file, by the number of the exercise."""
    return {number: code for number, _, code in SOLUTION.findall(path.read_text(encoding="utf-8"))}


def with_answers(cells: list[Any], right: dict[str, str]) -> list[Any]:
    """The cells of a notebook; behind each check, a wrong answer and the right one, each with the check again."""
    filled = []
    for cell in cells:
        filled.append(cell)
        found = CHECK.match(cell.source) if cell.cell_type == "code" else None
        for answer in (WRONG[found[1]], right[found[1]]) if found else ():
            filled += [new_code_cell(answer), new_code_cell(cell.source, metadata={"tags": ["answered"]})]
    return filled
