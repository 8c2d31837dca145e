"""Reads the records of a job: of a run on this machine, of a job of a cluster, or from a folder of checkpoints."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from spotladder.checkpoints.open_store import open_store
from spotladder.cli import kubernetes_names
from spotladder.cli.cluster.connected_cluster import on_cluster
from spotladder.cli.local.selection import print_place, run_of
from spotladder.cli.target import ClusterTarget
from spotladder.errors import Refused
from spotladder.jobs.connected_cluster import ConnectedCluster, Object
from spotladder.records import stored_reading, timeline
from spotladder.records.recorded import Recorded
from spotladder.records.recorded_job import recorded_in, recorded_of_job

JobOrAddress = Annotated[
    str, typer.Argument(metavar="NAME|URI", help="Name of the job, the folder of its checkpoints, or a timeline.jsonl.")
]


def recorded_of(name: str, target: ClusterTarget, state_dir: Path | None) -> Recorded:
    """The records, with the last lines of the job's programs. Raises Refused, EnvironmentFailure, StoreUnavailable."""
    in_a_folder = name.startswith(("/", "./", "../")) or ("/" in name and Path(name).exists())
    if "://" in name or in_a_folder or (name.endswith(".jsonl") and Path(name).is_file()):
        if Path(name).is_file():
            return timeline.read(Path(name))
        folder = open_store(name)
        return recorded_in(folder, stored_reading.newest_uid(folder))
    try:
        name = kubernetes_names.job(name)
    except typer.BadParameter as error:
        raise Refused(f"NAME: {error.message}") from None
    if run := run_of(name, target, state_dir):
        print_place(run)
        return run.recorded()

    async def find(cluster: ConnectedCluster) -> Object:
        return await cluster.job(name)

    return recorded_of_job(on_cluster(target, find))
