"""Rules for an attempt that waits for nodes, or for the quota of a queue: timers expire, and the next tier is started
beside it."""

from __future__ import annotations

from dataclasses import replace

from spotladder.core.changes.changing import asked, counted, exhausted, without_wait
from spotladder.core.changes.hedging import hedge_due, hedge_tier
from spotladder.core.changes.standing_by import PlannedMove, given_up, with_standby
from spotladder.core.diagnosis.evidence import inadmissible, waits_for_quota
from spotladder.core.diagnosis.impediment import ImpedimentRule, Timer, classify, rule_of, timer_of
from spotladder.core.durations import format_duration
from spotladder.core.facts.standby import standby_ready
from spotladder.core.history.availability import with_sightings
from spotladder.core.history.bad_nodes import named
from spotladder.core.history.losses import synthetic
from spotladder.core.model import Exhausted, OnInsufficientCapacity, Tier
from spotladder.core.policies.safety_net import RETRY_INTERVAL
from spotladder.core.reasons import Cause, Reason
from spotladder.core.rules.effect import Effect, ended, ended_by_loss
from spotladder.core.situation import Situation


def ready_hedge(situation: Situation) -> Effect | None:
    """The attempt waits for capacity beside a hedge, and one of the two is ready: the other one ends, without a failure
    and without exhausting its tier."""
    hedge, attempt = situation.state.standby.attempt, situation.attempt
    if hedge is None or situation.state.standby.reason is not Reason.HEDGED:
        return None
    writes = situation.seen.progress.attempt >= hedge.number
    if (situation.all_pods_ready or situation.trains_unready) and not writes:
        return Effect(given_up(situation, f"attempt {attempt.number} on {attempt.tier} is ready first"))
    if not writes and not standby_ready(situation):
        return None
    if situation.waits_for_capacity:
        state = with_sightings(situation.state, {attempt.tier: False}, situation.now)
        situation = replace(situation, state=state)
    return Effect(situation, Reason.HEDGED, f"attempt {hedge.number} on {hedge.tier} is ready first")


def due_hedge(situation: Situation) -> Effect | None:
    """The attempt has waited for capacity for `overlap.hedgeAfter`: the next tier's attempt starts beside it."""
    target, overlap = hedge_tier(situation), situation.spec.overlap
    if target is None or overlap is None or overlap.hedge_after is None or not situation.passed(hedge_due(situation)):
        return None
    why = f"{situation.attempt.tier} has not become ready for {format_duration(overlap.hedge_after)}"
    return Effect(with_standby(situation, PlannedMove(target.name, Reason.HEDGED, why)))


def queue_timeout(situation: Situation) -> Effect | None:
    """The attempt has waited for quota for `queueTimeout`: it ends, and its tier is exhausted unless the policy keeps
    it open."""
    tier = situation.tier
    if tier is None or tier.queue_timeout is None or timer_of(situation) is not Timer.QUEUE:
        return None
    if not situation.passed(situation.queue_deadline):
        return None
    why = inadmissible(situation) or waits_for_quota(situation)
    left = _without_nodes(situation, tier, Reason.QUEUE_TIMEOUT)
    if left.open and _refused_again(left):
        return None  # The next attempt would begin at the end of the same queue.
    return Effect(left, Reason.QUEUE_TIMEOUT, f"no quota for {format_duration(tier.queue_timeout)}: {why}")


