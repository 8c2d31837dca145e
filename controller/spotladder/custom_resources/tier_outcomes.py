"""The outcomes of all jobs on a tier, in the status of its CapacityTier and as the core's record."""

from __future__ import annotations

from contextlib import suppress
from functools import lru_cache

from pydantic import ValidationError

from spotladder.api.status import AgeOutcomes, CapacityTierStatus
from spotladder.core.ages import AGES, TICK
from spotladder.core.durations import format_duration
from spotladder.core.model import AgeCounts, Outcomes

_NAMES = tuple(format_duration(TICK * age) for age in AGES)


def read_status(status: bytes) -> CapacityTierStatus:
    """The status of a CapacityTier; a damaged one counts as empty."""
    with suppress(ValidationError):
        return CapacityTierStatus.model_validate_json(status)
    return CapacityTierStatus()


@lru_cache(maxsize=256)
def outcomes_in(status: bytes) -> Outcomes:
    """The outcomes in the status of a CapacityTier."""
    return outcomes_of(read_status(status))


def outcomes_of(status: CapacityTierStatus) -> Outcomes:
    """The outcomes in this status. Ages that this version does not know are ignored."""
    return Outcomes(_counts(status.lifetimes), _counts(status.outages))


def _counts(entries: list[AgeOutcomes]) -> AgeCounts:
    found = {entry.age: entry for entry in entries if entry.age in _NAMES}
    if not found:
        return AgeCounts()
    listed = [found.get(name, AgeOutcomes(age=name)) for name in _NAMES]
    return AgeCounts(tuple(entry.survived for entry in listed), tuple(entry.ended for entry in listed))


def entries_of(counts: AgeCounts) -> list[AgeOutcomes]:
    """The counts for the status, without ages that were never observed."""
    found = zip(_NAMES, counts.survived, counts.ended, strict=False)
    return [
        AgeOutcomes(age=name, survived=survived, ended=ended) for name, survived, ended in found if survived + ended
    ]
