"""`spotladder submit`: jobs, and the capacity they name, from files to a cluster."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spotladder.cli.cluster.cluster import Cluster, Object, Refused, Target, on_cluster
from spotladder.cli.cluster.options import ContextOption, KubeconfigOption, NamespaceOption
from spotladder.cli.output import Format, OutputOption, print_data

if TYPE_CHECKING:
    from spotladder.api.document import Document


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

    The files are checked first, as `spotladder validate` does: when anything is wrong nothing is sent. CapacityTiers
    are created or updated before the jobs.

    \b
    Examples:
      spotladder submit job.yaml -n team-a
      spotladder submit job.yaml --watch
    """
    from spotladder.cli.cluster import shown

    documents = _read(files)
    jobs = [document for document in documents if document.data["kind"] == "TieredJob"]
    if follow and len(jobs) != 1:
        raise Refused(f"--watch follows one job, and there are {len(jobs)} in these files")
    target = Target(namespace, context, kubeconfig)

    async def send(cluster: Cluster) -> tuple[list[Object], list[str]]:
        _agree(jobs, namespace)
        lines, made = [], []
        for document in sorted(documents, key=lambda found: str(found.data["kind"])):  # CapacityTiers come first
            thing, word = await _send(cluster, document.data, update=update)
            made.append(thing)
            lines.append(f"{thing['kind'].lower()}.spotladder.io/{thing['metadata']['name']} {word}")
        for warning in await _missing_capacity(cluster, jobs):
            typer.echo(f"warning: {warning}", err=True)
        return made, lines

    made, lines = on_cluster(target, send)
    if output is not Format.TABLE:
        print_data(shown.cleaned(made[0]) if len(made) == 1 else shown.listed(made), output)
    else:
        typer.echo("\n".join(lines))
    if follow:
        from spotladder.cli.cluster.watch import follow_to_the_end

        job = made[-1]["metadata"]
        raise typer.Exit(follow_to_the_end(Target(job["namespace"], context, kubeconfig), job["name"]))


def _read(files: list[Path]) -> list[Document]:
    from spotladder.api.problems import InvalidDocument, Problem
    from spotladder.api.read import model_of, read_documents
    from spotladder.api.world import World
    from spotladder.errors import InvalidSpec

    documents: list[Document] = []
    problems: list[Problem] = []
    for file in files:
        found = read_documents(file)
        if not found:
            raise InvalidSpec("is empty; give a TieredJob", where=str(file))
        for document in found:
            try:
                if isinstance(model_of(document), World):
                    text = "is a world file, and a cluster is one: leave it out"
                    problems.append(Problem(document.where(()), "", text))
            except InvalidDocument as error:
                problems += error.problems
        documents += found
    if problems:
        raise InvalidDocument(problems)
    return documents


def _agree(jobs: list[Document], namespace: str | None) -> None:
    """As kubectl: a namespace in the file and another on the command line is a mistake."""
    for document in jobs:
        said = document.data["metadata"].get("namespace")
        if said and namespace and said != namespace:
            where = document.where(("metadata", "namespace"))
            raise Refused(f"{where}: the job says namespace {said}, --namespace says {namespace}: remove one of them")


async def _send(cluster: Cluster, body: Object, *, update: bool) -> tuple[Object, str]:
    from spotladder.clusters.errors import Conflict, NotFound
    from spotladder.operator.records import CAPACITYTIERS, TIEREDJOBS

    kind = TIEREDJOBS if body["kind"] == "TieredJob" else CAPACITYTIERS
    name = body["metadata"]["name"]
    if kind.namespaced:
        body = {**body, "metadata": {"namespace": cluster.namespace, **body["metadata"]}}
        if not update:
            try:
                return await cluster.client.create(kind, body), "created"
            except Conflict:
                where = body["metadata"]["namespace"]
                raise Refused(
                    f"tieredjob {name} is in namespace {where} already: "
                    "--update changes it; a new run needs another name, or `spotladder delete` first"
                ) from None
    try:
        before = await cluster.client.get(kind, name, body["metadata"].get("namespace", ""))
    except NotFound:
        before = None
    after = await cluster.client.apply(kind, body, force=True)
    if before is None:
        return after, "created"
    return after, "unchanged" if _version(before) == _version(after) else "configured"


def _version(thing: Object) -> str:
    return str(thing["metadata"]["resourceVersion"])


async def _missing_capacity(cluster: Cluster, jobs: list[Document]) -> list[str]:
    """Tiers whose capacity is not there (yet): the controller waits for it, and its user may have misspelt it."""
    from spotladder.errors import SpotladderError
    from spotladder.operator.records import CAPACITYTIERS

    try:
        pages = cluster.client.pages(CAPACITYTIERS)
        known = {tier["metadata"]["name"] async for page in pages for tier in page.items}
    except SpotladderError:
        return []  # who may submit jobs may not be allowed to see capacity
    return [
        f"{document.where(('spec', 'tiers', index, 'capacityTier'))}: "
        f"CapacityTier {tier['capacityTier']} does not exist in this cluster; the job waits for it"
        for document in jobs
        for index, tier in enumerate(document.data["spec"]["tiers"])
        if tier["capacityTier"] not in known
    ]
