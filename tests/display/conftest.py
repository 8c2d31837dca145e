"""Finished runs."""

from __future__ import annotations

import pytest

from spotladder.display.report import gather
from spotladder.display.report.facts import Facts
from tests.display import golden
from tests.display.builders import PlayedRun


@pytest.fixture(scope="module")
def run() -> PlayedRun:
    return PlayedRun().play()


@pytest.fixture(scope="module")
def digits() -> Facts:
    return gather(*golden.recorded_run())
