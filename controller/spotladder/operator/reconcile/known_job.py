"""The data of a job that this process keeps between two reconciles. If it is lost, work is repeated, and no decision
changes."""

from __future__ import annotations

from dataclasses import dataclass, field

from spotladder.api.status import TieredJobStatus
from spotladder.api.stored import CapacityRecord, state_of
from spotladder.core.model import JobState
from spotladder.operator.condition_types import Diagnosis
from spotladder.operator.reconcile import status


@dataclass(slots=True)
class KnownJob:
    """The kept data of the job with this uid. `before` is the state in the status, whose text is `persisted`; `state`
    is newer by nothing but time.

    `blocked` is why the last launch did not succeed. `capacity` are the CapacityTiers as last observed.
    """

    uid: str = ""
    persisted: str = ""
    before: JobState = field(default_factory=JobState)
    state: JobState | None = None
    blocked: Diagnosis | None = None
    capacity: dict[str, CapacityRecord] = field(default_factory=dict)

    def states(self, held: TieredJobStatus) -> tuple[JobState, JobState]:
        """The persisted state, and the state as this process knows it. Raises InvalidSpec."""
        if self.state is not None and self.persisted == held.state:
            return self.before, self.state
        found = state_of(held)
        if self.state is None:
            self.blocked = status.launch_diagnosis(held, found)
        return found, found
