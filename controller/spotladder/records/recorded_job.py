"""What the bucket has of one job of a cluster: its records, and the last lines of its programs."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from spotladder.checkpoints import outputs
from spotladder.checkpoints.open_store import open_store
from spotladder.checkpoints.store import Store, folder_of
from spotladder.core.model import TERMINAL, Instant
from spotladder.errors import SpotladderError
from spotladder.output.last_error import last_lines
from spotladder.records import stored, stored_reading
from spotladder.records.model import Looked
from spotladder.records.recorded import Recorded


def recorded_in(folder: Store, uid: str, now: Instant | None = None) -> Recorded:
    """The job of this uid in its folder of the bucket. `now` is the time of the read of a job that may be running; None
    if it no longer exists. Raises EnvironmentFailure if the folder has no records of it, and StoreUnavailable."""
    found = _with_output(folder, uid, stored_reading.read(stored.of_job(folder, uid)))
    return found if now is None else looked_at(found, now)


def looked_at(found: Recorded, now: Instant) -> Recorded:
    """The records of a job that may be running, as seen at this time."""
    if found.state.stage in TERMINAL or not found.records:
        return found
    return replace(found, records=(*found.records, Looked(max(now, found.records[-1].at))))


def recorded_of_job(job: Mapping[str, Any]) -> Recorded:
    """The records of this TieredJob, from its bucket. Raises EnvironmentFailure, StoreUnavailable."""
    folder = folder_of(open_store(job["spec"]["checkpoints"]["uri"]), job["metadata"]["name"])
    return recorded_in(folder, job["metadata"]["uid"], time.time())


def _with_output(folder: Store, uid: str, found: Recorded) -> Recorded:
    store = outputs.of_job(folder, uid)
    try:
        printed = outputs.kept(store)
        texts = outputs.read(store, printed)
    except SpotladderError:
        return found
    lines = ((each.attempt, each.title, last_lines(text)) for each, text in zip(printed, texts, strict=True))
    return replace(found, printed=tuple(lines))
