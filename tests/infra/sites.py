"""Two real clusters for the tests of the rollout: nodes, images, a bucket, and a fleet file that names them."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from ruamel.yaml import YAML

from tests.absent import absent
from tests.e2e import image as images
from tests.e2e import provider
from tests.e2e.bucket import NAME as BUCKET
from tests.e2e.bucket import BucketServer, bucket
from tests.e2e.kube import Kube
from tests.e2e.provider import ProvidedCluster
from tests.kube.apiserver import tools

ROOT = Path(__file__).parents[2]
CHARTS = Path(__file__).parent / "charts"
KUBERAY = "kuberay-operator:1.6.1"
NAMES = ("east", "west")
TEAM = "team-a"
TIMEOUT = 240.0


@dataclass(frozen=True)
class Sites:
    """`folder` has the fleet file, the charts and the state of the rollout."""

    folder: Path
    clusters: Mapping[str, ProvidedCluster]
    bucket: BucketServer
    image: str

    def kube(self, cluster: str, namespace: str = "spotladder-system") -> Kube:
        """kubectl of one cluster."""
        return Kube(self.clusters[cluster].kubeconfig, namespace)

    def write(self, **platform: Any) -> None:
        """The fleet file, with other settings under `platform`."""
        repository, _, tag = self.image.rpartition(":")
        document = {
            "apiVersion": "spotladder.io/v1alpha1",
            "kind": "Fleet",
            "metadata": {"name": "lab"},
            "spec": {
                "home": "east",
                "teams": [{"name": TEAM}],
                "platform": {
                    "charts": "charts",
                    "image": {"repository": repository, "tag": tag},
                    "values": {
                        "kuberay": self.kuberay("1.6.1"),
                        "controller": self.controller(),
                    },
                    **platform,
                },
                "rollout": {"timeout": "90s", "smoke": {"job": "smoke.yaml", "timeout": "4m"}},
                "clusters": [self._cluster(name) for name in NAMES],
            },
        }
        (self.folder / "fleet.yaml").write_text(json.dumps(document))

    def kuberay(self, tag: str) -> dict[str, Any]:
        """KubeRay's values."""
        return {"image": {"repository": "localhost/kuberay-operator", "tag": tag, "pullPolicy": "Never"}}

    def controller(self, **values: Any) -> dict[str, Any]:
        """The controller's values."""
        own = {"pullPolicy": "Never"}
        return {
            "replicaCount": 1,
            "image": {**own, **values.pop("image", {})},
            "checkpointSecrets": ["bucket"],
            "tenancy": self.bucket.tenancy("*"),
            **values,
        }

    def _cluster(self, name: str) -> dict[str, Any]:
        return {
            "name": name,
            "cloud": "existing",
            "context": name,
            "pools": [
                {"name": f"{name}-heads", "role": "heads", "selectors": {"pool": "node"}},
                {"name": f"{name}-workers", "selectors": {"pool": "node"}, "price": {"perNodeHour": "0.4"}},
            ],
        }

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Start a command of `spotladder infra` without waiting for it."""
        return subprocess.Popen(
            [sys.executable, "-m", "spotladder.cli.main", "infra", *arguments],
            cwd=self.folder,
            env=self.environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def run(self, *arguments: str, code: int = 0) -> str:
        """The output of a command. Fails the test with the output if the exit code differs."""
        process = self.start(*arguments)
        try:
            printed, _ = process.communicate(timeout=TIMEOUT)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            printed, _ = process.communicate()
        print(f"$ spotladder infra {' '.join(arguments)}\n{printed}")
        assert process.returncode == code, f"{arguments}: exit code {process.returncode}\n{printed}"
        return printed

    def environment(self) -> dict[str, str]:
        """The tools first on the PATH, and a kubeconfig with both contexts."""
        path = f"{tools() / 'bin'}{os.pathsep}{os.environ['PATH']}"
        return {**os.environ, "PATH": path, "KUBECONFIG": str(self.folder / "kubeconfig")}


@contextmanager
def sites(folder: Path) -> Iterator[Sites]:
    """Both clusters; they are deleted after the block."""
    if why := provider.missing() or missing():
        absent(why, "infra", in_all=False)
    tag = images.build()
    build_kuberay()
    clusters = {name: ProvidedCluster(f"{name}{os.getpid()}") for name in NAMES}
    with ExitStack() as stack:
        for cluster in clusters.values():
            stack.callback(cluster.down)
            cluster.up(tag, {"n1": "pool=node"}, f"--image={KUBERAY}")
        made = stack.enter_context(bucket(clusters["east"].host))
        found = Sites(folder, clusters, made, images.reference(tag))
        merge(folder / "kubeconfig", {name: cluster.kubeconfig for name, cluster in clusters.items()})
        stack.enter_context(relay(folder / "kubeconfig", "west", clusters["east"].host))
        charts(folder / "charts")
        for name in NAMES:
            prepare(found, name)
        (folder / "smoke.yaml").write_text(json.dumps(smoke(found)))
        found.write()
        yield found


def missing() -> str:
    """The missing program of Pulumi; "" if all exist."""
    wanted = ("pulumi", "pulumi-resource-pulumi-python")
    absent_ones = [name for name in wanted if not provider.program(name).exists() and shutil.which(name) is None]
    return f"not installed: {', '.join(absent_ones)}" if absent_ones else ""


def build_kuberay() -> None:
    """An image of the KubeRay operator, built once for each machine."""
    if not images.tar_of(KUBERAY).exists():
        binary = provider.program("kuberay")
        provider.call([str(provider.tool()), "image", "build", KUBERAY, "--copy", f"{binary}:/manager"])


def merge(path: Path, kubeconfigs: Mapping[str, Path]) -> None:
    """One kubeconfig with a context for each cluster, which has the cluster's name."""
    found: dict[str, Any] = {"apiVersion": "v1", "kind": "Config", "clusters": [], "users": [], "contexts": []}
    for name, source in kubeconfigs.items():
        one = YAML(typ="safe").load(source)
        found["clusters"].append({"name": name, "cluster": one["clusters"][0]["cluster"]})
        found["users"].append({"name": name, "user": one["users"][0]["user"]})
        found["contexts"].append({"name": name, "context": {"cluster": name, "user": name}})
    path.write_text(json.dumps(found))


