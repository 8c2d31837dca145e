from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from spotladder.api.tieredjob import TieredJob
from spotladder.clusters.cache import Scoped
from spotladder.clusters.clock import SteppedClock
from spotladder.clusters.errors import Forbidden
from spotladder.clusters.registry import HOME
from spotladder.core.model import (
    Attempt,
    AttemptSeen,
    Delete,
    Impeded,
    Impediment,
    JobSpec,
    JobState,
    Launch,
    Observation,
    Tier,
)
from spotladder.core.reasons import Reason
from spotladder.custom_resources import JobRecord
from spotladder.operator.inventory.clusters import Clusters, JobObjects, Located, WorkloadCluster
from spotladder.operator.loaded import Tiers
from spotladder.operator.reconcile.apply import SHORT_GRACE, Applier
from spotladder.operator.reconcile.copies import Copies
from spotladder.operator.reconcile.preflight import Preflight
from spotladder.resources import DISRUPTION_BUDGETS, PODS, APIResource
from spotladder.workloads import names
from spotladder.workloads.jobset.records import JOBSETS, JobSetRecord
from spotladder.workloads.kinds import workload_of
from spotladder.workloads.rayjob.records import RAYJOBS, RayJobRecord
from spotladder.workloads.records import PodRecord
from spotladder.workloads.workload import AttemptObjects
from tests.workloads.builders import job, jobset_template, node, ray_template, tier


@dataclass
class AcceptingClient:
    """A fake client that accepts every object."""

    made: list[Any] = field(default_factory=list)
    removed: list[Any] = field(default_factory=list)

    async def apply(self, _kind: object, body: Any) -> Any:
        self.made.append(deepcopy(body))
        return body

    async def metadata(self, *_: object) -> Any:
        return {}

    async def delete(self, kind: APIResource, name: str, _namespace: str, *, uid: str, grace: int | None) -> Any:
        self.removed.append((kind, name, uid, grace))


@dataclass
class RefusingClient(AcceptingClient):
    """A fake client that refuses RayJobs."""

    async def apply(self, kind: object, body: Any) -> Any:
        if kind == RAYJOBS:
            raise Forbidden(403, "Forbidden", "exceeded quota: gpu")
        return await super().apply(kind, body)


def launching(made: TieredJob, client: AcceptingClient) -> tuple[Any, Applier, WorkloadCluster]:
    """The loaded job of one reconcile, the applier, and the home cluster."""
    inventory: Any = SimpleNamespace(unreadable=lambda *_: [], written=lambda *_: None)
    loaded: Any = SimpleNamespace(
        record=JobRecord(name="digits", namespace="team-a", uid="1b4e28ba"),
        job=made,
        workload=workload_of(made),
        tiers=Tiers({"spot-a": tier(made, provider="aws")}, {}),
        state=JobState(),
        found=JobObjects({}, ()),
        seen=Observation(1),
    )
    clock = SteppedClock()
    home = WorkloadCluster(HOME, cast("Any", client), inventory, most=1)
    clusters = Clusters(home, {}, join=cast("Any", None), clock=clock, changed=lambda _name: None)
    preflight = Preflight(clusters, clock=clock, changed=lambda _key: None)
    copies = Copies(clusters, Scoped([]), namespaces=(), clock=clock)
    applier = Applier(clusters, preflight=preflight, copies=copies, environment={})
    return loaded, applier, home


@pytest.mark.parametrize("template", [ray_template(), jobset_template()], ids=["RayJob", "JobSet"])
async def test_launching_twice_applies_identical_objects_and_does_not_modify_the_job(template: dict[str, Any]) -> None:
    made, client = job(template), AcceptingClient()
    before = made.model_copy(deep=True)
    loaded, applier, _home = launching(made, client)
    for _ in range(2):
        assert await applier.launch(loaded, Launch(1, "spot-a")) is None
    half = len(client.made) // 2
    assert client.made[:half] == client.made[half:]
    assert client.made[-1]["metadata"]["annotations"][names.DIGEST]
    assert made == before


@pytest.mark.parametrize(
    ("template", "there"),
    [(ray_template(), RayJobRecord), (jobset_template(), JobSetRecord)],
    ids=["RayJob", "JobSet"],
)
async def test_an_existing_attempt_object_is_not_applied_again_after_a_spec_change(
    template: dict[str, Any], there: type[RayJobRecord | JobSetRecord]
) -> None:
    client = AcceptingClient()
    loaded, applier, home = launching(job(template), client)
    assert await applier.launch(loaded, Launch(1, "spot-a")) is None
    for digest in (client.made[-1]["metadata"]["annotations"][names.DIGEST], "of the spec before"):
        top: Any = there(name="digits-a001", namespace="team-a", uid="r", digest=digest)
        objects = AttemptObjects(top=top)
        loaded.found = JobObjects({1: Located(home, objects)}, ())
        client.made.clear()
        assert await applier.launch(loaded, Launch(1, "spot-a")) is None
        assert client.made == []