def provision_timeout(situation: Situation) -> Effect | None:
    """Workers are missing for `provisionTimeout`, or the provisioner refuses them: the attempt ends, and its tier is
    exhausted if capacity was what it lacked.

    An attempt that avoids nodes gives no evidence about the capacity of its tier: it ends earlier if no other node can
    take its pods, and the next attempt runs on the same tier and avoids none. A pod that fits no node of the tier
    shows nothing about its capacity, and exhausts it whatever the policy prefers: after `MISFIT_TIMEOUT` if no wait
    mends that.
    """
    tier, rule = situation.tier, rule_of(situation)
    if (
        tier is None
        or situation.state.timers.waiting_since is None
        or rule is None
        or rule.timer is not Timer.PROVISION
    ):
        return None
    avoids = situation.attempt.avoids if rule.exhausts else ()
    misfit = situation.misfit_deadline if rule.reason is Reason.POD_DOES_NOT_FIT else None
    deadlines = (situation.provision_deadline, misfit, situation.avoidance_deadline if avoids else None)
    refused = situation.refused and tier.on_insufficient_capacity is OnInsufficientCapacity.FALLBACK
    refused = refused and not _refused_again(_without_nodes(situation, tier, Reason.INSUFFICIENT_CAPACITY))
    if not refused and not any(map(situation.passed, deadlines)):
        return None
    if situation.attempt_seen is None and situation.seen.launched:
        return None  # no operator has acted on it yet: that is not capacity, and `operator_silent` soon says so
    if avoids:
        why = f"no capacity without the avoided nodes {named(avoids, situation.state)}: the next attempt may use them"
        situation = without_wait(situation)
        state = replace(situation.state, node_failures=())  # A bad node is better than none.
        return Effect(replace(situation, state=state), Reason.INSUFFICIENT_CAPACITY, why)
    if rule.exhausts:
        return _without_capacity(situation, tier, rule, refused=refused)
    return _unreachable(situation, rule)


def _without_nodes(situation: Situation, tier: Tier, reason: Reason) -> Situation:
    """The situation in which this tier had no nodes for the live attempt: it is exhausted, unless the policy keeps it
    open."""
    situation = replace(situation, state=with_sightings(situation.state, {tier.name: False}, situation.now))
    return without_wait(situation) if situation.changes.choice.keeps_open else exhausted(situation, reason)


def _refused_again(left: Situation) -> bool:
    """Whether the next attempt would be on a tier that has just had no nodes either, so that attempts would follow each
    other without a pause."""
    name = asked(left, live=False).changes.choice.tier
    if not left.open and left.spec.exhausted is Exhausted.RESTART:
        name = left.spec.tiers[0].name
    newest = left.state.record(name or "").spells[-1:]
    return bool(newest) and not newest[0].available and left.now < newest[0].until + RETRY_INTERVAL


def _without_capacity(situation: Situation, tier: Tier, rule: ImpedimentRule, *, refused: bool) -> Effect:
    """The tier has no capacity for the attempt, or no node that can ever hold its pods."""
    message = _impediment_message(situation)
    if rule.reason is Reason.POD_DOES_NOT_FIT:
        situation = replace(situation, state=replace(situation.state, misfit=message))
        return Effect(exhausted(situation, rule.reason), rule.reason, message)
    why = message if refused else f"not all workers ready for {tier.provision_timeout:.10g} s"
    return Effect(_without_nodes(situation, tier, Reason.INSUFFICIENT_CAPACITY), Reason.INSUFFICIENT_CAPACITY, why)


def _unreachable(situation: Situation, rule: ImpedimentRule) -> Effect | None:
    """The attempt cannot be reached, or not be launched: it is a loss, or the job uses another tier if there is one."""
    if rule.counted and situation.attempt.seen:
        lost = synthetic(situation.attempt, "contact", Cause.NODE_LOST, "contact with its cluster")
        return ended_by_loss(situation, rule.reason, lost, _impediment_message(situation))
    tier = asked(situation, live=False).changes.choice.tier
    if tier is None or not situation.may_use(tier) or tier == situation.state.tier:
        return None
    return Effect(situation, rule.reason, _impediment_message(situation))


def _impediment_message(situation: Situation) -> str:
    found = classify(situation)
    return found.message if found is not None else ""


def recovery_timeout(situation: Situation) -> Effect | None:
    """The workers are not all ready again within `recoveryTimeout`: the attempt ends with one failure, unless it waits
    for capacity, where `provisionTimeout` applies, or for quota."""
    since = situation.state.timers.recovering_since
    if since is None or not situation.passed(situation.recovery_deadline):
        return None
    if not situation.reachable or situation.held_by is not None or situation.waits_for_capacity:
        return None
    if not situation.state.loss_counted:
        lost = synthetic(situation.attempt, f"recovery-{since:.3f}", Cause.UNKNOWN, "a worker that is not ready")
        situation = counted(situation, [lost])
    message = f"not all workers ready again within {situation.spec.recovery_timeout:.10g} s"
    return ended(situation, Reason.RECOVERY_TIMEOUT, message)
