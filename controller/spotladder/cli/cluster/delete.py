"""`spotladder delete`: deletes a job and its objects."""

from __future__ import annotations

from typing import Annotated

import typer

from spotladder.cli import kubernetes_names as kubernetes
from spotladder.cli.cluster.connected_cluster import on_cluster
from spotladder.cli.local.selection import refuse_run
from spotladder.cli.target import ClusterTarget
from spotladder.jobs.connected_cluster import ConnectedCluster


def delete(
    names: Annotated[list[str], typer.Argument(metavar="NAME...", parser=kubernetes.job, help="TieredJobs.")],
    *,
    wait: Annotated[bool, typer.Option(help="Wait until all objects of the jobs are gone.")] = True,
    force: Annotated[
        bool, typer.Option("--force", help="Do not wait for objects that cannot be reached, e.g. in a deleted cluster.")
    ] = False,
    target: ClusterTarget,
) -> None:
    """Delete jobs: each commits and releases its nodes. Its checkpoints and stored output remain.

    The command waits until all objects are gone and prints what it waits for. Ctrl-C ends the wait, not the deletion.

    \b
    Examples:
      spotladder delete digits
      spotladder delete digits --no-wait
    """

    async def run(cluster: ConnectedCluster) -> None:
        from spotladder.jobs.deletion import requested, until_gone

        jobs = [await cluster.job(name) for name in names]
        for job in jobs:
            await requested(cluster, job, force=force)
        for job in jobs:
            name = job["metadata"]["name"]
            if wait:
                await until_gone(cluster, job)
            typer.echo(f"tieredjob.spotladder.io/{name} {'deleted' if wait else 'deletion requested'}")

    for name in names:
        refuse_run("delete", name, target, "spotladder run JOB.yaml --fresh removes it and starts the job again")
    on_cluster(target, run)
