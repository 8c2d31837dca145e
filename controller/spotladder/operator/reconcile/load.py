"""`load`: builds the records for `decide` from one TieredJob and the caches."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from math import inf

from spotladder.api.capacitytier import HOME, CapacityTier
from spotladder.api.stored import CapacityRecord, JobRecord
from spotladder.api.tier_history import history_in, price_or_last
from spotladder.api.tieredjob import TieredJob
from spotladder.core.accounting.overlap_prices import missing_prices
from spotladder.core.facts.notice_fit import misfits_of
from spotladder.core.model import (
    TERMINAL,
    Attempt,
    AttemptSeen,
    CapacityType,
    Instant,
    JobSpec,
    JobState,
    Observation,
    PodPhase,
    PodRole,
    PodSeen,
    Price,
    Seconds,
    Stage,
)
from spotladder.core.reasons import Cause, Reason
from spotladder.errors import InvalidSpec
from spotladder.operator.condition_types import ConditionReason, Diagnosis
from spotladder.operator.inventory.clusters import Clusters, JobObjects
from spotladder.operator.inventory.heartbeats import with_silent_nodes
from spotladder.operator.loaded import Loaded, Tiers
from spotladder.operator.reading import Reading
from spotladder.output.outage import Outage
from spotladder.workloads import pending_pods as capacity_words
from spotladder.workloads.causes import silent
from spotladder.workloads.pod_observation import sidecar_failures
from spotladder.workloads.records import NodeRecord
from spotladder.workloads.tiers import PlacedTier, resolve_tier
from spotladder.workloads.workload import AttemptObjects, WorkloadKind


def resolve(
    job: TieredJob,
    capacity: Callable[[str], CapacityRecord | None],
    last_known: Callable[[str], CapacityRecord | None],
    clusters: frozenset[str],
    price: Callable[[CapacityTier], Price],
) -> Tiers:
    """Find the capacity of each tier. A CapacityTier that was deleted while in use is missing; its last
    price is kept. Until `price` is known, the price is that of the status, which an earlier controller has looked
    up."""
    resolved: dict[str, PlacedTier] = {}
    missing: dict[str, Diagnosis] = {}

    def group(name: str) -> tuple[CapacityTier, Price] | None:
        record = capacity(name) or last_known(name)
        if record is None or record.model is None:
            return None
        return record.model, price_or_last(price(record.model), record.status)

    for index, tier in enumerate(job.spec.tiers):
        record, name = capacity(tier.capacity_tier), tier.capacity_tier
        reason, problem = ConditionReason.UNKNOWN_CAPACITY_TIER, ""
        if record is None:
            problem = f'CapacityTier "{name}" does not exist'
        elif record.deleting:
            problem = f'CapacityTier "{name}" is being deleted'
        elif record.model is None:
            problem = f'CapacityTier "{name}" is not valid: {record.problem}'
        absent = next((entry.capacity_tier for entry in tier.groups.values() if group(entry.capacity_tier) is None), "")
        if absent and not problem:
            problem = f'CapacityTier "{absent}" of groups does not exist or is not valid'
        known = record or last_known(name)
        if known is not None and known.model is not None:
            try:
                resolved[tier.name] = resolve_tier(
                    index,
                    tier,
                    known.model,
                    price_or_last(price(known.model), known.status),
                    group,
                    history=history_in(known.status),
                )
            except InvalidSpec as error:
                problem = problem or str(error)
            else:
                cluster = known.model.spec.cluster
                if cluster not in clusters:
                    reason = ConditionReason.UNKNOWN_CLUSTER
                    problem = f'CapacityTier "{name}" is in cluster "{cluster}"; known: {", ".join(sorted(clusters))}'
        if problem:
            missing[tier.name] = Diagnosis(reason, f"spec.tiers[{index}].capacityTier: {problem}")
    return Tiers(resolved, missing)


def spec_of(spec: JobSpec, tiers: Tiers, *, reading: Reading, attribution_window: Seconds) -> JobSpec:
    """The job's parsed spec with what changes without it.

    While the commit log cannot be read, `stall_timeout` does not run, because a stalled job cannot be distinguished
    from one that commits.
    """
    return replace(
        spec,
        tiers=tuple(
            replace(tiers.resolved[tier.name].core, template=tier.template) if tier.name in tiers.resolved else tier
            for tier in spec.tiers
        ),
        attribution_window=attribution_window,
        stall_timeout=inf if reading.unreadable or not reading.known else spec.stall_timeout,
    )


def observe(
    record: JobRecord,
    state: JobState,
    *,
    workload: WorkloadKind,
    clusters: Clusters,
    tiers: Tiers,
    reading: Reading,
    blocked: Diagnosis | None,
    outage: Callable[[int], Outage | None],
    quiet_for: Callable[[int], Seconds | None],
    now: Instant,
    ticks: Seconds,
) -> tuple[Observation, JobObjects]:
    """The observation of the job. `blocked` is why the last launch did not succeed; `outage` is the outage of the
    checkpoint store that the program of an attempt reports, `quiet_for` how long its output has not grown.

    The snapshot is never older than the state: caches are listed after the lease was acquired, only move forward, and
    include the responses to the controller's own writes. So its revision is that of the state, or newer.
    """
    live = state.attempt
    planned = state.stage is Stage.STARTING and live is not None and not live.seen
    unseen = {own.number for own in (live, state.standby.attempt) if own is not None and not own.seen}
    removed = {left.number for left in state.left}
    found = clusters.attempts(record, lambda objects: tiers.cluster_of(_tier_of(objects)))
    attempts, waits, launched = [], "", False
    for number, located in sorted(found.attempts.items()):
        objects, cluster = located.objects, located.cluster
        if number in unseen and objects.top is None:
            continue  # Its pods are observed before its main object: the attempt is not gone.
        hidden = clusters.problem(cluster.name, workload.records, record.namespace)
        message = "" if hidden else workload.silent(objects, now + cluster.ahead)
        if planned and live and number == live.number and not workload.begun(objects):
            waits, launched = message, not workload.refusal(objects)
        elif number > 0:
            placed = tiers.resolved.get(_tier_of(objects))
            if live is not None and live.number == number:
                objects = cluster.inventory.with_failed(objects, live)
            nodes = cluster.inventory.nodes_of(objects)
            seen = workload.read(number, objects, nodes, cluster.inventory.events_of(objects, nodes))
            there = now + cluster.ahead
            seen = _by_controller_clock(seen, cluster.ahead)
            seen = with_silent_nodes(seen, cluster.inventory, objects.pods, nodes, now=there, ticks=ticks)
            seen = replace(seen, operator_silent=message, quiet_for=quiet_for(number))
            if number in removed:
                seen = _terminating(seen, objects, nodes)
            if placed is not None and placed.core.capacity_type is CapacityType.SPOT:
                seen = reclaimed(seen)
            if state.standby.attempt is not None and state.standby.attempt.number == number:
                seen = replace(seen, held=reading.held == number)
            if reading.heartbeat is not None and reading.progress.attempt == number:
                beat = reading.heartbeat
                seen = replace(seen, step=beat.step, total=beat.total, hung=reading.hung)
                seen = replace(seen, heartbeat_stopped=reading.stopped)
            if reading.progress.attempt == number and reading.progress.workers:
                seen = replace(seen, size=reading.progress.workers)
            attempts.append(_with_store(_unobservable(seen) if hidden else seen, reading, outage(number)))
    unavailable = _unavailable(
        record, live, planned=planned, workload=workload, clusters=clusters, tiers=tiers, found=found
    )
    unanswered = blocked.message if blocked and blocked.reason is Reason.OPERATOR_SILENT else ""
    refused = blocked.message if blocked and not unanswered else ""
    version = int(record.resource_version) if record.resource_version.isdigit() else 0
    seen_now = Observation(
        revision=max(state.revision, version),
        attempts=tuple(attempts),
        progress=reading.progress if reading.known else state.progress,
        unavailable=unavailable,
        blocked=refused,
        blocked_by=capacity_words.refusal(refused).by,
        launched=launched,
        operator_silent=waits or unanswered,
        suspects=clusters.suspects,
        granted={name: tier.granted_at for name, tier in tiers.resolved.items() if tier.granted_at is not None},
    )
    return seen_now, found


def _unavailable(
    record: JobRecord,
    live: Attempt | None,
    *,
    planned: bool,
    workload: WorkloadKind,
    clusters: Clusters,
    tiers: Tiers,
    found: JobObjects,
) -> dict[str, str]:
    """The tiers on which no attempt can start now, and why. `planned`: the live attempt does not exist yet. The objects
    of one that exists can be read without its CapacityTier, but not in a cluster that is no longer registered."""
    unavailable = {
        name: problem.message
        for name, problem in tiers.missing.items()
        if planned or live is None or live.tier != name or problem.reason is ConditionReason.UNKNOWN_CLUSTER
    } | {
        name: problem
        for name, tier in tiers.resolved.items()
        if (problem := _unreachable(clusters, tier.cluster, workload, record))
    }
    if live and live.number not in found.attempts and live.tier not in tiers.resolved:
        # Without its CapacityTier the name of its cluster is unknown: it may be in any unreachable cluster.
        hiding = (_unreachable(clusters, name, workload, record) for name in sorted(clusters.names))
        if why := next(filter(None, hiding), ""):
            unavailable[live.tier] = why
    return unavailable


def _with_store(seen: AttemptSeen, reading: Reading, outage: Outage | None) -> AttemptSeen:
    """The attempt, with the state of the checkpoint store from the log's reader or, without one, from its program."""
    if reading.away_since is not None:
        return replace(seen, store_unavailable_since=reading.away_since, store_message=reading.unreadable)
    if outage is not None:
        message = f"the program reports: {outage.message}"
        return replace(seen, store_unavailable_since=outage.since, store_message=message)
    return seen


