"""The data of each job that this process keeps between two reconciles. If it is lost, work is repeated, and no decision
changes."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field

from spotladder.api.capacitytier import ApplyTo
from spotladder.api.status import TieredJobStatus
from spotladder.core.model import JobState
from spotladder.custom_resources import CapacityRecord, JobRecord
from spotladder.custom_resources.specs import Specs
from spotladder.custom_resources.stored_state import state_of, status_of
from spotladder.errors import InvalidSpec
from spotladder.operator.condition_types import Diagnosis
from spotladder.operator.inventory.inventory import JobKey
from spotladder.operator.reconcile import status
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

    def nodes(self, record: JobRecord, capacity: CapacityRecord) -> int:
        """The number of nodes of that CapacityTier that the job holds by its live attempt, else needs by its spec; 0
        for an invalid spec."""
        known, state = self._known(record)
        attempt = state.attempt if state is not None else None
        launched = None if attempt is None or attempt.workers is None else attempt.workers + len(attempt.leaving)
        return _nodes(known.workers if launched is None else launched, capacity)

    def standby_nodes(self, record: JobRecord, capacity: CapacityRecord) -> int:
        """The number of nodes of that CapacityTier that the job's standby attempt holds, else needs by the job's spec;
        0 for an invalid spec."""
        known, state = self._known(record)
        standby = state.standby if state is not None else None
        return _nodes(known.workers if standby is None or standby.workers is None else standby.workers, capacity)

    def has_launched_standby(self, record: JobRecord) -> bool:
        """Whether objects of the job's standby attempt have been observed."""
        _, state = self._known(record)
        return state is not None and state.standby is not None and state.standby.seen

    def _known(self, record: JobRecord) -> tuple[KnownJob, JobState | None]:
        """The kept data of the job with the number of workers of its spec, and its state; None for an invalid
        status."""
        known, version = self.of(record.key), (record.uid, record.generation)
        if known.sized != version:
            known.sized, known.workers = version, self._workers(record)
        if known.state is None:  # not reconciled yet by this process
            with suppress(InvalidSpec):
                held = status_of(record)
                known.persisted, (known.before, known.state) = held.state, known.states(held)
        return known, known.state

    def _workers(self, record: JobRecord) -> int | None:
        try:
            job = self._specs.of(record)
        except InvalidSpec:
            return None
        return workload_of(job).workers(job)


def _nodes(workers: int | None, capacity: CapacityRecord) -> int:
    """The number of nodes of that CapacityTier for an attempt with these workers."""
    with_head = capacity.model is not None and capacity.model.spec.apply_to is ApplyTo.WORKERS_AND_HEAD
    return 0 if workers is None else workers + with_head
