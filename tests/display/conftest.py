"""A finished run."""

from __future__ import annotations

import pytest

from tests.display.builders import Run


@pytest.fixture(scope="module")
def run() -> Run:
    return Run().play()
