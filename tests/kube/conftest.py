"""One API server for all tests here; each test has its own namespace and its own event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from spotladder.operator.reporting.logging import set_up
from tests.absent import absent
from tests.kube.apiserver import ApiServer, missing
from tests.kube.commands import Cli, commands
from tests.kube.world import crd_files, install_kinds

set_up()


@pytest.fixture(scope="session")
def api_server() -> Iterator[ApiServer]:
    if why := missing():
        absent(why, "kube")
    with ApiServer() as server:
        asyncio.run(install_kinds(server))
        yield server


@pytest.fixture(scope="session")
def second_server(api_server: ApiServer) -> Iterator[ApiServer]:
    """Another cluster, with KubeRay and without TieredJobs."""
    with ApiServer() as server:
        asyncio.run(install_kinds(server, crd_files(ours=False)))
        yield server


@pytest.fixture
def cli(
    api_server: ApiServer, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Cli:
    """Runs commands with the administrator's kubeconfig, on a machine without runs."""
    monkeypatch.setenv("KUBECONFIG", str(api_server.kubeconfig))
    monkeypatch.setenv("SPOTLADDER_STATE", str(tmp_path / "states"))
    return commands(capsys)
