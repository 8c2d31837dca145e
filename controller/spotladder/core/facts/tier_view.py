"""The input of a policy: the tiers of a job and their current availability."""

from __future__ import annotations

from spotladder.core.facts import limits
from spotladder.core.facts.move_costs import lost_work_usd, move_costs
from spotladder.core.facts.standby import returns_beside
from spotladder.core.facts.starts import start_overhead, start_reserve
from spotladder.core.facts.work import work_left
from spotladder.core.model import Seconds, Stage, TierOutlook, TierView
from spotladder.core.model.gang import gang_misfit, gang_ready
from spotladder.core.situation import LIVE, Situation


def sightings(situation: Situation) -> dict[str, bool]:
    """For each tier whose availability is known now, whether it has capacity for the job, or for the smallest size of
    an elastic job."""
    found = dict.fromkeys(situation.seen.offered, True)
    found.update(dict.fromkeys(situation.seen.unavailable, False))
    attempt = situation.attempt_seen
    if situation.state.stage in LIVE and attempt is not None and attempt.reachable:
        if gang_ready(attempt, situation.needed):
            found[situation.state.tier] = True
        elif situation.refused and gang_misfit(attempt, situation.needed) is None:
            found[situation.state.tier] = False
    return {tier.name: found[tier.name] for tier in situation.spec.tiers if tier.name in found}


def _starting(situation: Situation) -> Seconds:
    """The rest of the given overhead of the live attempt: all of it until all workers are ready."""
    attempt = situation.state.attempt
    runs = situation.state.stage is Stage.RUNNING and situation.all_pods_ready
    ready_at = attempt.all_ready_at if attempt is not None and runs else None
    overhead = situation.spec.overhead or 0.0
    return overhead if ready_at is None else max(0.0, overhead - (situation.now - ready_at))


def view_of(situation: Situation, *, live: bool) -> TierView:
    """The input of the policy."""
    spec, state, seen = situation.spec, situation.state, situation.seen
    work, remaining = work_left(spec, state, seen.progress)
    available = sightings(situation)
    lost_work = lost_work_usd(situation) if live else 0.0
    since, waits = state.timers.waiting_since, live and available.get(state.tier) is False
    return TierView(
        now=situation.now,
        current=state.tier,
        tiers=spec.tiers,
        records=tuple(state.record(tier.name) for tier in spec.tiers),
        open=situation.open,
        available=situation.open - seen.unavailable.keys(),
        live=live,
        progress=seen.progress,
        deadline=limits.deadline(spec),
        spent_usd=state.spent_usd,
        outlooks=tuple(
            TierOutlook(
                tier.name,
                available.get(tier.name),
                start_overhead(spec, state, tier),
                overlaps=live and returns_beside(situation, tier),
                move=move_costs(situation, tier, lost_work),
                granted_at=seen.granted.get(tier.name),
                reserve=start_reserve(spec, state, tier),
            )
            for tier in spec.tiers
        ),
        work=work,
        remaining=remaining,
        submitted_at=spec.submitted_at,
        interval=spec.decision_interval,
        grace=spec.grace,
        waiting_since=since if waits and since is not None and since < situation.now else None,
        capacity_lasts=spec.capacity_lasts,
        starting=_starting(situation) if live else 0.0,
        workers=spec.workers,
        budget=spec.budget,
        trained=state.measured.timed_seconds if remaining is None else 0.0,
    )
