"""What holds for all tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import structlog
from hypothesis import settings

# A busy machine is no failure: examples are bounded in number, not in time.
settings.register_profile("spotladder", deadline=None, print_blob=True)
settings.load_profile("spotladder")


@pytest.fixture(autouse=True)
def _a_log_of_its_own() -> Iterator[None]:
    """A command that is called sets the log up for a stream that ends with its test."""
    before = structlog.get_config()
    yield
    structlog.configure(**before)
