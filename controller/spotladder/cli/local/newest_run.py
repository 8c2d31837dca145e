"""The newest run of a job on this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spotladder.cli.local.selection import DEFAULT_NAMESPACE, state_folder
from spotladder.core.model import JobState
from spotladder.errors import EnvironmentFailure
from spotladder.local.local_run import local_run

if TYPE_CHECKING:
    from spotladder.api.tieredjob import TieredJob


def run_here(job: TieredJob) -> JobState | None:
    """The state of the job's run on this machine; None without one, or if it cannot be read."""
    run = local_run(state_folder(None), job.metadata.namespace or DEFAULT_NAMESPACE, job.metadata.name)
    try:
        return None if run is None else run.state()
    except EnvironmentFailure:
        return None
