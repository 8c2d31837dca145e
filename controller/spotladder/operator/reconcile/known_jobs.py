"""The data of each job that this process keeps between two reconciles. If it is lost, work is repeated, and no decision
changes."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field

from spotladder.api.status import TieredJobStatus
from spotladder.api.stored import CapacityRecord, JobRecord, state_of, status_of
from spotladder.core.model import JobState
from spotladder.errors import InvalidSpec
from spotladder.operator.condition_types import Diagnosis
from spotladder.operator.inventory.inventory import JobKey
from spotladder.operator.reconcile import status
from spotladder.operator.reconcile.specs import Specs
from spotladder.workloads.kinds import workload_of


@dataclass(slots=True)
class KnownJob:
    """The kept data of one job. `before` is the state in the status, whose text is `persisted`; `state` is newer by
    nothing but time.

    `blocked` is why the last launch did not succeed. `capacity` are the CapacityTiers as last observed. `workers` is
    the number of workers in the spec of the version `sized` (uid and generation).
    """

    persisted: str = ""
    before: JobState = field(default_factory=JobState)
    state: JobState | None = None
    blocked: Diagnosis | None = None
    capacity: dict[str, CapacityRecord] = field(default_factory=dict)
    sized: tuple[str, int] = "", 0
    workers: int | None = None

    def states(self, held: TieredJobStatus) -> tuple[JobState, JobState]:
        """The persisted state, and the state as this process knows it. Raises InvalidSpec."""
        if self.state is not None and self.persisted == held.state:
            return self.before, self.state
        found = state_of(held)
        if self.state is None:
            self.blocked = status.launch_diagnosis(held, found)
        return found, found


class KnownJobs:
    """The kept data of every job, and the nodes that each job needs."""

    def __init__(self, specs: Specs) -> None:
        self._specs = specs
        self._jobs: dict[JobKey, KnownJob] = {}

    def of(self, key: JobKey) -> KnownJob:
        """The kept data of the job; empty at first."""
        return self._jobs.setdefault(key, KnownJob())

    def forget(self, key: JobKey) -> None:
        """Drop the data of a job that is gone."""
        self._jobs.pop(key, None)

    def workers(self, record: JobRecord) -> int | None:
        """The number of workers of the live attempt. Without an attempt, the number that the spec requires; None for an
        invalid spec."""
        state = self._state(record)
        attempt = state.attempt if state is not None else None
        if attempt is None or attempt.workers is None:
            return self._workers_of_spec(record)
        return attempt.workers + len(attempt.leaving)

    def standby_workers(self, record: JobRecord) -> int | None:
        """The number of workers of the standby attempt. Without one, the number that the spec requires; None for an
        invalid spec."""
        state = self._state(record)
        standby = state.standby if state is not None else None
        if standby is None or standby.workers is None:
            return self._workers_of_spec(record)
        return standby.workers

    def has_launched_standby(self, record: JobRecord) -> bool:
        """Whether objects of the job's standby attempt have been observed."""
        state = self._state(record)
        return state is not None and state.standby is not None and state.standby.seen

    def left_nodes(self, record: JobRecord) -> list[tuple[str, int]]:
        """For each earlier attempt that is being removed, its tier and the number of nodes that it still holds."""
        state = self._state(record)
        return [(left.tier, left.nodes) for left in state.left if left.nodes] if state is not None else []

    def _state(self, record: JobRecord) -> JobState | None:
        """The state of the job; None for an invalid status."""
        known = self.of(record.key)
        if known.state is None:  # not reconciled yet by this process
            with suppress(InvalidSpec):
                held = status_of(record)
                known.persisted, (known.before, known.state) = held.state, known.states(held)
        return known.state

    def _workers_of_spec(self, record: JobRecord) -> int | None:
        known, version = self.of(record.key), (record.uid, record.generation)
        if known.sized != version:
            known.sized, known.workers = version, self._parsed_workers(record)
        return known.workers

    def _parsed_workers(self, record: JobRecord) -> int | None:
        try:
            job = self._specs.of(record)
        except InvalidSpec:
            return None
        return workload_of(job).workers(job)
