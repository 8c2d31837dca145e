"""Named places at which a test makes the controller die, stop or fail: `SPOTLADDER_FAILPOINTS=after-launch:crash`.

Several are separated by commas; `after-launch:crash@2` acts at the second time only. Without the variable every
failpoint is one lookup in an empty dict.

`crash`  ends the process at once without cleanup
`stop`   sends SIGSTOP to the process, which then hangs until SIGCONT
`error`  raises an exception, as a defect would
"""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass
from enum import StrEnum

from spotladder.errors import EnvironmentFailure, SpotladderError

VARIABLE = "SPOTLADDER_FAILPOINTS"
CRASHED = 70


class Point(StrEnum):
    """The steps of a reconcile, in the order in which an attempt needs them."""

    AFTER_LOAD = "after-load"
    AFTER_DECIDE = "after-decide"
    BEFORE_LAUNCH = "before-launch"
    BETWEEN_OBJECTS = "between-objects"  # of an attempt with several objects
    AFTER_LAUNCH = "after-launch"
    AFTER_HANDOVER = "after-handover"  # the leaving pods have the notice and are not removed yet
    BEFORE_CHANGE = "before-change"  # of the requested workers, by a replacement, its handover or a resize
    AFTER_CHANGE = "after-change"
    BEFORE_DRAIN = "before-drain"
    BETWEEN_NOTICES = "between-notices"  # of the pods of an attempt
    AFTER_DRAIN = "after-drain"
    BEFORE_TAKE_OVER = "before-take-over"
    AFTER_TAKE_OVER = "after-take-over"
    BEFORE_DELETE = "before-delete"
    BETWEEN_DELETES = "between-deletes"  # of the objects of an attempt
    AFTER_DELETE = "after-delete"
    BEFORE_FINISH = "before-finish"
    AFTER_FINISH = "after-finish"
    BEFORE_STATUS = "before-status"
    AFTER_STATUS = "after-status"
    AFTER_EVENTS = "after-events"
    BEFORE_RELEASE = "before-release"  # of a deleted job's finalizer


class FailPoint(SpotladderError):
    """The exception that `error` raises."""


@dataclass(slots=True)
class _Armed:
    action: str
    turn: int
    hits: int = 0


def _armed(text: str) -> dict[str, _Armed]:
    armed = {}
    for entry in filter(None, (part.strip() for part in text.split(","))):
        name, _, rest = entry.partition(":")
        action, _, turn = rest.partition("@")
        if name not in set(Point) or action not in ("crash", "stop", "error") or not (turn or "1").isdigit():
            raise EnvironmentFailure(
                f"{VARIABLE}: {entry!r} is not NAME:crash|stop|error[@TURN]; names are {', '.join(Point)}"
            )
        armed[name] = _Armed(action, int(turn or 1))
    return armed


_points = _armed(os.environ.get(VARIABLE, ""))


def reach(point: Point) -> None:
    """Execute the action for this failpoint, if one is set."""
    if _points and (armed := _points.get(point)):
        armed.hits += 1
        if armed.hits == armed.turn:
            _act(point, armed.action)


def _act(point: Point, action: str) -> None:
    if action == "crash":
        os._exit(CRASHED)
    if action == "stop":
        os.kill(os.getpid(), signal.SIGSTOP)
        return
    raise FailPoint(f"{VARIABLE}: {point}")
