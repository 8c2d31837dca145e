"""Why an attempt cannot be created: the reason and the message of each refusal."""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from spotladder.api.tenancy import TenantRule
from spotladder.clusters.errors import ApiError, ClusterUnreachable, Conflict, Forbidden, Invalid, NotFound
from spotladder.core.model import Launch
from spotladder.operator.condition_types import ConditionReason, Diagnosis
from spotladder.operator.inventory.clusters import JobObjects, Located, WorkloadCluster
from spotladder.operator.reconcile.apply import Applier
from spotladder.operator.reconcile.attempt_removal import AttemptRemover
from spotladder.operator.reconcile.preflight import Preflight
from spotladder.resources import NAMESPACES, SECRETS
from spotladder.workloads.rayjob.records import RAYJOBS, RayJobRecord
from spotladder.workloads.workload import AttemptObjects
from tests.clusters.stepped_clock import SteppedClock
from tests.operator.reconcile.builders import AcceptingClient, loaded_job
from tests.workloads.builders import job, ray_template


@dataclass
class RefusingServer(AcceptingClient):
    """A fake client that refuses RayJobs with this error, and lacks objects of the kinds in `lacks`."""

    error: Exception | None = None
    lacks: tuple[Any, ...] = ()

    async def apply(self, kind: object, body: Any) -> Any:
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


@pytest.mark.parametrize(
    ("error", "reason", "message"),
    [
        (
            NotFound(404, "NotFound", "no", about="namespaces"),
            ConditionReason.NAMESPACE_MISSING,
            "namespace team-a does not exist: create it",
        ),
        (
            NotFound(404, "NotFound", "no"),
            ConditionReason.NOT_INSTALLED,
            "RayJob team-a/digits-a001 cannot be created: ",
        ),
        (
            Conflict(409, "Conflict", "owned by kubectl"),
            ConditionReason.NAME_TAKEN,
            "RayJob team-a/digits-a001 exists and is not this job's: remove or rename it (owned by kubectl)",
        ),
        (
            Forbidden(403, "Forbidden", "exceeded quota: gpu"),
            ConditionReason.LAUNCH_REFUSED,
            "RayJob team-a/digits-a001 is refused: exceeded quota: gpu",
        ),
        (
            Invalid(422, "Invalid", "spec.x: unknown"),
            ConditionReason.LAUNCH_REFUSED,
            "RayJob team-a/digits-a001 is refused: spec.x: unknown",
        ),
    ],
)
async def test_a_refused_object_is_a_problem_with_its_name(error: ApiError, reason: str, message: str) -> None:
    problem = await LaunchRig(RefusingServer(error=error)).launch()
    assert problem is not None
    assert (problem.reason, problem.message[: len(message)]) == (reason, message)


async def test_a_server_that_does_not_answer_is_retried_with_advice() -> None:
    rig = LaunchRig(RefusingServer(error=ClusterUnreachable("PATCH rayjobs: 500 webhook failed")), member=True)
    with pytest.raises(ClusterUnreachable) as raised:
        await rig.launch()
    assert str(raised.value) == (
        "RayJob team-a/digits-a001 cannot be created in cluster east: 500 webhook failed; check that the API server "
        "and its admission webhooks answer (JobSet's controller has one)"
    )


async def test_an_object_whose_fields_its_operator_owns_now_is_the_attempts_own() -> None:
    rig = LaunchRig(RefusingServer(error=Conflict(409, "Conflict", "owned by kuberay")))
    own = AttemptObjects(top=RayJobRecord(name="digits-a001", namespace="team-a", uid="r", job="digits"))
    rig.inventory.attempts = lambda *_: {1: own}
    assert await rig.launch() is None
    rig.inventory.attempts = lambda *_: {2: own}
    problem = await rig.launch()
    assert problem is not None
    assert problem.reason is ConditionReason.NAME_TAKEN


async def test_nothing_is_created_on_a_tier_without_a_cluster() -> None:
    client = AcceptingClient()
    rig = LaunchRig(client)
    assert await rig.launch("unknown") is None
    rig.loaded.tiers.resolved["spot-a"] = replace(rig.loaded.tiers.resolved["spot-a"], cluster="unknown")
    assert await rig.launch() is None
    assert client.made == []


@pytest.mark.parametrize(
    ("absent", "kind", "refused"), [(True, RAYJOBS, True), (False, RAYJOBS, False), (True, SECRETS, False)]
)
async def test_a_kind_that_is_not_installed_is_known_before_the_first_call(
    absent: bool, kind: Any, refused: bool
) -> None:
    client = AcceptingClient()
    rig = LaunchRig(client, member=True)
    rig.inventory.unreadable = lambda *_: [SimpleNamespace(absent=absent, kind=kind)]
    problem = await rig.launch()
    if not refused:
        assert problem is None
        return
    assert client.made == []
    assert problem is not None
    assert problem.reason is ConditionReason.NOT_INSTALLED
    assert problem.message == rig.loaded.workload.install.format(cluster="cluster east")


async def test_a_template_that_the_tier_cannot_run_names_the_field() -> None:
    template = ray_template()
    template["spec"]["deletionStrategy"] = {"deletionRules": []}
    rig = LaunchRig(AcceptingClient(), template=template)
    tier = rig.loaded.tiers.resolved["spot-a"]
    queued = tier.entry.model_copy(update={"queue": "team"})
    rig.loaded.tiers.resolved["spot-a"] = replace(tier, entry=queued)
    problem = await rig.launch()
    assert problem is not None
    assert problem.reason is ConditionReason.INVALID_SPEC
    assert "spec.deletionStrategy: cannot be used in a queue" in problem.message


async def test_a_member_cluster_needs_the_namespace_of_the_job() -> None:
    rig = LaunchRig(client := RefusingServer(lacks=(NAMESPACES,)), member=True)
    message = "namespace team-a does not exist in cluster east: create it"
    assert await rig.launch() == Diagnosis(ConditionReason.NAMESPACE_MISSING, message)
    assert client.made == []


async def test_a_namespace_over_its_budget_gets_no_attempt_and_keeps_those_that_exist() -> None:
    rig = LaunchRig(client := AcceptingClient())
    rig.over_budget = Diagnosis(ConditionReason.NOT_ALLOWED, "over")
    assert await rig.launch() == rig.over_budget
    assert client.made == []
    rig.has(RayJobRecord(name="digits-a001", namespace="team-a", uid="u"))
    assert await rig.launch() is None
