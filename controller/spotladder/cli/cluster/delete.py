"""`spotladder delete`: deletes a job and its objects."""

from __future__ import annotations

from typing import Annotated

import typer

from spotladder.cli import kubernetes_names as kubernetes
from spotladder.cli.cluster.connected_cluster import ConnectedCluster, Object, on_cluster
from spotladder.cli.cluster.waiting import OutageTolerance
from spotladder.cli.local.selection import refuse_run
from spotladder.cli.target import ClusterTarget
from spotladder.clusters.errors import NotFound
from spotladder.display import job_text
from spotladder.resources import TIEREDJOBS

POLL_INTERVAL = 0.5

REPORT_DELAY = 5.0
"""Seconds after which the command prints what it waits for."""

NO_ANSWER_TIMEOUT = 300.0
"""Seconds for which the API server may fail to answer while the command waits."""


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


async def requested(cluster: ConnectedCluster, job: Object, *, force: bool = False) -> None:
    """Ask the API server to delete the job; the controller then commits and stops it."""
    from spotladder.api.stored import FORCE_DELETE

    name, uid = job["metadata"]["name"], job["metadata"]["uid"]
    try:
        if force:
            body = {"metadata": {"uid": uid, "annotations": {FORCE_DELETE: "true"}}}
            await cluster.client.merge(TIEREDJOBS, name, cluster.namespace, body=body)
        await cluster.client.delete(TIEREDJOBS, name, cluster.namespace, uid=uid)
    except NotFound:
        pass  # another client has deleted it


async def until_gone(cluster: ConnectedCluster, job: Object) -> None:
    """Wait until the job and its objects do not exist any more; print what the deletion waits for."""
    import asyncio
    import time

    name, reported, found, tolerance = job["metadata"]["name"], "", job, OutageTolerance(NO_ANSWER_TIMEOUT)
    began = time.monotonic()
    while True:
        try:
            with tolerance:
                found = await cluster.client.get(TIEREDJOBS, name, cluster.namespace)
        except NotFound:
            return
        if found["metadata"]["uid"] != job["metadata"]["uid"]:
            return  # a new job of the same name
        waits = waits_for(found) if time.monotonic() - began >= REPORT_DELAY else ""
        if waits and waits != reported:
            reported = waits
            typer.echo(f"tieredjob {name} is not deleted yet: {reported}", err=True)
        await asyncio.sleep(POLL_INTERVAL)


def waits_for(job: Object) -> str:
    """What the deletion of a TieredJob waits for, as a message for the user; "" if unknown."""
    from spotladder.api.stored import FINALIZER

    metadata, status = job["metadata"], job.get("status") or {}
    finalizers = metadata.get("finalizers") or []
    if FINALIZER not in finalizers:
        return f"waiting for the finalizers {', '.join(finalizers)}" if finalizers else ""
    if (status.get("observedGeneration") or 0) < metadata.get("generation", 0):
        return (
            "no controller has seen the deletion: check that a controller runs and reconciles this namespace "
            "(kubectl get pods -A -l app.kubernetes.io/name=spotladder)"
        )
    degraded = job_text.condition(job, "Degraded")
    if degraded.get("status") == "True":
        return str(degraded.get("message", ""))
    where = f"attempt {status.get('attempt')} on {status.get('tier')}"
    if status.get("phase") == "Draining":
        return f"{where} commits and stops"
    return f"the controller removes {where}" if status.get("attempt") else ""
