"""The commit log of a job: its owner, unreadable and damaged logs, and the credentials to read it."""

from __future__ import annotations

import base64
from collections.abc import Mapping

from spotladder.checkpoints.log import CommitLog
from spotladder.errors import StoreUnavailable
from spotladder.operator.storage.allowed_addresses import Grant
from spotladder.resources import SECRETS
from tests.kube.apiserver import ApiServer
from tests.kube.conditions import message_of
from tests.kube.world import KubeWorld, eventually, world


async def test_of_two_jobs_with_one_checkpoint_folder_the_younger_waits(api_server: ApiServer) -> None:
    async with world(api_server) as kube, world(api_server) as other:
        other.bucket = kube.bucket
        tiers = [{"name": "spot-a", "capacityTier": f"{kube.namespace}-spot-a"}]
        async with kube.operator(), other.operator():
            await kube.submit(tiers=tiers)
            await eventually(lambda: kube.rayjob(1))
            kube.bucket.commit(kube.namespace, "digits", attempt=1, step=3)
            await other.submit(tiers=tiers)
            message = await message_of(other, "Valid", "False", "CheckpointsInUse")
            assert "belong to a job of another namespace" in message
            assert f"{kube.namespace}/digits" not in message
            assert await other.rayjobs() == []


async def test_of_two_new_jobs_with_one_checkpoint_folder_only_one_starts(api_server: ApiServer) -> None:
    """Creation times have a resolution of one second: of two equal ones, the smaller uid counts as older."""
    async with world(api_server) as one, world(api_server) as two:
        await one.submit()
        await two.submit(tiers=[{"name": "a", "capacityTier": f"{one.namespace}-spot-a"}])
        async with one.operator(namespaces_=(one.namespace, two.namespace)):

            async def started() -> list[KubeWorld]:
                return [kube for kube in (one, two) if await kube.rayjobs()]

            (first,) = await eventually(started)
            second = two if first is one else one
            message = await message_of(second, "Valid", "False", "CheckpointsInUse")
            assert "is used by a TieredJob of another namespace" in message
            assert f"{first.namespace}/digits" not in message
            assert await second.rayjobs() == []
            await first.delete()
            await eventually(lambda: second.rayjob(1))


async def test_the_first_attempt_waits_until_the_owner_of_the_log_is_known(api_server: ApiServer) -> None:
    async with world(api_server) as kube, kube.operator():
        kube.bucket.broken = StoreUnavailable("s3://bucket/prefix: no route")
        await kube.submit()
        message = await message_of(kube, "Degraded", "True", "StoreUnavailable")
        assert "no route; the first attempt waits until the owner of the log is known" in message
        assert await kube.rayjobs() == []
        kube.bucket.broken = None
        await kube.clock.advance(120)
        await eventually(lambda: kube.rayjob(1))
        await kube.run(1)
        await message_of(kube, "Degraded", "False", "AsExpected")


async def test_an_unreadable_bucket_is_reported_and_the_job_continues(api_server: ApiServer) -> None:
    async with world(api_server) as kube, kube.operator():
        await kube.submit()
        await kube.run(1)
        await eventually(lambda: kube.has_phase("Running"))
        kube.bucket.broken = StoreUnavailable("s3://bucket/prefix: no route")
        await kube.clock.advance(120)
        assert "no route" in await message_of(kube, "Degraded", "True", "StoreUnavailable")
        # stallTimeout is 10 minutes: without the log the controller cannot tell whether the job makes progress.
        await kube.pass_time(3600)
        assert await kube.is_on("spot-a", 1)
        kube.bucket.broken = None
        await kube.clock.advance(120)
        await message_of(kube, "Degraded", "False", "AsExpected")
        await kube.pass_time(400)
        assert await kube.is_on("spot-a", 1), "stallTimeout does not start again after the outage"


async def test_with_a_damaged_log_no_attempt_starts(api_server: ApiServer) -> None:
    async with world(api_server) as kube:
        CommitLog(kube.bucket.store, "digits").store.put_if_absent("log/notes.txt", b"x")
        async with kube.operator():
            await kube.submit()
            assert "foreign object" in await message_of(kube, "Valid", "False", "CheckpointsCorrupt")
            assert await kube.rayjobs() == []


