"""User errors: each has its condition and its Event, no attempt is launched, and the job starts once it is
corrected."""

from __future__ import annotations

import pytest

from spotladder.resources import APIResource
from tests.kube.apiserver import ApiServer
from tests.kube.conditions import message_of
from tests.kube.world import eventually, ray_spec, world


async def test_an_unknown_capacity_tier_holds_the_job_until_it_exists(api_server: ApiServer) -> None:
    async with world(api_server, tiers=("spot-a", "spot-b")) as kube, kube.operator():
        await kube.submit()
        message = await message_of(kube, "Valid", "False", "UnknownCapacityTier")
        assert "spec.tiers[2].capacityTier" in message
        assert await kube.rayjobs() == []
        await kube.capacity("on-demand", capacityType="on-demand")
        await eventually(lambda: kube.rayjob(1))
        await message_of(kube, "Valid", "True", "Valid")


async def test_the_message_of_an_invalid_spec_names_the_field(api_server: ApiServer) -> None:
    async with world(api_server) as kube, kube.operator():
        await kube.submit(workload={"ray": {"template": {"spec": ray_spec(backoffLimit=3)}}})
        message = await message_of(kube, "Valid", "False", "InvalidSpec")
        assert "spec.workload.ray.template.spec.backoffLimit" in message
        assert await kube.rayjobs() == []
        await kube.patch(workload={"ray": {"template": {"spec": {**ray_spec(), "backoffLimit": None}}}})
        await eventually(lambda: kube.rayjob(1))


@pytest.mark.parametrize("text", ["not json", '{"version": 99}'])
async def test_an_unreadable_state_is_kept(api_server: ApiServer, text: str) -> None:
    async with world(api_server) as kube:
        await kube.submit()
        body = {"status": {"state": text}}
        await kube.client.merge(
            APIResource("spotladder.io", "v1alpha1", "tieredjobs", "TieredJob"), "digits", kube.namespace, body=body,
            subresource="status",
        )  # fmt: skip
        async with kube.operator():
            await message_of(kube, "Valid", "False", "StateUnreadable")
            assert (await kube.status())["state"] == text
            assert await kube.rayjobs() == []
