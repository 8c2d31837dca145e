"""The places whose jobs `web` and `notify` follow."""

from __future__ import annotations

from pathlib import Path

import pytest

from spotladder.cli.places import places_of
from spotladder.cli.target import ClusterTarget
from spotladder.clusters import connection
from spotladder.clusters.connection import IN_CLUSTER, Connection
from spotladder.clusters.credentials import Fixed


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
