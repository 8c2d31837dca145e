"""`spotladder submit`: jobs, and the capacity they name, from files to a cluster."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spotladder.cli.cluster import display
from spotladder.cli.cluster.cluster import Cluster, Refused, Target, on_cluster
from spotladder.cli.cluster.options import ContextOption, KubeconfigOption, NamespaceOption
from spotladder.cli.output import Format, OutputOption, print_data

if TYPE_CHECKING:
    from spotladder.api.review import Reviewed
    from spotladder.cli.cluster.sending import Sent


def submit(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE...", help="YAML files with TieredJobs and CapacityTiers; - is stdin.")
    ],
    *,
    update: Annotated[bool, typer.Option("--update", help="Change jobs that exist; else these are an error.")] = False,
    at_next_attempt: Annotated[
        bool, typer.Option("--at-next-attempt", help="With --update: changed pods wait for the next attempt.")
    ] = False,
    follow: Annotated[bool, typer.Option("--watch", "-w", help="Then watch the job until it has ended.")] = False,
    output: OutputOption = Format.TABLE,
    namespace: NamespaceOption = None,
    context: ContextOption = None,
    kubeconfig: KubeconfigOption = None,
) -> None:
    """Check jobs and hand them to a cluster.

    All files are checked first, as `spotladder validate --cluster` does, and against what the cluster has: when
    anything is wrong, or a job exists already, nothing is sent. CapacityTiers are created or updated before the jobs.

    --update changes jobs that exist: fields that are not in the file any more are removed, and the changes are shown.
    Pods that change (image, workers, resources) take effect with a planned next attempt: the job commits, stops and
    goes on on the same tier; with --at-next-attempt (spec.updateStrategy) the running attempt is left alone.

    \b
    Examples:
      spotladder submit job.yaml -n team-a
      spotladder submit capacity.yaml job.yaml --watch
      spotladder submit job.yaml --update --at-next-attempt
    """
    from spotladder.api.capacitytier import CapacityTier
    from spotladder.api.manifest import manifest
    from spotladder.api.problems import InvalidDocument
    from spotladder.api.review import review
    from spotladder.api.tieredjob import TieredJob
    from spotladder.cli.cluster.preflight import look
    from spotladder.cli.cluster.sending import send
    from spotladder.core.model import UpdateStrategy
    from spotladder.workloads.review import for_cluster

    found = review(list(dict.fromkeys(files)), more_capacity=True, now=None if update else time.time())
    found = found.with_problems(for_cluster(found))
    if found.problems:
        raise InvalidDocument(found.problems)
    jobs = [entry for entry in found.objects if entry.kind == "TieredJob"]
    if follow and len(jobs) != 1:
        raise Refused(f"--watch follows one job, and there are {len(jobs)} in these files")
    if at_next_attempt and not update:
        raise Refused("--at-next-attempt says when a change takes effect: it needs --update")
    _agree(jobs, namespace)
    made: list[Sent] = []

    async def send_all(cluster: Cluster) -> None:
        await look(cluster, found, update=update)
        bodies = (manifest(e.model) for e in found.objects if isinstance(e.model, TieredJob | CapacityTier))
        for body in sorted(bodies, key=lambda body: str(body["kind"])):  # CapacityTiers come first
            if at_next_attempt and body["kind"] == "TieredJob":
                body["spec"]["updateStrategy"] = UpdateStrategy.AT_NEXT_ATTEMPT.value
            made.append(await send(cluster, body, update=update))

    try:
        on_cluster(Target(namespace, context, kubeconfig), send_all)
    finally:
        _tell(made, output)  # also when a later one was refused
    if follow:
        from spotladder.cli.cluster.watch import follow_to_the_end

        job = made[-1].thing["metadata"]
        raise typer.Exit(follow_to_the_end(Target(job["namespace"], context, kubeconfig), job["name"]))


def _tell(made: list[Sent], output: Format) -> None:

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
        print_data(display.cleaned(things[0]) if len(things) == 1 else display.listed(things), output)


def _agree(jobs: list[Reviewed], namespace: str | None) -> None:
    """As kubectl: a namespace in the file and another on the command line is a mistake."""
    for job in jobs:
        said = job.document.data["metadata"].get("namespace")
        if said and namespace and said != namespace:
            where = job.document.where(("metadata", "namespace"))
            raise Refused(f"{where}: the job says namespace {said}, --namespace says {namespace}: remove one of them")