KEYS = {"AWS_ACCESS_KEY_ID": "who", "AWS_SECRET_ACCESS_KEY": "hidden"}


async def create_secret(kube: KubeWorld, values: Mapping[str, str]) -> None:
    data = {name: base64.b64encode(value.encode()).decode() for name, value in values.items()}
    body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "bucket", "namespace": kube.namespace}}
    await kube.client.create(SECRETS, {**body, "data": data})


async def test_a_job_starts_once_the_credentials_secret_exists(api_server: ApiServer) -> None:
    async with world(api_server) as kube, kube.operator():
        uri = {"uri": "s3://bucket/prefix", "interval": "30s", "credentials": {"secretName": "bucket"}}
        await kube.submit(checkpoints=uri)
        message = await message_of(kube, "Degraded", "True", "ReferencesMissing")  # The pods would wait for it.
        assert f"namespace {kube.namespace} lacks Secret bucket" in message
        assert f"Secret {kube.namespace}/bucket does not exist" in message  # The log cannot be read either.
        assert await kube.rayjobs() == []
        await create_secret(kube, KEYS)
        await kube.run(1)
        await kube.clock.advance(11)
        await message_of(kube, "Degraded", "False", "AsExpected")
        assert kube.bucket.opened[-1].grant == Grant(KEYS, isolated=True, secret=KEYS)


async def test_the_controllers_identity_is_used_only_for_listed_addresses(api_server: ApiServer) -> None:
    async with world(api_server) as kube:
        listed = [{"namespaces": [kube.namespace], "uris": ["s3://bucket/team"]}]
        async with kube.operator(tenancy=()):
            await kube.submit(checkpoints={"uri": "s3://bucket/team/x", "interval": "30s"})
            message = await message_of(kube, "Valid", "False", "CheckpointsNotAllowed")
            assert message.startswith("spec.checkpoints.uri: ")
            assert "ask the administrator to add the address to uris of the chart's tenancy" in message
            assert await kube.rayjobs() == []
            assert kube.bucket.opened == []
        async with kube.operator(tenancy=listed):
            await kube.run(1)
            assert (await kube.condition("Valid"))["status"] == "True"
            await kube.submit("other", checkpoints={"uri": "s3://bucket/team-b", "interval": "30s"})
            assert "allowed: s3://bucket/team" in await message_of(
                kube, "Valid", "False", "CheckpointsNotAllowed", "other"
            )
            assert {address.job for address in kube.bucket.opened} == {"digits"}


async def test_an_endpoint_that_is_not_listed_is_never_used(api_server: ApiServer) -> None:
    async with world(api_server) as kube:
        await create_secret(kube, {**KEYS, "AWS_ENDPOINT_URL": "http://minio.minio:9000"})
        credentials = {"credentials": {"secretName": "bucket"}}
        async with kube.operator(tenancy=()):
            await kube.submit(checkpoints={"uri": "s3://bucket/team", "interval": "30s", **credentials})
            message = await message_of(kube, "Valid", "False", "CheckpointsNotAllowed")
            assert "AWS_ENDPOINT_URL: http://minio.minio:9000 is not allowed in this namespace" in message
            assert message.endswith("ask the administrator to add it to endpoints of the chart's tenancy")
            assert await kube.rayjobs() == []
            assert kube.bucket.opened == []
        rule = {"namespaces": [kube.namespace], "endpoints": ["http://minio.minio:9000"]}
        async with kube.operator(tenancy=[rule]):
            await kube.run(1)
            assert (await kube.condition("Valid"))["status"] == "True"
            assert str(kube.bucket.opened[-1].grant.endpoint) == "http://minio.minio:9000"


async def test_a_running_job_continues_without_access_to_its_bucket(api_server: ApiServer) -> None:
    async with world(api_server) as kube:
        async with kube.operator():
            await kube.submit()
            await kube.run(1)
            await eventually(lambda: kube.has_phase("Running"))
        async with kube.operator(tenancy=()):
            message = await message_of(kube, "Degraded", "True", "CheckpointsNotAllowed")
            assert "the controller's own identity" in message
            assert (await kube.condition("Checkpointing"))["status"] == "Unknown"
            assert await kube.has_phase("Running")
            await kube.pass_time(3600)
            assert await kube.has_phase("Running")
