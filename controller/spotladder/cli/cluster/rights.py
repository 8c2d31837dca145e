"""Whether the user may write what the files hold: asked of the cluster before the first write."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spotladder.cli.cluster.cluster import Cluster

if TYPE_CHECKING:
    from spotladder.api.review import Review, Reviewed
    from spotladder.workloads.records import GVR


def namespace_of(job: Reviewed, default: str) -> str:
    """The namespace in the job's file, or `default` if the file has none."""
    return str(job.document.data["metadata"].get("namespace", default))


async def may_send(cluster: Cluster, files: Review, *, update: bool) -> None:
    """Raises EnvironmentFailure when the user has no right to write what the files hold."""
    from spotladder.errors import EnvironmentFailure
    from spotladder.operator.records import CAPACITYTIERS, TIEREDJOBS

    where = f"context {cluster.context}" if cluster.context else "the kubeconfig"
    tiers = [entry for entry in files.objects if entry.kind == CAPACITYTIERS.kind]
    if tiers and not await _may(cluster, "patch", CAPACITYTIERS, ""):
        names = ", ".join(entry.name for entry in tiers)
        raise EnvironmentFailure(
            f"{where}: you may not write CapacityTiers ({names}), which belong to the whole cluster: an administrator "
            "makes them. Submit the jobs alone, on CapacityTiers that the cluster has (kubectl get capacitytiers); "
            "nothing was sent"
        )
    verbs = ("patch",) if update else ("create", "patch")
    jobs = [entry for entry in files.objects if entry.kind == TIEREDJOBS.kind]
    for namespace in dict.fromkeys(namespace_of(entry, cluster.namespace) for entry in jobs):
        for verb in verbs:
            if not await _may(cluster, verb, TIEREDJOBS, namespace):
                raise EnvironmentFailure(
                    f"{where}: you may not {verb} TieredJobs in namespace {namespace}: an administrator can give you "
                    "Kubernetes' role edit there; nothing was sent"
                )


async def _may(cluster: Cluster, verb: str, kind: GVR, namespace: str) -> bool:
    """Whether the user has that right; also when the cluster does not say."""
    from spotladder.errors import SpotladderError
    from spotladder.workloads.records import ACCESS_REVIEWS

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
        return True  # the write itself shows it
    return bool((answer.get("status") or {}).get("allowed", True))
