"""`bootstrap` and `destroy` of kind clusters: a fake `kind` whose cluster is a real API server."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.absent import absent
from tests.cli.terminal import Answer, call
from tests.docs.markdown import ROOT
from tests.kube.apiserver import ApiServer, find

KIND = """\
#!{python}
import json, os, pathlib, subprocess, sys
words, state = sys.argv[1:], pathlib.Path({state!r})
cluster = json.loads(state.read_text()) if state.exists() else None
config = pathlib.Path(os.environ["KUBECONFIG"])
def context(name):
    found = json.loads(pathlib.Path({server!r}).read_text())
    found["contexts"][0]["name"] = found["current-context"] = "kind-" + name
    config.write_text(json.dumps(found))
if words[:2] == ["get", "clusters"]:
    print(cluster["name"] if cluster else "", end="")
    print("" if cluster else "No kind clusters found.", file=sys.stderr)
elif words[:2] == ["create", "cluster"]:
    assert words[2:4] == ["--config", "-"]
    cluster = json.load(sys.stdin)
    if cluster["name"] == "broken":
        sys.exit("ERROR: failed to create cluster: the container runtime does not answer\\nmore")
    context(cluster["name"])
    nodes = []
    for place, node in enumerate(cluster["nodes"]):
        metadata = dict(name=node["role"] + str(place), labels=node.get("labels", {{}}))
        nodes.append(dict(apiVersion="v1", kind="Node", metadata=metadata))
    given = json.dumps(dict(apiVersion="v1", kind="List", items=nodes))
    subprocess.run([{kubectl!r}, "apply", "-f", "-"], input=given, text=True, check=True)
    state.write_text(json.dumps(cluster))
elif words[:2] == ["export", "kubeconfig"]:
    context(words[3])
elif words[:2] == ["delete", "cluster"]:
    if cluster and cluster["name"] == words[3]:
        subprocess.run([{kubectl!r}, "delete", "nodes", "--all"], check=True)
        state.unlink()
"""


@dataclass(frozen=True)
class Laptop:
    """`server` is the kubeconfig of the API server, a copy that a test may change."""

    folder: Path
    server: Path
    capsys: pytest.CaptureFixture[str]

    def run(self, *arguments: str) -> Answer:
        return call(self.capsys, "infra", *arguments, "--state", str(self.folder / "state"), "--yes")

    def nodes(self) -> list[dict[str, str]]:
        """The labels of the cluster's nodes."""
        from spotladder_infra.kubecontext import KubeContext
        from spotladder_infra.rollout.tools import Tools

        found = Tools(KubeContext(str(self.folder / "kubeconfig"), "kind-spotladder")).items("nodes")
        return [entry["metadata"].get("labels", {}) for entry in found]


@pytest.fixture
def laptop(
    api_server: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Laptop]:
    kubectl = find("kubectl")
    if kubectl is None:
        absent("kubectl is not installed", "kube")
    server = Path(shutil.copy(api_server.kubeconfig, tmp_path / "server"))
    programs = {
        "python": sys.executable, "state": str(tmp_path / "kind.json"), "server": str(server), "kubectl": kubectl,
    }  # fmt: skip
    bin_ = tmp_path / "bin"
    bin_.mkdir()
    (bin_ / "kind").write_text(KIND.format(**programs))
    (bin_ / "kind").chmod(0o755)
    shutil.copy(ROOT / "examples" / "fleet" / "kind.yaml", tmp_path / "fleet.yaml")
    monkeypatch.setenv("PATH", f"{bin_}{os.pathsep}{Path(kubectl).parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
    monkeypatch.chdir(tmp_path)
    made = Laptop(tmp_path, server, capsys)
    yield made
    made.run("destroy", "--skip-platform")


def test_a_cluster_is_created_with_the_nodes_of_its_pools_found_again_and_deleted(laptop: Laptop) -> None:
    done = laptop.run("bootstrap")
    assert (done.code, done.err) == (0, "")
    assert "spotladder: kind cluster with 6 nodes to create" in done.out
    labels = laptop.nodes()
    spot = {"spotladder.io/pool": "spot", "karpenter.sh/capacity-type": "spot"}
    assert len(labels) == 6
    assert labels.count(spot) == 2
    assert labels.count({"spotladder.io/pool": "system"}) == 1

    (laptop.folder / "kubeconfig").unlink()
    again = laptop.run("bootstrap")
    assert (again.code, again.err) == (0, "")
    assert "spotladder: kind cluster exists" in again.out
    assert json.loads((laptop.folder / "kubeconfig").read_text())["current-context"] == "kind-spotladder"
    assert laptop.nodes() == labels

    done = laptop.run("destroy", "--skip-platform")
    assert (done.code, done.err) == (0, "")
    assert "spotladder: the kind cluster is deleted" in done.out
    assert laptop.nodes() == []
    assert laptop.run("destroy", "--skip-platform").code == 0


def test_the_error_names_a_partially_created_cluster(laptop: Laptop) -> None:
    """Its API server does not answer; kind keeps the containers of a creation that was killed."""
    laptop.run("bootstrap")
    answering = laptop.server.read_text()
    laptop.server.write_text(re.sub(r"(https://127\.0\.0\.1):\d+", r"\1:1", answering))
    refused = laptop.run("bootstrap")
    laptop.server.write_text(answering)
    assert refused.code == 5
    assert "kind delete cluster --name spotladder" in refused.err


def test_failures_of_kind_are_one_line(laptop: Laptop, monkeypatch: pytest.MonkeyPatch) -> None:
    fleet = laptop.folder / "fleet.yaml"
    fleet.write_text(fleet.read_text().replace("spotladder  ", "broken  ").replace("home: spotladder", "home: broken"))
    done = laptop.run("bootstrap")
    assert done.code == 5
    assert "kind create cluster: ERROR: failed to create cluster: the container runtime does not answer" in done.err
    monkeypatch.setenv("PATH", str(laptop.folder))
    done = laptop.run("bootstrap")
    assert done.code == 5
    assert "kind is not on the PATH" in done.err
    monkeypatch.undo()
