"""A cluster for the whole run: KubeRay, JobSet, and the controller as users install it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.e2e import image as images
from tests.e2e import provider
from tests.e2e.bucket import Bucket, bucket
from tests.e2e.kube import Kube
from tests.e2e.provider import Cluster
from tests.e2e.steps import Steps, steps
from tests.e2e.world import HEADS, SECRET, World, world

SYSTEM = "spotladder-system"
CHARTS = images.ROOT / "charts"


def required() -> bool:
    """Whether a missing cluster is a failure."""
    return bool({"e2e", "all"} & set(os.environ.get("SPOTLADDER_REQUIRE", "").split(",")))


def pytest_sessionstart() -> None:
    """Being told to end is like Ctrl-C: the clusters go, too."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(images.ROOT / "tests" / "e2e"):
            item.add_marker(pytest.mark.timeout(1800))


Call = tuple[str, str, str]
"""Resource (with subresource) and verb as RBAC names them, and the HTTP status of the answer."""


@dataclass(frozen=True)
class Site:
    """A cluster, its bucket, and the image that its nodes have."""

    cluster: Cluster
    bucket: Bucket
    told: Steps
    tag: str
    calls: set[Call] = field(default_factory=set)

    def listen(self) -> None:
        """Note what the installed controllers have called so far; who is stopped forgets it."""
        system = Kube(self.cluster.kubeconfig, SYSTEM)
        for pod in system.list("pods", "app.kubernetes.io/name=spotladder"):
            if "deletionTimestamp" in pod["metadata"]:
                continue
            path = f"/api/v1/namespaces/{SYSTEM}/pods/{pod['metadata']['name']}:8080/proxy/metrics"
            for counted in re.findall(r"spotladder_api_requests_total\{(.*)\}", system.run("get", "--raw", path)):
                labels = dict(re.findall(r'(\w+)="([^"]*)"', counted))
                self.calls.add((labels["resource"], labels["verb"], labels["code"]))

    @property
    def image(self) -> str:
        return images.reference(self.tag)


@pytest.fixture(scope="session")
def tag() -> str:
    """The image of this checkout."""
    if why := provider.missing():
        (pytest.fail if required() else pytest.skip)(why)
    return images.build()


@pytest.fixture(scope="session")
def site(tag: str) -> Iterator[Site]:
    """The cluster that most tests share, with the controller in it."""
    cluster = Cluster(f"e2e{os.getpid()}")
    try:
        cluster.up(tag, {"heads": f"pool={HEADS}"})
        cluster.addons("kuberay", "jobset")
        with bucket(cluster.host) as made, steps(cluster.host) as told:
            install(Kube(cluster.kubeconfig, SYSTEM), tag)
            yield Site(cluster, made, told, tag)
    finally:
        cluster.down()


@pytest.fixture
def here(site: Site) -> Iterator[World]:
    """A namespace in the shared cluster."""
    with world(site.cluster, site.bucket, site.told, site.image) as made:
        yield made
    site.listen()


@pytest.fixture
def alone(here: World) -> Iterator[World]:
    """The installed controller is at rest meanwhile."""
    system = Kube(here.cluster.kubeconfig, SYSTEM)
    system.run("scale", "deployment/spotladder", "--replicas=0")
    system.run("wait", "--for=delete", "pod", "-l", "app.kubernetes.io/name=spotladder", "--timeout=60s")
    try:
        yield here
    finally:
        system.run("scale", "deployment/spotladder", "--replicas=2")
        system.run("rollout", "status", "deployment/spotladder", "--timeout=120s")


@contextmanager
def controller(here: World, folder: Path, *, fail: str = "", **more: Any) -> Iterator[subprocess.Popen[bytes]]:
    """A controller of this machine, with more settings, or one that dies at a fail point."""
    config = folder / "controller.yaml"
    settings = {"namespaces": [here.namespace], "leaseNamespace": here.namespace, "listen": "127.0.0.1:0"}
    config.write_text(json.dumps({**settings, **more}))
    command = [sys.executable, "-m", "spotladder.cli.main", "controller", "--config", str(config)]
    with (folder / "controller.log").open("ab") as log:
        process = subprocess.Popen(
            [*command, "--kubeconfig", str(here.cluster.kubeconfig)],
            env={**os.environ, "SPOTLADDER_FAILPOINTS": fail},
            stdout=log,
            stderr=log,
        )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def install(kube: Kube, tag: str, *values: str) -> None:
    """Both charts, as their README says."""
    repository, _, version = images.reference(tag).rpartition(":")
    kube.helm("upgrade", "--install", "spotladder-crds", str(CHARTS / "spotladder-crds"), "--create-namespace")
    own = {
        "image.repository": repository,
        "image.tag": version,
        "image.pullPolicy": "Never",
        "nodeSelector.pool": HEADS,
        "checkpointSecrets": f"{{{SECRET}}}",
    }
    settings = [f"--set={name}={value}" for name, value in own.items()]
    kube.helm(
        "upgrade", "--install", "spotladder", str(CHARTS / "spotladder"),
        *settings, *(f"--set={value}" for value in values), "--wait", "--timeout=5m",
    )  # fmt: skip
