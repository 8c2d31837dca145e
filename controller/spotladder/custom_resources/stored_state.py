"""The status of a TieredJob, and the controller's state of the job in it."""

from __future__ import annotations

from functools import lru_cache

from pydantic import ValidationError
from pydantic_core import from_json

from spotladder.api.status import TieredJobStatus
from spotladder.core import codec
from spotladder.core.model import JobState
from spotladder.custom_resources.records import JobRecord


def status_of(record: JobRecord) -> TieredJobStatus:
    """The status as it is stored; do not modify it. A malformed status counts as empty, except for `status.state`."""
    return _parsed(record.status)


@lru_cache(maxsize=256)
def _parsed(text: bytes) -> TieredJobStatus:
    plain = from_json(text)
    try:
        return TieredJobStatus.model_validate(plain)
    except ValidationError:
        return TieredJobStatus(state=plain.get("state") or "")


def state_of(status: TieredJobStatus) -> JobState:
    """The controller's state of the job. Raises InvalidSpec if a newer version wrote it."""
    return codec.load_state(status.state) if status.state else JobState()
