"""The charts in a real OCI registry on this machine, as a release publishes them."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from spotladder.clusters.client import Client
from spotladder.clusters.connection import connect
from spotladder.clusters.errors import NotFound
from tests.absent import absent
from tests.charts.helm import CHARTS, helm
from tests.kube.apiserver import ApiServer, find, missing
from tests.kube.test_chart import KINDS
from tests.kube.world import CRDS


@pytest.fixture
def registry() -> Iterator[str]:
    """The address of an empty registry."""
    program = find("registry")
    if program is None:
        absent("not found: registry (make test-registry builds it)", "registry")
    with subprocess.Popen([program, "-port", "0"], stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr
        try:
            (port,) = re.findall(r"serving on port (\d+)", process.stderr.readline())
            yield f"oci://localhost:{port}/charts"
        finally:
            process.kill()


def done(folder: Path, *arguments: str | Path) -> str:
    """What helm prints."""
    result = helm(folder, *arguments)
    assert result.returncode == 0, result.stderr
    return result.stdout + result.stderr


async def test_a_release_is_installed_upgraded_and_removed_in_a_cluster(registry: str, tmp_path: Path) -> None:
    """On a real API server, which starts no pods. The definitions outlive their chart, as the jobs must."""
    if why := missing():
        absent(why, "kube")
    for name, version in (("spotladder-crds", "0.1.0"), ("spotladder", "0.1.0"), ("spotladder", "0.1.1")):
        done(tmp_path, "package", "--version", version, "--destination", tmp_path, CHARTS / name)
        done(tmp_path, "push", tmp_path / f"{name}-{version}.tgz", registry, "--plain-http")
    namespace = "spotladder-system"
    with ApiServer() as server:
        there = ("--namespace", namespace, "--kubeconfig", server.kubeconfig)

        def released(verb: str, name: str, version: str) -> None:
            chart = (name, f"{registry}/{name}", "--version", version, "--plain-http")
            done(tmp_path, verb, *chart, *there, *(("--create-namespace",) if verb == "install" else ()))

        async def chart_of_the_controller() -> str:
            async with Client(connect(str(server.kubeconfig))) as client:
                assert await client.get(CRDS, "tieredjobs.spotladder.io")
                found = await client.get(KINDS["Deployment"], "spotladder", namespace)
                return str(found["metadata"]["labels"]["helm.sh/chart"])

        released("install", "spotladder-crds", "0.1.0")
        released("install", "spotladder", "0.1.0")
        assert await chart_of_the_controller() == "spotladder-0.1.0"
        released("upgrade", "spotladder", "0.1.1")
        assert await chart_of_the_controller() == "spotladder-0.1.1"
        for name in ("spotladder", "spotladder-crds"):
            done(tmp_path, "uninstall", name, *there)
        async with Client(connect(str(server.kubeconfig))) as client:
            assert await client.get(CRDS, "tieredjobs.spotladder.io")
            with pytest.raises(NotFound):
                await client.get(KINDS["Deployment"], "spotladder", namespace)
