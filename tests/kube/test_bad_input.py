"""User errors: each has its condition and its Event, no attempt is launched, and the job starts once it is
corrected."""

from __future__ import annotations

import pytest

from spotladder.clusters.client import Client
from spotladder.clusters.connection import connect
from spotladder.resources import CAPACITYTIERS, APIResource
from tests.kube.apiserver import ApiServer
from tests.kube.conditions import message_of
from tests.kube.world import eventually, ray_spec, world

ROLES = APIResource("rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole", namespaced=False)
BINDINGS = APIResource("rbac.authorization.k8s.io", "v1", "clusterrolebindings", "ClusterRoleBinding", namespaced=False)


async def test_an_unknown_capacity_tier_holds_the_job_until_it_exists(api_server: ApiServer) -> None:
    async with world(api_server, tiers=("spot-a", "spot-b")) as here, here.operator():
        await here.submit()
        message = await message_of(here, "Valid", "False", "UnknownCapacityTier")
        assert "spec.tiers[2].capacityTier" in message
        assert await here.rayjobs() == []
        await here.capacity("on-demand", capacityType="on-demand")
        await eventually(lambda: here.rayjob(1))
        await message_of(here, "Valid", "True", "Valid")


async def test_the_message_of_an_invalid_spec_names_the_field(api_server: ApiServer) -> None:
    async with world(api_server) as here, here.operator():
        await here.submit(workload={"ray": {"template": {"spec": ray_spec(backoffLimit=3)}}})
        message = await message_of(here, "Valid", "False", "InvalidSpec")
        assert "spec.workload.ray.template.spec.backoffLimit" in message
        assert await here.rayjobs() == []
        await here.patch(workload={"ray": {"template": {"spec": {**ray_spec(), "backoffLimit": None}}}})
        await eventually(lambda: here.rayjob(1))


async def test_an_unknown_policy_makes_a_job_invalid(api_server: ApiServer) -> None:
    async with world(api_server) as here, here.operator():
        await here.submit(policy={"name": "no-such"})
        assert "no-such" in await message_of(here, "Valid", "False", "InvalidSpec")


async def test_a_local_path_as_checkpoints_uri(api_server: ApiServer) -> None:
    async with world(api_server) as here, here.operator():
        await here.submit(checkpoints={"uri": "checkpoints"})
        message = await message_of(here, "Valid", "False", "InvalidSpec")
        assert "spec.checkpoints.uri" in message
        assert "file:///" in message
        assert await here.rayjobs() == []


async def test_an_unknown_cluster_makes_a_job_invalid(api_server: ApiServer) -> None:
    async with world(api_server) as here, here.operator():
        name = await here.capacity("far", cluster="east")
        await here.submit(tiers=[{"name": "far", "capacityTier": name}])
        message = await message_of(here, "Valid", "False", "UnknownCluster")
        assert '"east"' in message
        assert "home" in message


async def test_a_contradiction_with_a_later_tier_is_reported_early(api_server: ApiServer) -> None:
    async with world(api_server) as here, here.operator():
        await here.submit()
        await here.run(1)
        await eventually(lambda: here.has_phase("Running"))
        zones = {"spec": {"extraSelectors": {"pool": "b"}}}
        await here.client.merge(CAPACITYTIERS, f"{here.namespace}-on-demand", body=zones)
        group = ray_spec()["rayClusterSpec"]["workerGroupSpecs"][0]
        group["template"] = {"spec": {**group["template"]["spec"], "nodeSelector": {"pool": "a"}}}
        spec = ray_spec()
        spec["rayClusterSpec"]["workerGroupSpecs"] = [group]
        await here.patch(workload={"ray": {"template": {"spec": spec}}}, updateStrategy="AtNextAttempt")
        message = await message_of(here, "Degraded", "True", "InvalidSpec")
        assert "tier on-demand" in message
        assert await here.has_phase("Running")  # It does not affect a running attempt.
        await here.client.merge(CAPACITYTIERS, f"{here.namespace}-on-demand", body={"spec": {"extraSelectors": None}})
        await message_of(here, "Degraded", "False", "AsExpected")


async def test_a_capacity_tier_deleted_while_in_use(api_server: ApiServer) -> None:
    async with world(api_server) as here, here.operator():
        await here.submit()
        await here.run(1)
        await eventually(lambda: here.has_phase("Running"))
        await here.client.delete(CAPACITYTIERS, f"{here.namespace}-spot-a")
        assert "spot-a" in await message_of(here, "Degraded", "True", "CapacityTierGone")
        assert await here.has_phase("Running")
        await here.kill_worker(1)
        await here.kill_worker(1)
        await eventually(lambda: here.has_phase("Draining"))
        await here.collect(1)
        await eventually(lambda: here.is_on("spot-b", 2))


async def test_a_controller_without_permission_to_create_rayjobs(api_server: ApiServer) -> None:
    """The controller may read and write TieredJobs, and may not create RayJobs."""
    async with world(api_server) as here:
        rules = [
            {"apiGroups": ["spotladder.io"], "resources": ["*"], "verbs": ["*"]},
            {"apiGroups": ["", "ray.io", "jobset.x-k8s.io"], "resources": ["*"], "verbs": ["get", "list", "watch"]},
            {"apiGroups": ["events.k8s.io"], "resources": ["events"], "verbs": ["create"]},
            {"apiGroups": ["policy"], "resources": ["*"], "verbs": ["*"]},
        ]
        role = {"apiVersion": ROLES.group + "/v1", "metadata": {"name": "limited"}}
        await here.client.apply(ROLES, {**role, "kind": "ClusterRole", "rules": rules}, force=True)
        reference = {"apiGroup": ROLES.group, "kind": "ClusterRole", "name": "limited"}
        subjects = [{"apiGroup": ROLES.group, "kind": "User", "name": "limited"}]
        binding = {**role, "kind": "ClusterRoleBinding", "roleRef": reference, "subjects": subjects}
        await here.client.apply(BINDINGS, binding, force=True)
        async with Client(connect(str(api_server.kubeconfig_of("limited", "limited")))) as limited:
            async with here.operator(client=limited):
                await here.submit()
                assert "forbidden" in await message_of(here, "Degraded", "True", "LaunchRefused")
                await here.pass_time(3600)
                assert await here.is_on("spot-a", 1)
            await here.client.merge(ROLES, "limited", body={"rules": rules[:1] + rules[2:]})

            async def may_not_watch() -> bool:
                async with here.operator(client=limited):
                    await here.idle()
                    return (await here.condition("Degraded")).get("reason") == "CannotWatch"

            await eventually(may_not_watch)


@pytest.mark.parametrize("text", ["not json", '{"version": 99}'])
async def test_an_unreadable_state_is_kept(api_server: ApiServer, text: str) -> None:
    async with world(api_server) as here:
        await here.submit()
        body = {"status": {"state": text}}
        await here.client.merge(
            APIResource("spotladder.io", "v1alpha1", "tieredjobs", "TieredJob"), "digits", here.namespace, body=body,
            subresource="status",
        )  # fmt: skip
        async with here.operator():
            await message_of(here, "Valid", "False", "StateUnreadable")
            assert (await here.status())["state"] == text
            assert await here.rayjobs() == []
