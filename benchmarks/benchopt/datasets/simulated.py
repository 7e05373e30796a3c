"""The paper's synthetic data at a size and penalties of one's choice."""

from benchopt import BaseDataset

import llr_cvx as llr
from llr_cvx import checker


class Dataset(BaseDataset):
    """Known inliers, test inliers and outliers as in Sec. 4.1; the bound is that of `solve_fast`'s dual point."""

    name = "Simulated"
    parameters = {"n_samples": [310], "d": [10], "lambda1": [0.1], "lambda2": [1.0], "seed": [0]}
    test_parameters = {"n_samples": [31], "d": [3]}

    def get_data(self):
        """The problem's arrays and the bound."""
        n_outlier, n_test_inlier = max(1, self.n_samples // 31), self.n_samples // 3
        sizes = (self.n_samples - n_test_inlier - n_outlier, n_test_inlier, n_outlier)
        X_inlier, X_test, _ = llr.make_synthetic(self.d, self.seed, *sizes)
        problem = llr.Problem.from_samples(X_inlier, X_test, self.lambda1, self.lambda2)
        lower = llr.solve_fast(problem, tol=1e-10).certificate.dual
        return {name: getattr(problem, name) for name in checker.PROBLEM} | {"lower": lower}
