"""Many jobs in a namespace: the controller as a process with its default settings, on an API server without nodes.

KubeRay and kubelets are simulated (tests/kube/kuberay.py). Each job has a head and four workers; each Node object has
five pods. Pods run as soon as they are created, and deleted objects are gone at once, so a fallback never waits for the
old attempt. The commit logs are on the local disk. The time of a loss is the time at which the pod's status is written.
"""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample
from pydantic_core import from_json

from spotladder.api.stored import JobRecord
from spotladder.clusters.cache import Cache
from spotladder.clusters.client import Client
from spotladder.clusters.clock import SystemClock
from spotladder.clusters.connection import connect
from spotladder.clusters.transport import Object
from spotladder.resources import CAPACITYTIERS, NODES, TIEREDJOBS
from tests.bench import rows
from tests.bench.rows import Row
from tests.kube.apiserver import ApiServer, find, missing, processor_time
from tests.kube.kuberay import AT_ONCE, KubeRay
from tests.kube.process import Process
from tests.kube.world import NAMESPACES, eventually, install_kinds, ray_spec

WORKERS = 4
TIERS = ("spot-a", "spot-b", "on-demand")
NAMESPACE = "crowd"

LIMIT = 300.0
PORTION = 20
"""The benchmark fails if fewer than `PORTION` further jobs reach their phase within `LIMIT` seconds."""


class Crowd:
    """A namespace with many jobs, the simulated KubeRay, and one controller at a time."""

    def __init__(self, client: Client, server: ApiServer, namespace: str, folder: Path) -> None:
        self.client, self.server, self.namespace, self.folder = client, server, namespace, folder
        self.checkpoints = folder / "checkpoints"
        self.nodes: list[str] = []
        self.jobs = Cache(client, TIEREDJOBS, JobRecord.of, clock=SystemClock(), namespace=namespace)
        self.kuberay: KubeRay
        self.playing: list[asyncio.Task[None]] = []
        self._started: Process | None = None

    async def submit(self, names: Iterable[str]) -> None:
        """Create the jobs and wait until they run."""
        names = list(names)
        began, turn = time.monotonic(), asyncio.Semaphore(AT_ONCE)

        async def one(name: str) -> None:
            async with turn:
                await self.client.create(TIEREDJOBS, self._job(name))

        await asyncio.gather(*map(one, names))
        await self.run(names)
        if len(names) > 1:
            say(f"{len(names)} more jobs run after {time.monotonic() - began:.0f} s")

    async def run(self, names: Iterable[str]) -> None:
        """Wait until these jobs run."""
        left = set(names)
        enough = 0

        async def enough_run() -> bool:
            self._still_played()
            for name in list(left):
                job = self.jobs.get(name, self.namespace)
                if job is not None and job.phase == "Running":
                    left.discard(name)
            return len(left) <= enough

        while left:
            enough = max(0, len(left) - PORTION)
            await eventually(enough_run, limit=LIMIT)

    async def evict(
        self, names: Sequence[str], *, every: float = 0.0, then: Callable[[str], Awaitable[None]] | None = None
    ) -> list[float]:
        """Evict a worker of each job. Returns the seconds until the next attempt exists, once the old ones are deleted.
        `then` performs the fallback if no controller runs."""
        lost: dict[str, float] = {}
        old = {name: self.kuberay.attempt[name] for name in names}
        self.kuberay.capacity.clear()

        async def one(name: str) -> None:
            lost[name] = await self.kuberay.evict(name)
            if then:
                await then(name)

        async with asyncio.TaskGroup() as tasks:
            began = time.monotonic()
            for number, name in enumerate(names):
                await asyncio.sleep(began + number * every - time.monotonic())
                tasks.create_task(one(name))

        async def all_moved() -> bool:
            self._still_played()
            return all(self.kuberay.attempt[name] != old[name] and old[name] in self.kuberay.gone for name in names)

        await eventually(all_moved, limit=LIMIT)
        self.kuberay.capacity.set()
        return [self.kuberay.made[self.kuberay.attempt[name]] - at for name, at in lost.items()]

    def _still_played(self) -> None:
        for task in self.playing:
            if task.done():
                task.result()

    def _job(self, name: str) -> Object:
        spec = ray_spec()
        spec["rayClusterSpec"]["workerGroupSpecs"][0]["replicas"] = WORKERS
        tiers = [
            {"name": tier, "capacityTier": f"{self.namespace}-{tier}", "maxFailures": 0, "provisionTimeout": "10m"}
            for tier in TIERS
        ]
        return {
            "apiVersion": TIEREDJOBS.api_version,
            "kind": TIEREDJOBS.kind,
            "metadata": {"name": name, "namespace": self.namespace},
            "spec": {
                "tiers": tiers,
                "checkpoints": {"uri": f"file://{self.checkpoints}"},
                "workload": {"ray": {"template": {"spec": spec}}},
            },
        }

    async def report_commits(self) -> None:
        """Wait until the status of each job that runs has the commit of its program."""

        async def reported() -> bool:
            running = (job for job in self.jobs.all() if job.phase == "Running")
            return all(from_json(job.status)["progress"]["step"] for job in running)

        await eventually(reported, limit=LIMIT)

    async def end_simulation(self) -> None:
        """Stop the simulation: pods and RayJobs no longer change."""
        for task in self.playing:
            task.cancel()
        await asyncio.gather(*self.playing, return_exceptions=True)

    # --- the controller ---------------------------------------------------------------------------------------------

    @property
    def process(self) -> Process:
        """The controller that was started last."""
        assert self._started is not None, "no controller was started"
        return self._started

    async def start(self) -> float:
        """Start a controller. Returns the seconds until it is ready and leads."""
        config = self.folder / "controller.yaml"
        access = [{"namespaces": ["*"], "uris": [f"file://{self.checkpoints}"]}]
        settings = {"leaseNamespace": self.namespace, "listen": "127.0.0.1:0", "tenancy": access}
        config.write_text(json.dumps(settings), encoding="utf-8")
        began = time.monotonic()
        self._started = await Process.start(self.server, config)

        async def leads() -> bool:
            return await self.process.get("/readyz") == (200, "leading\n")

        await eventually(leads, limit=LIMIT)
        return time.monotonic() - began

    async def stop(self) -> None:
        """Stop the controller."""
        self.process.send(signal.SIGTERM)
        await self.process.ended()
        await self.close()

    async def close(self) -> None:
        """Kill the controller if it runs."""
        if self._started:
            await self._started.close()

    async def reconciled(self, jobs: int) -> float:
        """The time at which the controller has reconciled this many jobs since its start."""

        async def enough() -> bool:
            await asyncio.sleep(0.3)
            return await self.reconciles() >= jobs

        await eventually(enough, limit=LIMIT)
        return time.monotonic()

    async def _samples(self, name: str) -> list[Sample]:
        """One of the controller's metrics."""
        families = text_string_to_metric_families((await self.process.get("/metrics"))[1])
        return [sample for family in families for sample in family.samples if sample.name == name]

    async def calls_by_target(self) -> Counter[str]:
        """API calls so far by verb and resource, without those for the lease."""
        found = Counter[str]()
        for sample in await self._samples("spotladder_api_requests_total"):
            if sample.labels["resource"] != "leases":
                found[f"{sample.labels['verb']} {sample.labels['resource']}"] += int(sample.value)
        return found

    async def reconciles(self) -> float:
        return sum(sample.value for sample in await self._samples("spotladder_reconcile_seconds_count"))

    def memory(self) -> float:
        """Resident memory of the controller in MB."""
        status = Path(f"/proc/{self.process.pid}/status").read_text(encoding="utf-8")
        return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS")) * 1024 / 1e6

    def processor_time(self) -> float:
        """CPU seconds that the controller has used."""
        return processor_time(self.process.pid)


