"""What holds for all tests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import structlog
from hypothesis import settings
from xdist.scheduler import LoadScopeScheduling

# A busy machine is no failure: examples are bounded in number, not in time.
settings.register_profile("spotladder", deadline=None, print_blob=True)
settings.load_profile("spotladder")


RAY_FILES = {
    "tests/conformance/test_backends.py": "ray-2",
    "tests/docs/test_pages.py": "ray-1",
    "tests/examples/test_examples.py": "ray-1",
    "tests/local/test_nodes.py": "ray-1",
    "tests/local/test_run_on_ray.py": "ray-2",
    "tests/train/test_raytrain.py": "ray-2",
    "tests/train/test_tune.py": "ray-1",
}
"""The files with tests that start Ray, and the group of each.

Under pytest-xdist the tests of a group run one after the other in one process. Two groups keep two processors busy;
with more at a time, `ray start` may not come up within its 30 s.
"""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    marked = {item.nodeid.partition("::")[0] for item in items if item.get_closest_marker("ray")}
    if unknown := marked - set(RAY_FILES):
        raise pytest.UsageError(f"tests/conftest.py: add {', '.join(sorted(unknown))} to RAY_FILES")


class RayGroups(LoadScopeScheduling):
    """Hands out each test by itself, but the tests of a group of Ray files together."""

    def _split_scope(self, nodeid: str) -> str:
        return RAY_FILES.get(nodeid.partition("::")[0], nodeid)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> RayGroups | None:
    return RayGroups(config, log) if config.getvalue("dist") == "loadgroup" else None


@pytest.fixture(autouse=True)
def _a_log_of_its_own() -> Iterator[None]:
    """A command that is called sets the log up for a stream that ends with its test."""
    before = structlog.get_config()
    yield
    structlog.configure(**before)
