"""A finished run."""

from __future__ import annotations

import pytest

from tests.display.builders import PlayedRun


@pytest.fixture(scope="module")
def run() -> PlayedRun:
    return PlayedRun().play()
