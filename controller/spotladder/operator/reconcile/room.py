"""The room that one job has on its tiers within `limits.nodes`: for its attempt, for a standby attempt, for a surge."""

from __future__ import annotations

from spotladder.api.stored import JobRecord
from spotladder.api.tieredjob import TieredJob
from spotladder.core.model import JobState, Launch, Stage
from spotladder.operator.reconcile.known_jobs import KnownJob, KnownJobs
from spotladder.operator.reconcile.node_limits import Limits, nodes


class Room:
    """Stateless: combines the limits of the CapacityTiers with the attempts of a job."""

    def __init__(self, limits: Limits, known_jobs: KnownJobs) -> None:
        self._limits = limits
        self._known_jobs = known_jobs

    def full(self, record: JobRecord, job: TieredJob, state: JobState, known: KnownJob) -> dict[str, str]:
        """The tiers without room for this job now, and why. Nodes that the job holds already are not counted against
        it."""
        if state.stage not in (Stage.IDLE, Stage.STARTING) or (state.attempt and state.attempt.seen):
            return {}
        found = ((tier.name, known.capacity.get(tier.capacity_tier)) for tier in job.spec.tiers)
        full = {name: self._limits.full(capacity, record) for name, capacity in found if capacity is not None}
        return {name: why for name, why in full.items() if why}

    def admits(self, launch: Launch, record: JobRecord, job: TieredJob, state: JobState, known: KnownJob) -> bool:
        """Whether the limits of the tier admit this launch now."""
        if state.standby is not None and state.standby.number == launch.attempt:
            return launch.tier not in self.without_standby(record, job, state, known)
        return launch.tier not in self.full(record, job, state, known)

    def without_standby(self, record: JobRecord, job: TieredJob, state: JobState, known: KnownJob) -> set[str]:
        """The tiers whose limits have no room for a standby attempt beside the live one."""
        live = dict(record.tiers).get(state.attempt.tier) if state.attempt is not None else None
        without = set()
        for tier in job.spec.tiers:
            capacity = known.capacity.get(tier.capacity_tier)
            if capacity is None:
                continue
            held = nodes(self._known_jobs.workers(record), capacity) if tier.capacity_tier == live else 0
            if not self._limits.admits_standby(capacity, record, held=held):
                without.add(tier.name)
        return without

    def surge(self, record: JobRecord, job: TieredJob, state: JobState, known: KnownJob) -> int | None:
        """How many nodes the live attempt may hold beyond its workers; None: any number."""
        attempt = state.attempt
        tier = next((tier for tier in job.spec.tiers if attempt is not None and tier.name == attempt.tier), None)
        capacity = known.capacity.get(tier.capacity_tier) if tier is not None else None
        if attempt is None or capacity is None:
            return None
        held = nodes(self._known_jobs.workers(record), capacity)
        return self._limits.room(capacity, record, held=held - len(attempt.leaving))
