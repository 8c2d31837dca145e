"""The files for Argo CD and Flux: the objects of a rollout, in its order, and from a mirror."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from spotladder import versions
from spotladder.cli.main import group
from spotladder_infra.kubecontext import KubeContext
from spotladder_infra.rollout import components, crds, ready, rendered
from spotladder_infra.rollout.charts import LocalChart
from spotladder_infra.rollout.components import Chart
from spotladder_infra.rollout.plan import plan
from spotladder_infra.rollout.release import Release
from spotladder_infra.rollout.tools import Tools
from spotladder_infra.topology.fleet import Fleet
from tests.absent import absent
from tests.charts.helm import CHARTS, objects
from tests.infra.gomodule import module
from tests.kube.apiserver import ApiServer, find, missing
from tests.topology.builders import PLATFORM, fleet_file

MIRROR = "registry.example.com/mirror"
ADDED = re.compile(r"^ +(argocd\.argoproj\.io/[a-z-]+|kustomize\.toolkit\.fluxcd\.io/prune): .*\n", re.MULTILINE)


def karpenter() -> Path:
    return module("github.com/aws/karpenter-provider-aws", f"v{versions.KARPENTER}") / "charts"


SOURCES: dict[str, Callable[[], Path]] = {
    "karpenter": lambda: karpenter() / "karpenter",
    "karpenter-crd": lambda: karpenter() / "karpenter-crd",
    "nvidia-device-plugin": lambda: (
        module("github.com/NVIDIA/k8s-device-plugin", f"v{components.GPU_DEVICE_PLUGIN.chart.version}")
        / "deployments" / "helm" / "nvidia-device-plugin"
    ),
    "jobset": lambda: module("sigs.k8s.io/jobset", f"v{components.JOBSET.chart.version}") / "charts" / "jobset",
    "kueue": lambda: module("sigs.k8s.io/kueue", f"v{components.KUEUE.chart.version}") / "charts" / "kueue",
    "kuberay-operator": lambda: Path(__file__).parent / "charts" / "kuberay-operator",
}  # fmt: skip
"""The charts of other projects; that of KubeRay is in no Go module, so a smaller one stands for it."""


def local(chart: Chart) -> LocalChart:
    path = SOURCES[chart.name]() if chart.name in SOURCES else CHARTS / chart.name
    return LocalChart(str(path), chart.version, "")


@pytest.fixture
def programs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """helm and kubectl on the PATH."""
    for name in ("helm", "kubectl"):
        program = find(name)
        if program is None:
            absent(f"not found: {name} (SPOTLADDER_TOOLS or PATH)", "infra")
        monkeypatch.setenv("PATH", f"{Path(program).parent}{os.pathsep}{os.environ['PATH']}")
    for kind in ("CACHE", "CONFIG", "DATA"):
        monkeypatch.setenv(f"HELM_{kind}_HOME", str(tmp_path / kind))
    return tmp_path


def fleet_of(folder: Path, options: str = "") -> Fleet:
    """A fleet whose home cluster has every chart that a Go module has, except Kueue's."""
    own = f"jobset: true, image: {{repository: {MIRROR}/spotladder}}{options}"
    platform = f"  platform: {{{own}}}\n"
    return fleet_file(folder, ("      efa: true\n", ""), (PLATFORM, platform)).fleet


