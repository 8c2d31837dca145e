"""`spotladder submit`: creates or updates the jobs and CapacityTiers of files in a cluster."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from spotladder.api.capacitytier import CapacityTier
from spotladder.api.manifest import manifest
from spotladder.api.problems import InvalidDocument
from spotladder.api.review import Review, review
from spotladder.api.tieredjob import TieredJob
from spotladder.cli.cluster.connected_cluster import ConnectedCluster, on_cluster
from spotladder.cli.cluster.job_namespace import namespace_problems
from spotladder.cli.cluster.preflight import check_in_cluster
from spotladder.cli.cluster.sending import Sent, send
from spotladder.cli.cluster.watch import follow_to_the_end
from spotladder.cli.cluster.working_dir import Archive, with_source
from spotladder.cli.output import Format, OutputOption, print_data
from spotladder.cli.target import ClusterTarget, Refused
from spotladder.core.model import UpdateStrategy
from spotladder.display import job_text
from spotladder.workloads.file_review import for_cluster


def submit(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE...", help="YAML files with TieredJobs and CapacityTiers; - is stdin.")
    ],
    *,
    update: Annotated[
        bool, typer.Option("--update", help="Update existing jobs; without this flag they are an error.")
    ] = False,
    at_next_attempt: Annotated[
        bool, typer.Option("--at-next-attempt", help="With --update: pod changes take effect with the next attempt.")
    ] = False,
    working_dir: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Run the job with the files of this folder: no image to build."),
    ] = None,
    pip: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="With --working-dir: install these requirements, a file in the folder."),
    ] = None,
    follow: Annotated[bool, typer.Option("--watch", "-w", help="Watch the job until it ends.")] = False,
    output: OutputOption = Format.TABLE,
    target: ClusterTarget,
) -> None:
    """Validate jobs and create them in a cluster.

    All files are validated first, as by `spotladder validate --for-cluster`, and checked against the cluster. If a
    check fails, or a job already exists, nothing is sent. CapacityTiers are created or updated before the jobs.

    --update changes existing jobs: it removes fields that are no longer in the file and prints the changes. Changes of
    pods (image, workers, resources) take effect with a planned next attempt: the job commits, stops and continues on
    the same tier. With --at-next-attempt (spec.updateStrategy) the running attempt is not interrupted.

    --working-dir uploads the folder, without what .gitignore and .rayignore exclude, to checkpoints.uri, with the
    credentials of this machine (spec.source). Every pod of every attempt unpacks the same files, and its program
    starts among them.

    \b
    Examples:
      spotladder submit job.yaml -n team-a
      spotladder submit job.yaml --working-dir . --pip requirements.txt
      spotladder submit capacity.yaml job.yaml --watch
      spotladder submit job.yaml --update --at-next-attempt
    """
    found = checked(files, target.namespace, update=update)
    jobs = [entry for entry in found.objects if entry.kind == "TieredJob"]
    if follow and len(jobs) != 1:
        raise Refused(f"--watch follows one job, but the files contain {len(jobs)}")
    if at_next_attempt and not update:
        raise Refused("--at-next-attempt is only allowed with --update")
    if pip and not working_dir:
        raise Refused("--pip is only allowed with --working-dir")
    folder = Archive.of(working_dir, pip) if working_dir else None
    made: list[Sent] = []

    async def send_all(cluster: ConnectedCluster) -> None:
        sending = sent_to(cluster, found, update=update, at_next_attempt=at_next_attempt, folder=folder)
        async for sent in sending:
            made.append(sent)  # noqa: PERF401 – what was sent before an error is reported

    try:
        on_cluster(target, send_all)
    finally:
        _report(made, output)  # even if the cluster rejects a later object
    if follow:
        job = made[-1].thing["metadata"]
        raise typer.Exit(follow_to_the_end(replace(target, namespace=job["namespace"]), job["name"]))


def checked(files: Sequence[Path], namespace: str | None, *, update: bool) -> Review:
    """The files, validated without the cluster. Raises InvalidDocument."""
    found = review(list(dict.fromkeys(files)), more_capacity=True, now=None if update else time.time())
    found = found.with_problems([*for_cluster(found), *namespace_problems(found, namespace)])
    if found.problems:
        raise InvalidDocument(found.problems)
    return found


async def sent_to(
    cluster: ConnectedCluster,
    found: Review,
    *,
    update: bool,
    at_next_attempt: bool = False,
    folder: tuple[Archive, str | None] | None = None,
) -> AsyncIterator[Sent]:
    """Check the objects against the cluster, then send them, CapacityTiers first. Jobs get the files of `folder`, an
    archive and the path of its requirements file. Raises InvalidDocument and Refused."""
    await check_in_cluster(cluster, found, update=update, has_folder=folder is not None)
    bodies = (manifest(entry.model) for entry in found.objects if isinstance(entry.model, TieredJob | CapacityTier))
    for body in sorted(bodies, key=lambda body: str(body["kind"])):
        if at_next_attempt and body["kind"] == "TieredJob":
            body["spec"]["updateStrategy"] = UpdateStrategy.AT_NEXT_ATTEMPT.value
        if folder and body["kind"] == "TieredJob":
            body = with_source(body, *folder)  # noqa: PLW2901
        yield await send(cluster, body, update=update)


def _report(made: list[Sent], output: Format) -> None:
    things = [sent.thing for sent in made]
    if output is Format.TABLE:
        for sent in made:
            name = sent.thing["metadata"]["name"]
            typer.echo(f"{sent.thing['kind'].lower()}.spotladder.io/{name} {sent.word}")
            for line in sent.changes:
                typer.echo(f"  {line}")
            if sent.effect:
                typer.echo(f"  {sent.effect}")
    elif things:
        print_data(job_text.cleaned(things[0]) if len(things) == 1 else job_text.listed(things), output)
