"""Many jobs: the controller as a process with its default settings, on a real API server without nodes.

KubeRay and kubelets are simulated (tests/kube/kuberay.py). Each job has a head and four workers; each Node object has
five pods. Pods run as soon as they are created, and deleted objects are gone at once, so a fallback never waits for the
old attempt. The figures are those of the controller and the API server, which share the machine's cores with the
simulation. The commit logs are on the local disk. The time of a loss is the time at which the pod's status is written.

It has the requirements of `make test-kube`. Without them it is skipped, and docs/benchmarks.md keeps its figures.
"""

from __future__ import annotations

import asyncio
import json
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from spotladder.clusters.cache import Cache
from spotladder.clusters.client import Client
from spotladder.clusters.clock import SystemClock
from spotladder.clusters.connection import connect
from spotladder.clusters.transport import Object
from spotladder.custom_resources import JobRecord
from spotladder.resources import CAPACITYTIERS, NODES, TIEREDJOBS
from tests.bench import rows
from tests.bench.bare import Fallbacks
from tests.bench.rows import Row
from tests.kube.apiserver import ApiServer, missing, processor_time
from tests.kube.kuberay import AT_ONCE, KubeRay
from tests.kube.process import Process
from tests.kube.world import NAMESPACES, eventually, install_kinds, ray_spec

JOBS = 2000
WORKERS = 4
CALM, BUSY, STORM = 1.0, 5.0, 50.0
"""Evictions per second: an ordinary day, a rate that an API server on two cores still serves, a capacity crunch in a
region."""

EVICTED = 60
"""Number of evicted jobs at each rate."""

REST = 20.0
"""Seconds for which idle jobs are measured, after a pause of three times as long."""

SOLO = 20
"""Number of jobs, one after the other, for the figures of a single job."""

TIERS = ("spot-a", "spot-b", "on-demand")
READY, ALLOWED = 30 / 10_000, 600 / 10_000
"""Limits for 10,000 jobs with 50,000 pods, per job: seconds until a new controller is ready, MB of its memory. Small
benchmarks have 10 s and 200 MB."""

IDLE_CALLS, IDLE_CPU = 10.0, 25.0
"""Limits for idle jobs: API calls per second, percent of a core."""

LIMIT = 300.0
PORTION = 20
"""The benchmark fails if fewer than `PORTION` further jobs reach their phase within `LIMIT` seconds."""

SLOWER, RATE = 1.5, 0.8
"""Goals for a storm beside the loop of the minimum calls: the p99 of the reaction and the rate of completed fallbacks,
as multiples of the loop's."""

POLLING, MEMORY = 15.0, 400 / 200
"""SkyPilot's published polling interval in seconds (15 to 45 s), and memory in MB per job (400 MB for 200 jobs)."""


