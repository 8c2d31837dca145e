"""What holds for all tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog
from hypothesis import settings

# A busy machine is no failure: examples are bounded in number, not in time.
settings.register_profile("spotladder", deadline=None, print_blob=True)
settings.load_profile("spotladder")


RAY_GROUPS = {"docs": "ray-1", "examples": "ray-1"}
"""The group of the Ray tests in a folder under tests/; "ray-2" for all other folders.

Under pytest-xdist the tests of a group run one after the other in one process. Two groups keep two processors busy;
with more, `ray start` may not come up within its 30 s.
"""


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist reads the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.get_closest_marker("ray"):
            folder = item.path.relative_to(Path(__file__).parent).parts[0]
            item.add_marker(pytest.mark.xdist_group(RAY_GROUPS.get(folder, "ray-2")))


@pytest.fixture(autouse=True)
def _a_log_of_its_own() -> Iterator[None]:
    """A command that is called sets the log up for a stream that ends with its test."""
    before = structlog.get_config()
    yield
    structlog.configure(**before)
