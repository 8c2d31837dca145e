"""Where the jobs of the page are: this machine, or a cluster."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self

if TYPE_CHECKING:
    from spotladder.clusters.client import Client
    from spotladder.display.report.facts import Facts
    from spotladder.local.local_run import LocalRun

Object = dict[str, Any]

THIS_MACHINE = "this-machine"
"""The name of this machine in addresses. No context of a kubeconfig can be selected by it."""

POLL_INTERVAL = 1.0
"""Seconds between two looks at the files of the runs on this machine."""


class Place(Protocol):
    """Jobs, each as a TieredJob object, kept current by `follow`."""

    name: str
    title: str

    @property
    def problem(self) -> str:
        """Why the jobs may be old or missing; "" if they are current."""

    def jobs(self) -> Sequence[Object]:
        """All jobs, as they were last seen."""

    def facts(self, namespace: str, name: str) -> Facts | None:
        """The report of the job; None if the place has no records of it. Blocks on files. Raises SpotladderError."""

    async def follow(self, changed: Callable[[], None]) -> None:
        """Keep the jobs current until the task is cancelled. Calls `changed` after each change."""


class ThisMachine:
    """The runs of `spotladder run` below a state folder."""

    name = THIS_MACHINE
    title = "this machine"

    def __init__(self, root: Path) -> None:
        self.problem = ""
        self._root = root
        self._seen: dict[Path, tuple[tuple[object, ...], Object]] = {}

    def jobs(self) -> Sequence[Object]:
        return [thing for _, thing in self._seen.values()]

    def facts(self, namespace: str, name: str) -> Facts | None:
        from spotladder.display.report import gather
        from spotladder.local.local_run import local_runs

        run = next((run for run in local_runs(self._root) if (run.namespace, run.name) == (namespace, name)), None)
        return None if run is None else gather(run.recorded(), run.state())

    async def follow(self, changed: Callable[[], None]) -> None:
        while True:
            if await asyncio.to_thread(self.look):
                changed()
            await asyncio.sleep(POLL_INTERVAL)

    def look(self) -> bool:
        """Read the runs whose files have changed. Returns whether any has. A run that cannot be read is left out, and
        `problem` says why."""
        from spotladder.errors import EnvironmentFailure
        from spotladder.local.job_object import object_of
        from spotladder.local.local_run import local_runs

        problem, seen = "", {}
        for run in local_runs(self._root):
            stamp = _stamp(run)
            known = self._seen.get(run.folder.path)
            if known is not None and known[0] == stamp:
                seen[run.folder.path] = known
                continue
            try:
                seen[run.folder.path] = (stamp, object_of(run))
            except EnvironmentFailure as error:
                problem = str(error)
        stamps = {path: stamp for path, (stamp, _) in self._seen.items()}
        before = (self.problem, stamps)
        self._seen, self.problem = seen, problem
        return before != (problem, {path: stamp for path, (stamp, _) in seen.items()})


def _stamp(run: LocalRun) -> tuple[object, ...]:
    """What changes whenever the files of the run or its runner do."""
    found: list[object] = [run.process]
    for name in ("state.json", "timeline.jsonl"):
        with suppress(OSError):
            about = (run.folder.path / name).stat()
            found.append((about.st_mtime_ns, about.st_size))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class _Held:
    """A TieredJob of the cluster, as the cache needs it."""

    name: str
    namespace: str
    uid: str
    resource_version: str
    thing: Object = field(compare=False)

    @classmethod
    def of(cls, thing: Mapping[str, Any]) -> Self:
        metadata = {key: value for key, value in thing["metadata"].items() if key != "managedFields"}
        status = {key: value for key, value in (thing.get("status") or {}).items()}
        kept = {"metadata": metadata, "status": status}
        return cls(metadata["name"], metadata["namespace"], metadata["uid"], metadata["resourceVersion"], kept)


class ACluster:
    """The TieredJobs of one namespace of a cluster, or of all ("")."""

    def __init__(self, client: Client, context: str, namespace: str) -> None:
        from spotladder.clusters.cache import Cache
        from spotladder.clusters.clock import SystemClock
        from spotladder.resources import TIEREDJOBS

        self.name = context
        self.title = context
        self._changed: Callable[[], None] = lambda: None
        self._jobs: Cache[_Held] = Cache(
            client, TIEREDJOBS, _Held.of, clock=SystemClock(), namespace=namespace,
            changed=lambda _before, _after: self._changed(),
        )  # fmt: skip

    @property
    def problem(self) -> str:
        if self._jobs.problem:
            return self._jobs.problem
        return "the API server does not answer" if self._jobs.silent else ""

    def jobs(self) -> Sequence[Object]:
        return [held.thing for held in self._jobs.all()]

    def facts(self, namespace: str, name: str) -> Facts | None:  # noqa: ARG002 – the signature of the protocol
        return None

    async def follow(self, changed: Callable[[], None]) -> None:
        self._changed = changed
        await self._jobs.run()
