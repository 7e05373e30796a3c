"""The instance library as a table: one recipe per problem, with what makes it special."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from llr_cvx.instances.generators import (
    NO_EDGES,
    PAPER,
    SMALL,
    band,
    binary,
    chain,
    complete,
    duplicates,
    far_outlier,
    gaussian,
    identical_rows,
    islands,
    pair,
    planted,
    ring,
    scaled_columns,
    star,
    synthetic,
    with_zeros,
)
from llr_cvx.instances.planted import Planted
from llr_cvx.instances.regimes import NEARLY, drawn, ladder, network_lasso, path_problem, planted_blocks, twin_columns
from llr_cvx.problem import Problem


@dataclass(frozen=True)
class Recipe:
    """How to generate one instance.

    Attributes
    ----------
    make : callable
        Generates the problem, with its optimum where that is planted.
    description : str
    stored : bool
        Whether the package holds the samples, W and the dual point. Otherwise it holds only the proven interval and a
        digest of the problem: the samples are generated anew, and W and the dual point solved for when asked for.
    """

    make: Callable[[], Problem | Planted]
    description: str
    stored: bool = True


RECIPES: dict[str, Recipe] = {
    "pair-apart": Recipe(lambda: pair(2.0, 0.1), "two samples, one feature, not fused"),
    "pair-fused": Recipe(lambda: pair(-2.0, 5.0), "two samples, one feature, fused"),
    "fused-none": Recipe(lambda: synthetic(6, 1, 1e-4, 0.3, SMALL), "N = 64: no edge fuses"),
    "fused-some": Recipe(lambda: synthetic(6, 1, 0.1, 0.1, SMALL), "N = 64: some edges fuse"),
    "fused-most": Recipe(lambda: synthetic(6, 1, 0.5, 0.1, SMALL), "N = 64: most edges fuse"),
    "fused-all": Recipe(lambda: synthetic(6, 1, 10.0, 0.1, SMALL), "N = 64: every component fuses"),
    "decoupled": Recipe(
        lambda: gaussian(2, 40, 8, ring(40), 0.0, 0.5), "exclusive-regularised logistic regression (lambda1 = 0)"
    ),
    "no-edges": Recipe(lambda: gaussian(3, 20, 5, NO_EDGES, 1.0, 0.2), "no edge at all: closed form, lambda1 > 0"),
    "lambda1-huge": Recipe(lambda: gaussian(4, 30, 5, complete(30), 1e6, 0.1), "lambda1 = 1e6: one shared w"),
    "lambda1-tiny": Recipe(lambda: gaussian(5, 30, 5, ring(30), 1e-8, 0.1), "lambda1 = 1e-8: almost decoupled"),
    "lambda2-huge": Recipe(lambda: gaussian(6, 40, 6, ring(40), 0.1, 1e6), "lambda2 = 1e6: W almost zero"),
    "lambda2-tiny": Recipe(lambda: synthetic(4, 6, 0.1, 1e-5, SMALL), "lambda2 = 1e-5: large weights"),
    "isolated": Recipe(lambda: gaussian(7, 30, 4, chain(20), 0.2, 0.5), "ten isolated samples beside a chain"),
    "islands": Recipe(lambda: islands(8), "three components of different shape and four isolated samples"),
    "star": Recipe(lambda: gaussian(9, 40, 5, star(40), 0.1, 0.2), "a hub of degree 39"),
    "complete": Recipe(lambda: gaussian(10, 24, 4, complete(24), 0.02, 0.2), "every pair joined"),
    "long-chain": Recipe(lambda: gaussian(11, 150, 1, chain(150), 0.3, 0.1), "150 samples in a row, one feature"),
    "opposite-twins": Recipe(lambda: duplicates(12, True), "every sample twice, with opposite labels"),
    "same-twins": Recipe(lambda: duplicates(13, False), "every sample twice, with the same label"),
    "identical": Recipe(identical_rows, "all samples are one point"),
    "bad-scales": Recipe(lambda: scaled_columns(14), "columns scaled from 1e-4 to 1e4"),
    "far-outlier": Recipe(lambda: far_outlier(15), "one row a million times larger"),
    "zeros": Recipe(lambda: with_zeros(16), "zero rows, a zero column, edges of weight zero"),
    "binary": Recipe(lambda: binary(17), "features -1 and +1: W not unique"),
    "wild-weights": Recipe(
        lambda: gaussian(18, 40, 5, ring(40), 0.1, 0.3, spread=6.0), "edge weights from about 1e-7 to 1e7"
    ),
    "one-inlier": Recipe(lambda: gaussian(19, 50, 5, band(50, 3), 0.1, 0.3, n_inlier=1), "1 inlier, 49 test samples"),
    "wide": Recipe(lambda: synthetic(100, 20, 0.3, 1.0, SMALL), "more features than samples: d = 100, N = 64"),
    "paper-d10": Recipe(lambda: synthetic(10, 0, 0.1, 1.0, PAPER), "the paper's synthetic data, d = 10"),
    "paper-d50": Recipe(lambda: synthetic(50, 0, 0.1, 1.0, PAPER), "the paper's synthetic data, d = 50"),
    "paper-d10-fused": Recipe(lambda: synthetic(10, 0, 1.0, 0.1, PAPER), "the same samples, strong coupling"),
    "large": Recipe(lambda: synthetic(8, 21, 0.2, 0.3, (320, 160, 20)), "N = 500, d = 8"),
    "planted-clusters": Recipe(lambda: planted(30, 60, 8, 5, 0.5, band(60, 3), 0.3, 0.2), "five clusters, zeros"),
    "planted-apart": Recipe(lambda: planted(31, 40, 6, 40, 0.6, ring(40), 0.1, 0.2), "all rows different"),
    "planted-fused": Recipe(lambda: planted(32, 50, 10, 1, 0.4, band(50, 2), 0.5, 0.2), "all rows equal"),
    "planted-wide": Recipe(lambda: planted(33, 30, 100, 3, 0.1, ring(30), 0.3, 0.2), "d = 100, three clusters"),
    "planted-big": Recipe(lambda: planted(34, 400, 5, 20, 0.6, band(400, 2), 0.3, 0.2), "N = 400, 20 clusters"),
    # The regimes in which solvers differ.
    "clustered": Recipe(lambda: drawn("clustered", 41, 150, 8, 0.1, 1e-2), "six tight clusters, lambda2 = 0.01"),
    "clustered-tiny": Recipe(lambda: drawn("clustered", 41, 150, 8, 0.1, 1e-4), "the same samples, lambda2 = 1e-4"),
    "correlated": Recipe(lambda: drawn("correlated", 42, 150, 16, 0.1, 1e-2), "two factors, lambda2 = 0.01"),
    "correlated-tiny": Recipe(lambda: drawn("correlated", 42, 150, 16, 0.1, 1e-4), "the same samples, lambda2 = 1e-4"),
    "mixed-scales": Recipe(
        lambda: drawn("gaussian", 43, 120, 8, 0.1, 0.3, decades=3.0),
        "column scales from 1e-3 to 1e3, nearest neighbours",
    ),
    "mixed-clusters": Recipe(
        lambda: drawn("clustered", 44, 120, 8, 0.3, 1e-2, decades=2.0), "clusters, scales from 0.01 to 100"
    ),
    "wide-300": Recipe(lambda: drawn("gaussian", 45, 40, 300, 0.2, 0.5), "d = 300, N = 40", stored=False),
    "wide-1000": Recipe(
        lambda: drawn("correlated", 46, 24, 1000, 0.2, 0.1), "d = 1,000 in 125 factors, N = 24", stored=False
    ),
    "near-ties": Recipe(lambda: twin_columns(47), "every feature twice, up to a relative 1e-6"),
    "near-ties-planted": Recipe(
        lambda: planted_blocks(48, band(60, 2), spread=0.3, slack=1 - NEARLY, least=1 - 2 * NEARLY),
        "all unselected features within 2e-6 of selection",
    ),
    "nearly-fused": Recipe(
        lambda: planted_blocks(49, band(60, 2), density=1.0, spread=NEARLY),
        "neighbouring rows differ by a relative 1e-6",
    ),
    "barely-fused": Recipe(
        lambda: planted_blocks(50, band(60, 2), density=1.0, slack=1 - NEARLY, least=1 - 2 * NEARLY),
        "equal rows whose edges are within 2e-6 of coming apart",
    ),
    "path-1000": Recipe(
        lambda: path_problem(51, 1000, 1, chain(1000), 0.5, 0.02), "1,000 samples in a row, one feature"
    ),
    "path-5000": Recipe(
        lambda: path_problem(52, 5000, 2, chain(5000), 0.5, 0.02), "5,000 samples in a row, two features", stored=False
    ),
    # Known problems as limits.
    "network-lasso-1e-2": Recipe(lambda: network_lasso(1e-2), "network lasso: lambda2 = 1e-2 on its way to 0"),
    "network-lasso-1e-4": Recipe(lambda: network_lasso(1e-4), "network lasso: the same samples, lambda2 = 1e-4"),
    "network-lasso-1e-6": Recipe(lambda: network_lasso(1e-6), "network lasso: the same samples, lambda2 = 1e-6"),
    "exclusive-logistic": Recipe(
        lambda: drawn("correlated", 53, 60, 40, 0.0, 0.1), "exclusive-regularised logistic regression (lambda1 = 0)"
    ),
    # The size ladder.
    "size-100": Recipe(lambda: ladder(100), "size ladder: the paper's data, d = 10, N = 100"),
    "size-200": Recipe(lambda: ladder(200), "size ladder: the paper's data, d = 10, N = 200"),
    "size-500": Recipe(lambda: ladder(500), "size ladder: the paper's data, d = 10, N = 500", stored=False),
    "size-1000": Recipe(lambda: ladder(1000), "size ladder: the paper's data, d = 10, N = 1,000", stored=False),
    "size-2000": Recipe(lambda: ladder(2000), "size ladder: the paper's data, d = 10, N = 2,000", stored=False),
    "size-5000": Recipe(lambda: ladder(5000), "size ladder: the paper's data, d = 10, N = 5,000", stored=False),
}