class Crowd:
    """A namespace with many jobs, the simulated KubeRay, and one controller at a time."""

    def __init__(self, client: Client, server: ApiServer, namespace: str, folder: Path) -> None:
        self.client, self.server, self.namespace, self.folder = client, server, namespace, folder
        self.checkpoints = folder / "checkpoints"
        self.nodes: list[str] = []
        self.jobs = Cache(client, TIEREDJOBS, JobRecord.of, clock=SystemClock(), namespace=namespace)
        self.kuberay: KubeRay
        self.playing: list[asyncio.Task[None]] = []
        self.process: Process | None = None

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
        await self._have(names, "Running")

    async def finish(self, name: str) -> None:
        await self.kuberay.finish(name)
        await self._have([name], "Succeeded")

    async def _have(self, names: Iterable[str], phase: str) -> None:
        left = set(names)
        enough = 0

        async def enough_have() -> bool:
            self._still_played()
            for name in list(left):
                job = self.jobs.get(name, self.namespace)
                if job is not None and job.phase == phase:
                    left.discard(name)
            return len(left) <= enough

        while left:
            enough = max(0, len(left) - PORTION)
            await eventually(enough_have, limit=LIMIT)

    async def evict(
        self, names: Sequence[str], *, every: float = 0.0, then: Callable[[str], Awaitable[None]] | None = None
    ) -> list[tuple[float, float]]:
        """Evict a worker of each job. Returns the seconds until the old attempt is deleted and until the next one
        exists.

        `then` performs the fallback if no controller runs.
        """
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
        made, gone = self.kuberay.made, self.kuberay.gone
        return [(gone[old[name]] - at, made[self.kuberay.attempt[name]] - at) for name, at in lost.items()]

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

    # --- the controller ---------------------------------------------------------------------------------------------

    async def start(self) -> float:
        """Start a controller. Returns the seconds until it is ready and leads."""
        config = self.folder / "controller.yaml"
        access = [{"namespaces": ["*"], "uris": [f"file://{self.checkpoints}"]}]
        settings = {"leaseNamespace": self.namespace, "listen": "127.0.0.1:0", "checkpointAccess": access}
        config.write_text(json.dumps(settings), encoding="utf-8")
        began = time.monotonic()
        self.process = await Process.start(self.server, config)

        async def leads() -> bool:
            return await self.process.get("/readyz") == (200, "leading\n")

        await eventually(leads, limit=LIMIT)
        return time.monotonic() - began

    async def stop(self) -> None:
        """Stop the controller."""
        self.process.send(signal.SIGTERM)
        await self.process.ended()
        await self.process.close()

    async def restart(self, jobs: int) -> tuple[float, float]:
        """Replace the controller. Returns the seconds until the new one is ready, and until it has reconciled every
        job."""
        await self.stop()
        began = time.monotonic()
        ready = await self.start()

        async def reconciled() -> bool:
            await asyncio.sleep(0.3)
            return await self.count("spotladder_reconcile_seconds_count") >= jobs

        await eventually(reconciled, limit=LIMIT)
        return ready, time.monotonic() - began

    async def count(self, name: str, wanted: Callable[[dict[str, str]], bool] = lambda _labels: True) -> float:
        """The sum of one of the controller's metrics."""
        families = text_string_to_metric_families((await self.process.get("/metrics"))[1])
        samples = (sample for family in families for sample in family.samples)
        return sum(sample.value for sample in samples if sample.name == name and wanted(sample.labels))

    async def calls(self) -> float:
        """API calls so far, without those for the lease."""
        return await self.count("spotladder_api_requests_total", lambda labels: labels["resource"] != "leases")

    async def reconciles(self) -> float:
        return await self.count("spotladder_reconcile_seconds_count")

    def memory(self) -> float:
        """Resident memory of the controller in MB."""
        status = Path(f"/proc/{self.process.pid}/status").read_text(encoding="utf-8")
        return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS")) * 1024 / 1e6

    def processor_time(self) -> float:
        """CPU seconds that the controller has used."""
        return processor_time(self.process.pid)


@asynccontextmanager
async def crowd(server: ApiServer, folder: Path, nodes: int) -> AsyncIterator[Crowd]:
    """Set up the namespace, the capacity, the nodes and the simulation. Objects are not deleted: the API server ends
    with the benchmark."""
    async with Client(connect(str(server.kubeconfig))) as client:
        here = Crowd(client, server, "crowd", folder)
        await client.create(NAMESPACES, _named("v1", "Namespace", here.namespace))
        for tier in TIERS:
            capacity = _named(CAPACITYTIERS.api_version, CAPACITYTIERS.kind, f"{here.namespace}-{tier}")
            kind = "on-demand" if tier == "on-demand" else "spot"
            price = {"perNodeHour": "1", "onDemandPerNodeHour": "4"}
            await client.create(CAPACITYTIERS, {**capacity, "spec": {"capacityType": kind, "price": price}})
        await _make_nodes(here, nodes)
        here.kuberay = KubeRay(client, here.namespace, here.nodes, here.checkpoints)
        here.playing = [asyncio.create_task(here.kuberay.run()), asyncio.create_task(here.jobs.run())]
        try:
            yield here
        finally:
            for task in here.playing:
                task.cancel()
            await asyncio.gather(*here.playing, return_exceptions=True)
            if here.process:
                await here.process.close()


async def _make_nodes(here: Crowd, number: int) -> None:
    turn = asyncio.Semaphore(AT_ONCE)

    async def one(name: str) -> None:
        ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
        async with turn:
            await here.client.create(NODES, {**_named("v1", "Node", name), "status": {"conditions": [ready]}})

    here.nodes = [f"{here.namespace}-{index}" for index in range(number)]
    await asyncio.gather(*map(one, here.nodes))


def _named(version: str, kind: str, name: str) -> Object:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name}}


# --- measurements -----------------------------------------------------------------------------------------------------


