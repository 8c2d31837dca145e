from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from spotladder.clusters.client import Client
from spotladder.clusters.kubeconfig import REREAD, KubeconfigFile, KubeconfigSecret
from spotladder.errors import EnvironmentFailure
from tests.clusters.stepped_clock import SteppedClock
from tests.clusters.test_client import api, refused
from tests.clusters.test_connection import config


class Vault:
    """A fake API server of the home cluster, with one Secret."""

    def __init__(self) -> None:
        self.data: dict[str, str] | None = {}
        self.status = 404
        self.reads = 0
        self.put(config())

    def put(self, content: Any, key: str = "kubeconfig") -> None:
        text = content if isinstance(content, str) else json.dumps(content)
        self.data = {key: base64.b64encode(text.encode()).decode()}

    def __call__(self, request: web.Request) -> Any:
        assert request.path == "/api/v1/namespaces/spotladder/secrets/cluster-east"
        self.reads += 1
        return refused(self.status) if self.data is None else {"metadata": {}, "data": self.data}


def source(home: Client, clock: SteppedClock, **more: Any) -> KubeconfigSecret:
    options = {"key": "kubeconfig", "context": None, **more}
    return KubeconfigSecret(home, "spotladder", "cluster-east", clock=clock, **options)


async def test_a_secret_is_read_again_after_its_interval_and_the_connection_changes_only_with_it() -> None:
    vault, clock = Vault(), SteppedClock()
    async with api(vault) as home:
        east = source(home, clock)
        first = await east.connection()
        assert (first.server, first.context) == ("http://east:1", "work")
        assert await east.connection() is first
        assert vault.reads == 1
        await clock.advance(REREAD)
        assert await east.connection() is first
        assert vault.reads == 2
        vault.put(config(token="rotated"))  # noqa: S106
        assert await east.connection() is first
        second = await east.connection(fresh=True)
        assert await second.credentials.headers() == {"Authorization": "Bearer rotated"}
        assert await east.connection() is second


async def test_the_key_and_the_context_of_a_secret_are_configurable() -> None:
    vault = Vault()
    vault.put({**config(), "current-context": ""}, key="value")
    async with api(vault) as home:
        found = await source(home, SteppedClock(), key="value", context="work").connection()
        assert found.server == "http://east:1"


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ({**config(), "users": []}, "there is no user 'me'"),
        (config(exec={"command": "aws"}), "user me has exec, which is not in the controller's pod"),
        (config(tokenFile="/var/run/secrets/kubernetes.io/serviceaccount/token"), "has tokenFile"),
        (
            {**config(), "clusters": [{"name": "east", "cluster": {"server": "x", "certificate-authority": "f"}}]},
            "cluster east has certificate-authority",
        ),
        (config(**{"client-certificate-data": "%"}) | {"clusters": [{"name": "east", "cluster": {"server": "https://e"}}]},
         "client-certificate-data is not base64"),
    ],
)  # fmt: skip
async def test_the_error_for_an_invalid_secret_has_the_cause_and_names_the_secret(content: Any, says: str) -> None:
    vault = Vault()
    vault.put(content)
    async with api(vault) as home:
        with pytest.raises(EnvironmentFailure, match=says) as raised:
            await source(home, SteppedClock()).connection()
        assert "Secret spotladder/cluster-east" in str(raised.value)
        assert "secret-token" not in str(raised.value)


async def test_missing_or_forbidden_secrets_are_reported_with_the_cause() -> None:
    vault = Vault()
    async with api(vault) as home:
        vault.data = None
        with pytest.raises(EnvironmentFailure, match="does not exist: create it"):
            await source(home, SteppedClock()).connection()
        vault.status = 403
        with pytest.raises(EnvironmentFailure, match="may not be read"):
            await source(home, SteppedClock()).connection()
        vault.put(config(), key="config")
        with pytest.raises(EnvironmentFailure, match="has no key kubeconfig; it has: config"):
            await source(home, SteppedClock()).connection()


async def test_a_kubeconfig_file_is_read_each_time(tmp_path: Path) -> None:
    file = tmp_path / "east"
    with pytest.raises(EnvironmentFailure, match="No such file"):
        await KubeconfigFile(file).connection()
    file.write_bytes(b"\xff")
    with pytest.raises(EnvironmentFailure, match="is not text"):
        await KubeconfigFile(file).connection()
    file.write_text(json.dumps(config()))
    east = KubeconfigFile(file, "work")
    first = await east.connection()
    assert await east.connection() is first
    file.write_text(json.dumps(config(token="rotated")))  # noqa: S106
    assert await east.connection() is not first
