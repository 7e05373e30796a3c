"""What the measurements say: ratios, a table of at most 100 columns, and the promises they keep."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any, NamedTuple

from llr_cvx.benchmarks.measure import SOLVERS, Record
from llr_cvx.extras import installed_version
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
    found = (r.seconds / by_seed.get(r.seed, math.nan) for r in records)
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
    """A bound on a ratio, a rate or on memory, and what was measured; `holds` is None where it could not be."""

    claim: str
    measured: str
    holds: bool | None


#: d -> how many times slower than IRLS each conic solver is, at least, to a gap of 1e-6.
RIVALS = {10: {"CLARABEL": 60, "SCS": 25}, 50: {"CLARABEL": 600, "SCS": 150}}


def promises(records: list[Record]) -> list[Promise]:
    """Every promise of the package that these records are able to test."""
    paper = select(records, part="race", N=310, lambda1=0.1, lambda2=1.0)
    found: list[Promise] = []
    for d, bounds in RIVALS.items():
        for solver, bound in bounds.items():
            of, base = (select(paper, d=d, gap=1e-6, solver=s) for s in (solver, "IRLS"))
            claim = f"gap 1e-6, d = {d}: IRLS at least {bound}x faster than CVXPY+{solver}"
            found += _promise(claim, of, base, at_least=bound)
    for d in RIVALS:
        of, base = (select(paper, d=d, gap=gap, solver="FAST") for gap in (1e-9, 1e-6))
        found += _promise(f"gap 1e-9, d = {d}: FAST at most 4x its time to 1e-6", of, base, at_most=4)
    growing = select(records, part="size", d=20, lambda1=0.1, lambda2=1.0, gap=1e-4, solver="FAST")
    of, base = (select(growing, N=N) for N in (16_000, 1_000))
    found += _promise("N = 16,000 against 1,000, d = 20, gap 1e-4: FAST at most 24x", of, base, at_most=24)
    found += _plane_promises(select(records, part="plane"))
    for r in select(records, part="coupled", N=5_000, d=20, lambda1=1.0):
        claim = f"lambda1 = 1, N = 5,000: certified to {r.gap:.0e}, over half the edges fused"
        measured = f"{shown_gap(r.reached, '.1e')}, {r.fused_share:.1%}"
        found.append(Promise(claim, measured, r.certified and r.fused_share > 0.5))
    for r in select(records, part="large", N=100_000, d=20):
        claim = f"N = 100,000, d = 20: certified to {r.gap:.0e} within 2 GiB"
        fits = None if r.peak_bytes is None else r.certified and r.peak_bytes <= 2 * GIB
        found.append(Promise(claim, f"{shown_gap(r.reached, '.1e')}, {_memory(r)}", fits))
    for r in select(records, part="new", d=20):
        claim, rate = f"new rows, d = 20: each proved to {r.gap:.0e}, at least 2,000 a second", r.points / r.seconds
        found.append(Promise(claim, f"{shown_gap(r.reached, '.1e')}, {rate:,.0f} a second", rate >= 2_000))
    return found


def _plane_promises(records: list[Record]) -> Iterator[Promise]:
    """IRLS is held to a gap of 1e-9, the fast solver to any gap."""
    for solver in ("IRLS", "FAST"):
        of = [r for r in select(records, solver=solver) if solver == "FAST" or r.gap >= 1e-9]
        if of:
            monotone = "" if solver == "FAST" else " and monotone"
            kept = [r.certified and r.monotone is not False for r in of]
            worst = shown_gap(max(r.reached for r in of), ".1e")
            claim = f"plane: {solver} certified to {of[0].gap:.0e}{monotone} in every run"
            yield Promise(claim, f"{sum(kept)} of {len(kept)}, worst gap {worst}", all(kept))
    found = plane_ratios(select(records, N=310, gap=1e-9))
    if found:
        for word, summary, bound in (("median", statistics.median, 1.5), ("largest", max, 4.0)):
            claim = f"plane to 1e-9: {word} time ratio of IRLS to FAST at most {bound:g}"
            yield Promise(claim, times(summary(found)), summary(found) <= bound)


def plane_ratios(records: list[Record]) -> list[float]:
    """Time of IRLS over that of FAST, cell by cell and seed by seed."""
    cells = groups(records, lambda r: (r.d, r.lambda1, r.lambda2))
    return [x for cell in cells for x in ratios(select(cell, solver="IRLS"), select(cell, solver="FAST"))]


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
    names = ("llr-cvx", "numpy", "scipy", "cvxpy", "clarabel", "scs")
    found = [f"{name} {installed_version(name) or '(not installed)'}" for name in names]
    return [", ".join(found), f"{threads} BLAS thread(s) for every solver, {cores} core(s)"]


def table(records: list[Record], head: Iterable[str] = ()) -> str:
    """All parts as text, at most 100 columns wide."""
    blocks = [list(head)]
    parts = {"race": _race, "size": _growth, "dim": _growth, "path": _path, "plane": _plane}
    blocks += [block(of_part) for part, block in parts.items() if (of_part := select(records, part=part))]
    if alone := [r for part in ("coupled", "large", "million") for r in select(records, part=part)]:
        blocks.append(_single(alone))
    if kept := promises(records):
        words = {True: "kept", False: "NOT KEPT", None: "no answer"}
        lines = [f"  {words[p.holds]:<9}  {p.claim}: {p.measured}" for p in kept]
        blocks.append(["What is promised, and what was measured", *lines])
    return "\n\n".join("\n".join(block) for block in blocks if block)


def times(ratio: float) -> str:
    """A ratio in three digits.

    >>> times(0.25), times(3.14159), times(1234.5)
    ('0.25x', '3.14x', '1234x')
    """
    return f"{ratio:.3g}x" if ratio < 1000 else f"{ratio:.0f}x"


def _race(records: list[Record]) -> list[str]:
    layout = "  {:>4} {:>6}  {:<8} {:>11} {:>9} {:>22} {:>7} {:>8}  {}"
    lines = [
        f"Seconds to a proved relative gap: {_setting(records[0])}, compiling included",
        layout.format("d", "gap", "solver", "seconds", "compiling", "ratio to IRLS", "to FAST", "proved", "tolerance"),
    ]
    for cell in groups(records, lambda r: (r.d, r.gap, r.solver)):
        r = cell[0]
        to_irls, to_fast = (_ratio(cell, select(records, d=r.d, gap=r.gap, solver=s)) for s in ("IRLS", "FAST"))
        numbers = (_seconds(cell), _compiling(cell), to_irls, to_fast.split()[0], _worst(cell))
        lines.append(layout.format(r.d, f"{r.gap:.0e}", r.solver, *numbers, _common(x.setting for x in cell)))
    return lines


def _growth(records: list[Record]) -> list[str]:
    layout = "  {:>8}  {:>5}  {:<6}  {:>11}  {:>22}  {:>10}  {:>13}  {:>8}"
    first = records[0]
    name = "N" if first.part == "size" else "d"
    lines = [
        f"Growth with {name}, gap {first.gap:.0e}: {_setting(first, with_N=False)}",
        layout.format(
            "N", "d", "solver", "seconds", "ratio to the first", f"ratio of {name}", "ratio to FAST", "proved"
        ),
    ]
    for cell in groups(records, lambda r: (r.N, r.d, r.solver)):
        r = cell[0]
        start = groups(select(records, solver=r.solver), lambda r: (r.N, r.d))[0]
        grown = times(getattr(r, name) / getattr(start[0], name))
        to_fast = _ratio(cell, select(records, N=r.N, d=r.d, solver="FAST"))
        numbers = (_seconds(cell), _ratio(cell, start), grown, to_fast.split()[0], _worst(cell))
        lines.append(layout.format(f"{r.N:,}", r.d, r.solver, *numbers))
    return lines


def _path(records: list[Record]) -> list[str]:
    layout = "  {:>4}  {:<24} {:<10} {:>7} {:>11}  {:>20}  {:>9}"
    first = records[0]
    lines = [
        f"Regularization path, gap {first.gap:.0e}: {_setting(first)} where not varied",
        layout.format("d", "range", "way", "points", "seconds", "ratio to cold", "worst gap"),
    ]
    for cell in groups(records, lambda r: (r.d, r.setting, r.solver)):
        r = cell[0]
        base = select(records, d=r.d, setting=r.setting, solver="FAST cold")
        numbers = (_seconds(cell), _ratio(cell, base), _worst(cell))
        lines.append(layout.format(r.d, r.setting, r.solver, r.points, *numbers))
    return lines


def _plane(records: list[Record]) -> list[str]:
    lines: list[str] = []
    for of_d in groups(records, lambda r: r.d):
        first = of_d[0]
        lines += [""] if lines else []
        seeds = ", medians and the worst gap of the seeds" if len({r.seed for r in of_d}) > 1 else ""
        lines.append(f"The plane to {first.gap:.0e}, N = {first.N}, d = {first.d}{seeds}")
        lines.append("Seconds of IRLS, its time ratio to FAST, gap proved by IRLS")
        columns = sorted({r.lambda2 for r in of_d})
        lines.append("  lambda1 " + "".join(f"lambda2 = {x:g}".rjust(22) for x in columns))
        for row in groups(of_d, lambda r: r.lambda1):
            shown = ""
            for x in columns:
                irls, fast = (select(row, lambda2=x, solver=s) for s in ("IRLS", "FAST"))
                seconds = "–" if math.isnan(middle(irls)) else _seconds(irls)
                shown += f"{seconds:>7} {_ratio(irls, fast).split()[0]:>6} {_worst(irls):>7}"
            lines.append(f"  {row[0].lambda1:<7g} {shown}")
        found = plane_ratios(of_d)
        monotone = [r.monotone for r in select(of_d, solver="IRLS")]
        summary = f"median {times(statistics.median(found))}, largest {times(max(found))}" if found else "–"
        lines.append(
            f"  IRLS / FAST: {summary}; J_epsilon monotone in {sum(map(bool, monotone))} of {len(monotone)} runs"
        )
    return lines


def _single(records: list[Record]) -> list[str]:
    layout = "  {:<8} {:>8}  {:>4}  {:>7} {:>7}  {:>7}  {:>11}  {:>9}  {:>7}  {:>11}"
    names = ("", "N", "d", "lambda1", "lambda2", "gap", "seconds", "proved", "fused", "peak memory")
    lines = ["FAST, single instances", layout.format(*names)]
    for r in records:
        numbers = (_seconds([r]), f"{shown_gap(r.reached, '.1e')}", f"{r.fused_share:.1%}", _memory(r))
        cells = (r.part, f"{r.N:,}", r.d, f"{r.lambda1:g}", f"{r.lambda2:g}", f"{r.gap:.0e}", *numbers)
        lines.append(layout.format(*cells))
    return lines


def _setting(r: Record, with_N: bool = True) -> str:
    return (f"N = {r.N}, " if with_N else "") + f"lambda1 = {r.lambda1:g}, lambda2 = {r.lambda2:g}"


def _memory(r: Record) -> str:
    return "–" if r.peak_bytes is None else f"{r.peak_bytes / GIB:.2f} GiB"


def middle(cell: list[Record]) -> float:
    """Median time over the seeds; NaN if one of them missed the gap."""
    seconds = [r.seconds for r in cell]
    return math.nan if any(map(math.isnan, seconds)) else statistics.median(seconds)


def _seconds(cell: list[Record]) -> str:
    return "not reached" if math.isnan(middle(cell)) else f"{middle(cell):.3f}"


def _compiling(cell: list[Record]) -> str:
    seconds = [r.compile_seconds for r in cell]
    return "–" if cell[0].solver in SOLVERS else f"{statistics.median(seconds):.3f}"


def _worst(cell: list[Record]) -> str:
    return shown_gap(max(r.reached for r in cell), ".1e")


def _ratio(cell: list[Record], base: list[Record]) -> str:
    """The median ratio and its range over the seeds."""
    found = ratios(cell, base)
    if len(found) < len(cell):
        return "–"
    spread = f" ({min(found):.3g} to {max(found):.3g})" if min(found) < max(found) else ""
    return times(statistics.median(found)) + spread


def _common(words: Iterable[str]) -> str:
    """The words without repeats, shortened to what fits."""
    text = ", ".join(dict.fromkeys(words))
    return text if len(text) <= 13 else text[:12] + "…"
