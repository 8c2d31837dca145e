"""Runs jobs in a world through the real `decide`, from event to event."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from spotladder.core.accounting.held_nodes import HOUR
from spotladder.core.accounting.price_history import with_price
from spotladder.core.backend import apply
from spotladder.core.lifecycle import decide
from spotladder.core.model import (
    TERMINAL,
    Decision,
    ExtraCosts,
    JobSpec,
    JobState,
    Loss,
    Move,
    Observation,
    Seconds,
    Stage,
    Tier,
)
from spotladder.core.policies import Policy
from spotladder.core.reasons import Reason
from spotladder.errors import SpotladderError
from spotladder.sim.world.backend import SimBackend
from spotladder.sim.world.market import START, Market

DECISIONS_AT_ONCE = 100
"""Maximum number of decisions at one moment; if a policy makes more, it contradicts itself."""


NO_EXTRA = ExtraCosts()

Watch = Callable[["SimulationRun", Decision, Observation], None]
"""Called with each decision and its observation, before the run has the state of the decision and acts on it."""


class PolicyOscillates(SpotladderError):
    """The policy moves the job back and forth at one moment, `at` seconds after the start: a defect of the policy."""

    def __init__(self, policy: Policy, at: Seconds) -> None:
        super().__init__(f"policy {type(policy).__name__} moves the job back and forth at {at:g} s")


@dataclass(frozen=True, slots=True)
class DecidedMove:
    """A decided transition, in seconds after the start. `committed` is the work that was committed by then."""

    at: Seconds
    move: Move
    committed: Seconds = 0.0


@dataclass(frozen=True, slots=True)
class DecidedLoss:
    """A counted failure, in seconds after the start."""

    at: Seconds
    loss: Loss


@dataclass(frozen=True, slots=True)
class SimulationOutcome:
    """The result of one run in USD, seconds and counts. The job ended `finished` seconds after the start of the run,
    `succeeded` says whether it succeeded, `reason` why it ended. `recomputed` is work that was lost before it was
    committed, `overhead` the time from ready workers to the first step. `waiting` is the part of the cost for nodes of
    gangs that were not complete, `overlap` that for standby attempts, and `extra` that for heads, storage and egress.
    `node_hours`, `tier_usd`, `tier_evictions` and `tier_recomputed` are by tier. `path` has every transition, and
    `losses` every counted failure."""

    succeeded: bool
    reason: Reason
    finished: Seconds
    cost: float
    evictions: int
    attempts: int
    recomputed: Seconds
    overhead: Seconds
    waiting: float
    node_hours: dict[str, float]
    path: tuple[DecidedMove, ...]
    decisions: int
    overlap: float = 0.0
    extra: ExtraCosts = NO_EXTRA
    tier_usd: dict[str, float] = field(default_factory=dict)
    tier_evictions: dict[str, int] = field(default_factory=dict)
    tier_recomputed: dict[str, Seconds] = field(default_factory=dict)
    losses: tuple[DecidedLoss, ...] = ()

    @property
    def ended(self) -> bool:
        """Whether the job ended before the limit of the run."""
        return not self.path or self.path[-1].move.target in TERMINAL


@dataclass
class SimulationRun:
    """One job of a world with its decider, which keeps the job's state like a controller."""

    spec: JobSpec
    policy: Policy
    backend: SimBackend
    state: JobState = field(default_factory=JobState)
    wake_at: Seconds = 0.0
    decisions: int = 0
    watch: Watch | None = None
    _path: list[DecidedMove] = field(default_factory=list)
    _losses: list[DecidedLoss] = field(default_factory=list)

    @property
    def ended(self) -> bool:
        """Whether the job is in a terminal stage."""
        return self.state.stage in TERMINAL

    def decide(self) -> None:
        """Decide and act until nothing is due. Raises PolicyOscillates."""
        backend, now = self.backend, self.backend.market.now
        for _ in range(DECISIONS_AT_ONCE):
            seen = backend.observe()
            decision = decide(self._priced(), self.state, seen, START + now, self.policy)
            self.decisions += 1
            if self.watch is not None:
                self.watch(self, decision, seen)
            backend.market.grants.record(self.state, decision, backend.tiers, now)
            self.state, before = decision.state, backend.changes
            self._path += [DecidedMove(now, move, float(self.state.progress.step)) for move in decision.moves]
            self._losses += [DecidedLoss(now, loss) for loss in decision.losses]
            for action in decision.actions:
                apply(self.backend, action)
            if not decision.moves and (backend.changes == before or self.ended):
                self.wake_at = math.inf if decision.wake_at is None else max(now, decision.wake_at - START)
                return
        raise PolicyOscillates(self.policy, now)

    def outcome(self) -> SimulationOutcome:
        """The result of the run."""
        bill, state = self.backend.bill, self.state
        zones = self.backend.tiers.items()
        hours = {tier: bill.node_seconds.get(zone, 0.0) / HOUR for tier, zone in zones}
        ended = state.ended_at - START if state.ended_at is not None else self.backend.market.now
        return SimulationOutcome(
            succeeded=state.stage is Stage.SUCCEEDED,
            reason=state.reason,
            finished=ended,
            cost=bill.nodes_usd + state.extra.total,
            evictions=sum(bill.evictions.values()),
            attempts=state.last_number,
            recomputed=sum(bill.recomputed.values()),
            overhead=bill.overhead,
            waiting=bill.waiting_usd,
            node_hours=hours,
            path=tuple(self._path),
            losses=tuple(self._losses),
            decisions=self.decisions,
            overlap=state.surplus.overlap,
            extra=state.extra,
            tier_usd={tier: bill.usd.get(zone, 0.0) for tier, zone in zones},
            tier_evictions={tier: bill.evictions.get(zone, 0) for tier, zone in zones},
            tier_recomputed={tier: bill.recomputed.get(zone, 0.0) for tier, zone in zones},
        )

    def _priced(self) -> JobSpec:
        """The spec with the current prices."""
        tiers = tuple(self._tier_priced(tier) for tier in self.spec.tiers)
        if any(new is not old for new, old in zip(tiers, self.spec.tiers, strict=True)):
            self.spec = replace(self.spec, tiers=tiers)
        return self.spec

    def _tier_priced(self, tier: Tier) -> Tier:
        """The tier with its current price; the same object if that has not changed."""
        backend = self.backend
        price = backend.market.zone(backend.tiers[tier.name]).price(backend.market.now)
        if price == tier.price.per_node_hour:
            return tier
        # As a controller does. Plans and replays begin with the history of the tier; other simulations have none.
        prices = with_price(tier.prices, price, START + backend.market.now) if tier.prices else ()
        return replace(tier, price=replace(tier.price, per_node_hour=price), prices=prices)


def run(
    market: Market,
    runners: Sequence[SimulationRun],
    limit: Seconds,
    seen: Callable[[Market], None] = lambda _market: None,
) -> list[SimulationOutcome]:
    """Advance the world until all jobs have ended, or for `limit` seconds. Calls `seen` after each event."""
    for runner in runners:
        runner.decide()
    while (going := [runner for runner in runners if not runner.ended]) and market.now < limit:
        watched = {zone for runner in going for zone in runner.backend.watched}
        moments = [market.next_event(watched)]
        for runner in going:
            moments += [runner.backend.next_event(), runner.wake_at]
        market.advance(max(market.now, min(*moments, limit)))
        for runner in going:
            runner.backend.advance()
            runner.decide()
        seen(market)
    return [runner.outcome() for runner in runners]
