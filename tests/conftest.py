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


RAY_FILES = frozenset({
    "tests/conformance/test_backends.py",
    "tests/docs/test_pages.py",
    "tests/examples/test_examples.py",
    "tests/local/test_nodes.py",
    "tests/local/test_run_on_ray.py",
    "tests/train/test_raytrain.py",
    "tests/train/test_tune.py",
})  # fmt: skip
"""The files with tests that start Ray. Under pytest-xdist they run one after the other in one process, beside all other
tests: on two processors, three Ray tests at a time take six times as long as one after the other.
"""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    marked = {item.nodeid.partition("::")[0] for item in items if item.get_closest_marker("ray")}
    if unknown := marked - RAY_FILES:
        raise pytest.UsageError(f"tests/conftest.py: add {', '.join(sorted(unknown))} to RAY_FILES")


class RayTogether(LoadScopeScheduling):
    """Hands out each test by itself, but the tests that start Ray together."""

    def _split_scope(self, nodeid: str) -> str:
        return "ray" if nodeid.partition("::")[0] in RAY_FILES else nodeid


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> RayTogether | None:
    return RayTogether(config, log) if config.getvalue("dist") == "loadgroup" else None


@pytest.fixture(autouse=True)
def _a_log_of_its_own() -> Iterator[None]:
    """A command that is called sets the log up for a stream that ends with its test."""
    before = structlog.get_config()
    yield
    structlog.configure(**before)
