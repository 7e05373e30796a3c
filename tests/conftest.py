"""One BLAS thread a process, since the tests run in parallel; a cache folder of its own; Hypothesis profiles."""

from __future__ import annotations

import atexit
import os
import shutil
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings

for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")

# What interrupted runs leave behind: each process of the tests has a folder for it.
os.environ["XDG_CACHE_HOME"] = tempfile.mkdtemp(prefix="llr-cvx-tests-")
atexit.register(shutil.rmtree, os.environ["XDG_CACHE_HOME"], ignore_errors=True)

# The same few examples in every run; --hypothesis-profile=wide for many new ones, which takes about 20 minutes.
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
