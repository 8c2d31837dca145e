"""Units of the decision core: every time is an `Instant`, every length of time a `Seconds`."""

from __future__ import annotations

Instant = float
"""Seconds since the Unix epoch, by the caller's clock."""

Seconds = float
