"""The operator as an `AttemptBackend`, on a fake API server in memory.

The operator's own methods are coroutines and serve all jobs; this adapter serves one job for the conformance suite. It
makes the same calls as the reconciler: `load.observe`, and the executor with a decision of one action. `KubernetesRig`
takes the roles of KubeRay, the scheduler and the program.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack, suppress
from typing import Any, TypeVar

from spotladder.api.status import TieredJobStatus
from spotladder.api.tenancy import TenantRule
from spotladder.clusters.errors import NotFound
from spotladder.core.contract import Notice, NoticeKind
from spotladder.core.model import (
    Action,
    AskToCommit,
    AttemptSeen,
    Decision,
    Delete,
    Drain,
    Finish,
    JobState,
    Launch,
    Observation,
    Progress,
    Replace,
    Resize,
    TakeOver,
)
from spotladder.operator.leader import LeaderRuntime
from spotladder.operator.loaded import Loaded
from spotladder.operator.reading import Reading
from spotladder.operator.reconcile.known_job import KnownJob
from spotladder.operator.reporting.metrics import Metrics
from spotladder.operator.settings import Settings
from spotladder.operator.storage.commit_logs import LogAddress
from spotladder.resources import NODES, PODS
from spotladder.workloads import names
from spotladder.workloads.placement import HOSTNAME
from spotladder.workloads.rayjob.records import RAYCLUSTERS, RAYJOBS
from tests.clusters.stepped_clock import SteppedClock
from tests.kube.world import WORKERS
from tests.operator.memory_world import NAMESPACE, world_in_memory

T = TypeVar("T")
JOB = "digits"
MAX_POLLS = 200
"""Maximum number of polls for an expected change."""

READY = [{"type": kind, "status": "True"} for kind in ("PodScheduled", "Ready")]
"""The conditions of a pod that runs."""


class KubernetesBackend:
    """Implements `AttemptBackend` for one TieredJob."""

    def __init__(self, runtime: LeaderRuntime, run: Callable[[Coroutine[Any, Any, T]], T]) -> None:
        self._session = runtime
        self._run: Callable[[Coroutine[Any, Any, Any]], Any] = run

    def launch(self, action: Launch) -> None:
        self._run(self._do(action))

    def drain(self, action: Drain) -> None:
        self._run(self._do(action))

    def replace(self, action: Replace) -> None:
        self._run(self._do(action))

    def resize(self, action: Resize) -> None:
        self._run(self._do(action))

    def take_over(self, action: TakeOver) -> None:
        self._run(self._do(action))

    def ask_to_commit(self, action: AskToCommit) -> None:
        self._run(self._do(action))

    def delete(self, action: Delete) -> None:
        """Repeat the action: the operator stores the output of the attempt first and deletes on a later call."""

        async def until_marked() -> None:
            for _ in range(MAX_POLLS):
                await self._do(action)
                left = self._session.clusters.home.inventory.attempts((NAMESPACE, JOB)).get(action.attempt)
                if left is None or left.top is None or left.top.deleting:
                    return
                await asyncio.sleep(0.001)  # threads read and write the outputs
            raise AssertionError(f"attempt {action.attempt} is not deleted")

        self._run(until_marked())

    def finish(self, action: Finish) -> None:
        """In a terminal stage the core also deletes every attempt."""
        for seen in self.observe().attempts:
            self.delete(Delete(seen.number, action.reason))
        self._run(self._do(action))

    def observe(self) -> Observation:
        async def seen() -> Observation:
            return self._load().seen

        found: Observation = self._run(seen())
        return found

    def _load(self) -> Loaded:
        loader = self._session.reconcile.loader
        record = self._session.jobs.get(JOB, NAMESPACE)
        assert record is not None
        parsed, known = loader._parsed(record), KnownJob()
        return loader._observe(
            record,
            parsed,
            held=TieredJobStatus(),
            before=JobState(),
            state=JobState(),
            tiers=loader._tiers(parsed.job, known),
            reading=Reading(known=True, progress=Progress()),
            known=known,
        )

    async def _do(self, action: Action) -> None:
        loaded = self._load()

        async def address() -> LogAddress:
            return await self._session.reconcile.readings.address(loaded.record, loaded.job)

        decision = Decision(loaded.state, (action,))
        result = await self._session.reconcile.executor.execute(loaded, decision, address=address)
        assert (result.blocked, result.failed, result.cleanup_error) == (None, None, None)


class KubernetesRig:
    """KubeRay creates the pods of an attempt at once; the test adds nodes and ends programs."""

    main = RAYJOBS

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._stack = AsyncExitStack()
        self._started: set[str] = set()
        self._here = world_in_memory()
        self._session = self._loop.run_until_complete(self._enter(self._here.clock))
        self.backend = KubernetesBackend(self._session, self._run)

    def workload(self) -> dict[str, Any]:
        """The job's workload: a RayJob by default."""
        return {}

    async def _enter(self, clock: SteppedClock) -> LeaderRuntime:
        await self._here.make_namespace()
        for tier in ("spot-a", "spot-b", "on-demand"):
            await self._here.capacity(tier, capacityType="on-demand")
        await self._here.submit(JOB, **self.workload())
        runtime = LeaderRuntime(
            client=self._here.client,
            sources={},
            settings=Settings(
                namespaces=(NAMESPACE,), tenancy=(TenantRule.model_validate({"namespaces": ["*"], "uris": ["s3://*"]}),)
            ),
            metrics=Metrics(clock),
            clock=clock,
            identity="operator-under-test",
            open_log=self._here.bucket.open,
        )
        await self._stack.enter_async_context(runtime.ready())
        return runtime

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        """Await `work`, then let the simulated components act and update the caches."""

        async def all_of_it() -> T:
            result = await work
            await self._play()
            for _ in range(50):
                await asyncio.sleep(0)
            return result

        return self._loop.run_until_complete(all_of_it())

    async def _play(self) -> None:
        """Act as KubeRay, as the garbage collector, and as programs that stop after a notice."""
        kube, jobs = self._here, set(await self._here.rayjobs())
        for name in sorted(jobs - self._started):
            attempt = int(name[-3:])
            await kube.pod(attempt, "head", 0, run=False)
            for index in range(WORKERS):
                await kube.pod(attempt, "worker", index, run=False)
            await kube.raycluster(attempt)
            await kube.report(attempt, jobDeploymentStatus="Initializing")
        for name in self._started - jobs:
            with suppress(NotFound):
                await kube.client.delete(RAYCLUSTERS, f"{name}-xk2lp", NAMESPACE)
            await kube.collect(int(name[-3:]))
        self._started = jobs
        for name in jobs:
            await self._scale(int(name[-3:]))
            pods = await kube.pods(int(name[-3:]))
            await self._submit(int(name[-3:]), pods)
            noticed = [pod for pod in pods if asks_to_stop(annotations_of(pod).get(names.NOTICE, ""))]
            if len(noticed) == len(pods) and all(pod["status"].get("phase") == "Running" for pod in noticed):
                await self._exit(int(name[-3:]), 75)

    async def _scale(self, attempt: int) -> None:
        """Act as KubeRay: delete the workers in workersToDelete and create missing ones."""
        kube = self._here
        try:
            group = await kube.worker_group(attempt)
        except NotFound:
            return
        named = (group.get("scaleStrategy") or {}).get("workersToDelete") or []
        pods = [pod for pod in await kube.pods(attempt) if pod["metadata"]["labels"][names.ROLE] == "worker"]
        for pod in pods:
            if pod["metadata"]["name"] in named:
                await kube.client.delete(PODS, pod["metadata"]["name"], NAMESPACE, grace=0)
        gone = await self._lost_pods(pods)
        left = sum(pod["metadata"]["name"] not in (*named, *gone) for pod in pods)
        assert left <= group["replicas"], "KubeRay would remove workers at random"
        for index in range(left, group["replicas"]):
            await kube.pod(attempt, "worker", index, run=False)

    async def _submit(self, attempt: int, pods: list[dict[str, Any]]) -> None:
        """Act as KubeRay: submit the program when the head and all requested workers are ready."""
        running = [pod for pod in pods if pod["status"].get("phase") == "Running"]
        group, rayjob = await self._here.worker_group(attempt), await self._here.rayjob(attempt)
        waits = rayjob["status"]["jobDeploymentStatus"] == "Initializing"
        if waits and len(running) == len(pods) == group["replicas"] + 1:
            await self._here.report(attempt, jobDeploymentStatus="Running", jobStatus="RUNNING")

    async def _lost_pods(self, pods: list[dict[str, Any]]) -> set[str]:
        """The pods whose nodes are gone; `kill_worker` creates their replacements."""
        nodes = {node["metadata"]["name"] async for page in self._here.client.pages(NODES) for node in page.items}
        return {pod["metadata"]["name"] for pod in pods if pod["spec"].get("nodeName", "") not in {"", *nodes}}

    async def _exit(self, number: int, code: int) -> None:
        message = f"Job entrypoint command failed with exit code {code}"
        await self._here.report(number, jobDeploymentStatus="Failed", jobStatus="FAILED", message=message)

    def until(self, met: Callable[[Observation], bool]) -> Observation:
        for _ in range(MAX_POLLS):
            if met(seen := self.backend.observe()):
                return seen
        raise AssertionError(seen)

    def bring_up(self, number: int, workers: int = WORKERS) -> AttemptSeen:
        async def nodes_come() -> None:
            waiting = [pod for pod in await self._here.pods(number) if not pod["spec"].get("nodeName")]
            heads = [pod for pod in waiting if pod["metadata"]["labels"][names.ROLE] == "head"]
            for pod in [*heads, *[pod for pod in waiting if pod not in heads][:workers]]:
                name = pod["metadata"]["name"]
                node = await self._here.node(f"{name}-node")
                await self._here.client.merge(PODS, name, NAMESPACE, body={"spec": {"nodeName": node}})
                await self._here.set_pod(
                    name,
                    phase="Running",
                    conditions=READY,
                )

        self._run(nodes_come())
        seen = self.backend.observe().attempt(number)
        assert seen is not None
        return seen

    def allows(self, number: int, node: str) -> bool:
        """Whether the node affinity of every pod of the attempt allows a node of this name, for the scheduler."""

        async def templates() -> list[dict[str, Any]]:
            kind = self.main
            pages = [page async for page in self._here.client.pages(kind, NAMESPACE)]
            return [
                spec for page in pages for found in page.items if _is_of(found, number) for spec in _pod_specs(found)
            ]

        specs = self._run(templates())
        assert specs
        alternatives = [_node_terms(spec) for spec in specs]
        return all(not terms or any(_term_allows(term, node) for term in terms) for terms in alternatives)

    def kill_worker(self, uid: str) -> None:
        """Delete the node; its pod is not removed yet, and KubeRay creates another one."""

        async def gone() -> None:
            for number in [int(name[-3:]) for name in self._started]:
                for pod in await self._here.pods(number):
                    if pod["metadata"]["uid"] == uid:
                        await self._here.client.delete(NODES, pod["spec"]["nodeName"])
                        await self._here.pod(number, "worker", WORKERS)

        self._run(gone())

    def let_program_crash(self, number: int) -> None:
        self._run(self._exit(number, 3))

    def let_program_end(self, number: int) -> None:
        self._run(self._here.report(number, jobDeploymentStatus="Complete", jobStatus="SUCCEEDED"))

    def close(self) -> None:
        self._loop.run_until_complete(self._stack.aclose())
        self._loop.close()


