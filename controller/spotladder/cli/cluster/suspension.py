"""`spotladder suspend` and `resume`: change whether a job may hold nodes."""

from __future__ import annotations

import math
import time
from typing import Annotated

import typer

from spotladder.cli.cluster.connected_cluster import on_cluster
from spotladder.cli.local.selection import refuse_run
from spotladder.cli.option_errors import seconds
from spotladder.cli.options import JobArgument
from spotladder.cli.target import ClusterTarget
from spotladder.display import job_text
from spotladder.errors import EnvironmentFailure, Refused
from spotladder.jobs.connected_cluster import ConnectedCluster, Object
from spotladder.jobs.waiting import OutageTolerance
from spotladder.resources import TIEREDJOBS

POLL_INTERVAL = 0.5
"""Seconds between two polls of a job that is being suspended."""

SUSPEND_TIMEOUT = "10m"


def suspend(
    name: JobArgument,
    *,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until the nodes are released.")] = False,
    timeout: Annotated[
        str | None, typer.Option(metavar="DURATION", help=f"With --wait: maximum wait. Default: {SUSPEND_TIMEOUT}.")
    ] = None,
    target: ClusterTarget,
) -> None:
    """Commit a job and release its nodes until it is resumed. Without --wait, the command returns at once.

    \b
    Examples:
      spotladder suspend digits
      spotladder suspend digits --wait --timeout 2m
    """
    if timeout is not None and not wait:
        raise Refused("--timeout is only allowed with --wait")
    longest = seconds("--timeout", timeout or SUSPEND_TIMEOUT)
    refuse_run("suspend", name, target, "press Ctrl-C where spotladder run runs, and the job commits and stops")

    async def run(cluster: ConnectedCluster) -> Object:
        job = await _set(cluster, name, suspended=True)
        return await _until_suspended(cluster, job, longest) if wait else job

    job = on_cluster(target, run)
    status = job.get("status") or {}
    if wait:
        step = (status.get("progress") or {}).get("text")
        typer.echo(f"tieredjob {name} is {status.get('phase')}, " + (f"step {step}" if step else "nothing committed"))
    if status.get("phase") == "Failed":
        raise typer.Exit(job_text.exit_code(job))


def resume(name: JobArgument, *, target: ClusterTarget) -> None:
    """Continue a suspended job from its newest commit.

    \b
    Examples:
      spotladder resume digits
    """
    refuse_run("resume", name, target, "spotladder run JOB.yaml --continue resumes it")
    on_cluster(target, lambda cluster: _set(cluster, name, suspended=False))


async def _set(cluster: ConnectedCluster, name: str, *, suspended: bool) -> Object:
    job = await cluster.job(name)
    phase = (job.get("status") or {}).get("phase")
    if phase in job_text.ENDED:
        raise Refused(f"tieredjob {name} is {phase}: it cannot be {'suspended' if suspended else 'resumed'}")
    word = "suspended" if suspended else "resumed"
    if bool(job["spec"].get("suspend")) is suspended:
        typer.echo(f"tieredjob.spotladder.io/{name} already {word}")
        return job
    body = {"spec": {"suspend": suspended}}
    job = await cluster.client.merge(TIEREDJOBS, name, cluster.namespace, body=body)
    typer.echo(f"tieredjob.spotladder.io/{name} {word}")
    return job


async def _until_suspended(cluster: ConnectedCluster, job: Object, longest: float) -> Object:
    import asyncio

    name, end, tolerance = job["metadata"]["name"], time.monotonic() + longest, OutageTolerance(math.inf)
    while True:
        with tolerance:
            job = await cluster.job(name)
        status = job.get("status") or {}
        current = status.get("observedGeneration") == job["metadata"]["generation"]
        if current and status.get("phase") in {"Suspended", *job_text.ENDED}:
            return job
        if time.monotonic() > end:
            if tolerance.error:
                raise tolerance.error
            seen = f"its phase is {status['phase']}" if status.get("phase") else "no controller has reconciled it"
            raise EnvironmentFailure(
                f"tieredjob {name} has not stopped within the timeout: {seen}; it stops after its drain"
            )
        await asyncio.sleep(POLL_INTERVAL)
