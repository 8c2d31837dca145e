"""Checks the user's permissions for all objects in the files before the first write."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spotladder.cli.cluster.connected_cluster import ConnectedCluster
from spotladder.errors import EnvironmentFailure, SpotladderError
from spotladder.resources import ACCESS_REVIEWS, CAPACITYTIERS, TIEREDJOBS, APIResource

if TYPE_CHECKING:
    from spotladder.api.review import Review, Reviewed


def namespace_of(job: Reviewed, default: str) -> str:
    """The namespace in the job's file, or `default` if the file has none."""
    return str(job.document.data["metadata"].get("namespace", default))


async def may_send(cluster: ConnectedCluster, files: Review, *, update: bool) -> None:
    """Raises EnvironmentFailure if the user may not write an object in the files."""
    where = f"context {cluster.context}" if cluster.context else "the kubeconfig"
    tiers = [entry for entry in files.objects if entry.kind == CAPACITYTIERS.kind]
    if tiers and not await _may(cluster, "patch", CAPACITYTIERS, ""):
        names = ", ".join(entry.name for entry in tiers)
        raise EnvironmentFailure(
            f"{where}: you may not write CapacityTiers ({names}), which are cluster-scoped: ask an administrator to "
            "create them, and submit only the jobs, with existing CapacityTiers (kubectl get capacitytiers); "
            "nothing was sent"
        )
    verbs = ("patch",) if update else ("create", "patch")
    jobs = [entry for entry in files.objects if entry.kind == TIEREDJOBS.kind]
    for namespace in dict.fromkeys(namespace_of(entry, cluster.namespace) for entry in jobs):
        for verb in verbs:
            if not await _may(cluster, verb, TIEREDJOBS, namespace):
                raise EnvironmentFailure(
                    f"{where}: you may not {verb} TieredJobs in namespace {namespace}: ask an administrator for "
                    "Kubernetes' role edit in this namespace; nothing was sent"
                )


async def _may(cluster: ConnectedCluster, verb: str, kind: APIResource, namespace: str) -> bool:
    """Whether the user has the permission; True if the cluster does not answer."""
    asked = {"verb": verb, "group": kind.group, "resource": kind.plural, "namespace": namespace}
    body = {
        "apiVersion": ACCESS_REVIEWS.api_version,
        "kind": ACCESS_REVIEWS.kind,
        "metadata": {},
        "spec": {"resourceAttributes": asked},
    }
    try:
        answer = await cluster.client.create(ACCESS_REVIEWS, body)
    except SpotladderError:
        return True  # the write itself will fail
    return bool((answer.get("status") or {}).get("allowed", True))
