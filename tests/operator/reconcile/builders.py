"""A loaded job, and the cluster of its attempts with a fake client."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

from spotladder.api.capacitytier import HOME
from spotladder.api.stored import JobRecord
from spotladder.api.tieredjob import TieredJob
from spotladder.core.model import JobSpec, JobState, Observation, Tier
from spotladder.operator.inventory.clusters import Clusters, JobObjects, WorkloadCluster
from spotladder.operator.loaded import Tiers
from spotladder.resources import APIResource
from spotladder.workloads.kinds import workload_of
from tests.clusters.stepped_clock import SteppedClock
from tests.workloads.builders import tier


@dataclass
class AcceptingClient:
    """A fake client that accepts every object."""

    made: list[Any] = field(default_factory=list)
    removed: list[Any] = field(default_factory=list)

    async def apply(self, _kind: object, body: Any) -> Any:
        self.made.append(deepcopy(body))
        return body

    async def create(self, kind: object, body: Any) -> Any:
        return await AcceptingClient.apply(self, kind, body)

    async def metadata(self, *_: object) -> Any:
        return {"metadata": {}}

    async def delete(self, kind: APIResource, name: str, _namespace: str, *, uid: str, grace: int | None) -> Any:
        self.removed.append((kind, name, uid, grace))


def loaded_job(made: TieredJob, client: AcceptingClient) -> tuple[Any, Clusters, WorkloadCluster]:
    """The loaded job of one reconcile, all clusters, and the home cluster."""
    inventory: Any = SimpleNamespace(
        unreadable=lambda *_: [],
        written=lambda *_: None,
        guards=SimpleNamespace(exists=lambda *_: None, is_current=lambda *_: False, of=lambda *_: []),
    )
    loaded: Any = SimpleNamespace(
        record=JobRecord(name="digits", namespace="team-a", uid="1b4e28ba"),
        job=made,
        workload=workload_of(made),
        tiers=Tiers({"spot-a": tier(made, provider="aws")}, {}),
        spec=JobSpec((Tier("spot-a"),)),
        state=JobState(),
        found=JobObjects({}, ()),
        seen=Observation(1),
    )
    home = WorkloadCluster(HOME, cast("Any", client), inventory, most=1)
    clusters = Clusters(home, {}, join=cast("Any", None), clock=SteppedClock(), changed=lambda _name: None)
    return loaded, clusters, home
