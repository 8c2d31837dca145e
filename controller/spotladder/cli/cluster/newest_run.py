"""The newest run of a job in a cluster."""

from __future__ import annotations

from spotladder.api.stored import JobRecord, state_of, status_of
from spotladder.api.tieredjob import TieredJob
from spotladder.cli.cluster.connected_cluster import ConnectedCluster
from spotladder.clusters.errors import Forbidden, NotFound
from spotladder.core.model import JobState
from spotladder.errors import InvalidSpec
from spotladder.resources import TIEREDJOBS


async def run_there(cluster: ConnectedCluster, job: TieredJob) -> JobState | None:
    """The state of the job of this name in the cluster; None without one, or if it cannot be read."""
    namespace = job.metadata.namespace or cluster.namespace
    try:
        found = await cluster.client.get(TIEREDJOBS, job.metadata.name, namespace)
        return state_of(status_of(JobRecord.of(found)))
    except (NotFound, Forbidden, InvalidSpec):
        return None
