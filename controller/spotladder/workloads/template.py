"""The job's template, and the object of an attempt that is rendered from it: shared by all kinds of workloads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spotladder.api.tieredjob import PodSecurity, TieredJob
from spotladder.errors import InvalidSpec
from spotladder.resources import APIResource
from spotladder.workloads.digest import digest
from spotladder.workloads.pods import PodOverlay
from spotladder.workloads.records import QUEUE


def template_of(job: TieredJob, field: str) -> Any:
    """The template of the workload in that field. Raises InvalidSpec if the job has another workload."""
    workload = job.spec.workload
    if workload.kind != field:
        raise InvalidSpec("is not this job's workload", path=f"spec.workload.{field}", where=job.metadata.name)
    return workload.chosen.template  # type: ignore[attr-defined]  # every kind has one


def digests_of(job: TieredJob) -> dict[str, str]:
    """For each tier, a digest of the part of the spec from which its pods are created: the workload, the overrides, the
    queue, the groups beside the tier, the security settings and the source.

    Default values are left out, so that a field of a later version does not change the digest. The CapacityTier is not
    part of it: an administrator's edit must not replace running attempts.
    """
    workload = job.spec.workload.model_dump(mode="json", exclude_defaults=True, exclude_none=True)
    found, chosen = {}, job.spec.pod_security
    security = [] if chosen is PodSecurity.BASELINE else [chosen.value]
    for tier in job.spec.tiers:
        overrides = tier.overrides.model_dump(mode="json", exclude_defaults=True, exclude_none=True)
        groups = {name: group.capacity_tier for name, group in sorted(tier.groups.items())}
        parts = [workload, overrides, *([tier.queue] if tier.queue else []), *([groups] if groups else []), *security]
        if job.spec.source is not None:
            parts.append(job.spec.source.model_dump(mode="json", exclude_none=True))
        found[tier.name] = digest(parts)
    return found


def made_of(
    template: Any,
    kind: APIResource,
    *,
    name: str,
    job: TieredJob,
    overlay: PodOverlay,
    spec: dict[str, Any],
    annotations: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """The object, with the template's labels and annotations, and with spotladder's, which take precedence."""
    metadata, queue = template.metadata, overlay.tier.queue
    return {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": {
            "name": name,
            "namespace": job.metadata.namespace,
            "labels": {**metadata.labels, **({QUEUE: queue} if queue else {}), **overlay.labels},
            "annotations": {**metadata.annotations, **(annotations or {})},
        },
        "spec": spec,
    }