@asynccontextmanager
async def new_crowd(server: ApiServer, folder: Path, nodes: int) -> AsyncIterator[Crowd]:
    """Set up the namespace, the capacity, the nodes and the simulation. Objects are not deleted: the API server ends
    with the benchmark."""
    async with Client(connect(str(server.kubeconfig))) as client:
        crowd = Crowd(client, server, NAMESPACE, folder)
        await client.create(NAMESPACES, _named("v1", "Namespace", crowd.namespace))
        for tier in TIERS:
            capacity = _named(CAPACITYTIERS.api_version, CAPACITYTIERS.kind, f"{crowd.namespace}-{tier}")
            kind = "on-demand" if tier == "on-demand" else "spot"
            price = {"perNodeHour": "1", "onDemandPerNodeHour": "4"}
            await client.create(CAPACITYTIERS, {**capacity, "spec": {"capacityType": kind, "price": price}})
        await _make_nodes(crowd, nodes)
        crowd.kuberay = KubeRay(client, crowd.namespace, crowd.nodes, crowd.checkpoints)
        crowd.playing = [asyncio.create_task(crowd.kuberay.run()), asyncio.create_task(crowd.jobs.run())]
        try:
            yield crowd
        finally:
            await crowd.end_simulation()
            await crowd.close()


async def _make_nodes(crowd: Crowd, number: int) -> None:
    turn = asyncio.Semaphore(AT_ONCE)

    async def one(name: str) -> None:
        ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
        async with turn:
            await crowd.client.create(NODES, {**_named("v1", "Node", name), "status": {"conditions": [ready]}})

    crowd.nodes = [f"{crowd.namespace}-{index:04d}" for index in range(number)]
    await asyncio.gather(*map(one, crowd.nodes))


def _named(version: str, kind: str, name: str) -> Object:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name}}


def job_name(number: int) -> str:
    return f"job-{number:04d}"


def listed(calls: Counter[str]) -> str:
    """The calls by verb and resource, the most frequent first."""
    return ", ".join(f"{number} {target}" for target, number in calls.most_common())


def say(text: str) -> None:
    print(f"[{time.monotonic() - _BEGAN:4.0f} s] {text}", flush=True)


_BEGAN = time.monotonic()


def on_api_server(measured: Callable[[ApiServer, Path], Coroutine[Any, Any, list[Row]]]) -> list[Row]:
    """The rows that are measured on an API server of their own, with a folder."""
    with tempfile.TemporaryDirectory(prefix="spotladder-bench-") as folder, ApiServer() as server:
        asyncio.run(install_kinds(server))
        say("the API server runs")
        return asyncio.run(measured(server, Path(folder)))


def main(measure: Callable[..., Sequence[Row]], title: str, jobs: int) -> None:
    """The command line of a benchmark of many jobs; it is skipped where no API server can be started."""
    if why := missing():
        print(f"skipped: there is no API server: {why}")
        sys.exit(0)
    rows.main(measure, title, note=_conditions(), jobs=jobs)


def _conditions() -> str:
    """The date and the version of etcd: before 3.4.31 and 3.5.13, each list reads etcd instead of the API server's
    cache, which takes several times as long."""
    program = find("etcd")
    assert program, missing()
    printed = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
    return f"Measured on {datetime.now(UTC):%Y-%m-%d} with etcd {printed.splitlines()[0].rpartition(' ')[2]}."
