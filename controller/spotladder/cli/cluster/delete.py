"""`spotladder delete`: a job and everything that was made for it."""

from __future__ import annotations

from typing import Annotated

import typer

from spotladder.cli.cluster import names as kubernetes
from spotladder.cli.cluster.cluster import Cluster, Object, Target, on_cluster
from spotladder.cli.cluster.options import ContextOption, KubeconfigOption, NamespaceOption
from spotladder.cli.cluster.waiting import Patience

PAUSE = 0.5

PATIENCE = 300.0
"""Seconds for which a cluster may give no answer while its jobs are waited for."""


def delete(
    names: Annotated[list[str], typer.Argument(metavar="NAME...", parser=kubernetes.job, help="TieredJobs.")],
    *,
    wait: Annotated[bool, typer.Option(help="Return when nothing is left of them.")] = True,
    force: Annotated[
        bool, typer.Option("--force", help="Let go of what cannot be reached, e.g. in a cluster that is gone.")
    ] = False,
    namespace: NamespaceOption = None,
    context: ContextOption = None,
    kubeconfig: KubeconfigOption = None,
) -> None:
    """Delete jobs: each commits, gives its nodes back, and goes. Its checkpoints stay.

    \b
    Examples:
      spotladder delete digits
      spotladder delete digits --no-wait
    """

    async def run(cluster: Cluster) -> None:
        jobs = [await cluster.job(name) for name in names]
        for job in jobs:
            await _delete(cluster, job, force=force)
        for job in jobs if wait else ():
            await _until_gone(cluster, job)

    on_cluster(Target(namespace, context, kubeconfig), run)


async def _delete(cluster: Cluster, job: Object, *, force: bool) -> None:
    from spotladder.clusters.errors import NotFound
    from spotladder.operator.records import FORCE_DELETE, TIEREDJOBS

    name, uid = job["metadata"]["name"], job["metadata"]["uid"]
    try:
        if force:
            body = {"metadata": {"uid": uid, "annotations": {FORCE_DELETE: "true"}}}
            await cluster.client.merge(TIEREDJOBS, name, cluster.namespace, body=body)
        await cluster.client.delete(TIEREDJOBS, name, cluster.namespace, uid=uid)
    except NotFound:
        pass  # somebody else was quicker
    typer.echo(f"tieredjob.spotladder.io/{name} deleted")


async def _until_gone(cluster: Cluster, job: Object) -> None:
    import asyncio

    from spotladder.cli.cluster import shown
    from spotladder.clusters.errors import NotFound
    from spotladder.operator.records import TIEREDJOBS

    name, told, found, patience = job["metadata"]["name"], "", job, Patience(PATIENCE)
    while True:
        try:
            with patience:
                found = await cluster.client.get(TIEREDJOBS, name, cluster.namespace)
        except NotFound:
            return
        if found["metadata"]["uid"] != job["metadata"]["uid"]:
            return  # another of the same name
        degraded = shown.condition(found, "Degraded")
        if degraded.get("status") == "True" and degraded.get("message") != told:
            told = degraded.get("message", "")
            typer.echo(f"tieredjob {name} is not gone yet: {told}", err=True)
        await asyncio.sleep(PAUSE)
