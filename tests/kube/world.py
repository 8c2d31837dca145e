"""A namespace of the API server in which the test simulates everything around the controller: KubeRay, kubelets, nodes,
the user, the program that commits, and the clock."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from spotladder.clusters.client import Client
from spotladder.clusters.connection import connect
from spotladder.clusters.errors import Conflict, NotFound
from spotladder.clusters.transport import Object
from spotladder.operator.leader import LeaderRuntime
from spotladder.operator.reporting.metrics import Metrics
from spotladder.operator.settings import Settings
from spotladder.resources import CAPACITYTIERS, NODES, PODS, TIEREDJOBS, APIResource
from spotladder.timestamps import utc_microseconds, utc_timestamp
from spotladder.workloads import names
from spotladder.workloads.rayjob.records import RAYCLUSTERS, RAYJOBS
from spotladder.workloads.records import RAY_GROUP
from tests.clusters.stepped_clock import SteppedClock
from tests.kube.apiserver import ROOT, ApiServer, tools
from tests.kube.bucket import MemoryBucket

CRDS = APIResource(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False
)
NAMESPACES = APIResource("", "v1", "namespaces", "Namespace", namespaced=False)
EVENTS = APIResource("events.k8s.io", "v1", "events", "Event")
WORKERS = 2
EVERYTHING: list[dict[str, Any]] = [
    {"namespaces": ["*"], "uris": ["s3://*", "file:///"], "clusters": ["*"], "priorityClasses": ["*"]}
]
"""The rules of most tests."""
_numbers = itertools.count(1)


def crd_files(*, ours: bool = True) -> list[Path]:
    mine = sorted((ROOT / "charts" / "spotladder-crds" / "templates").glob("*.yaml"))
    theirs = [tools() / "crds" / "kuberay" / f"ray.io_{kind}.yaml" for kind in ("rayjobs", "rayclusters")]
    return [*(mine if ours else []), *theirs]


async def install_kinds(server: ApiServer, files: list[Path] | None = None) -> None:
    """Create the CRDs, and wait until they are served."""
    async with Client(connect(str(server.kubeconfig))) as client:
        for file in files or crd_files():
            body = _crd(file)
            await client.apply(CRDS, body, force=True)

            async def served(name: str = body["metadata"]["name"]) -> bool:
                found = await client.get(CRDS, name)
                conditions = (found.get("status") or {}).get("conditions") or []
                return any(entry["type"] == "Established" and entry["status"] == "True" for entry in conditions)

            await eventually(served)


@cache
def _crd(file: Path) -> Object:
    """The CRD of a file. That of RayJob takes seconds to read, and each API server needs it."""
    found: Object = YAML(typ="safe", pure=True).load(file.read_text(encoding="utf-8"))
    return found


async def eventually(ask: Callable[[], Awaitable[Any]], limit: float = 120.0) -> Any:
    """Poll `ask` until its result is true, and return the result. Fails with the last result or error after `limit`
    seconds. A long wait polls less often: otherwise the requests take the time of the controller that is waited for."""
    end, pause = time.monotonic() + limit, 0.02
    last: object = None
    while time.monotonic() < end:
        try:
            last = await ask()
        except (NotFound, AssertionError) as error:
            last = error
        else:
            if last:
                return last
        await asyncio.sleep(pause)
        pause = min(1.2 * pause, 0.1)
    raise AssertionError(f"not true within {limit:g} s; last result: {last!r}")


class KubeWorld:
    """The namespace of one test. Methods below the heading of a component act as this component."""

    def __init__(self, client: Client, server: ApiServer, namespace: str) -> None:
        self.client = client
        self.server = server
        self.namespace = namespace
        self.clock = SteppedClock(time.time())
        self.bucket = MemoryBucket()
        self.metrics = Metrics(self.clock)
        self.runtime: LeaderRuntime | None = None
        self._nodes: list[str] = []
        self._tiers: list[str] = []

    # --- the controller ---------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def operator(self, **settings: Any) -> AsyncIterator[LeaderRuntime]:
        """Run a controller that leads and has synced its caches."""
        client = settings.pop("client", None) or self.client
        namespaces = settings.pop("namespaces_", (self.namespace,))
        settings.setdefault("tenancy", EVERYTHING)
        runtime = LeaderRuntime(
            client=client,
            sources=settings.pop("sources", {}),
            settings=Settings(namespaces=namespaces, settle=10.0, **settings),
            metrics=self.metrics,
            clock=self.clock,
            identity="operator-under-test",
            open_log=self.bucket.open,
        )
        running = asyncio.create_task(runtime.run())
        ticking = asyncio.create_task(self._tick())
        try:
            await asyncio.wait(
                {running, asyncio.create_task(_all_synced(runtime))}, return_when=asyncio.FIRST_COMPLETED
            )
            if running.done():
                running.result()
            self.runtime = runtime
            yield runtime
            if running.done():
                running.result()
        finally:
            self.runtime = None
            running.cancel()
            ticking.cancel()
            await asyncio.gather(running, ticking, return_exceptions=True)

    async def _tick(self) -> None:
        """Advance the clock in real time too, because callers wait when the API server asks for it (Retry-After)."""
        while True:
            await asyncio.sleep(0.05)
            await self.clock.advance(0.05)

    async def idle(self) -> None:
        """Wait until a controller runs and its workqueue is empty."""

        async def empty() -> bool:
            runtime = self.runtime
            if runtime is None or runtime.queue.busy:
                return False
            await asyncio.sleep(0.05)
            return self.runtime is runtime and not runtime.queue.busy

        await eventually(empty)

    async def pass_time(self, seconds: float) -> None:
        """Advance the controller's clock, then wait until the workqueue is empty."""
        await self.clock.advance(seconds)
        await self.idle()

    # --- the user ---------------------------------------------------------------------------------------------------

    async def capacity(self, name: str, **spec: Any) -> str:
        """Create a CapacityTier. CapacityTiers have no namespace, so the name gets a prefix of this test."""
        full = f"{self.namespace}-{name}"
        body = {
            "apiVersion": CAPACITYTIERS.api_version,
            "kind": "CapacityTier",
            "metadata": {"name": full},
            "spec": {"capacityType": "spot", "price": {"perNodeHour": "1", "onDemandPerNodeHour": "4"}, **spec},
        }
        await self.client.create(CAPACITYTIERS, body)
        self._tiers.append(full)
        return full

    async def submit(self, name: str = "digits", *, tiers: list[dict[str, Any]] | None = None, **spec: Any) -> Object:
        """Create a TieredJob on spot-a, spot-b and on-demand, with two workers."""
        if tiers is None:
            limits = {"maxFailures": 1, "provisionTimeout": "10m"}
            names_ = ("spot-a", "spot-b", "on-demand")
            tiers = [{"name": tier, "capacityTier": f"{self.namespace}-{tier}", **limits} for tier in names_]
        body = {
            "apiVersion": TIEREDJOBS.api_version,
            "kind": "TieredJob",
            "metadata": {"name": name, "namespace": self.namespace},
            "spec": {
                "tiers": tiers,
                "checkpoints": {"uri": "s3://bucket/prefix", "interval": "30s"},
                "workload": {"ray": {"template": {"spec": ray_spec()}}},
                **spec,
            },
        }
        return await self.client.create(TIEREDJOBS, body)

    async def job(self, name: str = "digits") -> Object:
        return await self.client.get(TIEREDJOBS, name, self.namespace)

    async def status(self, name: str = "digits") -> Object:
        return (await self.job(name)).get("status") or {}

    async def patch(self, name: str = "digits", **spec: Any) -> None:
        await self.client.merge(TIEREDJOBS, name, self.namespace, body={"spec": spec})

    async def delete(self, name: str = "digits") -> None:
        await self.client.delete(TIEREDJOBS, name, self.namespace)

    async def is_gone(self, name: str = "digits") -> bool:
        """Whether the job exists no longer."""
        try:
            await self.job(name)
        except NotFound:
            return True
        return False

    async def condition(self, kind: str, name: str = "digits") -> Object:
        conditions = (await self.status(name)).get("conditions") or []
        return next((entry for entry in conditions if entry["type"] == kind), {})

    async def events(self, name: str = "digits") -> list[str]:
        """The reasons of the job's Events. A controller that runs writes its queued Events first."""
        if self.runtime:
            await self.runtime._events._pending.join()
        return [
            event["reason"]
            async for page in self.client.pages(EVENTS, self.namespace)
            for event in page.items
            if event["regarding"]["name"] == name
        ]

    async def is_on(self, tier: str, attempt: int, name: str = "digits") -> bool:
        status = await self.status(name)
        return (status.get("tier"), status.get("attempt")) == (tier, attempt)

    async def has_phase(self, phase: str, name: str = "digits") -> bool:
        return (await self.status(name)).get("phase") == phase

    async def make_namespace(self) -> None:
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}}
        await self.client.create(NAMESPACES, body)

    # --- KubeRay and the kubelets -----------------------------------------------------------------------------------

    async def rayjob(self, attempt: int, name: str = "digits") -> Object:
        return await self.client.get(RAYJOBS, names.attempt_name(name, attempt), self.namespace)

    async def rayjobs(self) -> list[str]:
        return sorted([
            found["metadata"]["name"]
            async for page in self.client.pages(RAYJOBS, self.namespace)
            for found in page.items
            if "deletionTimestamp" not in found["metadata"]
        ])  # fmt: skip

    async def pods(self, attempt: int, name: str = "digits") -> list[Object]:
        selector = f"{names.JOB}={name},{names.ATTEMPT}={attempt}"
        return [pod async for page in self.client.pages(PODS, self.namespace, labels=selector) for pod in page.items]

    async def run(self, attempt: int, name: str = "digits") -> None:
        """Create the pods of the attempt, each on its own node, and report them and the RayJob as running."""
        for role, index in (("head", 0), *(("worker", index) for index in range(WORKERS))):
            await self.pod(attempt, role, index, name=name)
        await self.report(attempt, name, jobDeploymentStatus="Running", jobStatus="RUNNING")

    async def program_starts(self, attempt: int) -> None:
        """The program writes its start entry, and the controller has read it."""
        self.bucket.start(self.namespace, "digits", attempt)
        if self.runtime is not None:
            self.runtime._logs.read_now((self.namespace, "digits"))
            await self.idle()

    async def begin(self, attempt: int, tier: str) -> None:
        """Wait until the job launches the attempt on that tier, and run it."""
        await eventually(lambda: self.is_on(tier, attempt))
        await self.run(attempt)
        await eventually(lambda: self.has_phase("Running"))

    async def fall_back(self) -> None:
        """Let attempt 1 lose two workers, more than its tier tolerates, and run attempt 2 on spot-b."""
        await self.kill_worker(1)
        await self.kill_worker(1)
        await eventually(lambda: self.is_on("spot-b", 2))
        await self.collect(1)
        await self.begin(2, "spot-b")

    async def succeed(self, attempt: int) -> None:
        """End the program of the attempt with exit code 0, and wait until the job has succeeded."""
        await self.report(attempt, jobDeploymentStatus="Complete", jobStatus="SUCCEEDED")
        await eventually(lambda: self.has_phase("Succeeded"))

    async def pod(self, attempt: int, role: str, index: int, *, name: str = "digits", run: bool = True) -> str:
        rayjob = await eventually(lambda: self.rayjob(attempt, name))
        labels = {key: value for key, value in rayjob["metadata"]["labels"].items() if key.startswith("spotladder.io/")}
        labels |= {names.MANAGED_BY: names.MANAGER, names.ROLE: role}
        if role == "worker":
            labels[RAY_GROUP] = "workers"
        pod = f"{rayjob['metadata']['name']}-{role}-{index}-{next(_numbers)}"
        spec: Object = {"containers": [{"name": "ray", "image": "ray"}]}
        if run:
            spec["nodeName"] = await self.node(f"{pod}-node"[-60:].strip("-"))
        metadata = {"name": pod, "namespace": self.namespace, "labels": labels}
        await self.client.create(PODS, {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
        conditions = [{"type": "PodScheduled", "status": "True"}]
        if run:
            await self.set_pod(pod, phase="Running", conditions=[*conditions, {"type": "Ready", "status": "True"}])
        else:
            await self.set_pod(pod, conditions=conditions)
        return pod

    async def raycluster(self, attempt: int) -> str:
        """Create the RayCluster of the RayJob, with its spec and labels. Returns the name."""
        rayjob = await self.rayjob(attempt)
        name = f"{rayjob['metadata']['name']}-xk2lp"
        metadata = {"name": name, "namespace": self.namespace, "labels": rayjob["metadata"]["labels"]}
        body = {"apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": metadata}
        await self.client.create(RAYCLUSTERS, {**body, "spec": rayjob["spec"]["rayClusterSpec"]})
        await self.report(attempt, rayClusterName=name)
        return name

    async def worker_group(self, attempt: int) -> Object:
        """The worker group of the attempt's RayCluster."""
        name = f"{names.attempt_name('digits', attempt)}-xk2lp"
        cluster = await self.client.get(RAYCLUSTERS, name, self.namespace)
        found: Object = cluster["spec"]["workerGroupSpecs"][0]
        return found

    async def announce(self, attempt: int) -> str:
        """Taint the node of a worker as disrupted. Returns the worker's name."""
        pods = await self.pods(attempt)
        pod = next(pod for pod in pods if pod["metadata"]["labels"][names.ROLE] == "worker")
        taint = {"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}
        await self.set_node(pod["spec"]["nodeName"], ready="True", taints=[taint])
        return str(pod["metadata"]["name"])

    async def set_pod(self, pod: str, **status: Any) -> None:
        await self.client.merge(PODS, pod, self.namespace, body={"status": status}, subresource="status")

    async def report(self, attempt: int, name: str = "digits", **status: Any) -> None:
        """Write the RayJob's status."""
        rayjob = names.attempt_name(name, attempt)
        await self.client.merge(RAYJOBS, rayjob, self.namespace, body={"status": status}, subresource="status")

    async def node(self, name: str) -> str:
        await self.client.create(NODES, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}})
        self._nodes.append(name)
        await self.set_node(name, ready="True")
        return name

    async def set_node(self, name: str, *, ready: str, taints: list[Object] | None = None) -> None:
        reason = "KubeletReady" if ready == "True" else "NodeStatusUnknown"
        condition = {"type": "Ready", "status": ready, "reason": reason}
        await self.client.merge(NODES, name, body={"status": {"conditions": [condition]}}, subresource="status")
        if taints is not None:
            await self.client.merge(NODES, name, body={"spec": {"taints": taints}})

    async def record_new_event(self, reason: str, message: str, *, about: Object, source: str = "karpenter") -> None:
        """Record an Event as client-go's newer recorder does: its source is empty."""
        metadata = about["metadata"]
        named = {"name": metadata["name"], "namespace": metadata["namespace"]}
        event = {
            "apiVersion": EVENTS.api_version,
            "kind": "Event",
            "metadata": {**named, "name": f"{metadata['name']}.{next(_numbers):x}"},
            "regarding": {"kind": about["kind"], **named, "uid": metadata["uid"]},
            "reason": reason, "note": message, "type": "Warning", "action": "Provisioning",
            "reportingController": source, "reportingInstance": f"{source}-0",
            "eventTime": utc_microseconds(time.time()),
        }  # fmt: skip
        await self.client.create(EVENTS, event)

    async def record_event(self, reason: str, message: str, *, about: Object, source: str = "karpenter") -> None:
        """Record an Event as client-go's older recorder does."""
        metadata = about["metadata"]
        namespace = metadata.get("namespace", "default")
        reference = {"kind": about["kind"], "name": metadata["name"], "namespace": metadata.get("namespace", "")}
        at = utc_timestamp(time.time())
        event = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": f"{metadata['name']}.{next(_numbers):x}", "namespace": namespace},
            "involvedObject": {**reference, "uid": metadata.get("uid", "")},
            "reason": reason, "message": message, "type": "Warning", "source": {"component": source},
            "firstTimestamp": at, "lastTimestamp": at, "count": 1,
        }  # fmt: skip
        await self.client.create(APIResource("", "v1", "events", "Event"), event)

    async def waiting(self, attempt: int, name: str = "digits") -> list[Object]:
        """Create the pods of the attempt, with unschedulable workers. Returns the workers."""
        await eventually(lambda: self.rayjob(attempt, name))
        await self.pod(attempt, "head", 0, name=name)
        condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes"}
        for index in range(WORKERS):
            pod = await self.pod(attempt, "worker", index, name=name, run=False)
            await self.set_pod(pod, conditions=[condition])
        return [pod for pod in await self.pods(attempt, name) if pod["metadata"]["labels"][names.ROLE] == "worker"]

    async def kill_worker(self, attempt: int, name: str = "digits") -> str:
        """Delete a worker and its node. Returns the worker's name."""
        worker = next(
            pod for pod in await self.pods(attempt, name) if pod["metadata"]["labels"][names.ROLE] == "worker"
        )
        await self.client.delete(PODS, worker["metadata"]["name"], self.namespace, grace=0)
        await self.client.delete(NODES, worker["spec"]["nodeName"])
        return str(worker["metadata"]["name"])

    async def collect(self, attempt: int, name: str = "digits") -> None:
        """Delete the pods of a deleted RayJob, as KubeRay and the garbage collector do."""
        for pod in await self.pods(attempt, name):
            await self.client.delete(PODS, pod["metadata"]["name"], self.namespace, grace=0)

    async def clean(self) -> None:
        await quietly(self._remove_jobs())
        for kind in (RAYJOBS, PODS):
            await quietly(self.client.delete_all(kind, self.namespace, labels=""))
        for node in self._nodes:
            await quietly(self.client.delete(NODES, node))
        for tier in self._tiers:
            await quietly(self.client.delete(CAPACITYTIERS, tier))

    async def _remove_jobs(self) -> None:
        async for page in self.client.pages(TIEREDJOBS, self.namespace):
            for job in page.items:
                body: Object = {"metadata": {"finalizers": []}}
                await quietly(self.client.merge(TIEREDJOBS, job["metadata"]["name"], self.namespace, body=body))
                await quietly(self.client.delete(TIEREDJOBS, job["metadata"]["name"], self.namespace))


