"""`spotladder submit`: creates or updates the jobs and CapacityTiers of files in a cluster."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from spotladder.cli.cluster.connected_cluster import on_cluster
from spotladder.cli.cluster.watch import follow_to_the_end
from spotladder.cli.cluster.working_dir import Archive, with_source
from spotladder.cli.output import Format, OutputOption, print_data
from spotladder.cli.target import ClusterTarget
from spotladder.display import job_text
from spotladder.errors import Refused
from spotladder.jobs.connected_cluster import ConnectedCluster
from spotladder.jobs.sending import Sent
from spotladder.jobs.submission import checked, sent_to


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
        typer.Option(
            metavar="FILE", help="With --working-dir: install the packages of this requirements file or uv.lock."
        ),
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
    with_folder = partial(with_source, *Archive.of(working_dir, pip)) if working_dir else None
    made: list[Sent] = []

    async def send_all(cluster: ConnectedCluster) -> None:
        sending = sent_to(cluster, found, update=update, at_next_attempt=at_next_attempt, with_folder=with_folder)
        async for sent in sending:
            made.append(sent)  # noqa: PERF401 – what was sent before an error is reported

    try:
        on_cluster(target, send_all)
    finally:
        _report(made, output)  # even if the cluster rejects a later object
    if follow:
        job = made[-1].thing["metadata"]
        raise typer.Exit(follow_to_the_end(replace(target, namespace=job["namespace"]), job["name"]))


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
