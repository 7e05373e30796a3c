"""Dask collections, in the long run on a real cluster: the local answer to the last bit, even if a worker dies."""

from __future__ import annotations

import os
import signal

import numpy as np
import pytest
from sizes import in_long, thinned

from llr_cvx.datasets import make_synthetic
from llr_cvx.detection.estimator import LLRDetector
from llr_cvx.detection.selection import LLRDetectorCV

da = pytest.importorskip("dask.array", reason="needs dask: pip install .[distributed]")
dd = pytest.importorskip("dask.dataframe", reason="needs dask and pandas: pip install .[distributed]")
pandas = pytest.importorskip("pandas")

METHODS = ("score_samples", "pvalues", "decision_function", "predict", "explain", "feature_ranking")
NAMES = list("abcdefg")
connections_may_warn = pytest.mark.filterwarnings("default")


@pytest.fixture(scope="module")
def client():
    distributed = pytest.importorskip("distributed", reason="needs distributed: pip install .[distributed]")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0", silence_logs=50
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def fitted():
    inlier, test, _ = make_synthetic(7, 0, 60, 30, 4)
    frame = pandas.DataFrame(np.vstack([inlier, test]), columns=NAMES)
    return LLRDetector(fit_intercept=True, fdr=0.2, random_state=0).fit(frame, np.repeat([1, -1], [60, 34]))


@pytest.fixture(scope="module")
def rows(fitted):
    far = [[1e4, 0, 0, 0, 0, 0, 0], [0, 0, -1e150, 0, 0, 0, 0]]
    X = np.vstack([2.0 * np.random.default_rng(3).normal(size=(101, 7)), fitted.solution_.problem.X[:5, :7], far])
    return pandas.DataFrame(X, columns=NAMES, index=3 * np.arange(len(X)) + 1)


def check_a_data_frame(fitted, rows, method, compute):
    local = getattr(fitted, method)(rows)
    parts = dd.from_pandas(rows, npartitions=5)
    parts = dd.concat([parts, parts[parts["a"] > 1e9]])  # with empty partitions
    lazy = getattr(fitted, method)(parts)
    assert isinstance(lazy, dd.Series if local.ndim == 1 else dd.DataFrame)
    found = compute(lazy)
    assert np.array_equal(np.asarray(found), np.asarray(local))
    assert found.index.tolist() == rows.index.tolist()
    assert lazy.npartitions == 10
    if method == "explain":
        assert lazy.columns.tolist() == found.columns.tolist() == [*NAMES, "(intercept)"]


@pytest.mark.parametrize("method", thinned(METHODS, 4))
def test_a_data_frame_gives_the_local_answer(fitted, rows, method):
    check_a_data_frame(fitted, rows, method, lambda lazy: lazy.compute(scheduler="sync"))


@pytest.mark.long
@connections_may_warn
@pytest.mark.parametrize("method", METHODS)
def test_a_data_frame_on_a_cluster_gives_the_local_answer(client, fitted, rows, method):
    check_a_data_frame(fitted, rows, method, lambda lazy: client.compute(lazy).result())


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("chunks", [(13, 7), in_long(((40, 3),)), in_long(((-1, -1),))])
@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_an_array_gives_the_local_answer(fitted, rows, method, chunks):
    local = np.asarray(getattr(fitted, method)(rows))
    lazy = getattr(fitted, method)(da.from_array(rows.to_numpy(), chunks=chunks))
    assert isinstance(lazy, da.Array)
    assert (lazy.shape, lazy.dtype) == (local.shape, local.dtype)
    assert np.array_equal(lazy.compute(scheduler="sync"), local)


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_an_array_of_unknown_length_works(fitted, rows):
    unknown = dd.from_pandas(rows, npartitions=3).to_dask_array()
    assert np.isnan(unknown.shape[0])
    assert np.array_equal(fitted.score_samples(unknown).compute(scheduler="sync"), fitted.score_samples(rows))


@pytest.mark.long
@connections_may_warn
def test_a_killed_worker_loses_nothing(client, fitted, rows):
    local = fitted.score_samples(rows)
    many = dd.from_pandas(pandas.concat([rows] * 60), npartitions=60, sort=False)
    future = client.compute(fitted.score_samples(many))
    before = client.run(os.getpid)
    victim = next(iter(before.values()))
    os.kill(victim, signal.SIGKILL)
    assert np.array_equal(future.result(timeout=120).to_numpy(), np.tile(local, 60))
    assert victim not in client.run(os.getpid).values()


def test_wrong_columns_and_shapes_are_refused_before_anything_is_computed(fitted, rows):
    parts = dd.from_pandas(rows, npartitions=2)
    with pytest.raises(ValueError, match="feature names"):
        fitted.score_samples(parts[["a", "b"]])
    with pytest.raises(TypeError, match="Dask Series"):
        fitted.predict(parts["a"])
    with pytest.raises(ValueError, match="fitted"):
        LLRDetector().predict(parts)


@pytest.mark.long
@connections_may_warn
def test_the_lambda_grid_runs_on_the_cluster(client):
    from joblib import parallel_config

    inlier, test, _ = make_synthetic(3, 0, 30, 20, 4)
    X, y = np.vstack([inlier, test]), np.repeat([1, -1], [30, 24])
    grid = LLRDetectorCV(lambda1s=[0.1, 1.0], lambda2s=[0.1, 1.0], cv=2)
    local = grid.fit(X, y).curve_.fold_loss
    with parallel_config("dask", n_jobs=-1, client=client):
        remote = grid.fit(X, y).curve_.fold_loss
    assert np.array_equal(local, remote)
