"""JobSet and the kubelets, simulated on a real API server that has JobSet's CRD for the time of a test."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from spotladder.clusters.client import Client
from spotladder.clusters.connection import connect
from spotladder.clusters.transport import Object
from spotladder.resources import PODS
from spotladder.timestamps import utc_timestamp
from spotladder.workloads import names
from spotladder.workloads.jobset.records import JOBSETS
from spotladder.workloads.records import COMPLETION_INDEX, JOB_INDEX, REPLICATED_JOB, RESTART_ATTEMPT
from tests.kube.apiserver import ApiServer, tools
from tests.kube.world import CRDS, WORKERS, KubeWorld, eventually, install_kinds


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


async def jobset(kube: KubeWorld, attempt: int) -> Object:
    return await kube.client.get(JOBSETS, names.attempt_name("digits", attempt), kube.namespace)


async def acted_on(kube: KubeWorld, attempt: int) -> Object:
    """Wait for the JobSet of the attempt, and report that JobSet's controller has created its Job."""
    found: Object = await eventually(lambda: jobset(kube, attempt))
    name, body = found["metadata"]["name"], {"status": {"restarts": 0}}
    await kube.client.merge(JOBSETS, name, kube.namespace, body=body, subresource="status")
    return found


async def run(kube: KubeWorld, attempt: int) -> None:
    """Create the pods of the attempt, each on its own node, and report them as running."""
    found = await acted_on(kube, attempt)
    own = found["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["metadata"]["labels"]
    for index in range(WORKERS):
        name = f"{found['metadata']['name']}-workers-0-{index}"
        labels = {REPLICATED_JOB: "workers", JOB_INDEX: "0", COMPLETION_INDEX: str(index), RESTART_ATTEMPT: "0"}
        metadata = {"name": name, "namespace": kube.namespace, "labels": {**own, **labels}}
        spec = {
            "containers": [{"name": "train", "image": "train"}],
            "nodeName": await kube.node(f"{kube.namespace}-{name}"),
        }
        await kube.client.create(PODS, {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
        ready = [{"type": kind, "status": "True"} for kind in ("PodScheduled", "Ready")]
        await kube.set_pod(name, phase="Running", conditions=ready)


async def stop(kube: KubeWorld, attempt: int) -> None:
    """The programs of the attempt commit and stop."""
    state = {"terminated": {"exitCode": 75, "reason": "Error"}}
    container = {"name": "train", "image": "train", "imageID": "", "ready": False, "restartCount": 0, "state": state}
    for pod in await kube.pods(attempt):
        await kube.set_pod(pod["metadata"]["name"], phase="Failed", containerStatuses=[container])


async def succeed(kube: KubeWorld, attempt: int) -> None:
    """All programs of the attempt have ended well."""
    reported = {"reason": "AllJobsCompleted", "message": "jobset completed successfully"}
    condition = {
        "type": "Completed",
        "status": "True",
        "lastTransitionTime": utc_timestamp(kube.clock.now()),
        **reported,
    }
    name, body = names.attempt_name("digits", attempt), {"status": {"conditions": [condition]}}
    await kube.client.merge(JOBSETS, name, kube.namespace, body=body, subresource="status")
