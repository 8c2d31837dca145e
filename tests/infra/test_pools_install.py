"""The chart of the pools on a real API server, with the CRDs that Karpenter and spotladder publish."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from spotladder import versions
from spotladder_infra.rendering.values import values
from tests.absent import absent
from tests.charts.helm import CHARTS
from tests.infra.gomodule import module
from tests.kube.apiserver import ApiServer, find, missing
from tests.topology.builders import fleet_file

SYSTEM = "spotladder-system"
RELEASE = "spotladder-pools"
KWOK = "nodeClass: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}"

pytestmark = pytest.mark.timeout(180)


class HelmSite:
    """helm and kubectl on one API server."""

    def __init__(self, server: ApiServer, folder: Path) -> None:
        self.folder = folder
        homes = {f"HELM_{kind}_HOME": str(folder / kind) for kind in ("CACHE", "CONFIG", "DATA")}
        self._env = {**os.environ, **homes, "KUBECONFIG": str(server.kubeconfig)}

    def run(self, name: str, *arguments: str | Path, fails: bool = False, given: str | None = None) -> str:
        """Standard output, or stderr of a command that must fail."""
        program = find(name)
        assert program is not None
        done = subprocess.run(
            [program, *arguments], input=given, capture_output=True, text=True, timeout=90, check=False, env=self._env
        )
        assert (done.returncode != 0) == fails, done.stdout + done.stderr
        return done.stderr if fails else done.stdout

    def kubectl(self, *arguments: str | Path) -> str:
        return self.run("kubectl", *arguments)

    def get(self, kind: str, name: str, namespace: str = "default") -> dict[str, Any]:
        """The object; empty when it does not exist."""
        text = self.kubectl("-n", namespace, "get", kind, name, "--ignore-not-found", "-o", "json")
        found: dict[str, Any] = json.loads(text) if text.strip() else {}
        return found

    def install(self, given: dict[str, Any], *, fails: bool = False, release: str = RELEASE) -> str:
        file = self.folder / "values.json"
        file.write_text(json.dumps(given))
        command = ("upgrade", "--install", release, CHARTS / "spotladder-pools", "-n", SYSTEM, "--create-namespace")
        return self.run("helm", *command, "--values", file, fails=fails)

    def uninstall(self) -> None:
        self.run("helm", "uninstall", RELEASE, "-n", SYSTEM, "--ignore-not-found")

    def may(self, verb: str, resource: str, namespace: str, group: str) -> bool:
        """Whether a member of the group has this permission."""
        kind, _, part = resource.partition("/")
        asked = [
            "auth",
            "can-i",
            verb,
            kind,
            f"--subresource={part}",
            "-n",
            namespace,
            "--as=somebody",
            f"--as-group={group}",
        ]
        program = find("kubectl")
        assert program is not None
        done = subprocess.run([program, *asked], capture_output=True, text=True, check=False, env=self._env)
        return done.stdout.strip() == "yes"


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HelmSite]:
    """An API server that has no CRDs."""
    why = missing() or ", ".join(name for name in ("helm", "kubectl") if find(name) is None)
    if why:
        absent(f"no API server, or not found: {why}", "infra")
    with ApiServer() as server:
        yield HelmSite(server, tmp_path_factory.mktemp("helm"))


@pytest.fixture(scope="module")
def ready(bare: HelmSite) -> HelmSite:
    """The same, after the installation of the components that precede the pools."""
    karpenter = module("github.com/aws/karpenter-provider-aws", f"v{versions.KARPENTER}")
    bare.kubectl("apply", "--server-side", "-f", karpenter / "pkg" / "apis" / "crds")
    bare.run("helm", "upgrade", "--install", "spotladder-crds", CHARTS / "spotladder-crds")
    bare.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=60s")
    return bare


@pytest.fixture
def site(ready: HelmSite) -> Iterator[HelmSite]:
    yield ready
    ready.uninstall()


def lab(folder: Path, *changes: tuple[str, str]) -> dict[str, Any]:
    """The values of an existing cluster with a Karpenter pool that sets every option."""
    pool = (
        f"{{name: lab-gpu, capacityType: spot, {KWOK}, instanceTypes: [m.medium], zones: [zone-a], limits: {{nodes: 3, "
        'cpu: "8"}, startupTaints: [{key: example.com/starting}], taints: [{key: team, value: ml}], labels: {a: b}, '
        "disruption: {terminationGracePeriod: 45s, expireAfter: 720h}, notice: 50s, prePull: [a/b:1],"
    )
    volume = "    volumes: [{name: data, spec: {nfs: {server: 10.0.0.5, path: /data}}}]\n"
    place = "    context: lab-admin\n"
    fleet = fleet_file(
        folder,
        ("home: east", "home: lab"),
        (place, f"{place}{volume}"),
        ("{name: lab-gpu, selectors: {gpu: a10g},", pool),
        *changes,
    )
    found = values(fleet.fleet, fleet.fleet.cluster("lab"))
    assert isinstance(found, dict)
    return found


def test_a_missing_crd_is_named_with_its_chart(bare: HelmSite, tmp_path: Path) -> None:
    """Runs first: it needs a server without CRDs."""
    given = lab(tmp_path)
    said = bare.install(given, fails=True)
    assert "NodePool lab-gpu: the cluster has no NodePool (karpenter.sh/v1): install the chart karpenter-crd" in said
    said = bare.install({**given, "nodePools": []}, fails=True)
    assert "(spotladder.io/v1alpha1): install the chart spotladder-crds first" in said


def test_every_option_is_valid_for_the_crds(site: HelmSite, tmp_path: Path) -> None:
    given = lab(tmp_path)
    site.install(given)
    for key in ("nodePools", "capacityTiers"):
        for entry in given[key]:
            stored = site.get(entry["kind"], entry["metadata"]["name"])
            assert _within(entry["spec"], stored["spec"]), entry["metadata"]["name"]
    assert site.get("daemonset", "pre-pull-lab-gpu", SYSTEM)
    assert site.get("persistentvolumeclaim", "data", "team-a")["spec"]["volumeName"] == "team-a.data"
    assert site.get("persistentvolume", "team-a.data")["spec"]["claimRef"]["namespace"] == "team-a"
    site.install({**given, "holdDuringUpgrade": True})
    assert site.get("nodepool", "lab-gpu")["spec"]["disruption"]["budgets"] == [{"nodes": "0"}]
    site.install(given)
    assert len(site.get("nodepool", "lab-gpu")["spec"]["disruption"]["budgets"]) == 2


def test_a_pool_that_is_removed_from_the_file_is_deleted(site: HelmSite, tmp_path: Path) -> None:
    given = lab(tmp_path)
    site.install(given)
    site.install({**given, "nodePools": [], "capacityTiers": given["capacityTiers"][1:]})
    assert not site.get("nodepool", "lab-gpu")
    assert not site.get("capacitytier", given["capacityTiers"][0]["metadata"]["name"])
    assert site.get("capacitytier", given["capacityTiers"][1]["metadata"]["name"])


def test_namespaces_and_service_accounts_outlive_the_release(site: HelmSite, tmp_path: Path) -> None:
    given = lab(tmp_path)
    site.install(given)
    labels = site.get("namespace", "team-a")["metadata"]["labels"]
    assert labels["pod-security.kubernetes.io/enforce"] == "baseline"
    assert site.get("resourcequota", "spotladder", "team-a")["spec"]["hard"]["requests.cpu"] == "512"
    site.uninstall()
    assert site.get("namespace", "team-a")
    assert site.get("serviceaccount", "training", "team-a")
    assert not site.get("resourcequota", "spotladder", "team-a")
    assert not site.get("nodepool", "lab-gpu")
    site.install(given)
    assert site.get("resourcequota", "spotladder", "team-a")


def test_a_namespace_of_another_owner_is_used_as_it_is(site: HelmSite) -> None:
    site.kubectl("create", "namespace", "shared")
    team = {"namespace": "shared", "serviceAccount": {"name": "training"}, "groups": ["shared"]}
    said = site.install({"teams": [team]})
    assert "kubectl label namespace shared pod-security.kubernetes.io/enforce=baseline" in said
    assert "labels" not in site.get("namespace", "shared")["metadata"] or not any(
        key.startswith("pod-security") for key in site.get("namespace", "shared")["metadata"]["labels"]
    )
    assert site.get("serviceaccount", "training", "shared")
    site.uninstall()
    assert site.get("namespace", "shared")


def test_a_team_may_run_jobs_in_its_namespace_and_nowhere_else(site: HelmSite) -> None:
    teams = [
        {"namespace": name, "serviceAccount": {"name": "training"}, "groups": [f"{name}-people"]}
        for name in ("vision", "speech")
    ]
    site.install({"teams": teams})
    allowed = {
        ("create", "tieredjobs.spotladder.io"): True,
        ("delete", "tieredjobs.spotladder.io"): True,
        ("get", "pods/log"): True,
        ("create", "configmaps"): True,
        ("list", "capacitytiers.spotladder.io"): True,
        ("create", "capacitytiers.spotladder.io"): False,
        ("patch", "tieredjobs.spotladder.io/status"): False,
        ("create", "pods"): False,
        ("create", "pods/exec"): False,
        ("patch", "resourcequotas"): False,
        ("create", "rolebindings.rbac.authorization.k8s.io"): False,
        ("create", "nodepools.karpenter.sh"): False,
    }
    found = {(verb, kind): site.may(verb, kind, "vision", "vision-people") for verb, kind in allowed}
    assert found == allowed
    assert not site.may("get", "tieredjobs.spotladder.io", "speech", "vision-people")
    assert not site.may("get", "secrets", "speech", "vision-people")


def test_node_pools_and_classes_of_created_clusters_are_valid_for_the_crds(ready: HelmSite, tmp_path: Path) -> None:
    bottlerocket = ("      limits: {nodes: 16}", "      image: bottlerocket@v1.50.0\n      diskThroughput: 1000")
    fleet = fleet_file(tmp_path, bottlerocket).fleet
    given = values(fleet, fleet.cluster("east"))
    node_pools = [*given["nodePools"], *values(fleet, fleet.cluster("alpha"))["nodePools"]]
    assert (len(given["nodeClasses"]), len(node_pools)) == (4, 6)
    for entry in (*given["nodeClasses"], *node_pools):
        text = ready.run("kubectl", "create", "--dry-run=server", "--validate=strict", "-o", "json", "-f", "-",
                         given=json.dumps(entry))  # fmt: skip
        assert _within(entry["spec"], json.loads(text)["spec"])
    wrong = {**given["nodeClasses"][0], "spec": {**given["nodeClasses"][0]["spec"], "placement": {}}}
    said = ready.run("kubectl", "create", "--dry-run=server", "--validate=strict", "-f", "-", given=json.dumps(wrong),
                     fails=True)  # fmt: skip
    assert 'unknown field "spec.placement"' in said


def _within(wanted: Any, stored: Any) -> bool:
    """Whether all wanted fields are stored; the server adds only defaults."""
    if isinstance(wanted, dict):
        return isinstance(stored, dict) and all(key in stored and _within(wanted[key], stored[key]) for key in wanted)
    if isinstance(wanted, list):
        return len(wanted) == len(stored) and all(map(_within, wanted, stored))
    return bool(wanted == stored)
