"""The places whose jobs `web` and `notify` follow."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from spotladder.cli.main import main
from spotladder.cli.places import places_of, shared_place_of, warn_of_problems
from spotladder.cli.target import ClusterTarget
from spotladder.clusters import connection
from spotladder.clusters.connection import IN_CLUSTER, Connection
from spotladder.clusters.credentials import Fixed
from spotladder.places.cluster import JobsOfCluster
from tests.clusters.test_client import api, refused


@pytest.mark.parametrize(
    ("in_pod", "state_dir", "names"),
    [
        pytest.param(True, False, [IN_CLUSTER], id="a pod is no machine of a person"),
        pytest.param(True, True, ["this-machine"], id="a state folder in a pod"),
        pytest.param(False, False, ["this-machine"], id="a machine without a cluster"),
    ],
)
async def test_a_pod_follows_its_cluster_alone(
    in_pod: bool, state_dir: bool, names: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setattr(connection, "SERVICE_ACCOUNT", tmp_path)
    own = Connection("https://10.0.0.1:443", Fixed({}), context=IN_CLUSTER)
    monkeypatch.setattr(connection, "in_cluster", lambda: own)
    if in_pod:
        (tmp_path / "token").write_text("secret", encoding="utf-8")
    target = ClusterTarget()
    async with places_of(target, tmp_path if state_dir else None, everywhere=False) as places:
        assert [place.name for place in places] == names


async def test_a_page_for_users_has_the_cluster_alone_also_outside_a_pod(tmp_path: Path) -> None:
    file = tmp_path / "kubeconfig"
    clusters = [{"name": "west", "cluster": {"server": "https://127.0.0.1:1"}}]
    contexts = [{"name": "west", "context": {"cluster": "west", "user": "page", "namespace": "team-a"}}]
    users = [{"name": "page", "user": {"token": "secret"}}]
    config = {"clusters": clusters, "contexts": contexts, "users": users, "current-context": "west"}
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "Config", **config}), encoding="utf-8")
    target = ClusterTarget(kubeconfig=str(file))
    async with shared_place_of(target, None, everywhere=True) as (client, place):
        assert (client.connection.context, place.title) == ("west", "west")


@pytest.mark.parametrize("status", [401, 403])
async def test_a_cluster_that_refuses_is_one_line_at_once(status: int, capsys: pytest.CaptureFixture[str]) -> None:
    async with api(lambda _request: refused(status)) as client:
        place = JobsOfCluster(client, "west", "team-a")
        following = asyncio.create_task(place.follow(lambda _namespace: None))
        await warn_of_problems([place])
        following.cancel()
    line = f"warning: west: list tieredjobs: {status} Why: because of this\n"
    assert (capsys.readouterr().err, place.jobs()) == (line, [])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        pytest.param(("--state-dir", "."), "--host serves the users of a cluster", id="no cluster"),
        pytest.param(("--context-for", "east=west"), "remove --context-for and --open", id="members"),
        pytest.param(("-A", "-n", "team-a"), "exclude each other", id="both"),
        pytest.param(("--host", "spotladder.example:8790"), "without a port", id="port"),
        pytest.param(("--host", "http://spotladder.example"), "lowercase host name", id="address"),
    ],
)
def test_a_page_for_users_is_refused_without_a_cluster_or_with_more_than_one(
    arguments: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["web", "--host", "spotladder.example", *arguments]) == 2
    assert said in capsys.readouterr().err
