"""When an upgrade stops: attempts that it may have ended."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from spotladder.errors import EnvironmentFailure
from spotladder_infra.kubecontext import KubeContext
from spotladder_infra.rollout import good_rollouts, upgrade
from spotladder_infra.rollout.cluster_rollout import Installed
from spotladder_infra.rollout.good_rollouts import PlatformState
from spotladder_infra.rollout.tools import Object, Tools
from spotladder_infra.topology.cluster import Cluster
from tests.topology.builders import fleet_file

GOOD = PlatformState((), at="2026-11-22")


class UpgradeCluster(Tools):
    """A fake cluster with a TieredJob and Events of Karpenter."""

    def __init__(self) -> None:
        super().__init__(KubeContext("/nowhere", "east"))
        object.__setattr__(self, "job", running(1))
        object.__setattr__(self, "events", [])

    job: Object
    events: list[Object]

    def get(self, *arguments: str) -> Object | None:
        if arguments[0] == "events":
            assert "--field-selector=reason=DisruptionTerminating" in arguments
            return {"items": self.events}
        assert arguments[0] == "tieredjobs"
        return {"items": [self.job]}


def running(attempt: int, *ended: tuple[int, str], phase: str = "Running") -> Object:
    records = [{"number": number, "reason": reason} for number, reason in ended]
    status = {"phase": phase, "attempt": attempt, "attempts": records}
    return {"metadata": {"namespace": "team-a", "name": "digits"}, "spec": {}, "status": status}


class UpgradePlatform:
    """A cluster whose job changes while the second of the three installations runs."""

    def __init__(self, cluster: Cluster, tools: UpgradeCluster, after: Object) -> None:
        self.cluster, self.tools, self.after = cluster, tools, after
        self.installed = 0

    def check(self) -> None:
        pass

    def desired(self) -> tuple[PlatformState, dict[str, str]]:
        return PlatformState(()), {}

    def install(self, *_: Any) -> Installed:
        self.installed += 1
        if self.installed == 2:
            object.__setattr__(self.tools, "job", self.after)
        return Installed(GOOD, changed=True)


@pytest.fixture
def east(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cluster:
    monkeypatch.setattr(good_rollouts, "read", lambda _: [GOOD])
    return fleet_file(tmp_path).fleet.cluster("east")


def upgraded(cluster: Cluster, after: Object) -> list[tuple[str, str, str]]:
    """The lines that an upgrade reports."""
    reports: list[tuple[str, str, str]] = []
    tools = UpgradeCluster()
    platform: Any = UpgradePlatform(cluster, tools, after)
    upgrade.upgrade(platform, tools, lambda *one: reports.append(one))
    assert platform.installed == 3, "the nodes are released"
    return reports


@pytest.mark.parametrize(
    ("after", "reason"),
    [
        (running(2, (1, "EvictionNotice")), "EvictionNotice"),
        (running(2, (1, "RecoveryTimeout"), phase="Pending"), "RecoveryTimeout"),
        (running(3, (2, "MaxFailuresExceeded"), (1, "EvictionNotice")), "MaxFailuresExceeded"),
        (running(1, (1, "Completed"), phase="Succeeded"), "Completed"),
    ],
)
def test_an_eviction_by_the_cloud_does_not_stop_an_upgrade(east: Cluster, after: Object, reason: str) -> None:
    assert ("jobs", "attempt ended", f"team-a/digits: {reason}, not by the upgrade") in upgraded(east, after)


def test_a_job_that_continues_is_not_reported(east: Cluster) -> None:
    assert not [reports for reports in upgraded(east, running(1)) if reports[0] == "jobs"]


@pytest.mark.parametrize(
    ("after", "named"),
    [
        (running(2, (1, "Vanished")), "team-a/digits (Vanished)"),
        (running(2, (1, "HeadLost"), phase="Pending"), "team-a/digits (HeadLost)"),
        (running(2), "team-a/digits (unknown)"),
    ],
)
def test_an_end_that_the_upgrade_may_have_caused_stops_it(east: Cluster, after: Object, named: str) -> None:
    with pytest.raises(EnvironmentFailure, match="attempts have ended during the upgrade") as stopped:
        upgraded(east, after)
    assert named in str(stopped.value)
    assert "nodes stay held" in str(stopped.value)


def test_a_node_that_karpenter_removes_stops_the_upgrade(east: Cluster) -> None:
    tools = UpgradeCluster()

    class Disrupting(UpgradePlatform):
        message = ""

        def install(self, *arguments: Any) -> Installed:
            event = {"metadata": {"name": "node.1"}, "count": 1, "message": self.message}
            object.__setattr__(self.tools, "events", [event])
            return super().install(*arguments)

    Disrupting.message = "Disrupting Node: Empty/Delete"
    platform: Any = Disrupting(east, tools, running(2, (1, "EvictionNotice")))
    upgrade.upgrade(platform, tools, lambda *_: None)

    tools = UpgradeCluster()
    Disrupting.message = "Disrupting Node: Drifted/Replace"
    platform = Disrupting(east, tools, running(2, (1, "EvictionNotice")))
    with pytest.raises(EnvironmentFailure, match="Karpenter has removed nodes, and attempts have ended"):
        upgrade.upgrade(platform, tools, lambda *_: None)
    assert platform.installed == 2, "the nodes stay held"
