"""`spotladder submit`: jobs, and the capacity they name, from files to a cluster."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spotladder.cli.cluster.cluster import Cluster, Object, Refused, Target, on_cluster
from spotladder.cli.cluster.options import ContextOption, KubeconfigOption, NamespaceOption
from spotladder.cli.output import Format, OutputOption, print_data

if TYPE_CHECKING:
    from spotladder.api.review import Reviewed


def submit(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE...", help="YAML files with TieredJobs and CapacityTiers; - is stdin.")
    ],
    *,
    update: Annotated[bool, typer.Option("--update", help="Change jobs that exist; else these are an error.")] = False,
    follow: Annotated[bool, typer.Option("--watch", "-w", help="Then watch the job until it has ended.")] = False,
    output: OutputOption = Format.TABLE,
    namespace: NamespaceOption = None,
    context: ContextOption = None,
    kubeconfig: KubeconfigOption = None,
) -> None:
    """Check jobs and hand them to a cluster.

    All files are checked first, as `spotladder validate --cluster` does, and against what the cluster has: when
    anything is wrong, or a job exists already, nothing is sent. CapacityTiers are created or updated before the jobs.

    \b
    Examples:
      spotladder submit job.yaml -n team-a
      spotladder submit capacity.yaml job.yaml --watch
    """
    from spotladder.api.capacitytier import CapacityTier
    from spotladder.api.manifest import manifest
    from spotladder.api.problems import InvalidDocument
    from spotladder.api.review import review
    from spotladder.api.tieredjob import TieredJob
    from spotladder.cli.cluster.beforehand import look
    from spotladder.workloads.review import for_cluster

    found = review(list(dict.fromkeys(files)), more_capacity=True, now=None if update else time.time())
    found = found.with_problems(for_cluster(found))
    if found.problems:
        raise InvalidDocument(found.problems)
    jobs = [entry for entry in found.objects if entry.kind == "TieredJob"]
    if follow and len(jobs) != 1:
        raise Refused(f"--watch follows one job, and there are {len(jobs)} in these files")
    _agree(jobs, namespace)
    made: list[tuple[Object, str]] = []

    async def send(cluster: Cluster) -> None:
        await look(cluster, found, update=update)
        bodies = (manifest(e.model) for e in found.objects if isinstance(e.model, TieredJob | CapacityTier))
        for body in sorted(bodies, key=lambda body: str(body["kind"])):  # CapacityTiers come first
            thing, word = await _send(cluster, body, update=update)
            made.append((thing, word))

    try:
        on_cluster(Target(namespace, context, kubeconfig), send)
    finally:
        _tell(made, output)  # also when a later one was refused
    if follow:
        from spotladder.cli.cluster.watch import follow_to_the_end

        job = made[-1][0]["metadata"]
        raise typer.Exit(follow_to_the_end(Target(job["namespace"], context, kubeconfig), job["name"]))


def _tell(made: list[tuple[Object, str]], output: Format) -> None:
    from spotladder.cli.cluster import shown

    things = [thing for thing, _ in made]
    if output is Format.TABLE:
        for thing, word in made:
            typer.echo(f"{thing['kind'].lower()}.spotladder.io/{thing['metadata']['name']} {word}")
    elif things:
        print_data(shown.cleaned(things[0]) if len(things) == 1 else shown.listed(things), output)


def _agree(jobs: list[Reviewed], namespace: str | None) -> None:
    """As kubectl: a namespace in the file and another on the command line is a mistake."""
    for job in jobs:
        said = job.document.data["metadata"].get("namespace")
        if said and namespace and said != namespace:
            where = job.document.where(("metadata", "namespace"))
            raise Refused(f"{where}: the job says namespace {said}, --namespace says {namespace}: remove one of them")


async def _send(cluster: Cluster, body: Object, *, update: bool) -> tuple[Object, str]:
    from spotladder.cli.cluster.beforehand import exists
    from spotladder.clusters.errors import Conflict, NotFound
    from spotladder.operator.records import CAPACITYTIERS, TIEREDJOBS

    kind = TIEREDJOBS if body["kind"] == "TieredJob" else CAPACITYTIERS
    name, namespace = body["metadata"]["name"], ""
    if kind.namespaced:
        namespace = body["metadata"].setdefault("namespace", cluster.namespace)
        if not update:
            try:
                return await cluster.client.create(kind, body), "created"
            except Conflict:  # by somebody else, just now
                raise Refused(exists(name, namespace)) from None
    try:
        before = await cluster.client.get(kind, name, namespace)
    except NotFound:
        before = None
    after = await cluster.client.apply(kind, body, force=True)
    if before is None:
        return after, "created"
    return after, "unchanged" if _version(before) == _version(after) else "configured"


def _version(thing: Object) -> str:
    return str(thing["metadata"]["resourceVersion"])
