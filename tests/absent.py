"""Skips a test whose requirement is missing on this machine, or fails it if SPOTLADDER_REQUIRE names its suite."""

from __future__ import annotations

import os
from typing import NoReturn

import pytest


def absent(reason: str, suite: str, *, in_all: bool = True) -> NoReturn:
    """Skip or fail the test. `suite` is its name in SPOTLADDER_REQUIRE; `in_all`: `all` includes it."""
    asked = set(os.environ.get("SPOTLADDER_REQUIRE", "").split(","))
    if asked & ({suite, "all"} if in_all else {suite}):
        pytest.fail(f"SPOTLADDER_REQUIRE names {suite}: {reason}", pytrace=False)
    pytest.skip(reason)
