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


async def test_with_a_damaged_log_no_attempt_starts(api_server: ApiServer) -> None:
    async with world(api_server) as kube:
        CommitLog(kube.bucket.store, "digits").store.put_if_absent("log/notes.txt", b"x")
        async with kube.operator():
            await kube.submit()
            assert "foreign object" in await message_of(kube, "Valid", "False", "CheckpointsCorrupt")
            assert await kube.rayjobs() == []
