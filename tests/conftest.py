"""One BLAS thread a process, since the tests run in parallel; a cache folder of its own; who runs what; fixtures."""

from __future__ import annotations

import atexit
import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings

for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")

# What interrupted runs leave behind: each process of the tests has a folder for it.
os.environ["XDG_CACHE_HOME"] = tempfile.mkdtemp(prefix="llr-cvx-tests-")
atexit.register(shutil.rmtree, os.environ["XDG_CACHE_HOME"], ignore_errors=True)

# One folder for all processes where Matplotlib remembers which fonts there are, for which it looks at all of them.
if "MPLCONFIGDIR" not in os.environ:
    os.environ["MPLCONFIGDIR"] = tempfile.mkdtemp(prefix="llr-cvx-tests-matplotlib-")
    atexit.register(shutil.rmtree, os.environ["MPLCONFIGDIR"], ignore_errors=True)

# The same few examples in every run; --hypothesis-profile=wide for many new ones, which takes a few minutes.
settings.register_profile(
    "fixed",
    max_examples=20,
    derandomize=True,
    deadline=None,
    database=None,
    phases=[Phase.explicit, Phase.generate],  # a failing problem is small anyway; shrinking it would take minutes
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("wide", settings.get_profile("fixed"), max_examples=400, derandomize=False, print_blob=True)
settings.load_profile("fixed")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Tests of one module stay together, which keeps its fixtures, until a process has nothing left to do."""
    from xdist.scheduler import WorkStealingScheduling

    return WorkStealingScheduling(config, log) if config.getoption("dist") == "load" else None


@pytest.hookimpl(optionalhook=True, wrapper=True)
def pytest_xdist_auto_num_workers() -> Generator[None, int, int]:
    """With `-n auto` one process a core, and at least two: each takes ten seconds to import and collect everything."""
    n = yield
    return n if "PYTEST_XDIST_AUTO_NUM_WORKERS" in os.environ else max(n, 2)


#: Files whose tests or fixtures take longest, of which each process gets some.
LONGEST = (
    "detection/test_calibration.py",
    "project/test_notebooks.py",
    "project/test_docs.py",
    "instances/test_instances.py",
    "experiments/test_reproduce.py",
    "project/test_kills.py",
    "project/test_distribution.py",
    "detection/test_partitions.py",
    "experiments/test_runner.py",
    "benchmarks/test_benchopt.py",
)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Each process starts with slow files, so that none is left over with one in the end; after `-m` has chosen.

    The scheduler gives each an equal share of the list, in order, and takes from the end of a share what is stolen.
    """
    folder, shares = Path(__file__).parent, int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    place = {folder / name: k for k, name in enumerate(LONGEST)}
    slow: list[list[pytest.Item]] = [[] for _ in range(shares)]
    short: list[pytest.Item] = []
    for item in items:
        rank = place.get(item.path)
        (short if rank is None else slow[rank % shares]).append(item)
    size = -(-len(items) // shares)
    mixed: list[pytest.Item] = []
    for share in slow:
        share.sort(key=lambda item: place[item.path])
        room = max(0, size - len(share))
        mixed += share + short[:room]
        short = short[room:]
    items[:] = mixed + short


@pytest.fixture
def device(tmp_path: Path) -> Callable[[str], Path]:
    """The path of a null or a full device, whose loss would not matter.

    Root makes one for the test: a fault in what is tested must not be able to replace that of the machine.
    """

    def make(name: str) -> Path:
        if os.geteuid() != 0:
            return Path("/dev") / name
        path = tmp_path / f"my{name}"
        try:
            os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, {"null": 3, "full": 7}[name]))
            path.open("rb").close()
        except OSError:
            pytest.skip("no device can be made here")
        return path

    return make