@contextmanager
def relay(path: Path, cluster: str, host: str) -> Iterator[None]:
    """Forwards connections of the other cluster's pods to this one's API server: their networks are separate."""
    document = json.loads(path.read_text())
    server = next(entry["cluster"] for entry in document["clusters"] if entry["name"] == cluster)
    address = urlsplit(server["server"])

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.CancelledError):
            downstream, upstream = await asyncio.open_connection(address.hostname, address.port)
            await asyncio.gather(_copy(reader, upstream), _copy(downstream, writer))

    loop = asyncio.new_event_loop()
    listener = loop.run_until_complete(asyncio.start_server(serve, host, 0))
    server["tls-server-name"] = address.hostname
    server["server"] = f"https://{host}:{listener.sockets[0].getsockname()[1]}"
    path.write_text(json.dumps(document))
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        yield
    finally:
        asyncio.run_coroutine_threadsafe(_cancel_all(), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def _cancel_all() -> None:
    tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    writer.close()


def charts(folder: Path) -> None:
    """The charts that are not part of the package; CRDs of KubeRay from its sources."""
    shutil.copytree(CHARTS, folder)
    shutil.copytree(tools() / "crds" / "kuberay", folder / "kuberay-operator" / "crds")


def prepare(found: Sites, name: str) -> None:
    """The namespace of the smoke job with the credentials of the bucket, as a user creates them."""
    program = (ROOT / "tests" / "e2e" / "programs" / "chain.py").read_text()
    kube = found.kube(name, TEAM)
    kube.apply(
        {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {
                "name": TEAM,
                "labels": {"app.kubernetes.io/managed-by": "Helm"},
                "annotations": {
                    "meta.helm.sh/release-name": "spotladder-pools",
                    "meta.helm.sh/release-namespace": "spotladder-system",
                },
            },
        },
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "bucket", "namespace": TEAM},
            "stringData": dict(found.bucket.environment),
        },
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "program", "namespace": TEAM},
            "data": {"chain.py": program},
        },
    )


def smoke(found: Sites, steps: int = 10) -> dict[str, Any]:
    """A job of two workers that trains this number of steps."""

    def group(cpus: str, memory: str) -> dict[str, Any]:
        container = {
            "name": "ray",
            "image": found.image,
            "imagePullPolicy": "Never",
            "resources": {"requests": {"memory": memory}},
            "env": [{"name": "STEPS", "value": "127.0.0.1:9"}, {"name": "HOME", "value": "/tmp"}],  # noqa: S108
            "volumeMounts": [{"name": "program", "mountPath": "/program"}],
        }
        identity = {"runAsNonRoot": True, "runAsUser": 1000}
        volumes = [{"name": "program", "configMap": {"name": "program"}}]
        return {
            "rayStartParams": {"num-cpus": cpus},
            "template": {"spec": {"securityContext": identity, "containers": [container], "volumes": volumes}},
        }

    return {
        "apiVersion": "spotladder.io/v1alpha1",
        "kind": "TieredJob",
        "metadata": {"name": "smoke", "namespace": TEAM},
        "spec": {
            "tiers": [{"name": "any", "capacityTier": "any"}],
            "checkpoints": {
                "uri": f"s3://{BUCKET}/{TEAM}",
                "interval": "5steps",
                "credentials": {"secretName": "bucket"},
            },
            "workload": {
                "ray": {
                    "template": {
                        "spec": {
                            "entrypoint": f"python /program/chain.py --steps {steps} --pace 0.1",
                            "rayClusterSpec": {
                                "headGroupSpec": group("0", "1Gi"),
                                "workerGroupSpecs": [{"groupName": "workers", "replicas": 2, **group("1", "512Mi")}],
                            },
                        }
                    }
                }
            },
        },
    }
