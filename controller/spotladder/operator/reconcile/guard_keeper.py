"""Keeps the guards of the attempts that run: those that someone has deleted are created again, with growing pauses if
they are deleted again and again."""

from __future__ import annotations

from contextlib import suppress

import structlog

from spotladder.backoff import delay
from spotladder.clusters.clock import Clock
from spotladder.clusters.errors import Conflict, NotFound
from spotladder.core.durations import format_duration
from spotladder.core.model import TERMINAL, JobState, Seconds, Stage
from spotladder.errors import InvalidSpec
from spotladder.operator.condition_types import ConditionReason, Diagnosis
from spotladder.operator.inventory.clusters import Located, WorkloadCluster
from spotladder.operator.loaded import Loaded
from spotladder.operator.reconcile.apply import owner
from spotladder.operator.reconcile.attempt_removal import guard_kinds
from spotladder.operator.reconcile.preflight import Preflight
from spotladder.operator.reconcile.token_secret import ensure_token
from spotladder.resources import SECRETS, APIResource
from spotladder.workloads import names
from spotladder.workloads.rayjob.authentication import KEY, TOKEN, without_token
from spotladder.workloads.records import WorkloadRecord

_WITHOUT_ATTEMPT = (Stage.IDLE, Stage.ENDING, Stage.SUSPENDED, *TERMINAL)


_Object = tuple[str, APIResource, str, str]
"""The name of the cluster, the kind, the namespace and the name of an object."""

FIRST_PAUSE: Seconds = 10.0
LONGEST_PAUSE: Seconds = 300.0
"""An object that is deleted again and again is created again after pauses that double from the first to the longest: a
policy engine that removes it must not cost a write for each of its deletions."""

FORGOTTEN_AFTER: Seconds = 600.0
"""An object that has stayed for this long since its last creation counts as never deleted."""


class GuardKeeper:
    """Acts only where the existence of guards is known."""

    def __init__(self, *, preflight: Preflight, clock: Clock) -> None:
        self._preflight = preflight
        self._clock = clock
        self._created_again: dict[_Object, tuple[int, Seconds]] = {}
        """How often objects were created again, and when last, in ticks."""
        self._log = structlog.get_logger("spotladder")

    async def keep(self, loaded: Loaded, state: JobState) -> Diagnosis | None:
        """Create missing guards and tokens of the attempts that run. Returns which of them someone has deleted more
        than once."""
        if state.stage in _WITHOUT_ATTEMPT or loaded.record.deleting:  # Kubernetes deletes them with the job.
            return None
        deleted: list[_Object] = []
        for own in filter(None, (state.attempt, state.standby)):
            found = loaded.found.attempts.get(own.number)
            if found is None or found.cluster.problem or (top := found.objects.top) is None or top.deleting:
                continue
            if kinds := _missing_guards(loaded, found.cluster, top):
                deleted += await self._create(loaded, found.cluster, top, kinds)
            deleted += await self._keep_token(loaded, found)
            deleted += [one for one in _kept(loaded, found.cluster) if self._times(one)[0] > 1]
        return _deleted_again(deleted) if deleted else None

    async def _create(
        self, loaded: Loaded, cluster: WorkloadCluster, top: WorkloadRecord, missing: list[APIResource]
    ) -> list[_Object]:
        """Create the guards of these kinds. Returns those that must wait."""
        tier = loaded.tiers.resolved.get(top.tier)
        if tier is None:
            return []
        waiting = []
        origin = names.Origin(loaded.record.uid, cluster.home)
        with suppress(InvalidSpec):  # The condition Valid reports it.
            objects = loaded.workload.render(loaded.job, origin, tier, top.attempt, {})
            if top.token_refused:
                without_token(objects)
            kinds = {(kind.api_version, kind.kind): kind for kind in missing}
            for body in objects:
                if (kind := kinds.get((body["apiVersion"], body["kind"]))) is None:
                    continue
                guard = (cluster.name, kind, loaded.record.namespace, body["metadata"]["name"])
                if not self._may_create(guard):
                    waiting.append(guard)
                    continue
                if not cluster.monitor:
                    body["metadata"]["ownerReferences"] = [owner(loaded)]
                with cluster.turn(), suppress(Conflict, NotFound):
                    cluster.inventory.written(kind, await cluster.client.apply(kind, body))
                    self._created(loaded, guard)
        return waiting

    async def _keep_token(self, loaded: Loaded, found: Located) -> list[_Object]:
        """Without the Secret, no further pod of the attempt starts, nor does the next attempt. Pods with the old token
        are not in the same Ray cluster as pods with the new one, so that the attempt may still fail."""
        cluster, namespace = found.cluster, loaded.record.namespace
        if all(pod.token != (TOKEN, KEY) for pod in found.objects.pods):
            return []
        if cluster.inventory.guards.exists(SECRETS, TOKEN, namespace) is not False:
            return []
        token = (cluster.name, SECRETS, namespace, TOKEN)
        if not self._may_create(token):
            return [token]
        with cluster.turn():
            refusal = await ensure_token(cluster, self._preflight, namespace)
        if not refusal:
            self._created(loaded, token)
        return []

    def _times(self, one: _Object) -> tuple[int, Seconds]:
        times, at = self._created_again.get(one, (0, 0.0))
        return (0, 0.0) if self._clock.ticks() >= at + FORGOTTEN_AFTER else (times, at)

    def _may_create(self, one: _Object) -> bool:
        times, at = self._times(one)
        return not times or self._clock.ticks() >= at + delay(FIRST_PAUSE, LONGEST_PAUSE, times, jitter=1.0)

    def _created(self, loaded: Loaded, created: _Object) -> None:
        times = self._times(created)[0] + 1
        self._created_again = {one: known for one, known in self._created_again.items() if self._times(one)[0]}
        self._created_again[created] = times, self._clock.ticks()
        record = loaded.record
        self._log.warning(
            "an object of the job was deleted, and is created again",
            namespace=record.namespace,
            job=record.name,
            object=_called(created),
        )


def _kept(loaded: Loaded, cluster: WorkloadCluster) -> list[_Object]:
    """The objects that the keeper may have created for the job in this cluster."""
    namespace, shared = loaded.record.namespace, names.guards_name(loaded.record.name)
    guards = [(cluster.name, kind, namespace, shared) for kind in guard_kinds(loaded.workload)]
    return [*guards, (cluster.name, SECRETS, namespace, TOKEN)]


def _deleted_again(deleted: list[_Object]) -> Diagnosis:
    called = ", ".join(dict.fromkeys(_called(one) for one in deleted))
    pause = format_duration(LONGEST_PAUSE)
    message = f"deleted more than once: {called}; created again after pauses that grow to {pause}"
    return Diagnosis(ConditionReason.GUARDS_DELETED, message)


def _called(one: _Object) -> str:
    _, kind, _, name = one
    return f"{kind.kind} {name}"


def _missing_guards(loaded: Loaded, cluster: WorkloadCluster, top: WorkloadRecord) -> list[APIResource]:
    """The kinds of guards that the attempt lacks. In a member cluster they have its name."""
    if top.kind != loaded.workload.main:
        return []
    guards = cluster.inventory.guards
    name = top.name if cluster.monitor is not None else names.guards_name(loaded.record.name)
    return [kind for kind in guard_kinds(loaded.workload) if guards.exists(kind, name, top.namespace) is False]
