"""One installation for the whole run, and a namespace of it for each test."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.absent import absent
from tests.e2e import image as images
from tests.e2e import provider
from tests.e2e.kube import Kube
from tests.e2e.site import SYSTEM, E2eSite, installed
from tests.e2e.world import E2eCluster


def pytest_sessionstart() -> None:
    """Handle SIGTERM like Ctrl-C: the clusters are removed, too."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)


LONGEST = ("test_losses", "test_clusters", "test_walk")
"""The files with the longest tests. They start first, so that two processes end at about the same time."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    own = [item for item in items if item.path.is_relative_to(images.ROOT / "tests" / "e2e")]
    for item in own:
        item.add_marker(pytest.mark.timeout(1800))
    if len(own) == len(items):
        items.sort(key=lambda item: LONGEST.index(item.path.stem) if item.path.stem in LONGEST else len(LONGEST))


@pytest.fixture(scope="session")
def tag() -> str:
    """The image of this checkout."""
    if why := provider.missing():
        absent(why, "e2e")
    return images.build()


@pytest.fixture(scope="session")
def site(tag: str) -> Iterator[E2eSite]:
    """The cluster that most tests share, with the controller in it."""
    with installed("e2e", tag, "kuberay", "jobset") as made:
        yield made
        made.save_calls()


@pytest.fixture
def e2e(site: E2eSite) -> Iterator[E2eCluster]:
    """A namespace in the shared cluster."""
    with site.world() as made:
        yield made
    site.listen()


@pytest.fixture
def alone(e2e: E2eCluster, site: E2eSite) -> Iterator[E2eCluster]:
    """Scale the installed controller down inside the block."""
    site.listen()
    system = Kube(e2e.cluster.kubeconfig, SYSTEM)
    system.run("scale", "deployment/spotladder", "--replicas=0")
    system.run("wait", "--for=delete", "pod", "-l", "app.kubernetes.io/name=spotladder", "--timeout=60s")
    try:
        yield e2e
    finally:
        system.run("scale", "deployment/spotladder", "--replicas=2")
        system.run("rollout", "status", "deployment/spotladder", "--timeout=120s")


@contextmanager
def controller(
    e2e: E2eCluster, folder: Path, *, version: Mapping[str, str] | None = None, **more: Any
) -> Iterator[None]:
    """A controller process on this machine, with more settings, or of another version."""
    config = folder / "controller.yaml"
    settings = {
        "namespaces": [e2e.namespace],
        "leaseNamespace": e2e.namespace,
        "listen": "127.0.0.1:0",
        "tenancy": e2e.bucket.tenancy(e2e.namespace),
    }
    config.write_text(json.dumps({**settings, **more}))
    command = [sys.executable, "-m", "spotladder.cli.main", "controller", "--config", str(config)]
    with (folder / "controller.log").open("ab") as log:
        process = subprocess.Popen(
            [*command, "--kubeconfig", str(e2e.cluster.kubeconfig)],
            env={**os.environ, **(version or {})},
            stdout=log,
            stderr=log,
        )
    try:
        yield
    finally:
        process.kill()
        process.wait()
