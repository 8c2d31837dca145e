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
from tests.kube.objects import encoded, make
from tests.kube.test_chart import as_controller, installed
from tests.kube.world import KubeWorld, eventually, world

AUTHENTICATED = {"mode": "token", "secretName": TOKEN}


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
