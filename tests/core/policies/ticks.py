"""A policy alone, tick by tick, on one spot tier and one on-demand tier: no lifecycle around it.

Each tick the policy sees the availability of that tick. Each start spends the overhead without progress; a start on
on-demand first waits for its provisioning delay, unbilled.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from spotladder.core.availability import with_sightings
from spotladder.core.model import CapacityType, JobState, Price, Progress, Tier, TierOutlook, TierView
from spotladder.core.policies import Policy
from tests.core.builders import START

SPOT, ON_DEMAND = "spot", "on-demand"
TICK = 600.0


@dataclass(frozen=True)
class JobTimes:
    """Times in seconds. `delay` is the longest provisioning delay of on-demand capacity, known to the policy, as is
    with `capacity_lasts` that capacity lasts for a tick."""

    work: float = 48 * 3600.0
    deadline: float = 52 * 3600.0
    overhead: float = 180.0
    delay: float = 0.0
    capacity_lasts: bool = False
    spot_price: float = 0.9731
    on_demand_price: float = 3.06

    @property
    def tiers(self) -> tuple[Tier, Tier]:
        return (
            Tier(SPOT, -1, capacity_type=CapacityType.SPOT, price=Price(self.spot_price, self.on_demand_price)),
            Tier(ON_DEMAND, -1, price=Price(self.on_demand_price, self.on_demand_price)),
        )


@dataclass(frozen=True)
class TickRun:
    """The result of a run. `finished` is in seconds after the start; None: the deadline was missed."""

    cost: float
    finished: float | None
    held: tuple[str, ...]
    why: tuple[str, ...]

    @property
    def starts(self) -> int:
        before = ("", *self.held)
        return sum(1 for last, now in zip(before, self.held, strict=False) if now and now != last)


def run(policy: Policy, available: Sequence[bool], job: JobTimes, delays: Sequence[float] = ()) -> TickRun:
    """The policy's run on this availability, one entry a tick; `delays` are those of the on-demand starts in turn."""
    ticks = int(-(-job.deadline // TICK))
    state, left, held, idle, cost = JobState(), job.work, "", 0.0, 0.0
    began, waits = 0, iter(delays)
    history: list[str] = []
    sentences: list[str] = []
    for tick in range(ticks):
        up = bool(available[tick])
        now = START + tick * TICK
        state = with_sightings(state, {SPOT: up, ON_DEMAND: True}, now, now - TICK)
        if held == SPOT and not up:
            held, idle = "", 0.0
        view = replace(_view(job, state, now, held, began), remaining=left, starting=idle if held else 0.0)
        choice = policy.choose(view)
        again = policy.choose(replace(view))
        assert choice == again, "a function of the view"
        chosen = choice.tier or ""
        if chosen == SPOT and not up:
            chosen = ""
        if chosen and chosen != held:
            began = tick
            idle = job.overhead + (next(waits, 0.0) if chosen == ON_DEMAND else 0.0)
        held = chosen
        history.append(held)
        sentences.append(choice.why)
        if not held:
            continue
        spent = min(idle, TICK)
        price = job.spot_price if held == SPOT else job.on_demand_price
        if left <= TICK - spent:
            cost += price * (spent + left) / 3600
            finished = tick * TICK + spent + left
            return TickRun(cost, finished if finished <= job.deadline else None, tuple(history), tuple(sentences))
        cost += price * TICK / 3600
        idle -= spent
        left -= TICK - spent
    return TickRun(cost, None, tuple(history), tuple(sentences))


def _view(job: JobTimes, state: JobState, now: float, held: str, began: int) -> TierView:
    tiers = job.tiers
    records = tuple(state.record(tier.name) for tier in tiers)
    capacity = {SPOT: records[0].spells[-1].available, ON_DEMAND: True}
    return TierView(
        now=now,
        current=held or (SPOT if began else ""),
        tiers=tiers,
        records=records,
        open=frozenset(capacity),
        available=frozenset(name for name, has_capacity in capacity.items() if has_capacity),
        live=bool(held),
        progress=Progress(),
        deadline=START + job.deadline,
        spent_usd=0.0,
        outlooks=tuple(
            TierOutlook(tier.name, capacity[tier.name], job.overhead + delay)
            for tier, delay in zip(tiers, (0.0, job.delay), strict=True)
        ),
        work=job.work,
        submitted_at=START,
        interval=TICK,
        capacity_lasts=job.capacity_lasts,
    )