def _unobservable(seen: AttemptSeen) -> AttemptSeen:
    """An attempt that cannot be observed: its pods may still run, and cached objects prove nothing. While its cluster
    is relisted, some objects are new and some are old."""
    pods = tuple(pod for pod in seen.pods if pod.phase is not PodPhase.LOST)
    return AttemptSeen(seen.number, pods, reachable=False)


def reclaimed(seen: AttemptSeen) -> AttemptSeen:
    """An attempt on a spot tier, whose nodes may lack spot labels: a cordon of a worker's node means that it is
    reclaimed. The head is on other nodes."""

    def interrupted(pod: PodSeen) -> PodSeen:
        cordoned = (pod.role, pod.cause) == (PodRole.WORKER, Cause.MAINTENANCE)
        return replace(pod, cause=Cause.INTERRUPTION) if cordoned else pod

    return replace(seen, pods=tuple(map(interrupted, seen.pods)))


def _terminating(seen: AttemptSeen, objects: AttemptObjects, nodes: Mapping[str, NodeRecord]) -> AttemptSeen:
    """An attempt that is being removed: a pod that terminates holds its node until it is gone."""
    on_nodes = (pod for pod in objects.pods if pod.phase in ("Pending", "Running") and not silent(nodes.get(pod.node)))
    held = {pod.uid for pod in on_nodes}
    pods = (replace(pod, phase=PodPhase.RUNNING) if pod.uid in held else pod for pod in seen.pods)
    return replace(seen, pods=tuple(pods))


