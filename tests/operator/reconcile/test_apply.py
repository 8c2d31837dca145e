from __future__ import annotations

from base64 import b64decode
from dataclasses import dataclass, field
from typing import Any

import pytest

from spotladder.clusters.errors import ApiError, Conflict, Forbidden, NotFound
from spotladder.core.contract import Notice
from spotladder.core.model import AskToCommit, Launch
from spotladder.core.reasons import Reason
from spotladder.operator.inventory.clusters import JobObjects, Located
from spotladder.resources import DISRUPTION_BUDGETS, NETWORK_POLICIES, SECRETS
from spotladder.workloads import names
from spotladder.workloads.jobset.records import JobSetRecord
from spotladder.workloads.rayjob.records import RayJobRecord
from spotladder.workloads.records import PodRecord
from spotladder.workloads.workload import AttemptObjects
from tests.operator.reconcile.builders import AcceptingClient, LaunchRig, RefusingServer
from tests.workloads.builders import job, jobset_template, ray_template


@pytest.mark.parametrize(
    ("template", "record_type"),
    [(ray_template(), RayJobRecord), (jobset_template(), JobSetRecord)],
    ids=["RayJob", "JobSet"],
)
async def test_an_existing_attempt_object_is_not_applied_again_after_a_spec_change(
    template: dict[str, Any], record_type: type[RayJobRecord | JobSetRecord]
) -> None:
    client = AcceptingClient()
    rig = LaunchRig(client, template=template)
    assert await rig.launch() is None
    for digest in (client.made[-1]["metadata"]["annotations"][names.DIGEST], "of the spec before"):
        top: Any = record_type(name="digits-a001", namespace="team-a", uid="r", digest=digest)
        objects = AttemptObjects(top=top)
        rig.loaded.found = JobObjects({1: Located(rig.cluster, objects)}, ())
        client.made.clear()
        assert await rig.launch() is None
        assert client.made == []


async def test_all_attempts_of_a_job_in_the_home_cluster_share_its_guards() -> None:
    client = AcceptingClient()
    rig = LaunchRig(client)
    guards: Any = rig.cluster.inventory.guards
    guards.is_current = lambda _kind, body: body in client.made
    for attempt in (1, 2):
        assert await rig.applier.launch(rig.loaded, Launch(attempt, "spot-a")) is None
    made = [(body["kind"], body["metadata"]["name"]) for body in client.made]
    shared = [("PodDisruptionBudget", "digits-attempts"), ("NetworkPolicy", "digits-attempts")]
    assert made == [*shared, ("RayJob", "digits-a001"), ("RayJob", "digits-a002")]

    template = ray_template()
    template["spec"]["rayClusterSpec"]["headGroupSpec"]["rayStartParams"] = {"dashboard-port": "8300"}
    rig.loaded.job = job(template)
    before = len(client.made)
    await rig.applier.launch(rig.loaded, Launch(3, "spot-a"))
    assert [body["kind"] for body in client.made[before:]] == ["PodDisruptionBudget", "NetworkPolicy", "RayJob"], (
        "a changed port"
    )

    client.made.clear()
    rig.cluster.home = "home-uid"
    for attempt in (4, 5):
        await rig.applier.launch(rig.loaded, Launch(attempt, "spot-a"))
    assert [body["metadata"]["name"] for body in client.made] == ["digits-a004"] * 3 + ["digits-a005"] * 3


async def test_a_refused_rayjob_in_a_member_cluster_gets_its_other_objects_deleted() -> None:
    earlier = [(kind, "digits-a001", "", None) for kind in (DISRUPTION_BUDGETS, NETWORK_POLICIES)]
    for member, taken_back in ((False, []), (True, earlier)):
        client = RefusingServer(error=Forbidden(403, "Forbidden", "exceeded quota: gpu"))
        problem = await LaunchRig(client, member=member).launch()
        assert problem is not None
        assert "exceeded quota" in problem.message
        assert client.removed == taken_back


