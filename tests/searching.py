"""How many examples a property test tries."""

from __future__ import annotations

import os

FUZZ = "SPOTLADDER_FUZZ" in os.environ
"""Whether `make fuzz` searches random examples; `make test` has always the same ones."""


def examples(number: int) -> int:
    """`number` for `make fuzz`, and a quarter of it for `make test`."""
    return number if FUZZ else max(5, number // 4)
