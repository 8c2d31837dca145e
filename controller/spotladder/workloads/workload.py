"""The port between the operator and a kind of workload: what to create for an attempt, and how to read what became
of it. Implemented by `rayjob.RAYJOB` and `jobset.JOBSET`; `kinds.workload_of(job)` finds the one of a job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from spotladder.api.tieredjob import TieredJob
from spotladder.core.model import AttemptSeen, Instant
from spotladder.workloads.names import Origin
from spotladder.workloads.records import (
    GVR,
    AttemptRecord,
    EventRecord,
    JobSetRecord,
    NodeRecord,
    PodRecord,
    RayClusterRecord,
    RayJobRecord,
)
from spotladder.workloads.tiers import ResolvedTier


@dataclass(frozen=True, slots=True)
class AttemptObjects:
    """What exists of one attempt. All is None or empty for what does not."""

    rayjob: RayJobRecord | None = None
    rayclusters: tuple[RayClusterRecord, ...] = ()
    jobset: JobSetRecord | None = None
    pods: tuple[PodRecord, ...] = ()

    @property
    def top(self) -> AttemptRecord | None:
        """The object that is the attempt, and that owns the rest."""
        return self.rayjob or self.jobset


class Workload(Protocol):
    """One kind of thing that an attempt can be."""

    @property
    def main(self) -> GVR:
        """The object that is the attempt; it goes last when an attempt is created."""

    @property
    def made(self) -> tuple[GVR, ...]:
        """All kinds that `render` returns, in this order. Deleting an attempt deletes these, by its labels."""

    @property
    def watched(self) -> tuple[GVR, ...]:
        """Kinds to watch beside pods, nodes and events."""

    def workers(self, job: TieredJob) -> int:
        """The number of worker pods that make the job whole."""

    def render(
        self, job: TieredJob, origin: Origin, tier: ResolvedTier, attempt: int, env: Mapping[str, str]
    ) -> list[dict[str, Any]]:
        """All objects of the attempt, in the order in which to create them, the same for the same arguments.

        `env` is added to every program's environment beside the SPOTLADDER_ variables and wins over the template's.

        Raises:
            InvalidSpec: the template asks for something that this tier is not; names the field.
        """

    def silent(self, objects: AttemptObjects, now: Instant) -> str:
        """Which operator does not act on the attempt, and how that is seen; "" when all do, or may still. `now` is the
        cluster's clock."""

    def read(
        self,
        attempt: int,
        objects: AttemptObjects,
        nodes: Mapping[str, NodeRecord],
        events: Sequence[EventRecord] = (),
    ) -> AttemptSeen:
        """What the decision core is to know. `nodes` are all of the cluster by name: a pod on a node that is not among
        them has lost it. `events` may hold any; only those about this attempt count."""
