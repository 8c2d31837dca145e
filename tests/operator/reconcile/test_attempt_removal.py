"""Removal of attempts: which objects are deleted, in which order, and with which grace period."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from spotladder.clusters.errors import Forbidden, NotFound
from spotladder.core.model import (
    Attempt,
    Delete,
    Handover,
    Impeded,
    JobSpec,
    JobState,
    Tier,
)
from spotladder.core.reasons import Reason
from spotladder.operator.inventory.clusters import JobObjects, Located, WorkloadCluster
from spotladder.operator.reconcile.attempt_removal import SHORT_GRACE, AttemptRemover
from spotladder.resources import DISRUPTION_BUDGETS, NETWORK_POLICIES, PODS, APIResource
from spotladder.workloads import names
from spotladder.workloads.jobset.records import JOBSETS, JobSetRecord
from spotladder.workloads.rayjob.records import RAYCLUSTERS, RAYJOBS, RayClusterRecord, RayJobRecord
from spotladder.workloads.records import PodRecord
from spotladder.workloads.workload import AttemptObjects
from tests.operator.reconcile.builders import AcceptingClient, loaded_job
from tests.workloads.builders import job, node, ray_template


@dataclass
class LabelledClient(AcceptingClient):
    """A fake client that records deletions by label; the kind `absent` is not installed."""

    absent: APIResource | None = None
    deleted: list[Any] = field(default_factory=list)

    async def delete_all(self, kind: APIResource, namespace: str, *, labels: str) -> None:
        if kind == self.absent:
            raise NotFound(404, "NotFound", "no such kind")
        self.deleted.append((kind, namespace, labels))


OF_IT: dict[str, Any] = {"namespace": "team-a", "job": "digits"}


def located(home: Any, *, member: bool = False, problem: str = "", **objects: Any) -> Located:
    """Objects of an attempt, in the home cluster or in a member cluster, which may have a problem."""
    if member or problem:
        home = WorkloadCluster("east", home.client, home.inventory, most=1)
        home.monitor = cast("Any", SimpleNamespace(problem=problem))
    return Located(home, AttemptObjects(**objects))


async def removed(client: AcceptingClient, *, member: bool = False, suspend: bool = False, **objects: Any) -> list[Any]:
    """What is removed with an attempt that has these objects."""
    loaded, clusters, home = loaded_job(job(ray_template()), client)
    loaded.found = JobObjects({1: located(home, member=member, **objects)}, ())
    loaded.spec = replace(loaded.spec, suspend=suspend)
    await AttemptRemover(clusters).delete(loaded, Delete(1, Reason.FELL_BACK))
    return client.removed


@pytest.mark.parametrize("kind", [RAYJOBS, JOBSETS], ids=["RayJob", "JobSet"])
async def test_an_attempt_is_deleted_by_name_and_its_pods_with_a_short_grace_period(kind: APIResource) -> None:
    """In a member cluster, where it has guards of its own."""
    pods = (
        PodRecord(name="to-hurry", uid="p1", node="node-1", **OF_IT),
        PodRecord(name="slow", uid="p2", node="node-1", deleted_at=9.0, grace=30, **OF_IT),
        PodRecord(name="hurried", uid="p3", node="node-1", deleted_at=9.0, grace=SHORT_GRACE, **OF_IT),
        PodRecord(name="evicted", uid="p4", node="node-1", phase="Failed", **OF_IT),
        PodRecord(name="without-a-node", uid="p5", **OF_IT),
    )
    record = RayJobRecord if kind == RAYJOBS else JobSetRecord
    top = record(name="digits-a001", uid="r", **OF_IT)
    assert await removed(AcceptingClient(), member=True, top=top, pods=pods) == [
        (DISRUPTION_BUDGETS, "digits-a001", "", None),
        (NETWORK_POLICIES, "digits-a001", "", None),
        (kind, "digits-a001", "r", None),
        (PODS, "to-hurry", "p1", SHORT_GRACE),
        (PODS, "slow", "p2", SHORT_GRACE),
    ]


@pytest.mark.parametrize("suspend", [False, True])
async def test_the_guards_that_all_attempts_share_are_kept_unless_no_attempt_follows(suspend: bool) -> None:
    top = RayJobRecord(name="digits-a001", uid="r", **OF_IT)
    guards = [(kind, "digits-attempts", "", None) for kind in (DISRUPTION_BUDGETS, NETWORK_POLICIES)]
    found = await removed(AcceptingClient(), suspend=suspend, top=top)
    assert found == [*(guards if suspend else []), (RAYJOBS, "digits-a001", "r", None)]


async def test_a_pod_that_is_being_deleted_is_known_before_the_watch_delivers_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Otherwise each reconcile until then deletes it again."""
    client = AcceptingClient()
    loaded, clusters, home = loaded_job(job(ray_template()), client)
    pods = (PodRecord(name="ending", uid="p1", **OF_IT), PodRecord(name="gone", uid="p2", **OF_IT))
    loaded.found = JobObjects({1: Located(home, AttemptObjects(pods=pods))}, ())
    known: list[Any] = []

    async def delete(kind: APIResource, name: str, *_: object, **__: object) -> Any:
        ends = {"deletionTimestamp": "2026-01-01T00:00:05Z"} if name == "ending" else {}
        return {"kind": kind.kind, "metadata": {"name": name, **ends}}

    monkeypatch.setattr(client, "delete", delete)
    monkeypatch.setattr(
        home.inventory, "written", lambda kind, answer: known.append((kind, answer["metadata"]["name"]))
    )
    await AttemptRemover(clusters).delete(loaded, Delete(1, Reason.FELL_BACK))
    assert known == [(PODS, "ending")]


