"""The newest grant of each zone: what the controller records in the status of a CapacityTier for all jobs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from spotladder.core.model import Decision, JobState, Seconds
from spotladder.core.reasons import Reason

_REFUSALS = frozenset({Reason.INSUFFICIENT_CAPACITY, Reason.IDLE_BUDGET_EXCEEDED})


@dataclass
class Grants:
    """When a job last got all of its nodes in a zone, and when the zone last refused one, in seconds after the start of
    the run. A loss of capacity that a job observes counts as a refusal."""

    _granted: dict[str, Seconds] = field(default_factory=dict)
    _refused: dict[str, Seconds] = field(default_factory=dict)

    def record(self, before: JobState, decision: Decision, tiers: Mapping[str, str], now: Seconds) -> None:
        """Record what this decision shows. `tiers` maps the tiers of the job to their zones."""
        for record in decision.state.tiers:
            newest, last = record.spells[-1:], before.record(record.name).spells[-1:]
            if newest and not newest[0].available and not (last and last[0].since == newest[0].since):
                self._refused[tiers[record.name]] = now
        for move in decision.moves:
            if move.reason is Reason.ALL_READY:
                self._granted[tiers[move.tier]] = now
            elif move.reason in _REFUSALS:
                self._refused[tiers[move.tier]] = now

    def newest(self, zone: str) -> Seconds | None:
        """When a job last got all of its nodes in the zone; None without one, or if the zone has refused a job
        since."""
        granted, refused = self._granted.get(zone), self._refused.get(zone)
        return granted if granted is not None and (refused is None or granted > refused) else None
