"""Hooks that end the processes of tests with the process that runs the tests, however that ends.

An interrupt of `make test` kills the processes of pytest-xdist, and no finalizer of theirs runs. A watchdog, which the
local runner uses for the same purpose, then ends what tests with the marker `ray` have started.
"""

from __future__ import annotations

import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from spotladder.local.reaper import Reaper

MARK = "TESTS_OF"
"""The environment variable of the processes that such a test starts. Many tests drop those of spotladder."""

_STARTED = pytest.StashKey[tuple[str, Reaper]]()


def _watchdog(config: pytest.Config) -> str:
    """The value of `MARK`; the watchdog ends the processes that have it."""
    if _STARTED not in config.stash:
        mark = uuid.uuid4().hex
        config.stash[_STARTED] = mark, Reaper(f"{MARK}={mark}", Path(tempfile.mkdtemp()))
    return config.stash[_STARTED][0]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Mark the processes that a test with the marker `ray`, or a fixture of it, starts."""
    if item.get_closest_marker("ray") is None:
        return (yield)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(MARK, _watchdog(item.config))
        return (yield)


def pytest_unconfigure(config: pytest.Config) -> None:
    """End the watchdog, and what tests have left behind."""
    if started := config.stash.get(_STARTED, None):
        started[1].close()
