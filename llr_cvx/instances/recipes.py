"""The instance library as a table: one recipe per problem, with what makes it special."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from llr_cvx.instances import generators as g
from llr_cvx.instances.planted import Planted
from llr_cvx.problem import Problem


@dataclass(frozen=True)
class Recipe:
    """How to generate one instance, with its optimum where that is planted.

    `stored`: whether the package holds the samples, W and the dual point. Otherwise it holds only the proven interval
    and a digest of the problem: the samples are generated anew, and W and the dual point solved for when asked for.
    """

    make: Callable[[], Problem | Planted]
    description: str
    stored: bool = True


def _recipe(
    description: str, generator: Callable[..., Problem | Planted], *given: Any, stored: bool = True, **options: Any
) -> Recipe:
    return Recipe(partial(generator, *given, **options), description, stored)


RECIPES: dict[str, Recipe] = {
    "pair-apart": _recipe("two samples, one feature, not fused", g.pair, 2.0, 0.1),
    "pair-fused": _recipe("two samples, one feature, fused", g.pair, -2.0, 5.0),
    "fused-none": _recipe("N = 64: no edge fuses", g.synthetic, 6, 1, 1e-4, 0.3, g.SMALL),
    "fused-some": _recipe("N = 64: some edges fuse", g.synthetic, 6, 1, 0.1, 0.1, g.SMALL),
    "fused-most": _recipe("N = 64: most edges fuse", g.synthetic, 6, 1, 0.5, 0.1, g.SMALL),
    "fused-all": _recipe("N = 64: every component fuses", g.synthetic, 6, 1, 10.0, 0.1, g.SMALL),
    "decoupled": _recipe(
        "exclusive-regularised logistic regression (lambda1 = 0)", g.gaussian, 2, 40, 8, g.ring(40), 0.0, 0.5
    ),
    "no-edges": _recipe("no edge at all: closed form, lambda1 > 0", g.gaussian, 3, 20, 5, g.NO_EDGES, 1.0, 0.2),
    "lambda1-huge": _recipe("lambda1 = 1e6: one shared w", g.gaussian, 4, 30, 5, g.complete(30), 1e6, 0.1),
    "lambda1-tiny": _recipe("lambda1 = 1e-8: almost decoupled", g.gaussian, 5, 30, 5, g.ring(30), 1e-8, 0.1),
    "lambda2-huge": _recipe("lambda2 = 1e6: W almost zero", g.gaussian, 6, 40, 6, g.ring(40), 0.1, 1e6),
    "lambda2-tiny": _recipe("lambda2 = 1e-5: large weights", g.synthetic, 4, 6, 0.1, 1e-5, g.SMALL),
    "isolated": _recipe("ten isolated samples beside a chain", g.gaussian, 7, 30, 4, g.chain(20), 0.2, 0.5),
    "islands": _recipe("three components of different shape and four isolated samples", g.islands, 8),
    "star": _recipe("a hub of degree 39", g.gaussian, 9, 40, 5, g.star(40), 0.1, 0.2),
    "complete": _recipe("every pair joined", g.gaussian, 10, 24, 4, g.complete(24), 0.02, 0.2),
    "long-chain": _recipe("150 samples in a row, one feature", g.gaussian, 11, 150, 1, g.chain(150), 0.3, 0.1),
    "opposite-twins": _recipe("every sample twice, with opposite labels", g.duplicates, 12, True),
    "same-twins": _recipe("every sample twice, with the same label", g.duplicates, 13, False),
    "identical": _recipe("all samples are one point", g.identical_rows),
    "bad-scales": _recipe("columns scaled from 1e-4 to 1e4", g.scaled_columns, 14),
    "far-outlier": _recipe("one row a million times larger", g.far_outlier, 15),
    "zeros": _recipe("zero rows, a zero column, edges of weight zero", g.with_zeros, 16),
    "binary": _recipe("features -1 and +1: W not unique", g.binary, 17),
    "wild-weights": _recipe(
        "edge weights from about 1e-7 to 1e7", g.gaussian, 18, 40, 5, g.ring(40), 0.1, 0.3, spread=6.0
    ),
    "one-inlier": _recipe("1 inlier, 49 test samples", g.gaussian, 19, 50, 5, g.band(50, 3), 0.1, 0.3, n_inlier=1),
    "wide": _recipe("more features than samples: d = 100, N = 64", g.synthetic, 100, 20, 0.3, 1.0, g.SMALL),
    "paper-d10": _recipe("the paper's synthetic data, d = 10", g.synthetic, 10, 0, 0.1, 1.0, g.PAPER),
    "paper-d50": _recipe("the paper's synthetic data, d = 50", g.synthetic, 50, 0, 0.1, 1.0, g.PAPER),
    "paper-d10-fused": _recipe("the same samples, strong coupling", g.synthetic, 10, 0, 1.0, 0.1, g.PAPER),
    "large": _recipe("N = 500, d = 8", g.synthetic, 8, 21, 0.2, 0.3, (320, 160, 20)),
    "planted-clusters": _recipe("five clusters, zeros", g.planted, 30, 60, 8, 5, 0.5, g.band(60, 3), 0.3, 0.2),
    "planted-apart": _recipe("all rows different", g.planted, 31, 40, 6, 40, 0.6, g.ring(40), 0.1, 0.2),
    "planted-fused": _recipe("all rows equal", g.planted, 32, 50, 10, 1, 0.4, g.band(50, 2), 0.5, 0.2),
    "planted-wide": _recipe("d = 100, three clusters", g.planted, 33, 30, 100, 3, 0.1, g.ring(30), 0.3, 0.2),
    "planted-big": _recipe("N = 400, 20 clusters", g.planted, 34, 400, 5, 20, 0.6, g.band(400, 2), 0.3, 0.2),
    # The regimes in which solvers differ.
    "clustered": _recipe("six tight clusters, lambda2 = 0.01", g.drawn, "clustered", 41, 150, 8, 0.1, 1e-2),
    "clustered-tiny": _recipe("the same samples, lambda2 = 1e-4", g.drawn, "clustered", 41, 150, 8, 0.1, 1e-4),
    "correlated": _recipe("two factors, lambda2 = 0.01", g.drawn, "correlated", 42, 150, 16, 0.1, 1e-2),
    "correlated-tiny": _recipe("the same samples, lambda2 = 1e-4", g.drawn, "correlated", 42, 150, 16, 0.1, 1e-4),
    "mixed-scales": _recipe(
        "column scales from 1e-3 to 1e3, nearest neighbours", g.drawn, "gaussian", 43, 120, 8, 0.1, 0.3, decades=3.0
    ),
    "mixed-clusters": _recipe(
        "clusters, scales from 0.01 to 100", g.drawn, "clustered", 44, 120, 8, 0.3, 1e-2, decades=2.0
    ),
    "wide-300": _recipe("d = 300, N = 40", g.drawn, "gaussian", 45, 40, 300, 0.2, 0.5, stored=False),
    "wide-1000": _recipe(
        "d = 1,000 in 125 factors, N = 24", g.drawn, "correlated", 46, 24, 1000, 0.2, 0.1, stored=False
    ),
    "near-ties": _recipe("every feature twice, up to a relative 1e-6", g.twin_columns, 47),
    "near-ties-planted": _recipe(
        "all unselected features within 2e-6 of selection", g.planted_blocks, 48, spread=0.3, tight=True
    ),
    "nearly-fused": _recipe(
        "neighbouring rows differ by a relative 1e-6", g.planted_blocks, 49, density=1.0, spread=g.NEARLY
    ),
    "barely-fused": _recipe(
        "equal rows whose edges are within 2e-6 of coming apart", g.planted_blocks, 50, density=1.0, tight=True
    ),
    "path-1000": _recipe("1,000 samples in a row, one feature", g.path_problem, 51, 1000, 1),
    "path-5000": _recipe("5,000 samples in a row, two features", g.path_problem, 52, 5000, 2, stored=False),
    # Known problems as limits.
    "network-lasso-1e-2": _recipe("network lasso: lambda2 = 1e-2 on its way to 0", g.network_lasso, 1e-2),
    "network-lasso-1e-4": _recipe("network lasso: the same samples, lambda2 = 1e-4", g.network_lasso, 1e-4),
    "network-lasso-1e-6": _recipe("network lasso: the same samples, lambda2 = 1e-6", g.network_lasso, 1e-6),
    "exclusive-logistic": _recipe(
        "exclusive-regularised logistic regression (lambda1 = 0)", g.drawn, "correlated", 53, 60, 40, 0.0, 0.1
    ),
    **{
        f"size-{N}": _recipe(f"size ladder: the paper's data, d = 10, N = {N:,}", g.ladder, N, stored=N < 500)
        for N in (100, 200, 500, 1000, 2000, 5000)
    },
}