def _is_of(found: dict[str, Any], number: int) -> bool:
    return bool(found["metadata"]["labels"][names.ATTEMPT] == str(number))


def _pod_specs(found: Any) -> list[dict[str, Any]]:
    """The specs of all pod templates in this object."""
    entries = found.items() if isinstance(found, dict) else enumerate(found) if isinstance(found, list) else ()
    specs = [spec for _key, entry in entries for spec in _pod_specs(entry)]
    return [found, *specs] if isinstance(found, dict) and "containers" in found else specs


def _node_terms(spec: dict[str, Any]) -> list[dict[str, Any]]:
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    return list((affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}).get("nodeSelectorTerms") or ())


def _term_allows(term: dict[str, Any], node: str) -> bool:
    rules = [rule for rule in term["matchExpressions"] if rule["key"] == HOSTNAME]
    return all((node in rule["values"]) == (rule["operator"] == "In") for rule in rules)


def annotations_of(pod: dict[str, Any]) -> dict[str, str]:
    return pod["metadata"].get("annotations") or {}


def asks_to_stop(notice: str) -> bool:
    """Whether a program stops at this notice; "" is none."""
    return bool(notice) and Notice.decode(notice).kind not in (NoticeKind.TAKE_OVER, NoticeKind.COMMIT)
