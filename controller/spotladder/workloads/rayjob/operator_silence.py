"""Whether KubeRay acts on an attempt."""

from __future__ import annotations

from spotladder.core.model import Instant
from spotladder.workloads.operators import silence
from spotladder.workloads.rayjob.records import SETTING_UP, rayclusters_of, rayjob_of
from spotladder.workloads.workload import AttemptObjects


def silent_kuberay(objects: AttemptObjects, now: Instant) -> str:
    """Why KubeRay does not act on the attempt; "" if it does, or still has time. `now` is the cluster's clock."""
    rayjob = rayjob_of(objects)
    if rayjob is None or rayjob.deleting or rayjob.suspended or objects.pods:
        return ""
    since = max(filter(None, (rayjob.created_at, rayjob.written_at)), default=None)
    if not rayjob.deployment_status:
        return silence(since, now, "KubeRay", f"RayJob {rayjob.name} has no status")
    if rayjob.deployment_status not in SETTING_UP:
        return ""
    if not rayclusters_of(objects):
        return silence(since, now, "KubeRay", f"RayJob {rayjob.name} has no RayCluster")
    silent_clusters = [cluster for cluster in rayclusters_of(objects) if not (cluster.acted_on or cluster.deleting)]
    return next(
        (silence(each.created_at, now, "KubeRay", f"RayCluster {each.name} has no status") for each in silent_clusters),
        "",
    )
