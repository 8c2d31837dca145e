"""The Secret with the token of Ray clusters, with the permissions of the chart and without them."""

from __future__ import annotations

from base64 import b64decode
from pathlib import Path
from typing import Any

import pytest

from spotladder.clusters.errors import Forbidden
from spotladder.resources import SECRETS
from spotladder.workloads.rayjob.authentication import KEY, TOKEN
from tests.kube.apiserver import ApiServer
from tests.kube.test_chart import KINDS, as_controller, installed, may
from tests.kube.test_preflight import encoded, make
from tests.kube.world import KubeWorld, eventually, world

AUTHENTICATED = {"mode": "token", "secretName": TOKEN}


async def allow(kube: KubeWorld, chart: list[dict[str, Any]], *verbs: str) -> None:
    """Leave the controller these verbs on Secrets, of those in the chart's Role."""
    role = next(body for body in chart if (body["kind"], body["metadata"]["name"]) == ("Role", "spotladder"))
    rules = [rule for rule in role["rules"] if "secrets" not in rule["resources"] or rule["verbs"][0] in verbs]
    await kube.client.merge(KINDS["Role"], "spotladder", kube.namespace, body={"rules": rules})
    async with as_controller(kube.server, kube.namespace) as client:

        async def effective() -> bool:
            return await may(client, ("", "secrets", "create"), kube.namespace) is ("create" in verbs)

        await eventually(effective)


async def options(kube: KubeWorld, attempt: int) -> Any:
    """The `authOptions` of an attempt."""
    return (await eventually(lambda: kube.rayjob(attempt)))["spec"]["rayClusterSpec"].get("authOptions")


async def test_the_controller_creates_the_token_and_may_read_no_other_secret(
    api_server: ApiServer, tmp_path: Path
) -> None:
    async with world(api_server) as kube:
        chart = installed(kube, tmp_path, "--set", f"namespaces={{{kube.namespace}}}")
        async with chart, as_controller(api_server, kube.namespace) as client:
            async with kube.operator(client=client):
                await kube.submit()
                assert await options(kube, 1) == AUTHENTICATED
                await kube.submit("letters")
                await eventually(lambda: kube.rayjob(1, "letters"))
            assert client.refused == set()
            secret = await client.get(SECRETS, TOKEN, kube.namespace)
            assert len(b64decode(secret["data"][KEY])) >= 32
            await make(kube, SECRETS, "other", data=encoded(key="1"))
            with pytest.raises(Forbidden):
                await client.get(SECRETS, "other", kube.namespace)


async def test_a_token_of_the_administrator_is_used_without_permission_to_create_it(
    api_server: ApiServer, tmp_path: Path
) -> None:
    async with world(api_server) as kube:
        chart = installed(kube, tmp_path, "--set", f"namespaces={{{kube.namespace}}}")
        async with chart as found, as_controller(api_server, kube.namespace) as client:
            await allow(kube, found, "get")
            await make(kube, SECRETS, TOKEN, data=encoded(**{KEY: "of the administrator"}))
            async with kube.operator(client=client):
                await kube.submit()
                assert await options(kube, 1) == AUTHENTICATED
                await kube.run(1)
                await eventually(lambda: kube.has_phase("Running"))
                assert (await kube.condition("Degraded")).get("reason") == "AsExpected"
            assert ("", "secrets", "create") not in client.used
