"""`spotladder get`: lists the jobs of a namespace, or shows the named ones."""

from __future__ import annotations

from typing import Annotated

import typer

from spotladder.cli.cluster import display
from spotladder.cli.cluster import kubernetes_names as kubernetes
from spotladder.cli.cluster.connected_cluster import ConnectedCluster, Object, on_cluster
from spotladder.cli.cluster.options import ContextOption, KubeconfigOption, NamespaceOption
from spotladder.cli.output import Format, OutputOption, print_data, print_table
from spotladder.cli.target import ClusterTarget, Refused


def get(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[NAME]...", parser=kubernetes.job, help="Names of TieredJobs. Default: all."),
    ] = None,
    *,
    everywhere: Annotated[
        bool, typer.Option("--all-namespaces", "-A", help="List the jobs of all namespaces.")
    ] = False,
    output: OutputOption = Format.TABLE,
    namespace: NamespaceOption = None,
    context: ContextOption = None,
    kubeconfig: KubeconfigOption = None,
) -> None:
    """List the jobs of a cluster with their phase, tier, progress and cost.

    \b
    Examples:
      spotladder get
      spotladder get digits -n team-a --output yaml
    """

    if names and everywhere:
        raise Refused("NAME and --all-namespaces exclude each other: remove one of them")

    async def find(cluster: ConnectedCluster) -> tuple[list[Object], str]:
        if names:
            return [await cluster.job(name) for name in names], cluster.namespace
        return await _all(cluster, "" if everywhere else cluster.namespace), cluster.namespace

    jobs, where = on_cluster(ClusterTarget(namespace, context, kubeconfig), find)
    if output is not Format.TABLE:
        print_data(display.cleaned(jobs[0]) if names and len(names) == 1 else display.listed(jobs), output)
    elif jobs:
        print_table(*display.rows(jobs, namespaces=everywhere))
        if names and len(names) == 1 and (shadow := display.shadow(jobs[0])):
            typer.echo(f"\nshadow   {shadow}")
    else:
        typer.echo("No TieredJobs found." if everywhere else f"No TieredJobs found in namespace {where}.", err=True)


async def _all(cluster: ConnectedCluster, namespace: str) -> list[Object]:
    from spotladder.resources import TIEREDJOBS

    about = {"apiVersion": TIEREDJOBS.api_version, "kind": TIEREDJOBS.kind}
    return [{**about, **job} async for page in cluster.client.pages(TIEREDJOBS, namespace) for job in page.items]
