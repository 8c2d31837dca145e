from __future__ import annotations

from base64 import b64decode
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest

from spotladder.api.tieredjob import TieredJob
from spotladder.clusters.errors import ApiError, Conflict, Forbidden, NotFound
from spotladder.core.contract import Notice
from spotladder.core.model import AskToCommit, Launch
from spotladder.core.reasons import Reason
from spotladder.operator.inventory.clusters import JobObjects, Located, WorkloadCluster
from spotladder.operator.reconcile.apply import Applier
from spotladder.operator.reconcile.attempt_removal import AttemptRemover
from spotladder.operator.reconcile.preflight import Preflight
from spotladder.resources import DISRUPTION_BUDGETS, NETWORK_POLICIES, SECRETS
from spotladder.workloads import names
from spotladder.workloads.jobset.records import JobSetRecord
from spotladder.workloads.rayjob.records import RAYJOBS, RayJobRecord
from spotladder.workloads.records import PodRecord
from spotladder.workloads.workload import AttemptObjects
from tests.clusters.stepped_clock import SteppedClock
from tests.operator.reconcile.builders import AcceptingClient, loaded_job
from tests.workloads.builders import job, jobset_template, ray_template


@dataclass
class RefusingClient(AcceptingClient):
    """A fake client that refuses RayJobs."""

    async def create(self, kind: object, body: Any) -> Any:
        if kind == RAYJOBS:
            raise Forbidden(403, "Forbidden", "exceeded quota: gpu")
        return await super().create(kind, body)


def launching(made: TieredJob, client: AcceptingClient) -> tuple[Any, Applier, WorkloadCluster]:
    """The loaded job of one reconcile, the applier, and the home cluster."""
    loaded, clusters, home = loaded_job(made, client)
    preflight = Preflight(clusters, clock=SteppedClock(), changed=lambda _key: None)
    remover = AttemptRemover(clusters)
    applier = Applier(
        clusters, remover=remover, preflight=preflight, environment={}, rules=(), over_budget=lambda _: None
    )
    return loaded, applier, home


@pytest.mark.parametrize(
    ("template", "record_type"),
    [(ray_template(), RayJobRecord), (jobset_template(), JobSetRecord)],
    ids=["RayJob", "JobSet"],
)
async def test_an_existing_attempt_object_is_not_applied_again_after_a_spec_change(
    template: dict[str, Any], record_type: type[RayJobRecord | JobSetRecord]
) -> None:
    client = AcceptingClient()
    loaded, applier, home = launching(job(template), client)
    assert await applier.launch(loaded, Launch(1, "spot-a")) is None
    for digest in (client.made[-1]["metadata"]["annotations"][names.DIGEST], "of the spec before"):
        top: Any = record_type(name="digits-a001", namespace="team-a", uid="r", digest=digest)
        objects = AttemptObjects(top=top)
        loaded.found = JobObjects({1: Located(home, objects)}, ())
        client.made.clear()
        assert await applier.launch(loaded, Launch(1, "spot-a")) is None
        assert client.made == []


async def test_all_attempts_of_a_job_in_the_home_cluster_share_its_guards() -> None:
    client = AcceptingClient()
    loaded, applier, home = launching(job(ray_template()), client)
    guards: Any = home.inventory.guards
    guards.is_current = lambda _kind, body: body in client.made
    for attempt in (1, 2):
        assert await applier.launch(loaded, Launch(attempt, "spot-a")) is None
    made = [(body["kind"], body["metadata"]["name"]) for body in client.made]
    shared = [("PodDisruptionBudget", "digits-attempts"), ("NetworkPolicy", "digits-attempts")]
    assert made == [*shared, ("RayJob", "digits-a001"), ("RayJob", "digits-a002")]

    template = ray_template()
    template["spec"]["rayClusterSpec"]["headGroupSpec"]["rayStartParams"] = {"dashboard-port": "8300"}
    loaded.job = job(template)
    before = len(client.made)
    await applier.launch(loaded, Launch(3, "spot-a"))
    assert [body["kind"] for body in client.made[before:]] == ["PodDisruptionBudget", "NetworkPolicy", "RayJob"], (
        "a changed port"
    )

    client.made.clear()
    home.home = "home-uid"
    for attempt in (4, 5):
        await applier.launch(loaded, Launch(attempt, "spot-a"))
    assert [body["metadata"]["name"] for body in client.made] == ["digits-a004"] * 3 + ["digits-a005"] * 3


async def test_a_refused_rayjob_in_a_member_cluster_gets_its_other_objects_deleted() -> None:
    earlier = [(kind, "digits-a001", "", None) for kind in (DISRUPTION_BUDGETS, NETWORK_POLICIES)]
    for monitor, taken_back in ((None, []), (SimpleNamespace(problem=""), earlier)):
        client = RefusingClient()
        loaded, applier, home = launching(job(ray_template()), client)
        home.monitor, home.home = cast("Any", monitor), "home-uid" if monitor else ""
        problem = await applier.launch(loaded, Launch(1, "spot-a"))
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
    loaded, applier, home = launching(job(ray_template()), client)
    text = Notice.of_commit(Reason.EVICTION_NOTICE, 12.5).encode()
    running: dict[str, Any] = {"namespace": "team-a", "phase": "Running"}
    pods = (
        PodRecord(name="head", uid="p0", **running),
        PodRecord(name="w-1", uid="p1", notice=text, **running),
        PodRecord(name="w-2", uid="p2", slot="workers-0-2", notice=Notice.of_takeover().encode(), **running),
        PodRecord(name="w-3", uid="p3", **running),
        PodRecord(name="w-4", uid="p4", namespace="team-a", phase="Failed"),
    )
    loaded.found = JobObjects({1: Located(home, AttemptObjects(pods=pods))}, ())
    asked = ("p0", "p1", "workers-0-2", "p4")
    for attempt in (1, 2):
        await applier.change(loaded, AskToCommit(attempt, asked, Reason.EVICTION_NOTICE, 12.5))
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
    loaded, applier, _home = launching(job(ray_template()), client)
    for _ in range(2):
        assert await applier.launch(loaded, Launch(1, "spot-a")) is None
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
    loaded, applier, _home = launching(job(ray_template()), client)
    problem = await applier.launch(loaded, Launch(1, "spot-a"))
    assert problem is not None
    assert problem.message.startswith("Secret team-a/spotladder-ray-token cannot be created: secrets is forbidden")
    assert client.made == []


@pytest.mark.parametrize("made", [ClientWithoutToken, ClientWithoutPermission])
async def test_a_token_that_exists_is_used_whether_or_not_the_controller_may_read_it(
    made: type[ClientWithoutToken],
) -> None:
    client = made(refusal=Conflict(409, "AlreadyExists", "exists"))
    loaded, applier, _home = launching(job(ray_template()), client)
    assert await applier.launch(loaded, Launch(1, "spot-a")) is None
    assert client.made[-1]["spec"]["rayClusterSpec"]["authOptions"]["mode"] == "token"
    assert RayJobRecord.of(client.made[-1]).token_refused == ""
