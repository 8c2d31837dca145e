"""JobSet's CRD on a real API server for the time of a test."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from spotladder.clusters.client import Client
from spotladder.clusters.connection import connect
from spotladder.workloads.jobset.records import JOBSETS
from tests.kube.apiserver import ApiServer, tools
from tests.kube.world import CRDS, eventually, install_kinds


@asynccontextmanager
async def jobset_installed(server: ApiServer) -> AsyncIterator[None]:
    """Install the CRD; remove it afterwards, since other tests expect that JobSet is absent."""
    (crd,) = (tools() / "crds" / "jobset").glob("*jobsets*.yaml")
    await install_kinds(server, [crd])
    try:
        yield
    finally:
        async with Client(connect(str(server.kubeconfig))) as client:
            await client.delete(CRDS, "jobsets.jobset.x-k8s.io")

            async def gone() -> bool:
                return not await client.exists(JOBSETS)

            await eventually(gone)