async def measured(server: ApiServer, folder: Path, *, jobs: int, evicted: int, rest: float, solo: int) -> list[Row]:
    """All rows, with `jobs` jobs at the end."""
    found: list[Row] = []
    some, many = max(4, jobs // 20), max(4, jobs // 2)
    async with crowd(server, folder, nodes=jobs) as here:
        await here.start()
        empty = here.memory()
        found += await _solo(here, solo)
        running = 0
        for level in sorted({some, many}):
            await here.submit(map(_job_name, range(running, level)))
            running, number = level, min(evicted, level // 2)
            found += await _storm(here, range(number), level, CALM)
            found += await _storm(here, range(number, 2 * number), level, STORM)
        found += await _storm(here, range(many - number, many), many, BUSY)
        await here.submit(map(_job_name, range(many, jobs)))
        found += await _rest(here, jobs, rest)
        found += _weight(here, jobs, empty, "after the evictions")
        ready, reconciled = await here.restart(jobs)
        what = f"start with {jobs:,} jobs and {jobs * (WORKERS + 1):,} pods →"
        limit = max(10.0, READY * jobs)
        found.append(Row(f"{what} ready", ready, "s", "limit", limit, f"< {limit:.0f} s", ready < limit))
        found.append(Row(f"{what} every job reconciled", reconciled, "s", "-"))
        found += _weight(here, jobs, empty, "after a restart")
        found += await _bare(here, range(jobs - number, jobs))
    return [*found, *_beside(found, f"{many:,} jobs, {STORM:.0f} evictions/s")]


def _beside(found: Sequence[Row], storm: str) -> list[Row]:
    """The storm beside the loop of the minimum calls of the same run."""
    loop = f"minimum calls without a controller, {STORM:.0f} evictions/s"
    measured = {row.name: row.measured for row in found}
    slow, loop_slow = (measured[f"pod lost → next RayJob, {where}, p99"] for where in (storm, loop))
    rate, loop_rate = (measured[f"completed fallbacks, {where}"] for where in (storm, loop))
    compared_with = "the loop of the minimum calls"
    return [
        Row(
            f"pod lost → next RayJob, p99, {storm}, beside the loop",
            slow, "s", compared_with, loop_slow, f"≤ {SLOWER} ×", slow <= SLOWER * loop_slow,
        ),
        Row(
            f"completed fallbacks, {storm}, beside the loop",
            rate, "/s", compared_with, loop_rate, f"≥ {RATE} ×", rate >= RATE * loop_rate,
        ),
    ]  # fmt: skip


async def _solo(here: Crowd, rounds: int) -> list[Row]:
    reactions, calls, reconciles = [], 0.0, 0.0
    for name in (f"solo-{number}" for number in range(rounds)):
        await here.submit([name])
        before = await here.calls(), await here.reconciles()
        reactions += await here.evict([name])
        await here.run([name])
        calls, reconciles = calls + await here.calls() - before[0], reconciles + await here.reconciles() - before[1]
        await here.finish(name)
    found = _reactions(reactions, "1 job")
    found.append(Row("API calls for a fallback, Events included", calls / rounds, "", "-"))
    return [*found, Row("reconciles for a fallback, including the start of its pods", reconciles / rounds, "", "-")]


async def _storm(here: Crowd, numbers: range, level: int, rate: float) -> list[Row]:
    """Evict these jobs at `rate` per second while `level` jobs run."""
    names = [_job_name(number) for number in numbers]
    before = here.processor_time(), here.server.processor_time(), await here.calls(), await here.reconciles()
    began = time.monotonic()
    reactions = await here.evict(names, every=1 / rate)
    lasted = time.monotonic() - began
    mine, server = here.processor_time() - before[0], here.server.processor_time() - before[1]
    calls, reconciles = (await here.calls()) - before[2], (await here.reconciles()) - before[3]
    what = f"{level:,} jobs, {rate:.0f} evictions/s"
    found = _reactions(reactions, what, goal=level >= 1000)
    found.append(Row(f"completed fallbacks, {what}", len(names) / lasted, "/s", "evictions", rate))
    found.append(Row(f"API calls per reconcile, {what}", calls / reconciles, "", "-"))
    each = 1000 / len(names)
    found.append(
        Row(f"CPU time of the controller per eviction, {what}", mine * each, "ms", "API server", server * each)
    )
    say(
        f"{len(names)} evictions in {lasted:.0f} s: "
        f"{calls / len(names):.1f} calls and {reconciles / len(names):.1f} reconciles for each"
    )
    say(f"{mine * each:.0f} ms of CPU time for each, and {server * each:.0f} ms of the API server")
    await here.run(names)
    return found


async def _bare(here: Crowd, numbers: range) -> list[Row]:
    """The same evictions without a controller."""
    names = [_job_name(number) for number in numbers]
    await here.stop()
    fallbacks = Fallbacks(here.client, here.namespace)
    await fallbacks.prepare((name, here.kuberay.attempt[name]) for name in names)
    before, began = here.server.processor_time(), time.monotonic()
    reactions = await here.evict(names, every=1 / STORM, then=fallbacks)
    lasted, server = time.monotonic() - began, here.server.processor_time() - before
    what = f"minimum calls without a controller, {STORM:.0f} evictions/s"
    found = _reactions(reactions, what, ours=False)
    found.append(Row(f"completed fallbacks, {what}", len(names) / lasted, "/s", "evictions", STORM))
    found.append(Row(f"CPU time of the API server per eviction, {what}", 1000 * server / len(names), "ms", "-"))
    return found


async def _rest(here: Crowd, jobs: int, seconds: float) -> list[Row]:
    """The load of idle jobs."""
    await asyncio.sleep(3 * seconds)
    before, began = (here.processor_time(), await here.calls()), time.monotonic()
    await asyncio.sleep(seconds)
    lasted = time.monotonic() - began
    busy, calls = 100 * (here.processor_time() - before[0]) / lasted, (await here.calls()) - before[1]
    say(f"idle: {calls / lasted:.1f} calls/s, {busy:.0f} % of a core")
    rate = calls / lasted
    return [
        Row(f"API calls, {jobs:,} idle jobs", rate, "/s", "limit", IDLE_CALLS, "< 10 /s", rate < IDLE_CALLS),
        Row(f"CPU time of the controller, {jobs:,} idle jobs", busy, "%", "limit", IDLE_CPU, "< 25 %", busy < IDLE_CPU),
    ]


def _weight(here: Crowd, jobs: int, empty: float, when: str) -> list[Row]:
    memory = here.memory()
    say(f"{memory:.0f} MB with {jobs} jobs {when}, {empty:.0f} MB with none")
    compared_with = "SkyPilot's published 400 MB for 200 jobs"
    what = f"memory, {jobs:,} jobs with {jobs * (WORKERS + 1):,} pods, {when}"
    limit = max(200.0, ALLOWED * jobs)
    return [Row(what, memory, "MB", compared_with, MEMORY * jobs, f"< {limit:.0f} MB", memory < limit)]


def _reactions(seconds: list[tuple[float, float]], where: str, *, ours: bool = True, goal: bool = False) -> list[Row]:
    found = []
    for what, values in (
        ("old attempt deleted", [stopped for stopped, _made in seconds]),
        ("next RayJob", [made for _stopped, made in seconds]),
    ):
        cuts = statistics.quantiles(values, n=100, method="inclusive")
        compared = ours and what == "next RayJob"
        for percent in (50, 99):
            value = cuts[percent - 1]
            say(f"{where}: pod lost → {what}, p{percent}: {1000 * value:.0f} ms")
            row = f"pod lost → {what}, {where}, p{percent}"
            if compared and percent == 99:
                met = value < 1.0 if goal else None
                found.append(
                    Row(row, value, "s", "SkyPilot's shortest published polling interval", POLLING, "< 1 s", met)
                )
            else:
                found.append(Row(row, value, "s", "-"))
    return found


def _job_name(number: int) -> str:
    return f"job-{number:04d}"


def say(text: str) -> None:
    print(f"[{time.monotonic() - _BEGAN:4.0f} s] {text}", flush=True)


_BEGAN = time.monotonic()


def measure(*, jobs: int = JOBS, evicted: int = EVICTED, rest: float = REST, solo: int = SOLO) -> Sequence[Row]:
    with tempfile.TemporaryDirectory(prefix="spotladder-bench-") as folder, ApiServer() as server:
        asyncio.run(install_kinds(server))
        say("the API server runs")
        return asyncio.run(measured(server, Path(folder), jobs=jobs, evicted=evicted, rest=rest, solo=solo))


if __name__ == "__main__":
    if why := missing():
        print(f"skipped: there is no API server: {why}")
        sys.exit(0)
    rows.main(measure, "Many jobs", jobs=JOBS)
