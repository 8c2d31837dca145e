"""Counts failures: each pod once by its identity, however often and in whatever order it is observed.

The loss of a pod may restart its whole set. The identity of such a pod is `<restart>/<pod>`, and `<restart>` is that of
a loss that caused a restart and whose pod was not observed. Both are one failure, whichever is observed first. Once the
set is gone, the identity of its pod is `<pod>`.

Pods that go because another went are one failure with it, until all workers are ready again: the pods of one node that
is reclaimed, lost or drained, and the pods that are replaced only together (`PodSeen.unit`). Pods that are lost on
different nodes are one failure each.
"""

from __future__ import annotations

from dataclasses import replace

from spotladder.core.history.bad_nodes import bad_nodes, with_node_failures
from spotladder.core.history.crashes import crashed_pods
from spotladder.core.model import (
    Attempt,
    AttemptSeen,
    FailureUnit,
    JobState,
    Loss,
    Observation,
    PodPhase,
    PodRole,
    PodSeen,
    TierRecord,
)
from spotladder.core.reasons import Cause, Reason

_WITH_THE_NODE = frozenset({Cause.INTERRUPTION, Cause.NODE_LOST, Cause.CONSOLIDATED, Cause.PREEMPTED})
"""Causes that take all pods of the job from a node at once."""

_WITHOUT_EVIDENCE = (Cause.DELETED, Cause.UNKNOWN)
"""Causes with which the operator's own deletion of the other pods of a unit is observed."""

UNCOUNTED = frozenset({Cause.MAINTENANCE})
"""Causes of losses that are not failures: an administrator moved the job, and the tier works."""

KEPT_LOST_PODS = 512
"""Maximum number of lost pods of an attempt that are recorded by name, or two for each of its workers if these are
more; the oldest are dropped, so that the state stays small on a tier without a limit."""


def with_record(state: JobState, record: TierRecord) -> JobState:
    """The state with this record of a tier added or replaced."""
    if any(known.name == record.name for known in state.tiers):
        return replace(state, tiers=tuple(record if known.name == record.name else known for known in state.tiers))
    return replace(state, tiers=(*state.tiers, record))


def counted_pods(attempt: Attempt, seen: AttemptSeen) -> set[str]:
    """The identities of pods whose loss is counted, with those that a counted restart stands for."""
    counted = set(attempt.known.lost)
    if not counted:
        return counted
    parts = {part for known in counted if "/" in known for part in known.rpartition("/")}
    covered: dict[str, str] = {}
    for uid in sorted(pod.uid for pod in seen.pods if pod.noticed or pod.phase is PodPhase.LOST):
        restart = uid.rpartition("/")[0]
        if uid in counted:
            continue
        if restart in counted:
            covered.setdefault(restart, uid)
        elif uid in parts:
            covered[uid] = uid
    return counted.union(covered.values())


def lost_pods(attempt: Attempt, seen: AttemptSeen) -> list[PodSeen]:
    """Pods of the live attempt that are lost and not counted yet.

    A pod that crashed before the attempt was ready is not lost: see `crashes`. A pod that was alive and is now missing
    is lost too. After the program has ended, its pods end for that reason: then only those with a known external cause
    count. An auxiliary pod that is deleted is not lost: Ray's autoscaler removes pods.
    """
    ended = seen.exit is not None
    counted = counted_pods(attempt, seen)
    known = counted | {pod.uid for pod in crashed_pods(attempt, seen)}
    gone = [pod for pod in seen.pods if pod.phase is PodPhase.LOST and pod.uid not in known]
    fresh = [pod for pod in gone if pod.role is not PodRole.AUXILIARY or pod.cause is not Cause.DELETED]
    if ended:
        return [pod for pod in fresh if pod.cause not in (Cause.UNKNOWN, Cause.DELETED, Cause.APP_ERROR)]
    if not seen.reachable:
        return fresh
    present = {pod.uid for pod in seen.pods}
    missing = [uid for uid in attempt.known.alive if uid not in present and uid not in counted]
    return [*fresh, *(PodSeen(uid, phase=PodPhase.LOST) for uid in missing)]


def noticed_pods(attempt: Attempt, seen: AttemptSeen) -> list[PodSeen]:
    """Pods that still run, whose node will be reclaimed, and that are not counted yet."""
    counted = counted_pods(attempt, seen)
    return [
        pod if pod.cause is not Cause.UNKNOWN else replace(pod, cause=Cause.INTERRUPTION)
        for pod in seen.pods
        if pod.noticed and pod.phase is not PodPhase.LOST and pod.uid not in counted
    ]


def failing(pods: list[PodSeen]) -> list[PodSeen]:
    """The pods whose loss is a failure of the tier, by its cause and the pod's role."""
    return [pod for pod in pods if pod.cause not in UNCOUNTED and pod.role is not PodRole.AUXILIARY]


def suspect_pods(attempt: Attempt, seen: AttemptSeen) -> list[PodSeen]:
    """Pods on silent nodes that their cluster has not marked and that are not counted yet, as lost pods."""
    counted = set(attempt.known.lost)
    return [
        replace(pod, phase=PodPhase.LOST, ready=False, cause=Cause.NODE_LOST)
        for pod in seen.pods
        if pod.suspect and pod.uid not in counted
    ]