def _by_controller_clock(seen: AttemptSeen, ahead: Seconds) -> AttemptSeen:
    """A notice has the time of its cluster's clock. With a clock that is behind, the notice would end before it began,
    and the attempt would have no time to commit."""
    if not ahead:
        return seen

    def ours(stamp: Instant | None) -> Instant | None:
        return None if stamp is None else stamp - ahead

    pods = tuple(
        replace(pod, noticed_at=ours(pod.noticed_at), notice_ends_at=ours(pod.notice_ends_at)) for pod in seen.pods
    )
    return replace(seen, pods=pods)


def _tier_of(objects: AttemptObjects) -> str:
    return objects.every[0].tier if objects.every else ""


def _unreachable(clusters: Clusters, name: str, workload: WorkloadKind, record: JobRecord) -> str:
    if name == HOME or name not in clusters.names:
        return ""
    why = clusters.problem(name, workload.records, record.namespace)
    return f"cluster {name} cannot be used: {why}" if why else ""


def awaits_sync(clusters: Clusters, tiers: Tiers, state: JobState) -> bool:
    """Whether the first sync is pending in a cluster that may have one of these tiers or the live attempt."""
    names = {tier.cluster for tier in tiers.resolved.values()}
    if state.attempt and state.attempt.tier not in tiers.resolved:
        names |= clusters.names
    return not all(clusters.has_synced(name) for name in names)


