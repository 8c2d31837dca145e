"""The input of a policy: the tiers of a job and their current availability."""

from __future__ import annotations

from spotladder.core import limits
from spotladder.core.availability import start_overhead, work_left
from spotladder.core.model import Instant, Seconds, Stage, TierOutlook, TierView
from spotladder.core.outcomes import with_fleet
from spotladder.core.situation import LIVE, Situation


def sightings(here: Situation) -> dict[str, bool]:
    """For each tier whose availability is known now: whether it has capacity for the whole job."""
    found = dict.fromkeys(here.seen.offered, True)
    found.update(dict.fromkeys(here.seen.unavailable, False))
    attempt = here.attempt_seen
    if here.state.stage in LIVE and attempt is not None and attempt.reachable:
        if here.all_pods_ready:
            found[here.state.tier] = True
        elif attempt.refused:
            found[here.state.tier] = False
    return {tier.name: found[tier.name] for tier in here.spec.tiers if tier.name in found}


def _waiting_since(here: Situation) -> Instant | None:
    """When the live attempt began to wait for workers, if that was before now."""
    since = here.state.waiting_since
    return since if since is not None and since < here.now else None


def _starting(here: Situation) -> Seconds:
    """The rest of the overhead of the live attempt: all of it until all workers are ready."""
    attempt = here.state.attempt
    runs = here.state.stage is Stage.RUNNING and here.all_pods_ready
    ready_at = attempt.all_ready_at if attempt is not None and runs else None
    return here.spec.overhead if ready_at is None else max(0.0, here.spec.overhead - (here.now - ready_at))


def view_of(here: Situation, *, live: bool) -> TierView:
    """The input of the policy."""
    spec, state, seen = here.spec, with_fleet(here.state, here.spec), here.seen
    work, remaining = work_left(spec, state, seen.progress)
    available = sightings(here)
    return TierView(
        now=here.now,
        current=state.tier,
        tiers=spec.tiers,
        records=tuple(state.record(tier.name) for tier in spec.tiers),
        open=here.open,
        available=here.open - seen.unavailable.keys(),
        live=live,
        progress=seen.progress,
        deadline=limits.deadline(spec),
        spent_usd=state.spent_usd,
        outlooks=tuple(
            TierOutlook(
                tier.name,
                available.get(tier.name),
                start_overhead(spec, state, tier),
                overlaps=live and here.returns_beside(tier),
            )
            for tier in spec.tiers
        ),
        work=work,
        remaining=remaining,
        submitted_at=spec.submitted_at,
        interval=spec.decision_interval,
        grace=spec.grace,
        waiting_since=_waiting_since(here) if live and available.get(state.tier) is False else None,
        capacity_lasts=spec.capacity_lasts,
        starting=_starting(here) if live else 0.0,
    )
