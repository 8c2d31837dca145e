"""The heartbeat of an attempt's program: an object beside its files, for a controller on another machine.

Rank 0 overwrites it, so the newest write wins. It names the log entry with which its group of ranks started: a
heartbeat of an earlier group of the same attempt is ignored, and so is that of a deleted job with the same name.
"""

from __future__ import annotations

import json
import math
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from spotladder.checkpoints.entries import LARGEST_INTEGER, LONGEST_TEXT
from spotladder.checkpoints.store import ObjectMissing, Store
from spotladder.core.contract import Milestone
from spotladder.errors import TooLarge

LARGEST = 65_536
"""Maximum bytes of a heartbeat; a larger object is none."""


@dataclass(frozen=True, slots=True)
class StoredHeartbeat:
    """`start` is the number of the log entry with which the group of ranks started, `step` its newest step. `hang`
    describes how long it has made no step; "" if it makes steps. `beat` counts the heartbeats, so that each differs
    from the last one, and `every` is the number of seconds after which a program that lives writes the next one; 0:
    unknown. `uid` is that of the job; "": unknown. `reached` are the milestones of the group's start.
    """

    start: int
    step: int
    total: int = 0
    hang: str = ""
    beat: int = 0
    every: float = 0.0
    uid: str = ""
    reached: Mapping[Milestone, float] = field(default_factory=dict)


def write(store: Store, attempt: int, heartbeat: StoredHeartbeat) -> None:
    """Replace the heartbeat of this attempt. Raises StoreUnavailable."""
    with tempfile.TemporaryDirectory(prefix="spotladder-heartbeat-") as folder:
        file = Path(folder, "heartbeat.json")
        file.write_text(json.dumps(asdict(heartbeat)), encoding="utf-8")
        store.put_file(_key(attempt), file)


def read(store: Store, attempt: int, start: int, uid: str = "") -> StoredHeartbeat | None:
    """The heartbeat of the group of ranks of this job that started with this log entry; None without one. Raises
    StoreUnavailable."""
    try:
        content = json.loads(store.get(_key(attempt), LARGEST))
        found = StoredHeartbeat(
            int(content["start"]),
            int(content["step"]),
            int(content.get("total", 0)),
            str(content.get("hang", ""))[:LONGEST_TEXT],
            int(content.get("beat", 0)),
            float(content.get("every", 0.0)),
            str(content.get("uid", "")),
            Milestone.reported(content.get("reached")),
        )
        if not 0 <= found.every < math.inf or not all(0 <= one < LARGEST_INTEGER for one in (found.step, found.total)):
            return None
    except (ObjectMissing, TooLarge, KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError):
        return None
    ours = not uid or found.uid in ("", uid)
    return found if ours and found.start == start else None


def _key(attempt: int) -> str:
    return f"attempts/{attempt:04d}/heartbeat.json"
