"""Writes the status of CapacityTiers: nodes in use, how often capacity was granted and lost, and after which time.

Counts come from persisted TieredJobs and are accumulated in the status itself, so that they outlive jobs and
controllers. The writer batches them. A controller that crashes loses the counts since its last write. The `adaptive`
policy uses the waits, the prices and the newest grant in its choices; no other decision uses the status. `plan`
uses the rates and the waits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime

from spotladder.api.capacitytier import ApplyTo, CapacityTier
from spotladder.api.status import CapacityTierStatus, Condition
from spotladder.api.stored import CapacityRecord, JobRecord
from spotladder.api.tier_history import (
    number_in,
    price_entries_of,
    price_or_last,
    prices_of,
    read_status,
    wait_entries_of,
    waits_of,
)
from spotladder.clusters.cache import Cache, Scoped
from spotladder.clusters.client import Client
from spotladder.clusters.clock import Clock
from spotladder.clusters.errors import Conflict, Forbidden, Invalid, NotFound
from spotladder.core.accounting.held_nodes import HOUR
from spotladder.core.accounting.price_history import with_price
from spotladder.core.history import waits
from spotladder.core.history.grants import Answer, answers
from spotladder.core.history.waits import Waits
from spotladder.core.model import Decision, Instant, JobState, Price, Seconds, Stage
from spotladder.core.reasons import Reason
from spotladder.errors import SpotladderError
from spotladder.operator.condition_types import ConditionType, ConditionUpdate, ConditionUpdates, merged, stated
from spotladder.operator.inventory.inventory import JobKey
from spotladder.operator.loaded import Loaded
from spotladder.operator.prices import Prices
from spotladder.operator.reporting.tier_usage import TierUsage, tier_usage
from spotladder.resources import CAPACITYTIERS
from spotladder.workloads.records import PodRecord

WRITE_INTERVAL: Seconds = 15.0
_ASKED = (Reason.STARTED, Reason.FELL_BACK, Reason.MIGRATED_BACK)


@dataclass(slots=True)
class _Tally:
    """The counts since the last write. `had` is whether the last request got nodes; None if there was no request."""

    attempts: int = 0
    refusals: int = 0
    evictions: int = 0
    node_seconds: float = 0.0
    had: bool | None = None
    refused_at: Instant | None = None
    why: str = ""
    granted_at: Instant | None = None
    waits: Waits = ()

    def count(self, answer: Answer, now: Instant) -> None:
        """Count a grant or a refusal. One of lost nodes answers a request of its own. Only the end of an attempt counts
        among `refusals`."""
        if answer.granted:
            self.granted_at = now
        else:
            self.refused_at = now
        if answer.move is not None:
            self.had, self.why = answer.granted, answer.move.message
            self.attempts += answer.move.source is Stage.RECOVERING
            self.refusals += not answer.granted


@dataclass(slots=True)
class TierStatusWriter:
    """`decided` gets every persisted decision; `run` writes."""

    client: Client
    capacity: Cache[CapacityRecord]
    jobs: Scoped[JobRecord]
    pods: Callable[[JobKey], Iterable[PodRecord]]
    prices: Prices
    clusters: frozenset[str]
    clock: Clock
    _tallies: dict[str, _Tally] = field(default_factory=dict)

    def decided(self, loaded: Loaded, before: JobState, decision: Decision) -> None:
        """Count the decision."""
        names = {tier.name: tier.capacity_tier for tier in loaded.job.spec.tiers}
        for record in decision.state.tiers:
            known, name = before.record(record.name), names.get(record.name)
            if name is not None and record != known:
                tally = self._tallies.setdefault(name, _Tally())
                tally.evictions += max(0, record.failures - known.failures)
                tally.node_seconds += max(0.0, record.node_seconds - known.node_seconds)
        for move in decision.moves:
            if move.reason in _ASKED and (name := names.get(move.tier)):
                self._tallies.setdefault(name, _Tally()).attempts += 1
        for answer in answers(before, decision):
            if name := names.get(answer.tier):
                tally = self._tallies.setdefault(name, _Tally())
                tally.count(answer, self.clock.now())
                if answer.granted and answer.move is not None:
                    tally.waits = waits.added(tally.waits, _wait(before, decision.state, answer.move.attempt))

    async def run(self) -> None:
        """Write changes until cancelled."""
        while True:
            await self.clock.sleep(WRITE_INTERVAL)
            await self.write()

    async def write(self) -> None:
        """Write the changes. A change that cannot be written now is written with the next ones."""
        usage = tier_usage(self.jobs.all(), self.pods)
        for record in list(self.capacity.all()):
            tally = self._tallies.pop(record.name, _Tally())
            before = read_status(record.status)
            after = self._after(record, before, tally, usage.get(record.name, TierUsage()))
            if after == before:
                continue
            body = {
                "metadata": {"resourceVersion": record.resource_version},
                "status": after.model_dump(mode="json", by_alias=True, exclude_none=True),
            }
            try:
                answer = await self.client.merge(CAPACITYTIERS, record.name, body=body, subresource="status")
            except (Conflict, NotFound, Forbidden, Invalid):  # Others may still be written.
                self._keep(record.name, tally)
            except SpotladderError:
                self._keep(record.name, tally)
                return  # The API server does not answer.
            else:
                self.capacity.put(dict(answer))

    def _keep(self, name: str, tally: _Tally) -> None:
        """Add the counts that could not be written."""
        newer = self._tallies.get(name, _Tally())
        self._tallies[name] = _Tally(
            tally.attempts + newer.attempts,
            tally.refusals + newer.refusals,
            tally.evictions + newer.evictions,
            tally.node_seconds + newer.node_seconds,
            tally.had if newer.had is None else newer.had,
            newer.refused_at or tally.refused_at,
            newer.why or tally.why,
            newer.granted_at or tally.granted_at,
            waits.added(tally.waits, newer.waits),
        )

    def _after(
        self, record: CapacityRecord, before: CapacityTierStatus, tally: _Tally, usage: TierUsage
    ) -> CapacityTierStatus:
        with_heads = record.model is not None and record.model.spec.apply_to is ApplyTo.WORKERS_AND_HEAD
        hours = (number_in(before.observed_hours) or 0.0) + tally.node_seconds / HOUR
        attempts, refusals = before.attempts + tally.attempts, before.refusals + tally.refusals
        evictions = before.evictions + tally.evictions
        price = self._price(record)
        prices = prices_of(before)
        if price.known:
            prices = with_price(prices, round(price.per_node_hour, 4), float(int(self.clock.now())))
        return CapacityTierStatus(
            conditions=merged(before.conditions, self._claims(record, tally), self.clock.now(), record.generation),
            last_unavailable_at=before.last_unavailable_at if tally.refused_at is None else _time(tally.refused_at),
            last_available_at=before.last_available_at if tally.granted_at is None else _time(tally.granted_at),
            jobs_in_use=usage.jobs,
            nodes_in_use=len(usage.workers | usage.heads if with_heads else usage.workers),
            price=f"{price.per_node_hour:.4f}" if price.known else "",
            on_demand_price=f"{price.on_demand:.4f}" if price.on_demand else "",
            attempts=attempts,
            refusals=refusals,
            evictions=evictions,
            evictions_per_node_hour=f"{evictions / hours:.4f}" if hours else "",
            availability=f"{1 - refusals / attempts:.3f}" if attempts else "",
            observed_hours=f"{hours:.4f}" if hours else "",
            waits=wait_entries_of(waits.added(waits_of(before), tally.waits)),
            prices=price_entries_of(prices),
        )

    def _claims(self, record: CapacityRecord, tally: _Tally) -> ConditionUpdates:
        if record.model is None:
            return {ConditionType.VALID: ConditionUpdate("False", "InvalidSpec", record.problem)}
        updates = {
            ConditionType.VALID: ConditionUpdate("True", "Valid"),
            ConditionType.PRICED: self._priced(record, record.model),
        }
        if available := self._available(record, record.model, tally):
            updates[ConditionType.AVAILABLE] = available
        return updates

    def _available(self, record: CapacityRecord, model: CapacityTier, tally: _Tally) -> ConditionUpdate | None:
        """The message of the condition; None keeps the previous one."""
        cluster = model.spec.cluster
        if cluster not in self.clusters:
            return ConditionUpdate("False", "UnknownCluster", f"{cluster} is not registered with the controller")
        if tally.had is not None:
            return stated(tally.had, "Had" if tally.had else "InsufficientCapacity", tally.why)
        held = _held(record, ConditionType.AVAILABLE)
        if held is None or held.reason == "UnknownCluster":
            return ConditionUpdate("Unknown", "NotAsked", "no job has requested it since")
        return None

    def _price(self, record: CapacityRecord) -> Price:
        """The price of the tier; until it is looked up, that of the status if it is for the same spec."""
        price = self.prices.of(record.model) if record.model else Price(known=False)
        held = _held(record, ConditionType.PRICED)
        if held is None or held.observed_generation != record.generation:
            return price
        return price_or_last(price, record.status)

    def _priced(self, record: CapacityRecord, model: CapacityTier) -> ConditionUpdate:
        problem = self.prices.problem(model)
        if self._price(record).known:
            return ConditionUpdate(
                "True", "LookedUp" if problem else "Known", f"no newer price: {problem}" if problem else ""
            )
        return ConditionUpdate("False", "PriceUnknown", problem)


def _held(record: CapacityRecord, kind: ConditionType) -> Condition | None:
    """The condition of this type in the status."""
    return next((entry for entry in read_status(record.status).conditions if entry.type == kind), None)


def _time(at: Instant) -> datetime:
    return datetime.fromtimestamp(int(at), UTC)


def _wait(before: JobState, after: JobState, number: int) -> Waits:
    """The wait of the attempt with this number if all of its workers are ready for the first time. That of a standby
    attempt is not known: it counts from when it takes over."""
    last, attempt = before.attempt, after.attempt
    if attempt is None or attempt.number != number or attempt.standby or attempt.running_at is None:
        return ()
    if last is not None and last.number == number and last.running_at is not None:
        return ()
    return waits.one_wait(attempt.running_at - attempt.created_at)
