"""What holds for all tests."""

from __future__ import annotations

from hypothesis import settings

# A busy machine is no failure: examples are bounded in number, not in time.
settings.register_profile("spotladder", deadline=None, print_blob=True)
settings.load_profile("spotladder")