def all_suspect(seen: AttemptSeen | None) -> bool:
    """Whether every pod that is not lost is on a silent node that its cluster has not marked."""
    left = [pod for pod in seen.pods if pod.phase is not PodPhase.LOST] if seen is not None else []
    return bool(left) and all(pod.suspect for pod in left)


def with_contact(seen: Observation, attempt: Attempt, *, ready: bool) -> Observation:
    """The observation with the pods on silent nodes as they were when their nodes last answered. `ready`: these pods
    were ready. A pod that was never observed alive stays pending."""

    def heard(pod: PodSeen) -> PodSeen:
        if not pod.silent:
            return pod
        alive = pod.uid in attempt.known.alive
        return replace(pod, phase=PodPhase.RUNNING if alive else PodPhase.PENDING, ready=alive and ready)

    return seen.with_pods(attempt.number, heard)


def synthetic(attempt: Attempt, what: str, cause: Cause, name: str) -> PodSeen:
    """A failure that no pod shows. `what` is its identity, so that it is also counted once, and `name` says to users
    what the attempt has lost."""
    return PodSeen(f"attempt-{attempt.number}/{what}", phase=PodPhase.LOST, cause=cause, name=name)


def count(state: JobState, pods: list[PodSeen], unit: FailureUnit) -> tuple[JobState, tuple[Loss, ...]]:
    """Count the losses of these pods, each once, against the live attempt, its tier and the job.

    Losses by maintenance, of auxiliary pods, and on nodes that are known to be bad, are recorded but are not failures;
    a program that fails after them fails because of them. Under `FailureUnit.INTERRUPTION` all losses until all workers
    are ready again are one failure.
    """
    attempt = state.attempt
    if attempt is not None:
        counted = set(attempt.known.lost)
        pods = [pod for pod in pods if pod.uid not in counted]
    if attempt is None or not pods:
        return state, ()
    losses = tuple(
        Loss(pod.called, pod.cause, attempt.number, attempt.tier, noticed=pod.phase is not PodPhase.LOST)
        for pod in pods
    )
    bad, kept = bad_nodes(state), max(KEPT_LOST_PODS, 2 * (attempt.workers or 0))
    failed, units = _apart([pod for pod in failing(pods) if pod.node not in bad], attempt.known.lost_units)
    state = with_node_failures(state, [pod for pod in pods if pod.role is not PodRole.AUXILIARY])
    if unit is FailureUnit.INTERRUPTION:
        failed = [] if state.loss_counted else failed[:1]
    failures = len(failed)
    record = state.record(attempt.tier)
    state = with_record(state, replace(record, failures=record.failures + failures))
    lost = (*attempt.known.lost, *(pod.uid for pod in pods))[-kept:]
    known = replace(attempt.known, lost=lost, lost_units=units[-kept:])
    if any(pod.role is not PodRole.AUXILIARY for pod in pods):  # An auxiliary pod has no rank.
        start = state.progress.start if state.progress.attempt == attempt.number else None
        known = replace(known, lost_start=start)
    attempt = replace(attempt, failures=attempt.failures + failures, known=known)
    return replace(state, attempt=attempt, failures=state.failures + failures, loss_counted=True), losses


def _apart(pods: list[PodSeen], lost: tuple[str, ...]) -> tuple[list[str], tuple[str, ...]]:
    """The identities of the pods that are failures of their own, not consequences of another pod's loss, and all lost
    nodes and units. `lost` are the nodes and units that were lost before."""
    failed, units = [], dict.fromkeys(lost)
    for pod in sorted(pods, key=lambda pod: pod.cause in _WITHOUT_EVIDENCE):
        node = f"node {pod.node}" if pod.node and pod.cause in _WITH_THE_NODE else ""
        mine = [name for name in (node, f"unit {pod.unit}" if pod.unit else "") if name]
        if not any(name in units for name in mine):
            failed.append(pod.uid)
        units.update(dict.fromkeys(mine))
    return failed, tuple(units)


def remember_alive(attempt: Attempt, seen: AttemptSeen) -> Attempt:
    """Record which pods are alive, so that a pod that disappears counts as lost. Auxiliary pods may come and go."""
    alive = tuple(
        sorted(pod.uid for pod in seen.pods if pod.phase is PodPhase.RUNNING and pod.role is not PodRole.AUXILIARY)
    )
    known = attempt.known
    return attempt if alive == known.alive else replace(attempt, known=replace(known, alive=alive))


def head_lost(seen: AttemptSeen) -> bool:
    """Whether the head is lost for good, so that only a new attempt can run the program again."""
    heads = [pod for pod in seen.pods if pod.role is PodRole.HEAD]
    return bool(heads) and all(pod.phase is PodPhase.LOST for pod in heads)


def exceeded(record: TierRecord, max_failures: int) -> bool:
    """Whether this tier has had more failures than allowed; −1 allows any number."""
    return 0 <= max_failures < record.failures


def exhaust(state: JobState, tier: str, reason: Reason) -> JobState:
    """Mark the tier as exhausted."""
    return with_record(state, replace(state.record(tier), exhausted_by=reason))
