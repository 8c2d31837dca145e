"""The chart of the pools with the real Karpenter, from one fleet file: it buys nodes."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import pytest

from spotladder_infra.rendering.values import values
from spotladder_infra.rollout.remove import remove
from spotladder_infra.topology.read import read_fleet
from tests.absent import absent
from tests.e2e import image as images
from tests.e2e.kube import Kube, Object
from tests.e2e.provider import program
from tests.e2e.site import CHARTS, SYSTEM, E2eSite, installed
from tests.e2e.world import E2eCluster
from tests.kube.apiserver import tools

TYPE = "karpenter.sh/capacity-type"
TEAM = "vision"
FLEET = read_fleet(Path(__file__).parent / "fleet.yaml", date(2026, 11, 22)).fleet


@pytest.fixture(scope="module")
def site(tag: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[E2eSite]:
    """A cluster whose nodes Karpenter buys, except the head's node."""
    if not program("karpenter").exists():
        absent("not installed: karpenter (`cluster install karpenter`)", "e2e")
    file = tmp_path_factory.mktemp("pools") / "values.json"
    file.write_text(json.dumps(values(FLEET, FLEET.cluster("e2e"))))
    with installed("e2ek", tag, "kuberay", "karpenter") as made:
        system = Kube(made.cluster.kubeconfig, SYSTEM)
        system.helm("upgrade", "--install", "spotladder-pools", str(CHARTS / "spotladder-pools"), "--values", str(file))
        yield made


@pytest.mark.smoke
def test_spot_nodes_go_spot_is_dry_on_demand_is_bought_and_everything_is_removed(
    site: E2eSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A TieredJob of a team, whose namespace, quota, service account and NodePools come from the fleet file.

    At the end the in-cluster part of `spotladder infra destroy` removes the platform under the running job.
    """
    e2e = E2eCluster(
        site.cluster, Kube(site.cluster.kubeconfig, TEAM), site.bucket, site.reported, images.reference(site.tag)
    )
    e2e.prepare()
    try:
        e2e.submit(
            {"name": "spot", "capacityTier": "kwok-spot", "maxFailures": 5, "onInsufficientCapacity": "fallback"},
            {"name": "on-demand", "capacityTier": "kwok-on-demand"},
            podSecurity="restricted",
            workload={"ray": {"template": {"spec": training(e2e)}}},
        )
        e2e.runs("spot")
        assert stands_on(e2e) == {"spot"}
        e2e.cluster.capacity("spot", "--limit", "0")
        e2e.cluster.remove(e2e.worker_node())
        e2e.runs("on-demand", past=e2e.steps())
        assert stands_on(e2e) == {"on-demand"}
        *noticed, last = e2e.path()  # Karpenter drains the nodes that it removes, which counts as a notice.
        assert {tier for tier, _ in noticed} <= {"spot"}
        assert last == ("spot", "InsufficientCapacity")
        before = e2e.steps()
        reports = removed(site, tmp_path, monkeypatch)
        assert e2e.status()["phase"] == "Suspended"
        assert e2e.path()[-1][0] == "on-demand"
        assert e2e.steps() >= before
        e2e.is_the_uninterrupted_result(steps=e2e.steps())
        assert (reports[0], "jobs stopped ") == (f"jobs stopping {TEAM}/job", reports[1])
        assert "nodes released " in reports
        assert [report for report in reports if " removed" in report] == [
            "spotladder removed ",
            "spotladder-pools removed ",
        ]
        assert not [kind for kind in ("nodepools", "nodeclaims", "pods") if e2e.kube.list(kind)]
        assert {node["metadata"]["labels"].get("pool") for node in e2e.kube.list("nodes")} == {"head"}
    finally:
        e2e.close()


def removed(site: E2eSite, folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Removes the platform, and returns what was reported. Karpenter and KubeRay are not releases of a rollout here."""
    kubeconfig = folder / "kubeconfig"
    shutil.copy(site.cluster.kubeconfig, kubeconfig)
    kube = Kube(kubeconfig, SYSTEM)
    kube.run("config", "rename-context", kube.run("config", "current-context").strip(), "kind-e2e")
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig))
    monkeypatch.setenv("PATH", f"{tools() / 'bin'}{os.pathsep}{os.environ['PATH']}")
    reports: list[str] = []
    remove(FLEET, FLEET.cluster("e2e"), folder, lambda *report: reports.append(" ".join(report)), nodes_timeout=180)
    return list(dict.fromkeys(reports))


def training(e2e: E2eCluster) -> Object:
    """Two workers that fit one node each, with the Pod Security Standard `restricted`."""
    spec = e2e.ray("chain.py --steps 100000")
    cluster = spec["rayClusterSpec"]
    for group in (cluster["headGroupSpec"], *cluster["workerGroupSpecs"]):
        template = group["template"]["spec"]
        template["serviceAccountName"] = "training"
        template["securityContext"] = {"runAsNonRoot": True, "runAsUser": 1000}
        (container,) = template["containers"]
        container["env"].append({"name": "HOME", "value": "/tmp"})  # noqa: S108 – in the pod
        container["resources"] = {"requests": {"cpu": "100m", "memory": "1Gi"}}
    cluster["workerGroupSpecs"][0]["template"]["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "700m"
    return spec


def stands_on(e2e: E2eCluster) -> set[str]:
    """The capacity types of the workers' nodes."""
    types = {node["metadata"]["name"]: node["metadata"]["labels"].get(TYPE, "") for node in e2e.kube.list("nodes")}
    return {types[pod["spec"]["nodeName"]] for pod in e2e.pods("worker")}
