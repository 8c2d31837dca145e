"""Validates the jobs and CapacityTiers of files, and creates or updates them in a cluster."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

from spotladder.api.capacitytier import CapacityTier
from spotladder.api.manifest import manifest
from spotladder.api.problems import InvalidDocument
from spotladder.api.review import Review, review
from spotladder.api.tieredjob import TieredJob
from spotladder.core.model import UpdateStrategy
from spotladder.jobs.connected_cluster import ConnectedCluster
from spotladder.jobs.job_namespace import namespace_problems
from spotladder.jobs.preflight import check_in_cluster
from spotladder.jobs.sending import Sent, send
from spotladder.workloads.file_review import for_cluster


def checked(files: Sequence[Path], namespace: str | None, *, update: bool) -> Review:
    """The files, validated without the cluster. Raises InvalidDocument."""
    found = review(list(dict.fromkeys(files)), more_capacity=True, now=None if update else time.time())
    found = found.with_problems([*for_cluster(found), *namespace_problems(found, namespace)])
    if found.problems:
        raise InvalidDocument(found.problems)
    return found


async def sent_to(
    cluster: ConnectedCluster,
    found: Review,
    *,
    update: bool,
    at_next_attempt: bool = False,
    with_folder: Callable[[dict[str, Any]], dict[str, Any]] | None = None,
) -> AsyncIterator[Sent]:
    """Check the objects against the cluster, then send them, CapacityTiers first. `with_folder` uploads the files of
    --working-dir for the manifest of a job, and names them in it. Raises InvalidDocument and Refused."""
    await check_in_cluster(cluster, found, update=update, has_folder=with_folder is not None)
    bodies = (manifest(entry.model) for entry in found.objects if isinstance(entry.model, TieredJob | CapacityTier))
    for body in sorted(bodies, key=lambda body: str(body["kind"])):
        if at_next_attempt and body["kind"] == "TieredJob":
            body["spec"]["updateStrategy"] = UpdateStrategy.AT_NEXT_ATTEMPT.value
        if with_folder and body["kind"] == "TieredJob":
            body = with_folder(body)  # noqa: PLW2901
        yield await send(cluster, body, update=update)
