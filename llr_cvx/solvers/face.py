"""A face: the W with given clusters and given zeros, on which J is smooth away from links of length 0.

Which samples are fused and which coordinates vanish, another method has identified. J restricted to such W is, with
one row per cluster c of n_c samples, signs sigma, and only the free coordinates as unknowns,

    F(w) = sum_i log(1 + exp(-y_i w_c(i).x_i)) + lambda1 sum_{c<c'} omega_cc' ||w_c - w_c'||
         + lambda2 sum_c n_c (sigma_c.w_c)^2.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.sparse import coo_array, csr_array

from llr_cvx.arrays import BoolArray, FloatArray, IntArray
from llr_cvx.graph import component_labels
from llr_cvx.problem import Problem


@dataclass(frozen=True, eq=False)
class Face:
    """Which samples share a row, and for each cluster its row w and its free coordinates."""

    problem: Problem
    clusters: IntArray
    w: FloatArray
    free: BoolArray

    def at(self, w: FloatArray, free: BoolArray) -> Face:
        """The same clusters with other rows; what depends on the clusters alone is kept."""
        other = replace(self, w=w, free=free)
        vars(other).update((k, v) for k, v in vars(self).items() if k in ("sizes", "membership", "links"))
        return other

    @property
    def W(self) -> FloatArray:
        """One row a sample: fused rows exactly equal, coordinates off the face exactly 0.0."""
        return np.asarray(self.w[self.clusters])

    @cached_property
    def sizes(self) -> FloatArray:
        """n_c."""
        return np.bincount(self.clusters, minlength=len(self.w)).astype(float)

    @cached_property
    def membership(self) -> csr_array:
        """Sparse (C, N): sums rows of samples over their cluster."""
        N = self.problem.shape[0]
        return coo_array((np.ones(N), (self.clusters, np.arange(N))), shape=(len(self.w), N)).tocsr()

    @cached_property
    def links(self) -> tuple[csr_array, csr_array, FloatArray]:
        """Incidence of the contracted graph, its transpose, and lambda1 omega summed over parallel edges."""
        ends = np.sort(self.clusters[self.problem.edges], axis=1)
        radii = self.problem.radii
        keep = (ends[:, 0] != ends[:, 1]) & (radii > 0)
        C = len(self.w)
        keys, link = np.unique(ends[keep, 0] * C + ends[keep, 1], return_inverse=True)
        weight = np.bincount(link, radii[keep], minlength=len(keys)).astype(float)
        pairs = np.column_stack([keys // C, keys % C])
        data, indptr = np.tile([1.0, -1.0], len(keys)), np.arange(0, 2 * len(keys) + 1, 2)
        B = csr_array((data, pairs.ravel(), indptr), shape=(len(keys), C))
        return B, B.T.tocsr(), weight


def face_of(problem: Problem, W: FloatArray, fused: BoolArray) -> Face:
    """Clusters over the edges that are marked, at their means; a coordinate is 0 where most members have 0."""
    clusters = component_labels(problem.shape[0], problem.edges[fused & (problem.radii > 0)])
    C, N = int(clusters.max()) + 1, len(clusters)
    if C == N and problem.lambda2 > 0:
        return Face(problem, clusters, W, W != 0.0)
    mean = coo_array((1.0 / np.bincount(clusters)[clusters], (clusters, np.arange(N))), shape=(C, N)).tocsr()
    free = np.asarray(mean @ (W != 0.0).astype(float) > 0.5)
    if problem.lambda2 == 0:
        free[:] = True  # no penalty, no kink: every coordinate is free and may change its sign
    return Face(problem, clusters, np.where(free, mean @ W, 0.0), free)
