"""A run on this machine as an object like the TieredJob of a cluster, so that both are shown alike."""

from __future__ import annotations

from typing import Any

from spotladder.local.local_run import LocalRun
from spotladder.records import timeline
from spotladder.records.job_object import job_object


def object_of(run: LocalRun) -> dict[str, Any]:
    """The run with the fields of a TieredJob, and its runner and folder in `run`.

    Raises EnvironmentFailure when the files of the run cannot be read.
    """
    process = run.process
    made = job_object(
        run.namespace,
        run.name,
        run.phase,
        run.folder.began(),
        state=run.state(),
        records=timeline.read(run.folder.timeline).records,
        active=process is not None,
    )
    return {**made, "run": {"process": process, "folder": str(run.folder.path)}}
