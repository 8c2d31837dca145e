"""A cluster for the whole run: KubeRay, JobSet, and the controller as users install it."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass

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
            item.add_marker(pytest.mark.timeout(900))


@dataclass(frozen=True)
class Site:
    """A cluster, its bucket, and the image that its nodes have."""

    cluster: Cluster
    bucket: Bucket
    told: Steps
    tag: str

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
        *settings, *(f"--set={value}" for value in values), "--wait", "--timeout=2m",
    )  # fmt: skip
