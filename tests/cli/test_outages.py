"""API server errors: their messages, and that they do not end the wait for a job."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from aiohttp import web

from spotladder.cli.cluster import delete, suspension
from spotladder.cli.cluster.connected_cluster import ConnectedCluster, for_user
from spotladder.cli.target import ClusterTarget
from spotladder.errors import EnvironmentFailure, SpotladderError
from tests.clusters.test_client import api, refused

Capture = pytest.CaptureFixture[str]
JOB = {"metadata": {"name": "digits", "uid": "1", "generation": 2}, "status": {"phase": "Draining"}}
SUSPENDED = {**JOB, "status": {"phase": "Suspended", "observedGeneration": 2}}


class ScriptedServer:
    """A server that returns these responses in order, then repeats the last one."""

    def __init__(self, *answers: Any) -> None:
        self._answers = list(answers)

    def __call__(self, _request: web.Request) -> Any:
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        return refused(answer, **{"Retry-After": "60"}) if isinstance(answer, int) else answer


def with_server(server: ScriptedServer, work: Callable[[ConnectedCluster], Awaitable[Any]]) -> Any:
    async def run() -> Any:
        async with api(server) as client:
            cluster = ConnectedCluster(client, ClusterTarget("team-a"))
            try:
                return await work(cluster)
            except SpotladderError as error:
                raise await for_user(error, cluster) from None

    return asyncio.run(run())


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (delete, suspension):
        monkeypatch.setattr(module, "POLL_INTERVAL", 0.0)


@pytest.mark.parametrize("status", [500, 503])
def test_an_error_of_the_api_server_is_reported(status: int) -> None:
    with pytest.raises(EnvironmentFailure) as raised:
        with_server(ScriptedServer(status), lambda cluster: cluster.job("digits"))
    said = str(raised.value)
    assert f"fails (get tieredjobs/digits: the API server answers {status} Why: because of this)" in said
    assert said.endswith("; try again later")
    assert "cannot be reached" not in said


@pytest.mark.parametrize("status", [500, 503, 429])
def test_suspend_tolerates_an_outage_and_reports_it_once(status: int, capsys: Capture) -> None:
    server = ScriptedServer(JOB, status, JOB, status, status, SUSPENDED)
    job = with_server(server, lambda cluster: suspension._until_suspended(cluster, JOB, 60.0))
    assert job["status"]["phase"] == "Suspended"
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 1
    assert said[0].startswith("get tieredjobs/digits: ")
    assert f" {status} Why: because of this: retrying" in said[0]


@pytest.mark.parametrize("status", [500, 503, 429])
def test_delete_tolerates_an_outage_and_reports_it_once(status: int, capsys: Capture) -> None:
    with_server(ScriptedServer(JOB, status, JOB, status, 404), lambda cluster: delete.until_gone(cluster, JOB))
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_an_outage_beyond_the_tolerance_is_an_error(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.setattr(delete, "NO_ANSWER_TIMEOUT", 0.01)
    with pytest.raises(EnvironmentFailure, match="try again later"):
        with_server(ScriptedServer(503), lambda cluster: delete.until_gone(cluster, JOB))
    with pytest.raises(EnvironmentFailure, match="has not stopped within the timeout: its phase is Draining"):
        with_server(ScriptedServer(JOB), lambda cluster: suspension._until_suspended(cluster, JOB, 0.01))
    with pytest.raises(EnvironmentFailure, match="try again later"):
        with_server(ScriptedServer(503), lambda cluster: suspension._until_suspended(cluster, JOB, 0.01))
    assert len(capsys.readouterr().err.splitlines()) == 2


def test_a_refusal_ends_the_waiting() -> None:
    with pytest.raises(EnvironmentFailure, match="ask an administrator of the cluster for this permission"):
        with_server(ScriptedServer(JOB, 403), lambda cluster: delete.until_gone(cluster, JOB))
