"""Deletes a job of a cluster, and waits until it is gone."""

from __future__ import annotations

import asyncio
import time

from spotladder.api.stored import FINALIZER, FORCE_DELETE
from spotladder.clusters.errors import NotFound
from spotladder.display import job_text
from spotladder.jobs.connected_cluster import ConnectedCluster, Object
from spotladder.jobs.remarks import remark
from spotladder.jobs.waiting import OutageTolerance
from spotladder.resources import TIEREDJOBS

POLL_INTERVAL = 0.5
"""Seconds between two reads of a job that is being deleted."""

REPORT_DELAY = 5.0
"""Seconds after which a message says what the deletion waits for."""

NO_ANSWER_TIMEOUT = 300.0
"""Seconds for which the API server may fail to answer during the wait for the deletion."""


async def requested(cluster: ConnectedCluster, job: Object, *, force: bool = False) -> None:
    """Ask the API server to delete the job; the controller then commits and stops it."""
    name, uid = job["metadata"]["name"], job["metadata"]["uid"]
    try:
        if force:
            body = {"metadata": {"uid": uid, "annotations": {FORCE_DELETE: "true"}}}
            await cluster.client.merge(TIEREDJOBS, name, cluster.namespace, body=body)
        await cluster.client.delete(TIEREDJOBS, name, cluster.namespace, uid=uid)
    except NotFound:
        pass  # another client has deleted it


async def until_gone(cluster: ConnectedCluster, job: Object) -> None:
    """Wait until the job and its objects do not exist any more; print what the deletion waits for."""
    name, reported, found, tolerance = job["metadata"]["name"], "", job, OutageTolerance(NO_ANSWER_TIMEOUT)
    began = time.monotonic()
    while True:
        try:
            with tolerance:
                found = await cluster.client.get(TIEREDJOBS, name, cluster.namespace)
        except NotFound:
            return
        if found["metadata"]["uid"] != job["metadata"]["uid"]:
            return  # a new job of the same name
        waits = waits_for(found) if time.monotonic() - began >= REPORT_DELAY else ""
        if waits and waits != reported:
            reported = waits
            remark(f"tieredjob {name} is not deleted yet: {reported}")
        await asyncio.sleep(POLL_INTERVAL)


def waits_for(job: Object) -> str:
    """What the deletion of a TieredJob waits for, as a message for the user; "" if unknown."""
    metadata, status = job["metadata"], job.get("status") or {}
    finalizers = metadata.get("finalizers") or []
    if FINALIZER not in finalizers:
        return f"waiting for the finalizers {', '.join(finalizers)}" if finalizers else ""
    if (status.get("observedGeneration") or 0) < metadata.get("generation", 0):
        return (
            "no controller has seen the deletion: check that a controller runs and reconciles this namespace "
            "(kubectl get pods -A -l app.kubernetes.io/name=spotladder)"
        )
    degraded = job_text.condition(job, "Degraded")
    if degraded.get("status") == "True":
        return str(degraded.get("message", ""))
    where = f"attempt {status.get('attempt')} on {status.get('tier')}"
    if status.get("phase") == "Draining":
        return f"{where} commits and stops"
    return f"the controller removes {where}" if status.get("attempt") else ""