@dataclass
class AnnotatingClient(AcceptingClient):
    """A fake client that records the annotations that pods get."""

    annotated: list[Any] = field(default_factory=list)

    async def merge(self, _kind: object, name: str, _namespace: str, *, body: Any) -> Any:
        self.annotated.append((name, body["metadata"]["annotations"][names.NOTICE]))
        raise NotFound(404, "NotFound", "the inventory is not part of this test")


async def test_the_named_pods_get_the_request_to_commit_once() -> None:
    """Pods of a JobSet are named by their place."""
    client = AnnotatingClient()
    rig = LaunchRig(client)
    text = Notice.of_commit(Reason.EVICTION_NOTICE, 12.5).encode()
    running: dict[str, Any] = {"namespace": "team-a", "phase": "Running"}
    pods = (
        PodRecord(name="head", uid="p0", **running),
        PodRecord(name="w-1", uid="p1", notice=text, **running),
        PodRecord(name="w-2", uid="p2", slot="workers-0-2", notice=Notice.of_takeover().encode(), **running),
        PodRecord(name="w-3", uid="p3", **running),
        PodRecord(name="w-4", uid="p4", namespace="team-a", phase="Failed"),
    )
    rig.loaded.found = JobObjects({1: Located(rig.cluster, AttemptObjects(pods=pods))}, ())
    asked = ("p0", "p1", "workers-0-2", "p4")
    for attempt in (1, 2):
        await rig.applier.change(rig.loaded, AskToCommit(attempt, asked, Reason.EVICTION_NOTICE, 12.5))
    assert client.annotated == [("head", text), ("w-2", text)]


@dataclass
class ClientWithoutToken(AcceptingClient):
    """A fake client of a namespace without the Secret of the token; creating it may fail with `refusal`."""

    refusal: ApiError | None = None
    created: list[Any] = field(default_factory=list)

    async def metadata(self, *_: object) -> Any:
        raise NotFound(404, "NotFound", "no such Secret")

    async def create(self, kind: object, body: Any) -> Any:
        if kind != SECRETS:
            return await super().create(kind, body)
        if self.refusal:
            raise self.refusal
        self.created.append(body)
        return body


async def test_the_token_of_a_namespace_is_created_before_an_attempt_that_uses_it() -> None:
    client, tokens = ClientWithoutToken(), []
    rig = LaunchRig(client)
    for _ in range(2):
        assert await rig.launch() is None
        (secret,) = client.created
        used = client.made[-1]["spec"]["rayClusterSpec"]["authOptions"]
        assert used == {"mode": "token", "secretName": secret["metadata"]["name"]}
        assert (secret["metadata"]["namespace"], secret["immutable"]) == ("team-a", True)
        tokens.append(b64decode(secret["data"]["auth_token"]))
        client.created.clear()
    assert len(set(tokens)) == 2
    assert min(map(len, tokens)) >= 32


class ClientWithoutPermission(ClientWithoutToken):
    """A fake client that must neither read nor create the Secret of the token, as with an older chart."""

    async def metadata(self, *_: object) -> Any:
        raise Forbidden(403, "Forbidden", "secrets is forbidden")


@pytest.mark.parametrize("made", [ClientWithoutToken, ClientWithoutPermission])
async def test_without_permission_for_the_token_no_attempt_starts(made: type[ClientWithoutToken]) -> None:
    client = made(refusal=Forbidden(403, "Forbidden", "secrets is forbidden"))
    rig = LaunchRig(client)
    problem = await rig.launch()
    assert problem is not None
    assert problem.message.startswith("Secret team-a/spotladder-ray-token cannot be created: secrets is forbidden")
    assert client.made == []


@pytest.mark.parametrize("made", [ClientWithoutToken, ClientWithoutPermission])
async def test_a_token_that_exists_is_used_whether_or_not_the_controller_may_read_it(
    made: type[ClientWithoutToken],
) -> None:
    client = made(refusal=Conflict(409, "AlreadyExists", "exists"))
    rig = LaunchRig(client)
    assert await rig.launch() is None
    assert client.made[-1]["spec"]["rayClusterSpec"]["authOptions"]["mode"] == "token"
    assert RayJobRecord.of(client.made[-1]).token_refused == ""
