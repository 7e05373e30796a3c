"""Dask arrays and DataFrames, partition by partition: fit on a sample, score the rest anywhere.

Results are lazy Dask collections. Every row's answer depends on that row and the fitted detector alone, so it is the
same, to the last bit, however the rows are partitioned. The detector is part of the task graph: a worker that dies
loses nothing, since its partitions are simply computed again elsewhere.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

import numpy as np
from sklearn.utils.validation import check_is_fitted

Method = TypeVar("Method", bound=Callable[..., Any])


def by_partition(method: Method) -> Method:
    """Let a method that maps rows to answers also take Dask collections."""

    @wraps(method)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        X = args[0] if args else kwargs.get("X")
        if not _is_dask(X):
            return method(self, *args, **kwargs)
        check_is_fitted(self)
        return _lazily(self, method.__name__, X)

    return cast(Method, call)


def is_pandas(X: Any) -> bool:
    """Whether X is a pandas DataFrame."""
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(X, pandas.DataFrame)


def _is_dask(X: Any) -> bool:
    dask = sys.modules.get("dask")
    return dask is not None and bool(dask.is_dask_collection(X))


def _lazily(detector: Any, name: str, X: Any) -> Any:
    from dask import delayed

    if getattr(X, "ndim", None) != 2:
        raise TypeError(f"X must be a Dask array or DataFrame with rows and columns, got a Dask {type(X).__name__}")
    shared = delayed(detector, traverse=False)
    if not hasattr(X, "map_blocks"):  # a DataFrame
        meta = _answers(X._meta, detector, name)  # also checks the columns, before anything is computed
        return X.map_partitions(_answers, shared, name, meta=meta)
    sample = _answers(np.empty((0, X.shape[1])), detector, name)
    X = X.rechunk({1: -1}) if X.numblocks[1] > 1 else X
    shape = {"drop_axis": 1} if sample.ndim == 1 else {"chunks": (X.chunks[0], (sample.shape[1],))}
    return X.map_blocks(_answers, shared, name, meta=sample, **shape)


def _answers(part: Any, detector: Any, name: str) -> Any:
    """What the method answers for one partition, which may be empty; a DataFrame keeps its index."""
    frame = is_pandas(part)
    rows = part
    if not len(part):  # the answer to any one row shows columns and types
        rows = np.zeros((1, part.shape[1]))
        rows = type(part)(rows, columns=part.columns) if frame else rows
    found = getattr(detector, name)(rows)[: len(part)]
    if not frame:
        return found
    import pandas

    if found.ndim == 1:
        return pandas.Series(found, index=part.index, name=name)
    return pandas.DataFrame(np.asarray(found), index=part.index, columns=getattr(found, "columns", None))
