"""What a test needs and this machine has not: a skip with its reason, or a failure where SPOTLADDER_REQUIRE asks."""

from __future__ import annotations

import os
from typing import NoReturn

import pytest


def absent(reason: str, suite: str, *, in_all: bool = True) -> NoReturn:
    """End the test. `suite` is the word for it in SPOTLADDER_REQUIRE; with `in_all`, `all` asks for it, too."""
    asked = set(os.environ.get("SPOTLADDER_REQUIRE", "").split(","))
    if asked & ({suite, "all"} if in_all else {suite}):
        pytest.fail(f"SPOTLADDER_REQUIRE asks for {suite}: {reason}", pytrace=False)
    pytest.skip(reason)
