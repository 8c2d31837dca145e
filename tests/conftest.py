"""Settings and hooks of all tests."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog
from hypothesis import settings
from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController

from tests.child_processes import pytest_runtest_protocol, pytest_unconfigure
from tests.framework_parts import without_part
from tests.searching import FUZZ, examples

# Limit the number of examples, not their time: on a busy machine they are slow. The examples depend on the tests alone,
# so that the same code has the same result; `make fuzz` searches others.
settings.register_profile(
    "spotladder", max_examples=examples(100), deadline=None, print_blob=True, derandomize=not FUZZ
)
settings.load_profile("spotladder")


__all__ = ["pytest_runtest_protocol", "pytest_unconfigure"]  # Hooks for all tests.

RAY_FILES = {
    "tests/conformance/test_backends.py": "tests/conformance",
    "tests/docs/test_quickstart.py": None,
    "tests/examples/test_examples.py": None,
    "tests/local/test_nodes.py": None,
    "tests/local/test_run_on_ray.py": None,
    "tests/packaging/test_walk.py": None,
    "tests/train/test_elastic_on_ray.py": "tests/train",
    "tests/train/test_raytrain.py": "tests/train",
    "tests/train/test_raytrain_huggingface.py": "tests/train",
    "tests/train/test_tune.py": "tests/train",
}
"""The files with tests that start Ray, and the folder whose tests share a Ray cluster and run in one process. Under
pytest-xdist one process runs Ray tests, one after the other, and then other tests; the other processes start with the
other tests. So with two processes at most two Ray tests run at a time, and then no other test: three Ray tests at a
time take six times as long as one after the other.
"""


def pytest_configure() -> None:
    """A shell starts a background job with SIGINT ignored, and `nohup` one with SIGHUP ignored. Tests and the programs
    that they start have the default dispositions, and `python` is this one, however the tests were started."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    # A fresh machine may have no `python` but this one.
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    marked = {item.nodeid.partition("::")[0] for item in items if item.get_closest_marker("ray")}
    if unknown := marked - RAY_FILES.keys():
        raise pytest.UsageError(f"tests/conftest.py: add {', '.join(sorted(unknown))} to RAY_FILES")
    if apart := without_part([item.nodeid for item in items if item.get_closest_marker("frameworks")]):
        raise pytest.UsageError(f"Makefile: no part of test-frameworks runs {', '.join(apart)}")


class RayApart(LoadScopeScheduling):
    """Schedules the tests of a file together, so that their fixtures are set up once, tests that share a Ray cluster
    together, and Ray tests on one process first."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        return RAY_FILES.get(file) or file

    def _assign_work_unit(self, node: WorkerController) -> None:
        self.workqueue.move_to_end(self._next_for(node), last=False)
        super()._assign_work_unit(node)

    def _next_for(self, node: WorkerController) -> str:
        ray = next(filter(self._is_ray, self.workqueue), None)
        other = next((scope for scope in self.workqueue if not self._is_ray(scope)), None)
        running_on_another = any(
            self._is_ray(scope) and not all(tests.values())
            for process, work in self.assigned_work.items()
            for scope, tests in work.items()
            if process is not node
        )
        first, second = (other, ray) if running_on_another else (ray, other)
        return str(first or second or next(iter(self.workqueue)))

    @staticmethod
    def _is_ray(scope: str) -> bool:
        return scope in RAY_FILES or scope in RAY_FILES.values()


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> RayApart | None:
    return RayApart(config, log) if config.getvalue("dist") == "loadgroup" else None


@pytest.fixture(autouse=True)
def _restore_logging() -> Iterator[None]:
    """Commands configure logging for a stream that is closed after the test."""
    before = structlog.get_config()
    yield
    structlog.configure(**before)
