"""`spotladder get`: lists jobs, or shows the named ones: runs on this machine and jobs of a cluster."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from spotladder.cli import kubernetes_names as kubernetes
from spotladder.cli.cluster.connected_cluster import on_cluster
from spotladder.cli.local.selection import StateDirOption, is_local, run_of, state_folder
from spotladder.cli.output import Format, OutputOption, print_data, print_table
from spotladder.cli.target import ClusterTarget
from spotladder.display import job_text
from spotladder.errors import EnvironmentFailure, Refused, SpotladderError
from spotladder.jobs.connected_cluster import ConnectedCluster, Object
from spotladder.local.local_run import local_runs
from spotladder.resources import TIEREDJOBS

THIS_MACHINE = "this machine"

Located = tuple[str, Object]
"""Where a job runs, this machine or the context of a cluster, and the job."""


def get(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="NAME...", parser=kubernetes.job, help="Names of jobs. Default: all."),
    ] = None,
    *,
    everywhere: Annotated[
        bool, typer.Option("--all-namespaces", "-A", help="List the jobs of all namespaces.")
    ] = False,
    deleted: Annotated[
        bool, typer.Option("--all", help="List deleted jobs, too, from the records in the buckets of the listed jobs.")
    ] = False,
    output: OutputOption = Format.TABLE,
    state_dir: StateDirOption = None,
    target: ClusterTarget,
) -> None:
    """List jobs with their phase, tier, progress and cost. With one name, show the job in detail.

    The list has the runs on this machine (spotladder run) and the jobs of the configured cluster. A run on this machine
    takes precedence over a job of the same name in the cluster. --context or --kubeconfig selects only the cluster,
    --state-dir only this machine.

    \b
    Examples:
      spotladder get
      spotladder get digits
      spotladder get --all
      spotladder get digits -n team-a --output yaml
    """
    if names and everywhere:
        raise Refused("NAME and --all-namespaces exclude each other: remove one of them")
    if names and deleted:
        raise Refused("NAME and --all exclude each other: remove one of them")
    if names:
        found = _named(names, target, state_dir)
    else:
        found = _all(target, state_dir, everywhere=everywhere, deleted=deleted)
    jobs = [job for _, job in found]
    if output is not Format.TABLE:
        print_data(job_text.cleaned(jobs[0]) if names and len(names) == 1 else job_text.listed(jobs), output)
    elif names and len(names) == 1:
        _print_details(jobs[0])
    elif found:
        _print_rows(found, namespaces=everywhere)


def _named(names: Sequence[str], target: ClusterTarget, state_dir: Path | None) -> list[Located]:
    """The jobs of these names, in their order. Raises Refused if one does not exist."""
    runs = {name: run for name in names if (run := run_of(name, target, state_dir)) is not None}
    found = {name: (THIS_MACHINE, run.as_job()) for name, run in runs.items()}
    if others := [name for name in names if name not in runs]:

        async def find(cluster: ConnectedCluster) -> list[Located]:
            return [(cluster.context, await cluster.job(name)) for name in others]

        found |= dict(zip(others, on_cluster(target, find), strict=True))
    return [found[name] for name in names]


def _all(target: ClusterTarget, state_dir: Path | None, *, everywhere: bool, deleted: bool) -> list[Located]:
    """The runs on this machine, then the jobs of the cluster, with its deleted ones last. If there are runs, a cluster
    that does not answer is a warning. Prints where it has looked if there is nothing."""
    runs = [] if target.is_explicit else _runs(None if everywhere else target.namespace, state_dir)
    if is_local(target, state_dir):
        if not runs:
            where = f"No runs found on this machine ({state_folder(state_dir)})"
            typer.echo(f"{where}; --kubeconfig or KUBECONFIG selects a cluster.", err=True)
        return runs
    try:
        namespace, jobs = on_cluster(target, lambda cluster: _jobs(cluster, everywhere=everywhere))
    except SpotladderError as error:
        if not runs:
            raise
        typer.echo(f"warning: the jobs of the cluster are missing: {error}", err=True)
        return runs
    if not runs and not jobs:
        typer.echo("No TieredJobs found." if everywhere else f"No TieredJobs found in namespace {namespace}.", err=True)
    return [*runs, *jobs, *(_deleted(jobs, "" if everywhere else namespace) if deleted else ())]


def _runs(namespace: str | None, state_dir: Path | None) -> list[Located]:
    """The runs on this machine. One that cannot be read is a warning."""
    found: list[Located] = []
    for run in local_runs(state_folder(state_dir)):
        if namespace in (None, run.namespace):
            try:
                found.append((THIS_MACHINE, run.as_job()))
            except EnvironmentFailure as error:
                typer.echo(f"warning: {error}", err=True)
    return found


async def _jobs(cluster: ConnectedCluster, *, everywhere: bool) -> tuple[str, list[Located]]:
    """The namespace of the target, and the jobs in it, or with `everywhere` in all namespaces."""
    about = {"apiVersion": TIEREDJOBS.api_version, "kind": TIEREDJOBS.kind}
    pages = cluster.client.pages(TIEREDJOBS, "" if everywhere else cluster.namespace)
    return cluster.namespace, [(cluster.context, {**about, **job}) async for page in pages for job in page.items]


def _deleted(jobs: Sequence[Located], namespace: str) -> list[Located]:
    """The deleted jobs of the namespace, or of all (""). A bucket that cannot be read is a warning."""
    from spotladder.places.deleted import deleted_from

    uris = [job["spec"]["checkpoints"]["uri"] for _, job in jobs]
    found, problems = deleted_from(uris, {job["metadata"]["uid"] for _, job in jobs}, namespace)
    for problem in problems:
        typer.echo(f"warning: deleted jobs may be missing: {problem}", err=True)
    return [(jobs[0][0], job) for _, job in found]  # All are of one cluster, and without jobs no bucket is searched.


def _print_rows(found: Sequence[Located], *, namespaces: bool) -> None:
    places = [place for place, _ in found]
    jobs = [job for _, job in found]
    columns, rows = job_text.rows(jobs, namespaces=namespaces or THIS_MACHINE in places)
    if len(set(places)) > 1:
        columns = ("Cluster", *columns)
        rows = [(place, *row) for place, row in zip(places, rows, strict=True)]
    print_table(columns, rows)


def _print_details(job: Object) -> None:
    now = time.time()
    print_table(("Namespace", *job_text.COLUMNS), [(job["metadata"]["namespace"], *job_text.row(job, now))])
    lines = job_text.details(job, now)
    if lines:
        typer.echo()
    for label, text in lines:
        typer.echo(f"{label:<9}{text}")
