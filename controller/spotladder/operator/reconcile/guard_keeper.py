"""Keeps the guards of the attempts that run, and their tokens: it creates deleted ones again, at once the first
time and then after pauses."""

from __future__ import annotations

from contextlib import suppress

import structlog

from spotladder.clusters.errors import Conflict, NotFound
from spotladder.core.model import TERMINAL, JobState, Stage
from spotladder.errors import InvalidSpec, SpotladderError
from spotladder.operator.inventory.clusters import Located, WorkloadCluster
from spotladder.operator.loaded import Loaded
from spotladder.operator.reconcile.apply import owner
from spotladder.operator.reconcile.attempt_removal import guard_kinds
from spotladder.operator.reconcile.preflight import Preflight
from spotladder.operator.reconcile.token_secret import ensure_token
from spotladder.resources import SECRETS, APIResource
from spotladder.workloads import names
from spotladder.workloads.rayjob.authentication import KEY, TOKEN
from spotladder.workloads.records import WorkloadRecord

_WITHOUT_ATTEMPT = (Stage.IDLE, Stage.ENDING, Stage.SUSPENDED, *TERMINAL)

_log = structlog.get_logger("spotladder")


class DeletedAgain(SpotladderError):
    """An object was deleted soon after it was created again. It is created again after a pause."""


async def keep_guards(loaded: Loaded, state: JobState, preflight: Preflight) -> None:
    """Create missing guards and tokens of the attempts that run, where their existence is known. Raises DeletedAgain
    for those that must wait."""
    if state.stage in _WITHOUT_ATTEMPT or loaded.record.deleting:  # Kubernetes deletes them with the job.
        return
    for own in filter(None, (state.attempt, state.standby.attempt)):
        found = loaded.found.attempts.get(own.number)
        if found is None or found.cluster.problem or (top := found.objects.top) is None or top.deleting:
            continue
        if kinds := _missing_guards(loaded, found.cluster, top):
            await _create(loaded, found.cluster, top, kinds)
        await _keep_token(loaded, found, preflight)


async def _create(loaded: Loaded, cluster: WorkloadCluster, top: WorkloadRecord, missing: list[APIResource]) -> None:
    """Create the guards of these kinds."""
    tier = loaded.tiers.resolved.get(top.tier)
    if tier is None:
        return
    origin = names.Origin(loaded.record.uid, cluster.home)
    with suppress(InvalidSpec):  # The condition Valid reports it.
        objects = loaded.workload.render(loaded.job, origin, tier, top.attempt, {})
        kinds = {(kind.api_version, kind.kind): kind for kind in missing}
        for body in objects:
            if (kind := kinds.get((body["apiVersion"], body["kind"]))) is None:
                continue
            if not cluster.monitor:
                body["metadata"]["ownerReferences"] = [owner(loaded)]
            _check_pause(loaded, cluster, kind, body["metadata"]["name"])
            with cluster.turn(), suppress(Conflict, NotFound):
                cluster.inventory.written(kind, await cluster.client.apply(kind, body))
                _created(loaded, cluster, kind, body["metadata"]["name"])


async def _keep_token(loaded: Loaded, found: Located, preflight: Preflight) -> None:
    """Without the Secret, no further pod of the attempt starts, nor does the next attempt. Pods with the old token are
    not in the same Ray cluster as pods with the new one, so that the attempt may still fail."""
    cluster, namespace = found.cluster, loaded.record.namespace
    if all(pod.token != (TOKEN, KEY) for pod in found.objects.pods):
        return
    if cluster.inventory.guards.exists(SECRETS, TOKEN, namespace) is not False:
        return
    _check_pause(loaded, cluster, SECRETS, TOKEN)
    with cluster.turn():
        if await ensure_token(cluster, preflight, namespace) is None:
            _created(loaded, cluster, SECRETS, TOKEN)


def _missing_guards(loaded: Loaded, cluster: WorkloadCluster, top: WorkloadRecord) -> list[APIResource]:
    """The kinds of guards that the attempt lacks. In a member cluster they have its name."""
    if top.kind != loaded.workload.main:
        return []
    guards = cluster.inventory.guards
    name = top.name if cluster.monitor is not None else names.guards_name(loaded.record.name)
    return [kind for kind in guard_kinds(loaded.workload) if guards.exists(kind, name, top.namespace) is False]


def _check_pause(loaded: Loaded, cluster: WorkloadCluster, kind: APIResource, name: str) -> None:
    if not cluster.inventory.guards.may_create_again(kind, name, loaded.record.namespace):
        raise DeletedAgain(f"{kind.kind} {name} was deleted again{cluster.where}")


def _created(loaded: Loaded, cluster: WorkloadCluster, kind: APIResource, name: str) -> None:
    cluster.inventory.guards.created_again(kind, name, loaded.record.namespace)
    _log.warning(
        "an object of the job was deleted, and is created again",
        namespace=loaded.record.namespace,
        job=loaded.record.name,
        object=f"{kind.kind} {name}",
    )
