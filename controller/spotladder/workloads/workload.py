"""The port between the operator and a kind of workload: renders an attempt's objects and reads its state. `kinds`
has the kinds; the operator uses only the port."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from spotladder.api.tieredjob import TieredJob
from spotladder.core.model import AttemptSeen, Instant
from spotladder.resources import APIResource
from spotladder.workloads.kueue import AdmissionRecord
from spotladder.workloads.names import Origin
from spotladder.workloads.records import EventRecord, Made, NodeRecord, Object, PodRecord, WorkloadRecord
from spotladder.workloads.tiers import PlacedTier


@dataclass(frozen=True, slots=True)
class AttemptObjects:
    """The existing objects of one attempt.

    `top` is the attempt's main object, which owns the others; None if it does not exist. `admission` is its Workload
    of Kueue, None without one. `derived` are the objects that the workload's operator has created from it, such as
    RayClusters, except pods.
    """

    top: WorkloadRecord | None = None
    derived: tuple[Made, ...] = ()
    pods: tuple[PodRecord, ...] = ()
    admission: AdmissionRecord | None = None

    @property
    def every(self) -> tuple[Made, ...]:
        """All objects, the top first."""
        return (*(() if self.top is None else (self.top,)), *self.derived, *self.pods)


@dataclass(frozen=True, slots=True)
class ObjectPatch:
    """A JSON patch (RFC 6902) of one object of an attempt."""

    target: Made
    patch: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True, slots=True)
class DriverOutput:
    """Where the output of an attempt's driver can be read.

    `container` prints it: a container of the head's pod or, with the label selector `pods`, of the newest of these
    pods. Without a container, the dashboard of the head has the output. `log_of` extracts the last lines from the
    message in the status of the main object; None if that message has no output.
    """

    container: str = ""
    pods: str = ""
    log_of: Callable[[str], str] | None = None


class WorkloadKind(Protocol):
    """One kind of workload."""

    @property
    def main(self) -> APIResource:
        """The kind of the attempt's main object, which is created last."""

    @property
    def made(self) -> tuple[APIResource, ...]:
        """All kinds that `render` returns, in this order. To delete an attempt, the controller deletes objects of
        these kinds by label."""

    @property
    def records(self) -> Mapping[APIResource, Callable[[Object], Made]]:
        """The kinds to watch in addition to pods, nodes and events, `main` included, and the record of each."""

    @property
    def install(self) -> str:
        """The message for the user if `main` is not installed; `{cluster}` stands for the cluster."""

    def workers(self, job: TieredJob) -> int:
        """The number of worker pods that an attempt of the job needs to be ready.

        Raises:
            InvalidSpec: the template is not valid; names the field.
        """

    def longest_name(self, spec: Mapping[str, Any]) -> int:
        """The maximum length of an attempt's name, for a template's spec.

        Raises:
            InvalidSpec: the template's own names leave no room; names the field.
        """

    def render(
        self, job: TieredJob, origin: Origin, tier: PlacedTier, attempt: int, env: Mapping[str, str]
    ) -> list[dict[str, Any]]:
        """All objects of the attempt, in the order in which to create them, the same for the same arguments.

        `env` is added to every program's environment beside the SPOTLADDER_ variables and overrides the template's.

        Raises:
            InvalidSpec: the template asks for something that this tier does not have; names the field.
        """

    def ray_version(self, rendered: Sequence[Mapping[str, Any]]) -> str | None:
        """The Ray version of the attempt with these objects; None if it is unknown or the attempt has no Ray."""

    def begun(self, objects: AttemptObjects) -> bool:
        """Whether the workload's operator has accepted the attempt. Until then the attempt can be replaced by one with
        the same number."""

    def refusal(self, objects: AttemptObjects) -> str:
        """Why the operator will never run this attempt, not even after an edit; "" if it may."""

    def silent(self, objects: AttemptObjects, now: Instant) -> str:
        """Which operator does not act on the attempt, with the evidence; "" if all act or still have time. `now` is by
        the cluster's clock."""

    def driver_output(self, objects: AttemptObjects) -> DriverOutput | None:
        """Where the output of the attempt's driver can be read. None if the attempt has no driver: then every worker
        pod is a rank with its own output."""

    def replacing(self, objects: AttemptObjects, pods: Collection[str], *, remove: bool) -> ObjectPatch | None:
        """The change that adds a replacement for each of these pods (uids) or, with `remove`, removes them. None
        if no change is needed. Called only for attempts whose `surplus` is not None."""

    def resizing(self, objects: AttemptObjects, workers: int) -> ObjectPatch | None:
        """The change with which this number of workers is requested: without those that have no node if these are fewer
        than the attempt was launched with. None if no change is needed, or while fewer would be left. Called only for
        attempts whose `surplus` is not None."""

    def read(
        self,
        attempt: int,
        objects: AttemptObjects,
        nodes: Mapping[str, NodeRecord],
        events: Sequence[EventRecord] = (),
    ) -> AttemptSeen:
        """The attempt for the decision core. `nodes` are all nodes of the cluster by name: a pod whose node is missing
        has lost it. `events` may include others; only those about this attempt are used."""
