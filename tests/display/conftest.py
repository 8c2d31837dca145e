"""Finished runs."""

from __future__ import annotations

import pytest

from spotladder.display.report.facts import RunFacts
from tests.display.builders import PlayedRun
from tests.display.report_checks import facts_of


@pytest.fixture(scope="module")
def run() -> PlayedRun:
    return PlayedRun().play()


@pytest.fixture(scope="module")
def digits() -> RunFacts:
    """A run on three tiers: an eviction with notice, one without, a tier without capacity, success on on-demand."""
    return facts_of(PlayedRun().play())
