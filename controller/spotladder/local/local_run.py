"""The run of a job on this machine, read from its state folder while its runner may be active."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from spotladder.checkpoints.outputs import KEPT_ATTEMPTS, LONGEST
from spotladder.core.model import TERMINAL, JobState
from spotladder.local.output import end_of
from spotladder.local.state import JobFolder
from spotladder.output.last_error import last_lines
from spotladder.output.redact import secret_values
from spotladder.records import timeline
from spotladder.records.job_object import job_object
from spotladder.records.model import Looked
from spotladder.records.recorded import Recorded


@dataclass(frozen=True, slots=True)
class LocalRun:
    """The run of one job. Methods raise EnvironmentFailure when its files cannot be read."""

    namespace: str
    name: str
    folder: JobFolder

    @property
    def process(self) -> int | None:
        """The process of its runner; None if no runner is active."""
        return self.folder.owner()

    def state(self) -> JobState:
        """The last saved state."""
        return self.folder.load() or JobState()

    @property
    def phase(self) -> str:
        """The phase as users see it; Interrupted if the run has not ended and no runner is active."""
        state = self.state()
        unfinished = state.stage not in TERMINAL and self.process is None
        return "Interrupted" if unfinished else str(state.phase)

    def recorded(self) -> Recorded:
        """The run's timeline so far, with the last lines of its programs."""
        found = recorded_in(self.folder.path)
        if self.process is None or not found.records:
            return found
        return replace(found, records=(*found.records, Looked(time.time())))

    def as_job(self) -> dict[str, Any]:
        """The run as an object like the TieredJob of a cluster, with its runner and folder in `run`."""
        process, run = self.process, self.folder.known_run()
        made = job_object(
            self.namespace,
            self.name,
            self.phase,
            None if run is None else run.began,
            state=self.state(),
            records=timeline.read(self.folder.timeline).records,
            active=process is not None,
        )
        made["metadata"]["uid"] = "" if run is None else run.uid
        return {**made, "run": {"process": process, "folder": str(self.folder.path)}}

    def attempts(self) -> list[int]:
        """The numbers of the attempts that have a log or may get one."""
        return _attempts(self.folder.path)

    def log(self, attempt: int) -> Path:
        """The log of that attempt's program; the file does not exist before the program starts."""
        return _log(self.folder.path, attempt)


def local_runs(root: Path) -> list[LocalRun]:
    """All runs in the state folder, by namespace and name."""
    return list(_runs(root, "*", "*"))


def local_run(root: Path, namespace: str, name: str) -> LocalRun | None:
    """The run of that job; None if the job never ran on this machine."""
    return next(_runs(root, namespace, name), None)


def recorded_in(folder: Path) -> Recorded:
    """The timeline of the run in this folder, with the last lines of its newest attempts' programs, without secrets.

    Raises EnvironmentFailure when the timeline cannot be read.
    """
    known = secret_values(os.environ)
    printed = [
        (attempt, "driver", lines)
        for attempt in _attempts(folder)[-KEPT_ATTEMPTS:]
        if (lines := last_lines(end_of(_log(folder, attempt), LONGEST), known=known))
    ]
    return replace(timeline.read(folder / "timeline.jsonl"), printed=tuple(printed))


def _attempts(folder: Path) -> list[int]:
    found = (folder / "attempts").glob("[0-9]*")
    return sorted(int(each.name) for each in found if each.name.isdigit())


def _log(folder: Path, attempt: int) -> Path:
    return folder / "attempts" / f"{attempt:04d}" / "driver.log"


def _runs(root: Path, namespace: str, name: str) -> Iterator[LocalRun]:
    for file in sorted(root.glob(f"{namespace}/{name}/run.json")):
        job = file.parent
        yield LocalRun(job.parent.name, job.name, JobFolder(root, job.parent.name, job.name))
