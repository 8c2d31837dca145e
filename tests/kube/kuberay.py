"""Simulates KubeRay, kubelets and programs of many jobs: a RayJob runs at once and is removed at once."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from spotladder.checkpoints.log import CommitLog
from spotladder.checkpoints.open_store import open_store
from spotladder.clusters.client import Client
from spotladder.clusters.errors import ClusterUnreachable
from spotladder.clusters.transport import Object
from spotladder.resources import PODS
from spotladder.workloads import names
from spotladder.workloads.rayjob.records import RAYCLUSTERS, RAYJOBS
from tests.kube.world import quietly

AT_ONCE = 24
"""Maximum number of concurrent calls."""

NEVER_ENDS = 3600.0


class KubeRay:
    """Watches the RayJobs of a namespace. `made` is when each was first observed, `gone` has those that were deleted.

    While `capacity` is cleared, new attempts get no pods, as when new nodes take long to start.
    """

    def __init__(self, client: Client, namespace: str, nodes: list[str], checkpoints: Path) -> None:
        self.made: dict[str, float] = {}
        self.gone: set[str] = set()
        self.attempt: dict[str, str] = {}
        self.capacity = asyncio.Event()
        self.capacity.set()
        self._client = client
        self._namespace = namespace
        self._nodes = itertools.cycle(nodes)
        self._store = open_store(f"file://{checkpoints}")
        self._turn = asyncio.Semaphore(AT_ONCE)
        self._workers: dict[str, list[str]] = {}

    async def run(self) -> None:
        """Run until cancelled. Start it before there are any RayJobs."""
        async with asyncio.TaskGroup() as tasks:
            version = [page.version async for page in self._client.pages(RAYJOBS, self._namespace)][-1]
            watch = self._client.watch(RAYJOBS, self._namespace, version=version, seconds=NEVER_ENDS)
            async for event in watch:
                at, name = time.monotonic(), event.object["metadata"]["name"] if event.kind != "BOOKMARK" else ""
                if event.kind == "ADDED":
                    self.made[name] = at
                    self.attempt[event.object["metadata"]["labels"][names.JOB]] = name
                    tasks.create_task(self._start(event.object))
                elif event.kind == "DELETED":
                    self.gone.add(name)
                    tasks.create_task(self._end(name))

    async def evict(self, job: str) -> float:
        """Reclaim the node of a worker of the job's attempt. Returns the time."""
        rayjob = self.attempt[job]
        ended = {"exitCode": 137, "reason": "Error"}
        status = {
            "phase": "Failed",
            "conditions": [{"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}],
            "containerStatuses": [_container({"terminated": ended})],
        }
        at = time.monotonic()
        await self._client.merge(
            PODS, self._workers[rayjob][0], self._namespace, body={"status": status}, subresource="status"
        )
        return at

    # --- a RayJob ---------------------------------------------------------------------------------------------------

    async def _start(self, rayjob: Object) -> None:
        metadata, cluster = rayjob["metadata"], rayjob["spec"]["rayClusterSpec"]
        name = metadata["name"]
        await self._report(name, jobDeploymentStatus="Initializing")
        await self.capacity.wait()
        if name in self.gone:
            return
        body = {"apiVersion": RAYCLUSTERS.api_version, "kind": RAYCLUSTERS.kind, "spec": cluster}
        await self._create(RAYCLUSTERS, body, name, metadata["labels"])
        head = cluster["headGroupSpec"]["template"]
        groups = [(group["template"], group.get("replicas", 1)) for group in cluster["workerGroupSpecs"]]
        workers = [(template, index) for template, number in groups for index in range(number)]
        self._workers[name] = [f"{name}-worker-{index}" for _template, index in workers]
        await asyncio.gather(
            self._pod(f"{name}-head", head),
            *(self._pod(f"{name}-worker-{index}", template) for template, index in workers),
        )
        await self._report(name, jobDeploymentStatus="Running", jobStatus="RUNNING", rayClusterName=name)
        await asyncio.to_thread(self._commit, metadata["labels"])

    async def _pod(self, name: str, template: Object) -> None:
        body = {"apiVersion": "v1", "kind": "Pod", "spec": {**template["spec"], "nodeName": next(self._nodes)}}
        await self._create(PODS, body, name, template["metadata"]["labels"])
        status = {
            "phase": "Running",
            "conditions": [{"type": kind, "status": "True"} for kind in ("PodScheduled", "Initialized", "Ready")],
            "containerStatuses": [_container({"running": {}})],
        }
        await self._do(
            lambda: self._client.merge(PODS, name, self._namespace, body={"status": status}, subresource="status")
        )

    async def _create(self, kind: Any, body: Object, name: str, labels: dict[str, str]) -> None:
        metadata = {"name": name, "namespace": self._namespace, "labels": labels}
        await self._do(lambda: self._client.create(kind, {**body, "metadata": metadata}))

    async def _report(self, name: str, **status: str) -> None:
        await self._do(
            lambda: self._client.merge(RAYJOBS, name, self._namespace, body={"status": status}, subresource="status")
        )

    def _commit(self, labels: dict[str, str]) -> None:
        """Start the program, which commits once."""
        job, attempt = labels[names.JOB], int(labels[names.ATTEMPT])
        log = CommitLog(self._store, job, namespace=self._namespace, uid=labels[names.JOB_UID])
        log.start(attempt, "").commit(10 * attempt, [], total=1000)

    async def _end(self, name: str) -> None:
        """Do the work of KubeRay, the garbage collector and the kubelets, without their delays."""
        await self._do(lambda: self._client.delete(RAYCLUSTERS, name, self._namespace))
        pods = [*self._workers.pop(name, ()), *([f"{name}-head"] if name in self.made else ())]
        await asyncio.gather(*(self._remove(pod) for pod in pods))

    async def _remove(self, pod: str) -> None:
        await self._do(lambda: self._client.delete(PODS, pod, self._namespace, grace=0))

    async def _do(self, call: Callable[[], Awaitable[Any]]) -> None:
        """Retry until the API server answers: it may be overloaded."""
        async with self._turn:
            while True:
                try:
                    return await quietly(call())
                except ClusterUnreachable:
                    await asyncio.sleep(1.0)


def _container(state: Object) -> Object:
    return {
        "name": "ray", "image": "ray", "imageID": "", "ready": "running" in state, "restartCount": 0, "state": state,
    }  # fmt: skip
