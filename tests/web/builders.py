"""Jobs for the page, and a place whose jobs a test changes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from spotladder.display.report.facts import RunFacts
from spotladder.errors import EnvironmentFailure
from spotladder.local.state import JobFolder, RunIdentity
from spotladder.places.fleet import ClusterSeen, lost
from spotladder.places.place import Object, Printed
from spotladder.records.timeline import read

RECORDED = Path(__file__).parents[2] / "docs/images/run/timeline.jsonl"
"""A run of `make demo` that has ended."""

HOSTILE = "<img src=x onerror=\"document.title='owned'\">\x1b]0;owned\x07\u202e"


def job(name: str, phase: str = "Running", *, namespace: str = "team-a", **status: Any) -> Object:
    """A TieredJob object of the cluster."""
    metadata = {"name": name, "namespace": namespace, "creationTimestamp": "2026-11-29T00:00:00Z"}
    progress = {"step": 40, "total": 100, "text": "40/100"}
    return {"metadata": metadata, "status": {"phase": phase, "tier": "spot-a", "progress": progress, **status}}


def tier(name: str, **status: Any) -> Object:
    """A CapacityTier object of the cluster, whose nodes are in the member `east`."""
    return {"metadata": {"name": name}, "spec": {"cluster": "east"}, "status": status}


def seen_clusters(name: str = "west", problem: str = "connection refused") -> list[ClusterSeen]:
    """A home cluster, and a member that cannot be reached."""
    kinds = ("TieredJob v1alpha1", "RayJob v1", "JobSet v1alpha2")
    home = ClusterSeen(name=name, home=True, kubernetes="1.35", kuberay="1.6.1", controller="0.1.0", kinds=kinds)
    return [home, lost("east", problem)]


class Shelf:
    """A place with the jobs that a test puts there."""

    name, title = "west", "west"

    def __init__(self, *jobs: Object) -> None:
        self.held = list(jobs)
        self.problem = self.gap = ""
        self.offered: list[Object] = []
        self.texts: list[Printed] = []
        self.seen: list[ClusterSeen] = []
        self._changed: Callable[[str], None] = lambda _namespace: None

    def jobs(self) -> Sequence[Object]:
        return self.held

    async def facts(self, namespace: str, name: str) -> RunFacts | None:
        if self.gap:
            raise EnvironmentFailure(self.gap)
        return None

    def tiers(self) -> Sequence[Object]:
        return self.offered

    async def printed(self, namespace: str, name: str, attempt: int) -> Sequence[Printed]:
        if self.gap:
            raise EnvironmentFailure(self.gap)
        return self.texts

    async def clusters(self) -> Sequence[ClusterSeen]:
        return self.seen

    async def wait_for_sync(self) -> None:
        return None

    async def follow(self, changed: Callable[[str], None]) -> None:
        self._changed = changed
        await asyncio.Event().wait()

    def put(self, *jobs: Object, changed: str = "team-a") -> None:
        """Replace all jobs, and say that one of this namespace has changed."""
        self.held = list(jobs)
        self._changed(changed)


def recorded_run(root: Path) -> JobFolder:
    """The recorded run, in this state folder."""
    folder = JobFolder(root, "default", "digits-tensorflow")
    folder.path.mkdir(parents=True)
    folder.timeline.write_bytes(RECORDED.read_bytes())
    folder.save(read(folder.timeline).state)
    folder.save_run(RunIdentity(1_795_884_502.0, "3.11", "2.60.0", "file:///checkpoints"))
    return folder
