"""Units of the decision core: every time is an `Instant`, every length of time a `Seconds`."""

from __future__ import annotations

Instant = float
"""Seconds since the Unix epoch, as the caller's clock says."""

Seconds = float