def kustomized(folder: Path) -> str:
    done = subprocess.run(
        ["kubectl", "kustomize", str(folder)], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def cluster(programs: Path) -> Iterator[Tools]:
    assert programs
    if why := missing():
        absent(f"no API server: {why}", "infra")
    with ApiServer() as server:
        view = Tools(KubeContext(str(server.kubeconfig), ""))
        yield Tools(KubeContext(str(server.kubeconfig), view.kubectl("config", "current-context").strip()))


@pytest.mark.timeout(180)
def test_the_files_have_the_objects_of_a_rollout(
    cluster: Tools, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A rollout installs the releases; then no object of the files differs from the cluster, or is missing there."""
    monkeypatch.setattr(ready, "wait", lambda *_: None)  # there are no nodes
    fleet = fleet_of(tmp_path, ", gpuDevicePlugin: false")  # this API server refuses privileged containers
    east = fleet.cluster("east")
    found = plan(fleet, east)
    for chart in found.crds:
        crds.apply(cluster, crds.of_chart(cluster, local(chart).path))
    for step in found.releases:
        release = Release(cluster, step.release, step.namespace)
        release.install(local(step.chart).path, json.dumps(step.values), 60.0)
    rendered.write(fleet, east, local, tmp_path / "clusters")
    text = kustomized(tmp_path / "clusters" / "east")
    assert cluster.changes(ADDED.sub("", text).replace("    annotations: {}\n", ""), "not-set") == []
    for step in found.releases:
        live = Release(cluster, step.release, step.namespace).live()
        file = next((tmp_path / "clusters" / "east").glob(f"*-{step.name}")) / "objects.yaml"
        assert _sorted(file.read_text()) == _sorted(live.manifest)


@pytest.mark.timeout(180)
def test_a_rollout_installs_kueue_for_the_kinds_of_jobs(
    cluster: Tools, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By itself: without pods, the webhooks of Kueue refuse the Deployments of the releases after it."""
    monkeypatch.setattr(ready, "wait", lambda *_: None)  # there are no nodes
    fleet = fleet_of(tmp_path, ", kueue: true")
    step = next(step for step in plan(fleet, fleet.cluster("east")).releases if step.name == "kueue")
    Release(cluster, step.release, step.namespace).install(local(step.chart).path, json.dumps(step.values), 60.0)
    served = [f"crd/{kind}.kueue.x-k8s.io" for kind in ("workloads", "localqueues")]
    cluster.kubectl("wait", "--for=condition=Established", "--timeout=60s", *served)
    (manager,) = cluster.items("deployments", "--namespace", step.namespace)
    assert manager["spec"]["template"]["spec"]["nodeSelector"] == {"spotladder.io/pool": "system"}
    maps = [entry.get("data", {}) for entry in cluster.items("configmaps", "--namespace", step.namespace)]
    (settings,) = (data["controller_manager_config.yaml"] for data in maps if "controller_manager_config.yaml" in data)
    frameworks = YAML(typ="safe").load(settings)["integrations"]["frameworks"]
    assert {"ray.io/rayjob", "jobset.x-k8s.io/jobset"} <= set(frameworks)


def _sorted(manifest: str) -> list[Any]:
    return sorted(objects(manifest), key=lambda entry: json.dumps(entry, sort_keys=True))


def test_the_waves_have_the_order_of_a_rollout(programs: Path) -> None:
    fleet = fleet_of(programs)
    rendered.write(fleet, fleet.cluster("east"), local, programs / "clusters")
    folder = programs / "clusters" / "east"
    steps = [step.name for step in plan(fleet, fleet.cluster("east")).releases]
    (root,) = objects((folder / "kustomization.yaml").read_text())
    waves = root["resources"]
    assert [name.partition("-")[2] for name in waves] == ["crds", *steps]
    flux = objects((folder / "flux.yaml").read_text())
    assert [entry["spec"]["path"] for entry in flux] == [f"./{folder.as_posix()}/{name}" for name in waves]
    after = [[each["name"] for each in entry["spec"]["dependsOn"]] for entry in flux]
    assert after == [[], *([entry["metadata"]["name"]] for entry in flux[:-1])]
    numbers = []
    for wave in waves[1:]:
        found = objects(kustomized(folder / wave))
        number = {entry["metadata"]["annotations"]["argocd.argoproj.io/sync-wave"] for entry in found}
        assert len(number) == 1, "all objects of a release are in one wave"
        numbers.append(int(number.pop()))
    assert numbers == sorted(set(numbers))
    assert min(numbers) > 0, "after the CRDs and namespaces"


def test_what_helm_keeps_is_not_pruned(programs: Path) -> None:
    """Otherwise a team that is removed from the fleet file would lose its namespace with all jobs, and the removal of
    Flux's Kustomizations would delete the definitions, and with them the jobs of all teams."""
    fleet = fleet_of(programs)
    rendered.write(fleet, fleet.cluster("east"), local, programs / "clusters")
    kept: dict[str, set[str]] = {}
    for entry in objects(kustomized(programs / "clusters" / "east")):
        found = entry["metadata"].get("annotations") or {}
        prunes = "Prune=false" not in found.get("argocd.argoproj.io/sync-options", "")
        assert prunes is (found.get("kustomize.toolkit.fluxcd.io/prune") != "disabled")
        if not prunes:
            kept.setdefault(entry["kind"], set()).add(entry["metadata"]["name"])
    assert kept.keys() == {"Namespace", "CustomResourceDefinition", "ServiceAccount"}
    assert {"spotladder-system", "kuberay-system", "team-a", "team-b"} <= kept["Namespace"]
    assert {"tieredjobs.spotladder.io", "nodepools.karpenter.sh"} <= kept["CustomResourceDefinition"]
    assert kept["ServiceAccount"] == {"training"}


def images(node: Any) -> Iterator[str]:
    """Every image of an object."""
    if isinstance(node, dict):
        for key, value in node.items():
            if key == "image" and isinstance(value, str):
                yield value
            else:
                yield from images(value)
    elif isinstance(node, list):
        for entry in node:
            yield from images(entry)


def test_all_images_and_charts_are_those_of_the_mirror(programs: Path) -> None:
    public, mirrored = (fleet_of(programs, f", kueue: true{mirror}") for mirror in ("", f", mirror: {MIRROR}"))
    found: dict[str, set[str]] = {}
    for name, fleet in (("public", public), ("mirrored", mirrored)):
        rendered.write(fleet, fleet.cluster("east"), local, programs / name)
        waves = [path for path in (programs / name / "east").glob("*-*") if path.name != "00-crds"]
        found[name] = {image for wave in waves for entry in objects(kustomized(wave)) for image in images(entry)}
    assert len(found["mirrored"]) >= 5
    assert {image for image in found["mirrored"] if not image.startswith(f"{MIRROR}/")} == set()
    assert {image for image in found["public"] if not image.startswith(MIRROR)}
    for cluster in mirrored.spec.clusters:
        sources = {chart.source for chart in plan(mirrored, cluster).charts if chart.source != components.OWN}
        assert {source for source in sources if not source.startswith(f"oci://{MIRROR}/")} == set()


def test_an_own_value_is_stronger_than_the_mirror(tmp_path: Path) -> None:
    values = "values: {kuberay: {image: {repository: registry.example.com/kuberay}}}"
    fleet = fleet_of(tmp_path, f", mirror: {MIRROR}, {values}")
    step = next(step for step in plan(fleet, fleet.cluster("east")).releases if step.name == "kuberay")
    assert step.values["image"] == {"repository": "registry.example.com/kuberay"}


def test_every_component_of_another_project_has_an_image(tmp_path: Path) -> None:
    fleet = fleet_file(tmp_path).fleet
    steps = [step for cluster in fleet.spec.clusters for step in plan(fleet, cluster).releases]
    own = {step.name for step in steps if not step.image}
    assert own == {"pools", "controller"}


def test_the_command_writes_the_chosen_clusters(programs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fleet_file(programs)
    for name in ("east", "removed"):
        (programs / "to" / name).mkdir(parents=True)
        (programs / "to" / name / "flux.yaml").touch()
    folders = ["--charts", str(SOURCES["kuberay-operator"]().parent), "--state", str(programs / "state")]
    command = ["infra", "render", "--fleet", str(programs / "fleet.yaml"), "--all", str(programs / "to"), *folders]
    group().main(args=[*command, "--cluster", "lab"], standalone_mode=False)
    stays = f"warning: {programs / 'to' / 'removed'} is of no cluster of the fleet file: delete it when that is gone\n"
    assert capsys.readouterr().err == stays
    assert [path.name for path in (programs / "to" / "east").iterdir()] == ["flux.yaml"], "it was not chosen"
    found = {entry["kind"] for entry in objects(kustomized(programs / "to" / "lab"))}
    assert {"Namespace", "Deployment", "ServiceAccount", "Secret"} <= found, "a member has the token of the controller"
