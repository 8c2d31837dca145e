"""Removal of attempts: which objects are deleted, in which order, and with which grace period."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from spotladder.core.model import (
    Attempt,
    AttemptSeen,
    Delete,
    Impeded,
    Impediment,
    JobSpec,
    JobState,
    Observation,
    Tier,
)
from spotladder.core.reasons import Reason
from spotladder.operator.inventory.clusters import JobObjects, Located
from spotladder.operator.reconcile.attempt_removal import SHORT_GRACE, AttemptRemover
from spotladder.resources import DISRUPTION_BUDGETS, PODS, APIResource
from spotladder.workloads.jobset.records import JOBSETS, JobSetRecord
from spotladder.workloads.rayjob.records import RAYJOBS, RayJobRecord
from spotladder.workloads.records import PodRecord
from spotladder.workloads.workload import AttemptObjects
from tests.operator.reconcile.builders import AcceptingClient, loaded_job
from tests.workloads.builders import job, node, ray_template


@pytest.mark.parametrize("kind", [RAYJOBS, JOBSETS], ids=["RayJob", "JobSet"])
async def test_an_attempt_is_deleted_by_name_and_its_pods_with_a_short_grace_period(kind: APIResource) -> None:
    client = AcceptingClient()
    loaded, clusters, home = loaded_job(job(ray_template()), client)
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
    await AttemptRemover(clusters).delete(loaded, Delete(1, Reason.FELL_BACK))
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
    loaded, clusters, home = loaded_job(job(ray_template()), client)
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
    await AttemptRemover(clusters).delete(loaded, Delete(1, Reason.FELL_BACK))
    assert known == [(PODS, "ending")]


async def test_pods_on_silent_nodes_are_force_deleted_except_the_live_attempt_during_lost_contact() -> None:
    client = AcceptingClient()
    loaded, clusters, home = loaded_job(job(ray_template()), client)
    pods = (PodRecord(name="w-0", namespace="team-a", uid="p1", node="node-1", phase="Running"),)
    loaded.found = JobObjects({1: Located(home, AttemptObjects(pods=pods))}, ())
    loaded.spec = JobSpec((Tier("spot-a"),))
    home.inventory = cast("Any", SimpleNamespace(nodes_of=lambda _: {"node-1": node(ready="Unknown")}))
    lost = Impeded(Impediment.CONTACT, Reason.CONTACT_LOST, 0.0)
    live = JobState(attempt=Attempt(1, "spot-a", 0.0), impeded=lost)
    await AttemptRemover(clusters).remove_silent_pods(loaded, live)
    assert client.removed == []
    for state in (replace(live, impeded=None), replace(live, attempt=Attempt(2, "spot-a", 0.0))):
        client.removed.clear()
        await AttemptRemover(clusters).remove_silent_pods(loaded, state)
        assert client.removed == [(PODS, "w-0", "p1", 0)]


@pytest.mark.parametrize(("surplus", "deleting", "removed"), [(1, False, False), (1, True, True), (0, False, True)])
async def test_a_replaced_pod_on_a_silent_node_is_force_deleted_when_kuberay_has_removed_it(
    surplus: int, deleting: bool, removed: bool
) -> None:
    client = AcceptingClient()
    loaded, clusters, home = loaded_job(job(ray_template()), client)
    ends = 1.0 if deleting else None
    pods = (PodRecord(name="w-0", namespace="team-a", uid="p1", node="node-1", phase="Running", deleted_at=ends),)
    loaded.found = JobObjects({1: Located(home, AttemptObjects(pods=pods))}, ())
    loaded.spec = JobSpec((Tier("spot-a"),))
    loaded.seen = Observation(1, (AttemptSeen(1, surplus=surplus),))
    home.inventory = cast("Any", SimpleNamespace(nodes_of=lambda _: {"node-1": node(ready="Unknown")}))
    await AttemptRemover(clusters).remove_silent_pods(
        loaded, JobState(attempt=Attempt(1, "spot-a", 0.0, leaving=("p1",)))
    )
    assert bool(client.removed) is removed
