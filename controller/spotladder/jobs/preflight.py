"""Checks files against the cluster before `spotladder submit` writes the first object."""

from __future__ import annotations

from collections.abc import Mapping

from spotladder.api.capacitytier import CapacityTier
from spotladder.api.manifest import manifest
from spotladder.api.missing_capacity import missing_capacity
from spotladder.api.problems import InvalidDocument
from spotladder.api.review import Review, Reviewed, taken_names
from spotladder.api.stored import CapacityRecord
from spotladder.api.tieredjob import TieredJob
from spotladder.clusters.errors import Forbidden, NotFound
from spotladder.errors import EnvironmentFailure, Refused
from spotladder.jobs.connected_cluster import ConnectedCluster, Object
from spotladder.jobs.remarks import remark
from spotladder.resources import CAPACITYTIERS, TIEREDJOBS
from spotladder.workloads.file_review import for_cluster, warnings


async def check_in_cluster(cluster: ConnectedCluster, files: Review, *, update: bool, has_folder: bool = False) -> None:
    """Check the files and warn about missing capacity. Raises InvalidDocument and Refused if a file cannot be sent.
    `has_folder`: the jobs get the files of --working-dir."""
    known = await _capacity(cluster)
    valid = {name: record.model for name, record in (known or {}).items() if record.model is not None}
    given = {entry.name: entry.model for entry in files.objects if isinstance(entry.model, CapacityTier)}
    jobs = [(entry, entry.model) for entry in files.objects if isinstance(entry.model, TieredJob)]
    # A job without a namespace gets the one of the command, which another job may name.
    named = (((entry.kind, namespace_of(entry, cluster.namespace), entry.name), entry.document) for entry, _ in jobs)
    problems = [*for_cluster(files, valid), *taken_names(named)]
    if given and known is not None:
        everywhere = dict.fromkeys((*known, *given))
        nowhere = "is neither a CapacityTier in these files nor in the cluster"
        for entry, job in jobs:
            problems += missing_capacity(job, everywhere, entry.document, nowhere=nowhere)
    if problems:
        raise InvalidDocument(problems)
    refusals = [
        await (_loses_files(cluster, entry, job, has_folder=has_folder) if update else _exists(cluster, entry))
        for entry, job in jobs
    ]
    if any(refusals):
        raise Refused("\n".join(filter(None, refusals)))
    await _rehearse(cluster, files)
    for warning in warnings(files):
        remark(f"warning: {warning}")
    for entry, job in jobs:
        for index, tier in enumerate(job.spec.tiers):
            if known is not None and tier.capacity_tier not in known and not given:
                where = entry.document.where(("spec", "tiers", index, "capacityTier"))
                missing = f"CapacityTier {tier.capacity_tier} does not exist in this cluster; the job waits for it"
                remark(f"warning: {where}: {missing}")


def exists(name: str, namespace: str) -> str:
    """The error for a job that already exists."""
    return (
        f"tieredjob {name} already exists in namespace {namespace}: "
        "use --update to change it; to start again, use another name, or `spotladder delete` first"
    )


async def _capacity(cluster: ConnectedCluster) -> Mapping[str, CapacityRecord] | None:
    """The cluster's CapacityTiers; None if the user may not list them. Submitting jobs does not need that
    permission."""
    try:
        pages = cluster.client.pages(CAPACITYTIERS)
        return {thing["metadata"]["name"]: CapacityRecord.of(thing) async for page in pages for thing in page.items}
    except Forbidden:
        return None


async def _rehearse(cluster: ConnectedCluster, files: Review) -> None:
    """Apply each object as a dry run, so that missing permissions, admission policies, quotas or missing namespaces
    fail before the first write."""
    for entry in files.objects:
        if not isinstance(entry.model, TieredJob | CapacityTier):
            continue
        kind, ask = CAPACITYTIERS, "to create them, and submit only the jobs; nothing was sent"
        body = manifest(entry.model)
        if isinstance(entry.model, TieredJob):
            kind, ask = TIEREDJOBS, "for Kubernetes' role edit in this namespace; nothing was sent"
            body["metadata"]["namespace"] = namespace_of(entry, cluster.namespace)
        try:
            await cluster.client.apply(kind, body, force=True, dry_run=True)
        except Forbidden as error:
            where = f"context {cluster.context}" if cluster.context else "the kubeconfig"
            raise EnvironmentFailure(f"{where}: {error.message}; ask an administrator {ask}") from None


def namespace_of(job: Reviewed, default: str) -> str:
    """The namespace in the job's file, or `default` if the file has none."""
    return str(job.document.data["metadata"].get("namespace", default))


async def _current(cluster: ConnectedCluster, job: Reviewed) -> tuple[str, Object]:
    """The namespace of the job, and the job in the cluster; {} if it does not exist or cannot be read."""
    namespace = namespace_of(job, cluster.namespace)
    try:
        return namespace, await cluster.client.get(TIEREDJOBS, job.name, namespace)
    except (NotFound, Forbidden):  # Without permission to read, the creation reports the conflict.
        return namespace, {}


async def _exists(cluster: ConnectedCluster, entry: Reviewed) -> str:
    """The error for a new job that already exists; "" if it does not."""
    namespace, current = await _current(cluster, entry)
    return exists(entry.name, namespace) if current else ""


async def _loses_files(cluster: ConnectedCluster, entry: Reviewed, job: TieredJob, *, has_folder: bool) -> str:
    """The error for an update that would take the files of --working-dir away from a job; "" if it does not."""
    if has_folder or job.spec.source is not None:
        return ""
    namespace, current = await _current(cluster, entry)
    if not (current.get("spec") or {}).get("source"):
        return ""
    return f"tieredjob {entry.name} in namespace {namespace} has the files of --working-dir: give --working-dir again"
