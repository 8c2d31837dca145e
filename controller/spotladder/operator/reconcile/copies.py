"""Copies the objects in a job's `spec.copies` from the home cluster to the clusters of its attempts.

1. A copy is created or updated before an attempt starts in the cluster, and kept up to date while it may be needed.
2. A copy is labelled with its home cluster. An existing object that is not a copy of this home cluster is not changed,
   and is reported.
3. Several jobs of a namespace share a copy. It is removed once no unfinished TieredJob lists it.
4. A lost copy is created again in clusters with an attempt that needs it: a pod that waits for it does not lack
   capacity.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import structlog

from spotladder.api.stored import JobRecord
from spotladder.clusters.cache import Scoped
from spotladder.clusters.client import Client
from spotladder.clusters.clock import Clock
from spotladder.clusters.errors import Conflict, Forbidden, Invalid, NotFound
from spotladder.clusters.transport import Object
from spotladder.core.model import Phase, Seconds
from spotladder.errors import SpotladderError
from spotladder.operator.condition_types import ConditionReason, Diagnosis
from spotladder.operator.inventory.clusters import Clusters, WorkloadCluster
from spotladder.resources import APIResource
from spotladder.workloads import names
from spotladder.workloads.references import COPIED, Reference, listed

RESYNC_INTERVAL: Seconds = 60.0
"""Interval between two comparisons of the copies with their sources."""

_OVER = (Phase.SUCCEEDED, Phase.FAILED)
_FIELDS = ("data", "binaryData", "type", "immutable", "imagePullSecrets", "automountServiceAccountToken")


class Copies:
    """`run` keeps the copies up to date until it is cancelled; `bring` creates those that one attempt needs."""

    def __init__(self, clusters: Clusters, jobs: Scoped[JobRecord], *, namespaces: Iterable[str], clock: Clock) -> None:
        self._clusters = clusters
        self._jobs = jobs
        self._namespaces = tuple(namespaces) or ("",)
        self._clock = clock
        self._log = structlog.get_logger("spotladder")

    async def bring(self, cluster: WorkloadCluster, namespace: str, wanted: Iterable[Reference]) -> Diagnosis | None:
        """Create or update the copies in the cluster. Returns why this is not possible. Raises ClusterUnreachable,
        Throttled."""
        for reference in wanted:
            if problem := await self._bring(cluster, namespace, reference):
                return problem
        return None

    async def run(self) -> None:
        """Keep copies up to date, and remove those that no job needs."""
        while True:
            await self._clock.sleep(RESYNC_INTERVAL)
            if any(not cache.has_synced or cache.problem for cache in self._jobs.caches):
                continue  # Without access to all jobs, no copy may be removed.
            for cluster in self._clusters.others:
                try:
                    await self._tend(cluster)
                except SpotladderError as error:
                    self._log.warning("copies are not updated", cluster=cluster.name, error=str(error))

    async def _tend(self, cluster: WorkloadCluster) -> None:
        needed, used = self._needed(), self._needed(at=cluster)
        for kind in COPIED:
            try:
                made = await self._made(cluster, kind)
            except Forbidden:
                if needed:
                    raise
                return  # The controller was never allowed to copy to this cluster.
            lost = {entry: "" for entry in used if entry[1].kind == kind and entry not in made}
            for (namespace, reference), uid in (made | lost).items():
                # Check again before the removal: a new job may need it.
                if (namespace, reference) in needed or (namespace, reference) in self._needed():
                    await self._bring(cluster, namespace, reference)
                else:
                    await _removed(cluster.client, kind, reference.name, namespace, uid)

    def _needed(self, *, at: WorkloadCluster | None = None) -> set[tuple[str, Reference]]:
        """The copies that unfinished jobs list; or only jobs with an attempt in that cluster."""
        return {
            (job.namespace, entry)
            for job in self._jobs.all()
            if job.copies and job.phase not in _OVER
            if at is None or at.inventory.attempts(job.key, job.uid)
            for entry in listed(job.copies)
        }

    async def _made(self, cluster: WorkloadCluster, kind: APIResource) -> dict[tuple[str, Reference], str]:
        """The copies in the cluster, with their uids."""
        selector = f"{cluster.selector},{names.COPY}=true"
        return {
            (found["metadata"]["namespace"], Reference(kind, found["metadata"]["name"])): found["metadata"]["uid"]
            for namespace in self._namespaces
            async for page in cluster.client.pages(kind, namespace, labels=selector)
            for found in page.items
        }

    async def _bring(self, cluster: WorkloadCluster, namespace: str, reference: Reference) -> Diagnosis | None:
        what = f"{reference.kind.kind} {namespace}/{reference.name}"
        try:
            source = await self._clusters.home.client.get(reference.kind, reference.name, namespace)
        except NotFound:
            message = f"spec.copies: {what} does not exist in the home cluster: create it"
            return Diagnosis(ConditionReason.REFERENCES_MISSING, message)
        except Forbidden as error:
            return Diagnosis(ConditionReason.COPY_REFUSED, f"spec.copies: {what} may not be read: {error.message}")
        wanted = _copy(source, reference.kind, cluster.home)
        try:
            held = await cluster.client.metadata(reference.kind, reference.name, namespace)
        except NotFound:
            held = None
        except Forbidden as error:
            return Diagnosis(
                ConditionReason.COPY_REFUSED, f"spec.copies: {what} in cluster {cluster.name}: {error.message}"
            )
        if held is not None:
            labels, annotations = (held["metadata"].get(part) or {} for part in ("labels", "annotations"))
            if labels.get(names.HOME) != cluster.home or names.COPY not in labels:
                message = (
                    f"spec.copies: {what} in cluster {cluster.name} is not a copy of this controller: "
                    "remove it there, or remove it from the list"
                )
                return Diagnosis(ConditionReason.NAME_TAKEN, message)
            if annotations.get(names.COPY_OF) == wanted["metadata"]["annotations"][names.COPY_OF]:
                return None
        try:
            await cluster.client.apply(reference.kind, wanted)
        except (Conflict, Forbidden, Invalid, NotFound) as error:
            return Diagnosis(
                ConditionReason.COPY_REFUSED, f"spec.copies: {what} in cluster {cluster.name}: {error.message}"
            )
        return None


def _copy(source: Object, kind: APIResource, home: str) -> dict[str, Any]:
    metadata: Mapping[str, Any] = source["metadata"]
    annotations = metadata.get("annotations") or {}
    kept = {key: value for key, value in annotations.items() if not key.startswith("kubectl.kubernetes.io/")}
    version = f"{metadata['uid']}/{metadata['resourceVersion']}"
    return {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": {
            "name": metadata["name"],
            "namespace": metadata["namespace"],
            "labels": {names.MANAGED_BY: names.MANAGER, names.HOME: home, names.COPY: "true"},
            "annotations": {**kept, names.COPY_OF: version},
        },
        **{field: source[field] for field in _FIELDS if field in source},
    }


async def _removed(client: Client, kind: APIResource, name: str, namespace: str, uid: str) -> None:
    try:
        await client.delete(kind, name, namespace, uid=uid)
    except (NotFound, Conflict):
        return  # It is gone or was replaced.
