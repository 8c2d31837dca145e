"""A loaded job, and the cluster of its attempts with a fake client."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any, cast

from spotladder.api.capacitytier import HOME
from spotladder.api.stored import JobRecord
from spotladder.api.tenancy import TenantRule
from spotladder.api.tieredjob import TieredJob
from spotladder.clusters.errors import NotFound
from spotladder.core.model import JobSpec, JobState, Launch, Observation, Tier
from spotladder.operator.condition_types import Diagnosis
from spotladder.operator.inventory.clusters import Clusters, JobObjects, Located, WorkloadCluster
from spotladder.operator.loaded import Tiers
from spotladder.operator.reconcile.apply import Applier
from spotladder.operator.reconcile.attempt_removal import AttemptRemover
from spotladder.operator.reconcile.preflight import Preflight
from spotladder.resources import APIResource
from spotladder.workloads.kinds import workload_of
from spotladder.workloads.rayjob.records import RAYJOBS, RayJobRecord
from spotladder.workloads.workload import AttemptObjects
from tests.clusters.stepped_clock import SteppedClock
from tests.workloads.builders import job, ray_template, tier


@dataclass
class AcceptingClient:
    """A fake client that accepts every object."""

    made: list[Any] = field(default_factory=list)
    removed: list[Any] = field(default_factory=list)

    async def apply(self, _kind: object, body: Any, *, force: bool = False) -> Any:
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


@dataclass
class RefusingServer(AcceptingClient):
    """A fake client that refuses RayJobs with this error, and lacks objects of the kinds in `lacks`."""

    error: Exception | None = None
    lacks: tuple[Any, ...] = ()

    async def apply(self, kind: object, body: Any, *, force: bool = False) -> Any:
        if kind == RAYJOBS and self.error is not None:
            raise self.error
        return await super().apply(kind, body)

    async def create(self, kind: object, body: Any) -> Any:
        if kind == RAYJOBS and self.error is not None:
            raise self.error
        return await super().create(kind, body)

    async def metadata(self, *named: object) -> Any:
        if named[0] in self.lacks:
            raise NotFound(404, "NotFound", "not found")
        return {"metadata": {}}

    async def exists(self, _kind: object) -> bool:
        return True


class LaunchRig:
    """The job `digits`, and one cluster: the home cluster or, with `member`, the member cluster east."""

    def __init__(self, client: AcceptingClient, *, member: bool = False, template: Any = None) -> None:
        self.loaded, self.clusters, self.cluster = loaded_job(job(template or ray_template()), client)
        self.inventory = SimpleNamespace(
            unreadable=lambda *_: [],
            written=lambda *_: None,
            attempts=lambda *_: {},
            of_others=lambda *_: {},
            guards=SimpleNamespace(exists=lambda *_: None, is_current=lambda *_: False),
        )
        self.cluster.inventory = cast("Any", self.inventory)
        if member:
            home = self.cluster
            self.cluster = WorkloadCluster("east", home.client, home.inventory, most=1, home="home-uid")
            self.cluster.monitor = cast("Any", SimpleNamespace(problem=""))
            self.clusters = cast("Any", TwoClusters(home, self.cluster))
            tier = replace(self.loaded.tiers.resolved["spot-a"], cluster="east")
            self.loaded.tiers.resolved["spot-a"] = tier
        clock = SteppedClock()
        self.applier = Applier(
            self.clusters,
            remover=AttemptRemover(self.clusters),
            preflight=Preflight(self.clusters, clock=clock, changed=lambda _key: None),
            environment={},
            rules=(TenantRule(namespaces=("*",), clusters=("*",)),),
            over_budget=lambda _: self.over_budget,
        )
        self.over_budget: Diagnosis | None = None

    async def launch(self, tier: str = "spot-a") -> Diagnosis | None:
        return await self.applier.launch(self.loaded, Launch(1, tier))

    def has(self, record: RayJobRecord) -> None:
        """The attempt exists."""
        objects = AttemptObjects(top=record)
        self.loaded.found = JobObjects({1: Located(self.cluster, objects)}, ())


@dataclass
class TwoClusters:
    home: WorkloadCluster
    east: WorkloadCluster

    def of(self, name: str) -> WorkloadCluster | None:
        return {"home": self.home, "east": self.east}.get(name)
