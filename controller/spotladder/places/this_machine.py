"""The runs of this machine."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from spotladder.checkpoints.outputs import LONGEST
from spotladder.display.report import gather
from spotladder.display.report.facts import RunFacts
from spotladder.errors import EnvironmentFailure
from spotladder.local.local_run import LocalRun, local_run, local_runs
from spotladder.local.output import end_of
from spotladder.output.redact import redacted, secret_values
from spotladder.places.fleet import ClusterSeen
from spotladder.places.place import Object, Printed

THIS_MACHINE = "this-machine"
"""The name of this machine in addresses."""

POLL_INTERVAL = 1.0
"""Seconds between two reads of the files of the runs on this machine."""


class ThisMachine:
    """The runs of `spotladder run` below a state folder."""

    name = THIS_MACHINE
    title = "this machine"

    def __init__(self, root: Path) -> None:
        self.problem = ""
        self._root = root
        self._seen: dict[Path, tuple[_Stamp, Object]] = {}
        self._versions: dict[Path, _Stamp] = {}

    def jobs(self) -> Sequence[Object]:
        return [thing for _, thing in self._seen.values()]

    def tiers(self) -> Sequence[Object]:
        return ()

    async def facts(self, namespace: str, name: str) -> RunFacts | None:
        run = local_run(self._root, namespace, name)
        return None if run is None else await asyncio.to_thread(lambda: gather(run.recorded()))

    async def printed(self, namespace: str, name: str, attempt: int) -> Sequence[Printed]:
        return await asyncio.to_thread(self._output, namespace, name, attempt)

    def _output(self, namespace: str, name: str, attempt: int) -> Sequence[Printed]:
        run = local_run(self._root, namespace, name)
        text = "" if run is None else end_of(run.log(attempt), LONGEST)
        return [Printed("driver", redacted(text, secret_values(os.environ)))] if text else []

    async def clusters(self) -> Sequence[ClusterSeen]:
        return ()

    async def wait_for_sync(self) -> None:
        """Return at once: a run that cannot be read is a problem of that run."""

    async def follow(self, changed: Callable[[str], None]) -> None:
        while True:
            if await asyncio.to_thread(self.look):
                changed("")
            await asyncio.sleep(POLL_INTERVAL)

    def look(self) -> bool:
        """Read the runs whose files have changed. Returns whether any has. A run that cannot be read is left out, and
        `problem` says why."""
        problem, seen, printed = "", {}, {}
        for run in local_runs(self._root):
            path = run.folder.path
            stamp, printed[path] = _stamp(run), _printed(run)
            known = self._seen.get(path)
            if known is not None and known[0] == stamp:
                seen[path] = known
                continue
            try:
                seen[path] = (stamp, run.as_job())
            except EnvironmentFailure as error:
                problem = str(error)
        before = (self.problem, self._versions, _stamps(self._seen))
        self._seen, self._versions, self.problem = seen, printed, problem
        return before != (problem, printed, _stamps(seen))


_Stamp = tuple[object, ...]


def _stamps(seen: Mapping[Path, tuple[_Stamp, Object]]) -> dict[Path, _Stamp]:
    return {path: stamp for path, (stamp, _) in seen.items()}


def _stamp(run: LocalRun) -> _Stamp:
    """A value that changes when the state of the run, its timeline or its runner changes."""
    return run.process, _version(run.folder.path / "state.json"), _version(run.folder.timeline)


def _printed(run: LocalRun) -> _Stamp:
    """A value that changes when the newest attempt prints. The run as an object does not depend on it."""
    attempts = run.attempts()
    return _version(run.log(attempts[-1])) if attempts else ()


def _version(file: Path) -> _Stamp:
    """The time of the last change of a file, and its size; empty if it does not exist."""
    try:
        about = file.stat()
    except OSError:
        return ()
    return about.st_mtime_ns, about.st_size
