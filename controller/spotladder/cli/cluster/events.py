"""`spotladder events`: shows the Events of a job, oldest first."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from spotladder.cli.cluster.connected_cluster import on_cluster
from spotladder.cli.local.selection import refuse_run
from spotladder.cli.options import ContextForOption, JobArgument, contexts_given
from spotladder.cli.output import Format, OutputOption, print_data, print_table
from spotladder.cli.target import ClusterTarget
from spotladder.display import job_text
from spotladder.display.figures import span
from spotladder.errors import SpotladderError
from spotladder.jobs.attempt_clusters import AttemptClusters, clusters_of
from spotladder.jobs.connected_cluster import ConnectedCluster, Object
from spotladder.places.attempt_output import HERE, is_home
from spotladder.resources import EVENTS
from spotladder.timestamps import seconds_of

_Located = tuple[str, Object]
"""The name of a cluster, and an Event in it."""

COLUMNS = ("Age", "Type", "Reason", "Object", "Message")


def events(
    name: JobArgument,
    *,
    everything: Annotated[
        bool,
        typer.Option("--all", help="Include the Events of its attempts' RayJobs, JobSets and pods, in all clusters."),
    ] = False,
    context_for: ContextForOption = None,
    output: OutputOption = Format.TABLE,
    target: ClusterTarget,
) -> None:
    """Show the Events of a job, oldest first. Clusters keep Events for about an hour; `report` shows older attempts.

    \b
    Examples:
      spotladder events digits
      spotladder events digits --all
      spotladder events digits --all --context-for east=prod-us-east-1
    """

    contexts = contexts_given(context_for)
    refuse_run("events", name, target, f"spotladder report {name} shows what happened")

    async def find(cluster: ConnectedCluster) -> list[_Located]:
        job = await cluster.job(name)
        if not everything:
            return [(HERE, event) for event in await of_job(cluster, job)]
        async with AttemptClusters(cluster, target.kubeconfig, contexts) as clusters:
            return await _attempts_too(cluster, clusters, job)

    found = on_cluster(target, find)
    if output is not Format.TABLE:
        about = {"apiVersion": "v1", "kind": "Event"}
        print_data(job_text.listed([{**about, **event} for _where, event in found]), output)
    elif found:
        now, rows = time.time(), []
        several = any(where != HERE for where, _event in found)
        for where, event in found:
            age, *rest = _row(event, now)
            rows.append((age, where or "–", *rest) if several else (age, *rest))
        print_table((COLUMNS[0], "Cluster", *COLUMNS[1:]) if several else COLUMNS, rows)
    else:
        typer.echo(f"No Events found for tieredjob {name}.", err=True)


async def of_job(cluster: ConnectedCluster, job: Object) -> list[Object]:
    """The Events of this TieredJob (by uid), oldest first."""
    metadata = job["metadata"]
    fields = f"involvedObject.kind=TieredJob,involvedObject.name={metadata['name']}"
    found = await _list(cluster, fields)
    return [event for event in found if event["involvedObject"].get("uid") in (metadata["uid"], None)]


async def _attempts_too(home: ConnectedCluster, clusters: AttemptClusters, job: Object) -> list[_Located]:
    """The Events of the job and of its attempts in all clusters. Prints a line for each cluster that cannot be read."""
    found = [(HERE, event) for event in await of_job(home, job)]
    for name in (HERE, *clusters_of(job)):
        try:
            async with clusters.on(name) as cluster:
                found += [(name, event) for event in await _of_attempts(cluster, job)]
        except SpotladderError as error:
            if is_home(name):
                raise
            typer.echo(f"Events of cluster {name} are missing: {error}", err=True)
    return sorted(found, key=lambda located: when(located[1]))


async def _of_attempts(cluster: ConnectedCluster, job: Object) -> list[Object]:
    """The Events of the job's attempts since its creation: those of a deleted job had the same names."""
    from spotladder.workloads.kinds import longest_attempt_name
    from spotladder.workloads.names import attempt_name

    last = (job.get("status") or {}).get("attempt") or 0
    name, longest = job["metadata"]["name"], longest_attempt_name(job["spec"]["workload"])
    since = seconds_of(job["metadata"]["creationTimestamp"])
    names = tuple(attempt_name(name, number, longest) for number in range(1, last + 1))
    return [
        event
        for event in await _list(cluster, "involvedObject.kind!=TieredJob")
        if event["involvedObject"].get("name", "").startswith(names) and when(event) >= since
    ]


async def _list(cluster: ConnectedCluster, fields: str) -> list[Object]:
    pages = cluster.client.pages(EVENTS, cluster.namespace, fields=fields)
    return sorted([event async for page in pages for event in page.items], key=when)


def when(event: Object) -> float:
    """Time of the last occurrence. Components set different fields."""
    from spotladder.workloads.records import EventRecord

    return EventRecord.of(event).at or 0.0


def _row(event: Object, now: float) -> tuple[str, ...]:
    about = event["involvedObject"]
    count = (event.get("series") or {}).get("count") or event.get("count") or 1
    return (
        span(now - when(event)),
        event.get("type", ""),
        event.get("reason", ""),
        f"{about.get('kind', '').lower()}/{about.get('name', '')}",
        " ".join(event.get("message", "").split()) + (f" (×{count})" if count > 1 else ""),
    )
