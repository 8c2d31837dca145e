"""The newest grant of each zone: what the controller records in the status of a CapacityTier for all jobs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from spotladder.core.history.grants import answers, standing_grant
from spotladder.core.model import Decision, JobState, Seconds


@dataclass
class Grants:
    """When a zone last granted a job all of its nodes, and when it last refused one, in seconds after the start of the
    run."""

    _granted: dict[str, Seconds] = field(default_factory=dict)
    _refused: dict[str, Seconds] = field(default_factory=dict)

    def record(self, before: JobState, decision: Decision, tiers: Mapping[str, str], now: Seconds) -> None:
        """Record what this decision shows. `tiers` maps the tiers of the job to their zones."""
        for answer in answers(before, decision):
            newest = self._granted if answer.granted else self._refused
            newest[tiers[answer.tier]] = now

    def newest(self, zone: str) -> Seconds | None:
        """When a job last got all of its nodes in the zone; None without one, or if the zone has refused a job
        since."""
        return standing_grant(self._granted.get(zone), self._refused.get(zone))
