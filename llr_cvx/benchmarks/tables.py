"""What the measurements say: ratios, a table of at most 100 columns, and the promises they keep."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Hashable, Iterable, Iterator
from importlib.metadata import PackageNotFoundError, version
from typing import Any, NamedTuple

from llr_cvx.benchmarks.measure import Record
from llr_cvx.proofs.certificate import shown_gap

GIB = 2.0**30


# ---- ratios -----------------------------------------------------------------------------------------------


def ratios(records: Iterable[Record], base: Iterable[Record]) -> list[float]:
    """Time over time, seed by seed; a pair in which one side missed its gap gives none.

    >>> one = Record("race", "IRLS", 310, 10, 0.1, 1.0, 0, 1e-6, seconds=0.5, reached=1e-9)
    >>> two = Record("race", "SCS", 310, 10, 0.1, 1.0, 0, 1e-6, seconds=4.0, reached=1e-7)
    >>> ratios([two], [one])
    [8.0]
    """
    by_seed = {r.seed: r.seconds for r in base}
    found = (r.seconds / by_seed[r.seed] for r in records if r.seed in by_seed)
    return [ratio for ratio in found if not math.isnan(ratio)]


def groups(records: Iterable[Record], key: Callable[[Record], Hashable]) -> list[list[Record]]:
    """Records with the same key, in order of appearance; what is left in each group are the seeds."""
    found: dict[Hashable, list[Record]] = {}
    for r in records:
        found.setdefault(key(r), []).append(r)
    return list(found.values())


def select(records: Iterable[Record], **wanted: Any) -> list[Record]:
    """The records whose fields have the wanted values."""
    return [r for r in records if all(getattr(r, name) == value for name, value in wanted.items())]


# ---- promises ---------------------------------------------------------------------------------------------


class Promise(NamedTuple):
    """A bound on a ratio or on memory, and what was measured; `holds` is None where it could not be."""

    claim: str
    measured: str
    holds: bool | None


def promises(records: list[Record]) -> list[Promise]:
    """Every promise of the package that these records are able to test."""
    paper = select(records, part="race", N=310, lambda1=0.1, lambda2=1.0)
    found: list[Promise] = []
    for d, solver, bound in ((50, "CLARABEL", 100), (50, "SCS", 20), (10, "SCS", 10)):
        of, base = (select(paper, d=d, gap=1e-6, solver=s) for s in (solver, "IRLS"))
        claim = f"gap 1e-6, d = {d}: IRLS at least {bound}x faster than {solver}"
        found += _promise(claim, of, base, at_least=bound)
    for d in (10, 50):
        of, base = (select(paper, d=d, gap=gap, solver="IRLS") for gap in (1e-9, 1e-6))
        found += _promise(f"gap 1e-9, d = {d}: at most 4x the time to 1e-6", of, base, at_most=4)
    growing = select(records, part="size", d=20, lambda1=0.1, lambda2=1.0, gap=1e-4)
    of, base = (select(growing, N=N) for N in (16_000, 1_000))
    claim = "N = 16,000 against 1,000, d = 20, gap 1e-4: at most 24x"
    found += _promise(claim, of, base, at_most=24)
    for group in groups(select(records, part="path", points=20), lambda r: (r.d, r.setting)):
        of, base = (select(group, solver=solver) for solver in ("IRLS path", "IRLS cold"))
        claim = f"path of 20 points, {group[0].setting}, d = {group[0].d}: at most half of 20 cold solves"
        found += _promise(claim, of, base, at_most=0.5)
    plane = select(records, part="plane")
    if plane:
        claim = f"{len(plane)} cells of the plane: certified to {plane[0].gap:.0e}"
        worst = max(r.reached for r in plane)
        found.append(Promise(claim, f"worst {shown_gap(worst, '.1e')}", all(r.certified for r in plane)))
    for r in select(records, part="coupled", N=5_000, d=20, lambda1=1.0):
        claim = f"lambda1 = 1, N = 5,000: certified to {r.gap:.0e}, over half the edges fused"
        measured = f"{shown_gap(r.reached, '.1e')}, {r.fused_share:.1%}"
        found.append(Promise(claim, measured, r.certified and r.fused_share > 0.5))
    for r in select(records, part="large", N=100_000, d=20):
        claim = f"N = 100,000, d = 20: certified to {r.gap:.0e} within 2 GiB"
        fits = None if r.peak_bytes is None else r.certified and r.peak_bytes <= 2 * GIB
        found.append(Promise(claim, f"{shown_gap(r.reached, '.1e')}, {_memory(r)}", fits))
    return found


def _promise(
    claim: str, of: list[Record], base: list[Record], at_least: float = 0.0, at_most: float = math.inf
) -> Iterator[Promise]:
    """The promise about a ratio, if both of its sides were measured."""
    if not of or not base:
        return
    found = ratios(of, base)
    if found:
        ratio = statistics.median(found)
        of_seeds = f" (median of {len(found)} seeds)" if len(found) > 1 else ""
        yield Promise(claim, times(ratio) + of_seeds, at_least <= ratio <= at_most)
    else:
        missed = next(r for r in (*of, *base) if math.isnan(r.seconds))
        yield Promise(claim, f"{missed.solver} came to {missed.reached:.1e}", None)


# ---- the table --------------------------------------------------------------------------------------------


def facts(threads: int, cores: int) -> list[str]:
    """Versions and threads, two lines."""
    found = []
    for name in ("llr-cvx", "numpy", "scipy", "cvxpy", "clarabel", "scs"):
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            found.append(f"{name} (not installed)" if name != "llr-cvx" else name)
    return [", ".join(found), f"{threads} BLAS thread(s) for every solver, {cores} core(s)"]


def table(records: list[Record], head: Iterable[str] = ()) -> str:
    """All parts as text, at most 100 columns wide."""
    blocks = ["\n".join(head)] if head else []
    parts = {"race": _race, "size": _growth, "dim": _growth, "path": _path, "plane": _plane}
    for part, block in parts.items():
        of_part = select(records, part=part)
        if of_part:
            blocks.append("\n".join(block(of_part)))
    alone = [r for part in ("coupled", "large", "million") for r in select(records, part=part)]
    if alone:
        blocks.append("\n".join(_single(alone)))
    kept = promises(records)
    if kept:
        words = {True: "kept", False: "NOT KEPT", None: "no answer"}
        lines = [f"  {words[p.holds]:<9}  {p.claim}: {p.measured}" for p in kept]
        blocks.append("\n".join(["What is promised, and what was measured", *lines]))
    return "\n\n".join(blocks)


def times(ratio: float) -> str:
    """A ratio in three digits.

    >>> times(0.25), times(3.14159), times(1234.5)
    ('0.25x', '3.14x', '1234x')
    """
    return f"{ratio:.3g}x" if ratio < 1000 else f"{ratio:.0f}x"


def _race(records: list[Record]) -> list[str]:
    layout = "  {:>4}  {:>7}  {:<9} {:>11} {:>9}  {:>22}  {:>9}  {}"
    lines = [
        f"Seconds to a proved relative gap: {_setting(records[0])}, compiling included",
        layout.format("d", "gap", "solver", "seconds", "compiling", "ratio to IRLS", "proved", "tolerance"),
    ]
    for cell in groups(records, lambda r: (r.d, r.gap, r.solver)):
        r = cell[0]
        base = select(records, d=r.d, gap=r.gap, solver="IRLS")
        numbers = (_seconds(cell), _compiling(cell), _ratio(cell, base), _worst(cell))
        lines.append(layout.format(r.d, f"{r.gap:.0e}", r.solver, *numbers, _common(x.setting for x in cell)))
    return lines


def _growth(records: list[Record]) -> list[str]:
    layout = "  {:>8}  {:>5}  {:>11}  {:>22}  {:>12}  {:>9}"
    first = records[0]
    name = "N" if first.part == "size" else "d"
    lines = [
        f"IRLS, growth with {name}, gap {first.gap:.0e}: {_setting(first, with_N=False)}",
        layout.format("N", "d", "seconds", "ratio to the first", f"ratio of {name}", "proved"),
    ]
    cells = groups(records, lambda r: (r.N, r.d))
    for cell in cells:
        r = cell[0]
        grown = getattr(r, name) / getattr(cells[0][0], name)
        numbers = (_seconds(cell), _ratio(cell, cells[0]), times(grown), _worst(cell))
        lines.append(layout.format(f"{r.N:,}", r.d, *numbers))
    return lines


def _path(records: list[Record]) -> list[str]:
    layout = "  {:>4}  {:<24} {:<10} {:>7} {:>11}  {:>20}  {:>9}"
    first = records[0]
    lines = [
        f"Regularization path, gap {first.gap:.0e}: N = {first.N}, lambda2 = {first.lambda2:g}",
        layout.format("d", "range", "way", "points", "seconds", "ratio to cold", "worst gap"),
    ]
    for cell in groups(records, lambda r: (r.d, r.setting, r.solver)):
        r = cell[0]
        base = select(records, d=r.d, setting=r.setting, solver="IRLS cold")
        numbers = (_seconds(cell), _ratio(cell, base), _worst(cell))
        lines.append(layout.format(r.d, r.setting, r.solver, r.points, *numbers))
    return lines


def _plane(records: list[Record]) -> list[str]:
    lines: list[str] = []
    for of_d in groups(records, lambda r: r.d):
        first = of_d[0]
        lines += [""] if lines else []
        title = f"IRLS to {first.gap:.0e} on the plane, N = {first.N}, d = {first.d}: seconds and gap proved"
        lines.append(title + (" (median and worst of the seeds)" if len({r.seed for r in of_d}) > 1 else ""))
        columns = sorted({r.lambda2 for r in of_d})
        lines.append("  lambda1   " + "".join(f"lambda2 = {x:g}".rjust(20) for x in columns))
        for row in groups(of_d, lambda r: r.lambda1):
            cells = [select(row, lambda2=x) for x in columns]
            gaps = [shown_gap(max(r.reached for r in cell), ".1e") for cell in cells]
            shown = [f"{_seconds(cell):>11}{gap:>9}" for cell, gap in zip(cells, gaps, strict=True)]
            lines.append(f"  {row[0].lambda1:<9g} " + "".join(shown))
    return lines


def _single(records: list[Record]) -> list[str]:
    layout = "  {:<8} {:>8}  {:>4}  {:>7} {:>7}  {:>7}  {:>11}  {:>9}  {:>7}  {:>11}"
    names = ("", "N", "d", "lambda1", "lambda2", "gap", "seconds", "proved", "fused", "peak memory")
    lines = ["IRLS, single instances", layout.format(*names)]
    for r in records:
        numbers = (_seconds([r]), f"{shown_gap(r.reached, '.1e')}", f"{r.fused_share:.1%}", _memory(r))
        cells = (r.part, f"{r.N:,}", r.d, f"{r.lambda1:g}", f"{r.lambda2:g}", f"{r.gap:.0e}", *numbers)
        lines.append(layout.format(*cells))
    return lines


def _setting(r: Record, with_N: bool = True) -> str:
    return (f"N = {r.N}, " if with_N else "") + f"lambda1 = {r.lambda1:g}, lambda2 = {r.lambda2:g}"


def _memory(r: Record) -> str:
    return "-" if r.peak_bytes is None else f"{r.peak_bytes / GIB:.2f} GiB"


def middle(cell: list[Record]) -> float:
    """Median time over the seeds; NaN if one of them missed the gap."""
    seconds = [r.seconds for r in cell]
    return math.nan if any(map(math.isnan, seconds)) else statistics.median(seconds)


def _seconds(cell: list[Record]) -> str:
    return "not reached" if math.isnan(middle(cell)) else f"{middle(cell):.3f}"


def _compiling(cell: list[Record]) -> str:
    seconds = [r.compile_seconds for r in cell]
    return "-" if cell[0].solver == "IRLS" else f"{statistics.median(seconds):.3f}"


def _worst(cell: list[Record]) -> str:
    return f"{max(r.reached for r in cell):.1e}"


def _ratio(cell: list[Record], base: list[Record]) -> str:
    """The median ratio and its range over the seeds."""
    found = ratios(cell, base)
    if len(found) < len(cell):
        return "-"
    spread = f" ({min(found):.3g} to {max(found):.3g})" if min(found) < max(found) else ""
    return times(statistics.median(found)) + spread


def _common(words: Iterable[str]) -> str:
    """The words without repeats, shortened to what fits."""
    text = ", ".join(dict.fromkeys(words))
    return text if len(text) <= 15 else text[:14] + "…"
