"""The API calls behind each action of a decision but `Delete`. Every call is idempotent."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from spotladder.api.record import API_VERSION
from spotladder.api.stored import JobRecord
from spotladder.api.tenancy import TenantRule
from spotladder.clusters.errors import ClusterUnreachable, Conflict, Forbidden, Invalid, NotFound
from spotladder.core.attempt_program import launch_variables
from spotladder.core.contract import Notice, Variable
from spotladder.core.durations import format_duration
from spotladder.core.model import AskToCommit, Drain, Launch, Replace, Resize, TakeOver
from spotladder.errors import InvalidSpec
from spotladder.operator.condition_types import ConditionReason, Diagnosis
from spotladder.operator.inventory.clusters import Clusters, Located, WorkloadCluster
from spotladder.operator.loaded import Loaded
from spotladder.operator.reconcile.attempt_removal import AttemptRemover
from spotladder.operator.reconcile.preconditions import not_allowed
from spotladder.operator.reconcile.preflight import Preflight, lacking, lacking_namespace
from spotladder.operator.reconcile.token_secret import ensure_token
from spotladder.resources import NAMESPACES, PODS, TIEREDJOBS, APIResource
from spotladder.workloads import names
from spotladder.workloads.digest import digest
from spotladder.workloads.kinds import main_kinds
from spotladder.workloads.rayjob.authentication import uses_token
from spotladder.workloads.records import Made, PodRecord
from spotladder.workloads.references import Reference, references
from spotladder.workloads.tenancy import refusals
from spotladder.workloads.workload import AttemptObjects, ObjectPatch


@dataclass(slots=True)
class Applier:
    """Launches attempts and changes them, each in its cluster."""

    clusters: Clusters
    remover: AttemptRemover
    preflight: Preflight
    environment: Mapping[str, str]
    rules: Sequence[TenantRule]
    over_budget: Callable[[str], Diagnosis | None]

    async def launch(self, loaded: Loaded, action: Launch) -> Diagnosis | None:
        """Create the attempt. Returns why it cannot be created, if capacity is not the reason.

        Raises ClusterUnreachable, Throttled, Busy: retry later.
        """
        tier = loaded.tiers.resolved.get(action.tier)
        cluster = None if tier is None else self.clusters.of(tier.cluster)
        if tier is None or cluster is None:
            return None  # The tier is unavailable, and the core knows it.
        for unreadable in cluster.inventory.unreadable(loaded.workload.records, loaded.record.namespace):
            if unreadable.absent and unreadable.kind == loaded.workload.main:
                message = loaded.workload.install.format(cluster=_named(cluster))
                return Diagnosis(ConditionReason.NOT_INSTALLED, message)
        origin = names.Origin(loaded.record.uid, cluster.home)
        try:
            hang_timeout = {Variable.HANG_TIMEOUT: format_duration(loaded.job.spec.hang_timeout)}
            variables = {**self.environment, **hang_timeout, **launch_variables(action)}
            objects = loaded.workload.render(
                loaded.job, origin, tier.avoiding(action.avoids), action.attempt, variables
            )
        except InvalidSpec as error:
            return Diagnosis(ConditionReason.INVALID_SPEC, str(error))
        wanted = digest(objects)
        if problem := await self._refused(loaded, action.attempt, wanted):
            return problem
        if _is_there(loaded.found.attempts.get(action.attempt), cluster):
            return None  # Also if the spec has changed since: a new spec applies to the next attempt.
        if problem := self.over_budget(loaded.record.namespace):
            return problem
        main = objects[-1]["metadata"]
        main["annotations"] = {**(main.get("annotations") or {}), names.DIGEST: wanted}
        if problem := self._occupied(cluster, loaded.record, action.attempt):
            return problem
        with cluster.turn():
            level = await self.preflight.level(cluster, loaded.record.namespace)
            if problem := not_allowed(refusals(self.rules, loaded.job, [tier], objects, level)):
                return problem
            if problem := await self._prepare(cluster, loaded.record, references(objects, tier.queue)):
                return problem
            if uses_token(objects) and (
                problem := await ensure_token(cluster, self.preflight, loaded.record.namespace)
            ):
                return problem
            return await self._make_all(cluster, loaded, objects, action.attempt)

    async def _make_all(
        self, cluster: WorkloadCluster, loaded: Loaded, objects: list[dict[str, Any]], attempt: int
    ) -> Diagnosis | None:
        """Create the objects in order; the main object, by which the others are found, is the last. Guards of an
        earlier attempt are left as they are if they are known to be the same."""
        kinds = {(kind.api_version, kind.kind): kind for kind in loaded.workload.made}
        made: list[tuple[APIResource, Made]] = []
        if not cluster.monitor:
            for body in objects:
                body["metadata"]["ownerReferences"] = [owner(loaded)]
        own, guards = _of_attempt(objects), cluster.inventory.guards
        shared = (body for body in objects if body not in own)
        current = all(guards.is_current(kinds[body["apiVersion"], body["kind"]], body) for body in shared)
        for body in own if current else objects:
            kind, metadata = kinds[body["apiVersion"], body["kind"]], body["metadata"]
            if refusal := await self._make(cluster, kind, body, loaded.record, attempt):
                for earlier in (
                    made if cluster.monitor else ()
                ):  # In the home cluster they are deleted with the TieredJob; in a member cluster nothing deletes them.
                    await self.remover.remove(cluster, *earlier)
                return refusal
            made.append((kind, Made(name=metadata["name"], namespace=metadata["namespace"], uid="")))
        return None

    async def _refused(self, loaded: Loaded, attempt: int, wanted: str) -> Diagnosis | None:
        """Why the workload's operator will never run the attempt that exists; None when it may, or none exists.

        If the job was corrected since, the attempt is removed. It is created again under the same number once it is
        gone.
        """
        found = loaded.found.attempts.get(attempt)
        top = found.objects.top if found is not None else None
        if found is None or top is None or not (why := main_kinds()[top.kind].refusal(found.objects)):
            return None
        if top.digest != wanted and not top.deleting:
            with found.cluster.turn():
                await self.remover.remove_attempt(found.cluster, top)
        return Diagnosis(ConditionReason.BLOCKED, f"{top.kind.kind} {top.name} is not valid: {why}")

    async def _prepare(
        self, cluster: WorkloadCluster, record: JobRecord, named: Sequence[Reference]
    ) -> Diagnosis | None:
        """Ensure that the objects that the pods refer to exist in the cluster."""
        member, namespace = cluster is not self.clusters.home, Reference(NAMESPACES, record.namespace)
        if member and await self.preflight.missing(cluster, "", [namespace]):
            return Diagnosis(ConditionReason.NAMESPACE_MISSING, lacking_namespace(cluster, record.namespace))
        missing = await self.preflight.missing(cluster, record.namespace, named)
        if missing:
            return Diagnosis(ConditionReason.REFERENCES_MISSING, lacking(cluster, record.namespace, missing))
        return None

    def _occupied(self, cluster: WorkloadCluster, record: JobRecord, attempt: int) -> Diagnosis | None:
        """In a member cluster, objects are not deleted with their TieredJob: those of a deleted job may still have the
        attempt's name."""
        if cluster is self.clusters.home or attempt not in cluster.inventory.of_others(record.key, record.uid):
            return None
        name = names.attempt_name(record.name, attempt)
        message = f"{name} of an earlier TieredJob of this name is being removed{cluster.where}"
        return Diagnosis(ConditionReason.NAME_TAKEN, message)

    async def _make(
        self, cluster: WorkloadCluster, kind: APIResource, body: dict[str, Any], record: JobRecord, attempt: int
    ) -> Diagnosis | None:
        namespace = body["metadata"]["namespace"]
        name = f"{kind.kind} {namespace}/{body['metadata']['name']}"
        try:
            made = await _created(cluster, kind, body)
        except NotFound as error:
            if error.about == "namespaces":
                return Diagnosis(ConditionReason.NAMESPACE_MISSING, lacking_namespace(cluster, namespace))
            workload = main_kinds().get(kind)
            install = (workload.install if workload else "{cluster} does not know the kind").format(
                cluster=_named(cluster)
            )
            return Diagnosis(ConditionReason.NOT_INSTALLED, f"{name} cannot be created: {install}")
        except Conflict as error:
            if self._is_ours(cluster, kind, record, attempt):
                return None
            message = f"{name} exists{cluster.where} and is not this job's: remove or rename it ({error.message})"
            return Diagnosis(ConditionReason.NAME_TAKEN, message)
        except (Forbidden, Invalid) as error:
            return Diagnosis(ConditionReason.LAUNCH_REFUSED, f"{name} is refused{cluster.where}: {error.message}")
        except ClusterUnreachable as error:
            raise ClusterUnreachable(
                f"{name} cannot be created{cluster.where}: {_cause(error)}; check that the API server and its "
                "admission webhooks answer (JobSet's controller has one)"
            ) from None
        cluster.inventory.written(kind, made)
        return None

    def _is_ours(self, cluster: WorkloadCluster, kind: APIResource, record: JobRecord, attempt: int) -> bool:
        """Whether the object belongs to exactly this attempt. Its operator sets defaults in fields that the controller
        applies, and then owns these fields."""
        found = cluster.inventory.attempts(record.key, record.uid).get(attempt, AttemptObjects())
        return found.top is not None and found.top.kind == kind

    async def change(self, loaded: Loaded, action: Drain | TakeOver | AskToCommit | Replace | Resize) -> None:
        """Change the attempt that exists, unless its cluster does not answer."""
        found = loaded.found.attempts.get(action.attempt)
        if found is None or found.cluster.problem:
            return
        objects, pods = found.objects, found.objects.pods
        match action:
            case Drain():
                await self._notify(found, pods, Notice.of(action.reason, action.deadline))
            case TakeOver():  # Its program, which is held, starts.
                await self._notify(found, pods, Notice.of_takeover())
            case AskToCommit():  # At once, and to continue.
                asked = [pod for pod in pods if pod.identity in action.pods]
                await self._notify(found, asked, Notice.of_commit(action.reason, action.asked_at))
            case Replace():
                # For a handover, its pods are removed after `REMOVAL_DELAY`, so that the program can read the notice.
                if action.hand_over:
                    going = [pod for pod in pods if pod.uid in action.pods]
                    await self._notify(found, going, Notice.of_handover(action.deadline))
                await self._change(found, loaded.workload.replacing(objects, action.pods, remove=action.remove))
            case Resize():
                await self._change(found, loaded.workload.resizing(objects, action.workers))

    async def _notify(self, found: Located, pods: Sequence[PodRecord], notice: Notice) -> None:
        """Annotate these pods with the notice, which the program sees as a file."""
        text = notice.encode()
        due = [pod for pod in pods if pod.notice != text and pod.phase in ("Pending", "Running")]
        with found.cluster.turn():
            for pod in due:
                patch = {"metadata": {"uid": pod.uid, "annotations": {names.NOTICE: text}}}
                try:
                    updated = await found.cluster.client.merge(PODS, pod.name, pod.namespace, body=patch)
                except (NotFound, Conflict):
                    continue  # The pod is gone or replaced: its replacement is annotated when it is observed.
                found.cluster.inventory.written(PODS, updated)

    async def _change(self, found: Located, change: ObjectPatch | None) -> None:
        if change is None:
            return
        target = change.target
        with found.cluster.turn(), suppress(NotFound):  # it is gone: so is the attempt
            changed = await found.cluster.client.patch(target.kind, target.name, target.namespace, change.patch)
            found.cluster.inventory.written(target.kind, changed)


