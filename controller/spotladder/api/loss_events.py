"""The Events about lost pods: the controller writes them, the report reads them."""

from __future__ import annotations

import re

from spotladder.core.model import Loss
from spotladder.core.reasons import Cause

COUNT = "Count"
"""The action of Events about failures."""

_LOST = re.compile(r"attempt (?P<attempt>\d+) on (?P<tier>\S+) (?P<verb>lost|will lose) (?P<pod>.+)")


def message_of(loss: Loss) -> str:
    """The message of the Event about this loss."""
    verb = "will lose" if loss.noticed else "lost"
    return f"attempt {loss.attempt} on {loss.tier} {verb} {loss.pod}"


def loss_of(reason: str, action: str, message: str) -> Loss | None:
    """The loss that an Event of the controller reports; None for any other Event."""
    found = _LOST.fullmatch(message) if action == COUNT and reason in set(Cause) else None
    if found is None:
        return None
    noticed = found["verb"] == "will lose"
    return Loss(found["pod"], Cause(reason), int(found["attempt"]), found["tier"], noticed=noticed)
