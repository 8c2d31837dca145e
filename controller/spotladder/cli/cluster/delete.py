"""`spotladder delete`: a job and everything that was made for it."""

from __future__ import annotations

from typing import Annotated

import typer

from spotladder.cli.cluster import display
from spotladder.cli.cluster import names as kubernetes
from spotladder.cli.cluster.cluster import Cluster, Object, Target, on_cluster
from spotladder.cli.cluster.options import ContextOption, KubeconfigOption, NamespaceOption
from spotladder.cli.cluster.waiting import OutageTolerance

PAUSE = 0.5

SAYS_AFTER = 5.0
"""Seconds after which the command says what it waits for."""

NO_ANSWER_TIMEOUT = 300.0
"""Seconds that a cluster may leave requests unanswered while the command waits for its jobs."""


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
    """Delete jobs: each commits, gives its nodes back, and goes. Its checkpoints and its kept output stay.

    Waits until nothing is left of them, and says what it waits for. Ctrl-C ends the waiting, not the deletion.

    \b
    Examples:
      spotladder delete digits
      spotladder delete digits --no-wait
    """

    async def run(cluster: Cluster) -> None:
        jobs = [await cluster.job(name) for name in names]
        for job in jobs:
            await _delete(cluster, job, force=force)
        for job in jobs:
            name = job["metadata"]["name"]
            if wait:
                await _until_gone(cluster, job)
            typer.echo(f"tieredjob.spotladder.io/{name} {'deleted' if wait else 'deletion requested'}")

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


async def _until_gone(cluster: Cluster, job: Object) -> None:
    import asyncio
    import time

    from spotladder.clusters.errors import NotFound
    from spotladder.operator.records import TIEREDJOBS

    name, told, found, tolerance = job["metadata"]["name"], "", job, OutageTolerance(NO_ANSWER_TIMEOUT)
    began = time.monotonic()
    while True:
        try:
            with tolerance:
                found = await cluster.client.get(TIEREDJOBS, name, cluster.namespace)
        except NotFound:
            return
        if found["metadata"]["uid"] != job["metadata"]["uid"]:
            return  # another of the same name
        waits = waits_for(found) if time.monotonic() - began >= SAYS_AFTER else ""
        if waits and waits != told:
            told = waits
            typer.echo(f"tieredjob {name} is not gone yet: {told}", err=True)
        await asyncio.sleep(PAUSE)


def waits_for(job: Object) -> str:
    """What keeps a TieredJob that is being deleted, in words for the user; "" when nothing is known to."""
    from spotladder.operator.records import FINALIZER

    metadata, status = job["metadata"], job.get("status") or {}
    finalizers = metadata.get("finalizers") or []
    if FINALIZER not in finalizers:
        return f"it has the finalizers {', '.join(finalizers)}" if finalizers else ""
    if (status.get("observedGeneration") or 0) < metadata.get("generation", 0):
        return (
            "no controller has taken note of the deletion: is one running, and does it look after this namespace? "
            "(kubectl get pods -A -l app.kubernetes.io/name=spotladder)"
        )
    degraded = display.condition(job, "Degraded")
    if degraded.get("status") == "True":
        return str(degraded.get("message", ""))
    where = f"attempt {status.get('attempt')} on {status.get('tier')}"
    if status.get("phase") == "Draining":
        return f"{where} commits and stops"
    return f"what is left of {where} is removed" if status.get("attempt") else ""