async def test_pods_on_silent_nodes_are_force_deleted_except_the_live_attempt_during_lost_contact() -> None:
    client = AcceptingClient()
    loaded, clusters, home = loaded_job(job(ray_template()), client)
    pods = (PodRecord(name="w-0", namespace="team-a", uid="p1", node="node-1", phase="Running"),)
    loaded.found = JobObjects({1: Located(home, AttemptObjects(pods=pods))}, ())
    loaded.spec = JobSpec((Tier("spot-a"),))
    home.inventory = cast("Any", SimpleNamespace(nodes_of=lambda _: {"node-1": node(ready="Unknown")}))
    lost = Impeded(Reason.CONTACT_LOST, 0.0)
    live = JobState(attempt=Attempt(1, "spot-a", 0.0), impeded=lost)
    await AttemptRemover(clusters).remove_silent_pods(loaded, live)
    assert client.removed == []
    for state in (replace(live, impeded=None), replace(live, attempt=Attempt(2, "spot-a", 0.0))):
        client.removed.clear()
        await AttemptRemover(clusters).remove_silent_pods(loaded, state)
        assert client.removed == [(PODS, "w-0", "p1", 0)]
    client.removed.clear()
    loaded.spec = replace(loaded.spec, handover=Handover.WHEN_GONE)
    await AttemptRemover(clusters).remove_silent_pods(loaded, replace(live, impeded=None))
    assert client.removed == [], "the next attempt waits until the pods are gone"


async def test_copies_of_an_attempt_in_other_clusters_are_removed_where_the_cluster_answers() -> None:
    client = AcceptingClient()
    loaded, clusters, home = loaded_job(job(ray_template()), client)
    stray = RayJobRecord(name="digits-a001", uid="r", **OF_IT)
    for problem, removed in (("no answer", []), ("", [DISRUPTION_BUDGETS, NETWORK_POLICIES, RAYJOBS])):
        loaded.found = JobObjects({}, ((1, located(home, member=True, problem=problem, top=stray)),))
        await AttemptRemover(clusters).delete_strays(loaded)
        assert [kind for kind, *_ in client.removed] == removed


async def test_objects_whose_owner_is_gone_are_removed_once() -> None:
    left = RayClusterRecord(name="digits-a001-x", uid="c", **OF_IT)
    ending = RayClusterRecord(name="digits-a001-y", uid="d", deleted_at=9.0, **OF_IT)
    found = await removed(AcceptingClient(), derived=(left, ending))
    assert found == [(RAYCLUSTERS, "digits-a001-x", "c", None)]


async def test_a_refused_deletion_of_a_pod_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    client = AcceptingClient()
    pods = (PodRecord(name="w-0", uid="p1", **OF_IT), PodRecord(name="w-1", uid="p2", **OF_IT))

    async def delete(_kind: object, name: str, *_: object, **__: object) -> None:
        raise NotFound(404, "NotFound", "gone") if name == "w-0" else Forbidden(403, "Forbidden", "no")

    monkeypatch.setattr(client, "delete", delete)
    with pytest.raises(Forbidden):
        await removed(client, pods=pods)


async def test_objects_of_an_unseen_attempt_are_deleted_by_label() -> None:
    client = LabelledClient()
    loaded, clusters, _home = loaded_job(job(ray_template()), client)
    await AttemptRemover(clusters).delete(loaded, Delete(3, Reason.FELL_BACK))
    where = f"{clusters.home.selector},{names.JOB}=digits,{names.ATTEMPT}=3"
    assert client.deleted == [(kind, "team-a", where) for kind in (RAYJOBS, NETWORK_POLICIES, DISRUPTION_BUDGETS)]


async def test_all_objects_of_an_invalid_job_are_deleted_by_label_whatever_their_kind() -> None:
    client = LabelledClient(absent=JOBSETS)
    loaded, clusters, _home = loaded_job(job(ray_template()), client)
    await AttemptRemover(clusters).remove_all(loaded.record)
    known = {RAYJOBS, NETWORK_POLICIES, DISRUPTION_BUDGETS}
    assert {kind for kind, *_ in client.deleted} == known, "JobSet is not installed"
    assert {(namespace, labels) for _, namespace, labels in client.deleted} == {
        ("team-a", f"{clusters.home.selector},{names.JOB}=digits")
    }
