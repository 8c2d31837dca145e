"""A cluster with the operators and the controller as users install them, and the other resources of the tests."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field

from tests.e2e import image as images
from tests.e2e.bucket import BucketServer, bucket
from tests.e2e.kube import Kube
from tests.e2e.provider import ProvidedCluster
from tests.e2e.steps import StepCollector, steps
from tests.e2e.world import HEADS, SECRET, SHARED, E2eCluster, world

SYSTEM = "spotladder-system"
CHARTS = images.ROOT / "charts"

CALLS = images.ROOT / ".e2e-calls"
"""Folder with the API calls of the installed controllers of each test process; `make test-e2e` empties it."""

Call = tuple[str, str, str]
"""Resource (with subresource), verb, and the HTTP status of the answer."""


@dataclass(frozen=True)
class E2eSite:
    """A cluster, its bucket, and the image that its nodes have."""

    cluster: ProvidedCluster
    bucket: BucketServer
    reported: StepCollector
    tag: str
    calls: set[Call] = field(default_factory=set)

    def listen(self) -> None:
        """Record the calls of the installed controllers so far; a stopped controller loses them."""
        system = Kube(self.cluster.kubeconfig, SYSTEM)
        for pod in system.list("pods", "app.kubernetes.io/name=spotladder"):
            if "deletionTimestamp" in pod["metadata"]:
                continue
            path = f"/api/v1/namespaces/{SYSTEM}/pods/{pod['metadata']['name']}:8080/proxy/metrics"
            for counted in re.findall(r"spotladder_api_requests_total\{(.*)\}", system.run("get", "--raw", path)):
                labels = dict(re.findall(r'(\w+)="([^"]*)"', counted))
                self.calls.add((labels["resource"], labels["verb"], labels["code"]))

    def save_calls(self) -> None:
        """Write the calls for the tests of the removal, which run after all other test processes have ended."""
        self.listen()
        CALLS.mkdir(exist_ok=True)
        (CALLS / f"{self.cluster.name}.json").write_text(json.dumps(sorted(self.calls)))

    def world(self) -> AbstractContextManager[E2eCluster]:
        """A namespace of the cluster."""
        return world(self.cluster, self.bucket, self.reported, images.reference(self.tag))


@contextmanager
def installed(name: str, tag: str, *operators: str, stock_timeouts: bool = False) -> Iterator[E2eSite]:
    """An installation inside the block. `name` is the prefix of the cluster's name; `operators` start before the
    controller. Nodes count as lost after 10 s of silence, or with `stock_timeouts` after Kubernetes' own timeout."""
    cluster = ProvidedCluster(f"{name}{os.getpid()}")
    try:
        cluster.up(tag, {SHARED: f"pool={HEADS}"}, *(["--timeouts=stock"] if stock_timeouts else []))
        cluster.addons(*operators)
        with bucket(cluster.host) as made, steps(cluster.host) as reported:
            install(Kube(cluster.kubeconfig, SYSTEM), tag, made.endpoint)
            yield E2eSite(cluster, made, reported, tag)
    finally:
        cluster.down()


def install(kube: Kube, tag: str, endpoint: str, *values: str) -> None:
    """Install both charts as their README describes. `endpoint` is that of the jobs' bucket."""
    repository, _, version = images.reference(tag).rpartition(":")
    kube.helm("upgrade", "--install", "spotladder-crds", str(CHARTS / "spotladder-crds"), "--create-namespace")
    own = {
        "image.repository": repository,
        "image.tag": version,
        "image.pullPolicy": "Never",
        "nodeSelector.pool": HEADS,
        "checkpointSecrets": f"{{{SECRET}}}",
        "tenancy[0].namespaces": "{*}",
        "tenancy[0].endpoints": f"{{{endpoint}}}",
        "tenancy[0].clusters": "{*}",
        "tenancy[0].priorityClasses": "{*}",
        "namespaces": "{*}",
    }
    settings = [f"--set={name}={value}" for name, value in own.items()]
    kube.helm(
        "upgrade", "--install", "spotladder", str(CHARTS / "spotladder"),
        *settings, *(f"--set={value}" for value in values), "--wait", "--timeout=5m",
    )  # fmt: skip
