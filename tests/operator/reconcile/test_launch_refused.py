"""Why an attempt cannot be created: the reason and the message of each refusal."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from spotladder.clusters.errors import ApiError, ClusterUnreachable, Conflict, Forbidden, Invalid, NotFound
from spotladder.operator.condition_types import ConditionReason, Diagnosis
from spotladder.resources import NAMESPACES, NETWORK_POLICIES, SECRETS
from spotladder.workloads.rayjob.records import RAYJOBS, RayJobRecord
from spotladder.workloads.workload import AttemptObjects
from tests.operator.reconcile.builders import AcceptingClient, LaunchRig, RefusingServer
from tests.workloads.builders import ray_template


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


class EditedPolicies(AcceptingClient):
    """A fake client of a server on which users have edited the NetworkPolicies."""

    async def apply(self, kind: object, body: Any, *, force: bool = False) -> Any:
        if kind == NETWORK_POLICIES and not force:
            raise Conflict(409, "Conflict", "owned by kubectl-edit")
        return await super().apply(kind, body)


@pytest.mark.parametrize(("own", "reason"), [(True, None), (False, ConditionReason.NAME_TAKEN)])
async def test_a_guard_that_a_user_has_edited_is_replaced_and_one_of_another_client_is_kept(
    own: bool, reason: ConditionReason | None
) -> None:
    rig = LaunchRig(EditedPolicies())
    rig.inventory.guards.exists = lambda *_: own
    problem = await rig.launch()
    assert (problem and problem.reason) == reason


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