@pytest.mark.parametrize("kind", [RAYJOBS, JOBSETS], ids=["RayJob", "JobSet"])
async def test_an_attempt_is_deleted_by_name_and_its_pods_with_a_short_grace_period(kind: APIResource) -> None:
    client = AcceptingClient()
    loaded, applier, home = launching(job(ray_template()), client)
    of_it: dict[str, Any] = {"namespace": "team-a", "job": "digits"}
    pods = (
        PodRecord(name="to-hurry", uid="p1", **of_it),
        PodRecord(name="slow", uid="p2", deleted_at=9.0, grace=30, **of_it),
        PodRecord(name="hurried", uid="p3", deleted_at=9.0, grace=SHORT_GRACE, **of_it),
        PodRecord(name="evicted", uid="p4", phase="Failed", **of_it),
    )
    record = RayJobRecord if kind == RAYJOBS else JobSetRecord
    top: Any = {"top": record(name="digits-a001", uid="r", **of_it)}
    loaded.found = JobObjects({1: Located(home, AttemptObjects(pods=pods, **top))}, ())
    await applier.delete(loaded, Delete(1, Reason.FELL_BACK))
    assert client.removed == [
        (DISRUPTION_BUDGETS, "digits-a001", "", None),
        (kind, "digits-a001", "r", None),
        (PODS, "to-hurry", "p1", SHORT_GRACE),
        (PODS, "slow", "p2", SHORT_GRACE),
    ]


async def test_a_pod_that_is_being_deleted_is_known_before_the_watch_delivers_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Otherwise each reconcile until then deletes it again."""
    client = AcceptingClient()
    loaded, applier, home = launching(job(ray_template()), client)
    of_it: dict[str, Any] = {"namespace": "team-a", "job": "digits"}
    pods = (PodRecord(name="ending", uid="p1", **of_it), PodRecord(name="gone", uid="p2", **of_it))
    loaded.found = JobObjects({1: Located(home, AttemptObjects(pods=pods))}, ())
    known: list[Any] = []

    async def delete(kind: APIResource, name: str, *_: object, **__: object) -> Any:
        ends = {"deletionTimestamp": "2026-01-01T00:00:05Z"} if name == "ending" else {}
        return {"kind": kind.kind, "metadata": {"name": name, **ends}}

    monkeypatch.setattr(client, "delete", delete)
    monkeypatch.setattr(
        home.inventory, "written", lambda kind, answer: known.append((kind, answer["metadata"]["name"]))
    )
    await applier.delete(loaded, Delete(1, Reason.FELL_BACK))
    assert known == [(PODS, "ending")]


async def test_a_refused_rayjob_in_a_member_cluster_gets_its_disruption_budget_deleted() -> None:
    for monitor, taken_back in (
        (None, []),
        (SimpleNamespace(problem=""), [(DISRUPTION_BUDGETS, "digits-a001", "", None)]),
    ):
        client = RefusingClient()
        loaded, applier, home = launching(job(ray_template()), client)
        home.monitor = cast("Any", monitor)
        problem = await applier.launch(loaded, Launch(1, "spot-a"))
        assert problem is not None
        assert "exceeded quota" in problem.message
        assert client.removed == taken_back


async def test_pods_on_silent_nodes_are_force_deleted_except_the_live_attempt_during_lost_contact() -> None:
    client = AcceptingClient()
    loaded, applier, home = launching(job(ray_template()), client)
    pods = (PodRecord(name="w-0", namespace="team-a", uid="p1", node="node-1", phase="Running"),)
    loaded.found = JobObjects({1: Located(home, AttemptObjects(pods=pods))}, ())
    loaded.spec = JobSpec((Tier("spot-a"),))
    home.inventory = cast("Any", SimpleNamespace(nodes_of=lambda _: {"node-1": node(ready="Unknown")}))
    lost = Impeded(Impediment.CONTACT, Reason.CONTACT_LOST, 0.0)
    live = JobState(attempt=Attempt(1, "spot-a", 0.0), impeded=lost)
    await applier.remove_silent_pods(loaded, live)
    assert client.removed == []
    for state in (replace(live, impeded=None), replace(live, attempt=Attempt(2, "spot-a", 0.0))):
        client.removed.clear()
        await applier.remove_silent_pods(loaded, state)
        assert client.removed == [(PODS, "w-0", "p1", 0)]


async def test_a_new_attempt_avoids_the_nodes_of_its_launch() -> None:
    client = AcceptingClient()
    loaded, applier, _home = launching(job(ray_template()), client)
    await applier.launch(loaded, Launch(1, "spot-a", avoids=("node-7",)))
    assert str(client.made[-1]).count("node-7") == 2, "the head and the workers"


@pytest.mark.parametrize(("surplus", "deleting", "removed"), [(1, False, False), (1, True, True), (0, False, True)])
async def test_a_replaced_pod_on_a_silent_node_is_force_deleted_when_kuberay_has_removed_it(
    surplus: int, deleting: bool, removed: bool
) -> None:
    client = AcceptingClient()
    loaded, applier, home = launching(job(ray_template()), client)
    ends = 1.0 if deleting else None
    pods = (PodRecord(name="w-0", namespace="team-a", uid="p1", node="node-1", phase="Running", deleted_at=ends),)
    loaded.found = JobObjects({1: Located(home, AttemptObjects(pods=pods))}, ())
    loaded.spec = JobSpec((Tier("spot-a"),))
    loaded.seen = Observation(1, (AttemptSeen(1, surplus=surplus),))
    home.inventory = cast("Any", SimpleNamespace(nodes_of=lambda _: {"node-1": node(ready="Unknown")}))
    await applier.remove_silent_pods(loaded, JobState(attempt=Attempt(1, "spot-a", 0.0, leaving=("p1",))))
    assert bool(client.removed) is removed