async def quietly(work: Awaitable[Any]) -> None:
    try:
        await work
    except (NotFound, Conflict):
        return


async def _all_synced(runtime: LeaderRuntime) -> None:
    await asyncio.gather(*(cache.wait_for_sync() for cache in runtime.caches))


def ray_spec(**more: Any) -> Object:
    pod = {"spec": {"containers": [{"name": "ray", "image": "rayproject/ray:2.58.1"}]}}
    return {
        "entrypoint": "python train.py",
        "rayClusterSpec": {
            "headGroupSpec": {"rayStartParams": {}, "template": pod},
            "workerGroupSpecs": [
                {"groupName": "workers", "replicas": WORKERS, "rayStartParams": {}, "template": pod},
            ],
        },
        **more,
    }


@asynccontextmanager
async def world(
    server: ApiServer, *, tiers: tuple[str, ...] = ("spot-a", "spot-b", "on-demand")
) -> AsyncIterator[KubeWorld]:
    """A new namespace with CapacityTiers, which are deleted afterwards."""
    async with Client(connect(str(server.kubeconfig))) as client:
        namespace = f"t{next(_numbers)}-{int(time.time() * 1000) % 1_000_000}"
        made = KubeWorld(client, server, namespace)
        await made.make_namespace()
        try:
            for tier in tiers:
                await made.capacity(tier, capacityType="on-demand" if tier == "on-demand" else "spot")
            yield made
        finally:
            await made.clean()