async def _created(cluster: WorkloadCluster, kind: APIResource, body: dict[str, Any]) -> dict[str, Any]:
    """Create the object, or apply it if it already exists.

    A main object exists only after a call whose response was lost. The controller creates it first, because a create
    request takes less CPU time of the API server than an apply request. The controller takes back the fields of an
    existing guard that a user has edited.
    """
    if kind in main_kinds():
        with suppress(Conflict):
            return await cluster.client.create(kind, body)
        return await cluster.client.apply(kind, body)
    metadata = body["metadata"]
    own = cluster.inventory.guards.exists(kind, metadata["name"], metadata["namespace"])
    return await cluster.client.apply(kind, body, force=bool(own))


def _of_attempt(objects: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The objects without the guards that all attempts of the job share."""
    return [body for body in objects if names.ATTEMPT in body["metadata"]["labels"]]


def _is_there(found: Located | None, cluster: WorkloadCluster) -> bool:
    """Whether the attempt was created."""
    return found is not None and found.cluster is cluster and found.objects.top is not None


def _cause(error: ClusterUnreachable) -> str:
    """The error without the request at its beginning."""
    return str(error).partition(": ")[2] or str(error)


def _named(cluster: WorkloadCluster) -> str:
    return f"cluster {cluster.name}" if cluster.monitor else "this cluster"


def owner(loaded: Loaded) -> dict[str, Any]:
    """Kubernetes deletes the object with the TieredJob."""
    return {
        "apiVersion": API_VERSION,
        "kind": TIEREDJOBS.kind,
        "name": loaded.record.name,
        "uid": loaded.record.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