def problems_of(loaded: Loaded, clusters: Clusters) -> list[Diagnosis]:
    """The problems that degrade a started job."""
    state, seen, reading, tiers = loaded.state, loaded.seen, loaded.reading, loaded.tiers
    problems = []
    live = seen.attempt(state.attempt.number) if state.attempt else None
    if reading.refused is not None:
        problems.append(reading.refused)
    if reading.gone and live is not None:  # Otherwise it is the reason why no attempt is launched.
        problems.append(Diagnosis(ConditionReason.CHECKPOINTS_GONE, reading.gone))
    outage = reading.away_since is not None and live is not None and live.store_unavailable_since is not None
    if reading.unreadable and state.stage not in TERMINAL and not outage:  # The impediment reports it then.
        reason = ConditionReason.CHECKPOINTS_NOT_ALLOWED if reading.denied else ConditionReason.CHECKPOINTS_UNREADABLE
        problems.append(Diagnosis(reason, reading.unreadable))
    problems += [
        Diagnosis(ConditionReason.CAPACITY_TIER_GONE, problem.message)
        if problem.reason is ConditionReason.UNKNOWN_CAPACITY_TIER
        else problem
        for problem in tiers.missing.values()
    ]
    away = {name: tier.cluster for name, tier in tiers.resolved.items() if not state.record(name).exhausted_by}
    unreachable = {seen.unavailable[name] for name in away if name in seen.unavailable and name not in tiers.missing}
    problems += [Diagnosis(ConditionReason.CLUSTER_UNREACHABLE, message) for message in sorted(unreachable)]
    doubts = {name: doubt for name in set(away.values()) if (doubt := clusters.doubt(name))}
    problems += [
        Diagnosis(
            ConditionReason.CLUSTER_MISCONFIGURED, f"cluster {name} is used with its previous connection: {doubt}"
        )
        for name, doubt in sorted(doubts.items())
    ]
    problems += [
        Diagnosis(
            ConditionReason.CLOCK_SKEWED,
            f"the clock of cluster {name} is {cluster.skew}; notices are converted: set it",
        )
        for name in sorted(set(away.values()))
        if (cluster := clusters.of(name)) and cluster.skew
    ]
    problems += [
        Diagnosis(ConditionReason.TOKEN_REFUSED, f"{top.name}: {top.token_refused}")
        for located in loaded.found.attempts.values()
        if state.stage not in TERMINAL and (top := located.objects.top) is not None and top.token_refused
    ]
    own = loaded.found.attempts.get(state.attempt.number) if state.attempt and state.stage not in TERMINAL else None
    failures = sidecar_failures(own.objects.pods) if own is not None else []
    problems += [Diagnosis(ConditionReason.SIDECAR_FAILED, message) for message in failures]
    return problems


def unpriced(spec: JobSpec) -> Diagnosis | None:
    """Why the cost may exceed the budget."""
    tiers = [tier.name for tier in spec.tiers if not tier.price.known]
    groups = dict.fromkeys(name for tier in spec.tiers for name, price in tier.auxiliary if price is None)
    names = [f"{kind} {', '.join(of)}" for kind, of in (("tier", tiers), ("group", groups)) if of]
    if spec.budget is None or not names:
        return None
    message = f"spec.budget: no price is known for {' and '.join(names)}: its cost is not counted"
    return Diagnosis(ConditionReason.PRICE_UNKNOWN, message)


def unbounded_overlap(spec: JobSpec) -> Diagnosis | None:
    """Why planned moves have no standby attempt, or a tier without capacity no hedge on some tier."""
    missing = missing_prices(spec.overlap, {tier.name: tier.price.known for tier in spec.tiers})
    if missing.for_moves:
        message = (
            f"spec.overlap: no price is known for tier {', '.join(missing.for_moves)}, so nothing bounds the cost of a "
            "standby attempt and none starts: set maxDuration"
        )
    elif missing.for_hedges:
        tiers = ", ".join(missing.for_hedges)
        message = f"spec.overlap.hedgeAfter: no price is known for tier {tiers}: it is not started early"
    else:
        return None
    return Diagnosis(ConditionReason.PRICE_UNKNOWN, message)


def too_short_notice(spec: JobSpec, state: JobState) -> Diagnosis | None:
    """Why evictions lose work: commits take longer than the notice of a tier."""
    messages = [f"spec.tiers[{misfit.index}]: {misfit.message}" for misfit in misfits_of(spec, state)]
    return Diagnosis(ConditionReason.NOTICE_TOO_SHORT, "; ".join(messages)) if messages else None
