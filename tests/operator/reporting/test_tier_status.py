"""The status of CapacityTiers: what decisions add to it, which jobs and nodes use a tier, and its conditions."""

from __future__ import annotations

import json
from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any, cast

import pytest
from structlog.testing import capture_logs

from spotladder.api.status import CapacityTierStatus, Condition
from spotladder.api.stored import CapacityRecord, JobRecord
from spotladder.api.tier_history import read_status
from spotladder.clusters.cache import Cache, Scoped
from spotladder.clusters.errors import Conflict, Invalid
from spotladder.clusters.transport import Object
from spotladder.core.model import Attempt, Decision, JobState, Move, Price, Stage, TierRecord
from spotladder.core.reasons import Reason
from spotladder.errors import SpotladderError
from spotladder.operator.prices import Prices
from spotladder.operator.reporting.tier_status import WRITE_INTERVAL, TierStatusWriter
from spotladder.resources import CAPACITYTIERS, TIEREDJOBS
from tests.clusters.fake import FakeApiServer, FakeClient
from tests.clusters.stepped_clock import SteppedClock
from tests.workloads.builders import job

HOUR = 3600.0
PRICE = {"perNodeHour": "1", "onDemandPerNodeHour": "4"}


class TierStatusScene:
    """A writer for CapacityTiers on an API server in memory, of jobs whose only tier is `spot-a` on `pool`."""

    def __init__(self) -> None:
        self.clock = SteppedClock(1_800_000_000.7)
        self.client = FakeClient(FakeApiServer(self.clock), self.clock)
        self.capacity = Cache(self.client, CAPACITYTIERS, CapacityRecord.of, clock=self.clock)
        self.writer = TierStatusWriter(
            self.client,
            capacity=self.capacity,
            jobs=Scoped([Cache(self.client, TIEREDJOBS, JobRecord.of, clock=self.clock)]),
            pods=lambda _job: (),
            prices=Prices({}, clock=self.clock, changed=lambda: None),
            clusters=frozenset({"home"}),
            clock=self.clock,
        )

    async def tier(self, name: str = "pool", **spec: Any) -> None:
        body = {"metadata": {"name": name}, "spec": {"capacityType": "spot", "price": PRICE, **spec}}
        self.capacity.put(await self.client.create(CAPACITYTIERS, body))

    def decided(
        self,
        *reasons: Reason,
        before: TierRecord | None = None,
        after: TierRecord | None = None,
        source: Stage = Stage.STARTING,
    ) -> None:
        """A persisted decision of the job with these moves on spot-a."""
        moves = tuple(Move(source, Stage.RUNNING, reason, 1, "spot-a", f"why {reason}") for reason in reasons)
        states = [JobState(tiers=(record,) if record else ()) for record in (before, after)]
        loaded = cast("Any", SimpleNamespace(job=job()))
        self.writer.decided(loaded, states[0], Decision(states[1], moves=moves))

    def moved(self, before: JobState, after: JobState, number: int) -> None:
        """A persisted decision after which all workers of this attempt are ready."""
        move = Move(Stage.STARTING, Stage.RUNNING, Reason.ALL_READY, number, "spot-a")
        self.writer.decided(cast("Any", SimpleNamespace(job=job())), before, Decision(after, moves=(move,)))

    async def status(self, name: str = "pool") -> CapacityTierStatus:
        await self.writer.write()
        return await self.stored(name)

    async def stored(self, name: str = "pool") -> CapacityTierStatus:
        found = await self.client.get(CAPACITYTIERS, name)
        json.dumps(found)  # It has only values that an API server accepts.
        return read_status(CapacityRecord.of(found).status)


async def scene(**spec: Any) -> TierStatusScene:
    made = TierStatusScene()
    await made.tier(**spec)
    return made


def condition(status: CapacityTierStatus, kind: str) -> tuple[str, str, str]:
    (found,) = (entry for entry in status.conditions if entry.type == kind)
    return found.status, found.reason, found.message


async def test_an_invalid_tier_has_only_the_condition_valid() -> None:
    status = await (await scene(capacityType="cheap")).status()
    (only,) = status.conditions
    assert (only.type, only.status, only.reason) == ("Valid", "False", "InvalidSpec")
    assert "spec.capacityType" in only.message
    assert (status.price, status.on_demand_price) == ("", "")


@pytest.mark.parametrize("reason", [Reason.STARTED, Reason.FELL_BACK, Reason.MIGRATED_BACK])
async def test_every_way_to_start_an_attempt_on_the_tier_is_a_request(reason: Reason) -> None:
    here = await scene()
    here.decided(reason)
    here.decided(reason)
    status = await here.status()
    assert (status.attempts, status.refusals, status.availability) == (2, 0, "1.000")
    assert condition(status, "Available")[1] == "NotAsked", "the request is not answered yet"


async def test_an_attempt_without_nodes_is_a_refusal_with_its_time_and_message() -> None:
    here = await scene()
    here.decided(Reason.STARTED, Reason.ALL_READY)
    here.decided(Reason.STARTED, Reason.STARTED)
    here.decided(Reason.INSUFFICIENT_CAPACITY, Reason.INSUFFICIENT_CAPACITY)
    status = await here.status()
    assert (status.attempts, status.refusals, status.availability) == (3, 2, "0.333")
    assert condition(status, "Available") == ("False", "InsufficientCapacity", "why InsufficientCapacity")
    assert status.last_unavailable_at is not None
    assert status.last_unavailable_at.timestamp() == int(here.clock.now())
    await here.clock.advance(60)
    here.decided(Reason.ALL_READY)
    later = await here.status()
    assert condition(later, "Available") == ("True", "Had", f"why {Reason.ALL_READY}")
    assert later.last_unavailable_at == status.last_unavailable_at


async def test_a_replacement_of_lost_nodes_is_a_request_of_its_own() -> None:
    """Otherwise a tier on which each attempt ends without a replacement would have an availability of 0."""
    here = await scene()
    here.decided(Reason.STARTED, Reason.ALL_READY)
    here.decided(Reason.ALL_READY, source=Stage.RECOVERING)
    here.decided(Reason.INSUFFICIENT_CAPACITY, source=Stage.RECOVERING)
    status = await here.status()
    assert (status.attempts, status.refusals, status.availability) == (3, 1, "0.667")
    assert condition(status, "Available")[:2] == ("False", "InsufficientCapacity")


async def test_failures_and_node_hours_since_the_previous_state_add_up_to_a_rate() -> None:
    here = await scene()
    here.decided(
        before=TierRecord("spot-a", failures=1, node_seconds=HOUR),
        after=TierRecord("spot-a", failures=3, node_seconds=3 * HOUR),
    )
    here.decided(
        before=TierRecord("spot-a", failures=3, node_seconds=3 * HOUR),
        after=TierRecord("spot-a", failures=4, node_seconds=5 * HOUR),
    )
    status = await here.status()
    assert (status.evictions, status.observed_hours, status.evictions_per_node_hour) == (3, "4.0000", "0.7500")
    here.decided(after=TierRecord("spot-a", failures=1, node_seconds=2 * HOUR))
    status = await here.status()
    assert (status.evictions, status.observed_hours, status.evictions_per_node_hour) == (4, "6.0000", "0.6667")


async def test_a_tier_in_an_unknown_cluster_is_not_available() -> None:
    status = await (await scene(cluster="east")).status()
    message = "east is not registered with the controller"
    assert condition(status, "Available") == ("False", "UnknownCluster", message)


def starting(number: int, created_at: float, running_at: float | None, *, standby: bool = False) -> JobState:
    attempt = Attempt(number, "spot-a", created_at, running_at=running_at, standby=standby)
    return JobState(attempt=attempt, tier="spot-a")


@pytest.mark.parametrize(
    ("before", "after", "waits"),
    [
        pytest.param(starting(1, 100.0, None), starting(1, 100.0, 140.0), [("1m", 1)], id="the first time"),
        pytest.param(starting(1, 100.0, 140.0), starting(1, 100.0, 140.0), [], id="again after a loss"),
        pytest.param(starting(2, 0.0, None), starting(2, 0.0, 9999.0), [("longer", 1)], id="a long wait"),
        pytest.param(starting(2, 0.0, None, standby=True), starting(2, 0.0, 5.0, standby=True), [], id="a standby"),
        pytest.param(starting(2, 0.0, None), starting(2, 0.0, 5.0), [], id="another attempt"),
    ],
)
async def test_the_wait_of_an_attempt_is_counted_once(
    before: JobState, after: JobState, waits: list[tuple[str, int]], request: pytest.FixtureRequest
) -> None:
    here = await scene()
    assert after.attempt is not None
    number = after.attempt.number + (request.node.callspec.id == "another attempt")
    here.moved(before, after, number)
    status = await here.status()
    assert [(entry.up_to, entry.count) for entry in status.waits] == waits
    assert status.last_available_at is not None
    assert status.last_available_at.timestamp() == int(here.clock.now())
    here.moved(before, after, number)
    again = await here.status()
    assert [(entry.up_to, entry.count) for entry in again.waits] == [(name, count + 1) for name, count in waits]


async def test_the_prices_of_the_tier_are_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    here = await scene()
    usd = 0.5
    monkeypatch.setattr(Prices, "of", lambda _self, _tier: Price(usd, 2.0))
    await here.status()
    await here.clock.advance(7200)
    usd = 0.75
    assert [entry.price for entry in (await here.status()).prices] == ["0.5000", "0.7500"]
    monkeypatch.setattr(Prices, "of", lambda _self, _tier: Price(known=False))
    assert [entry.price for entry in (await here.status()).prices] == ["0.5000", "0.7500"]


async def test_a_price_is_kept_until_a_new_controller_has_looked_it_up(monkeypatch: pytest.MonkeyPatch) -> None:
    here = await scene(price={"source": "aws"})
    monkeypatch.setattr(Prices, "of", lambda _self, _tier: Price(0.5, 2.0))
    await here.status()
    monkeypatch.setattr(Prices, "of", lambda _self, _tier: Price(known=False))
    monkeypatch.setattr(Prices, "problem", lambda _self, _tier: "is being looked up")
    status = await here.status()
    assert (status.price, status.on_demand_price) == ("0.5000", "2.0000")
    assert condition(status, "Priced") == ("True", "LookedUp", "no newer price: is being looked up")
    body = {"metadata": {"generation": 2}, "spec": {"instanceTypes": ["g6.xlarge"]}}
    here.capacity.put(await here.client.merge(CAPACITYTIERS, "pool", body=body))
    changed = await here.status()
    assert (changed.price, condition(changed, "Priced")[:2]) == ("", ("False", "PriceUnknown"))


async def test_the_status_of_a_newer_controller_is_continued() -> None:
    """After a return to this version: its counts stay, and the installed CRD is not older."""
    here = await scene()
    here.decided(Reason.STARTED)
    first = await here.status()
    conditions = [{**plain(entry), "observedBy": "x"} for entry in first.conditions]
    newer = {"restoredAt": "2026-11-21T12:00:00Z", "conditions": conditions}
    here.capacity.put(await here.client.merge(CAPACITYTIERS, "pool", body={"status": newer}, subresource="status"))
    with capture_logs() as logs:
        here.decided(Reason.STARTED, Reason.ALL_READY)
        second = await here.status()
        here.decided(Reason.STARTED)
        third = await here.status()
    assert logs == []
    assert (first.attempts, second.attempts, third.attempts) == (1, 2, 3)
    assert condition(third, "Available")[0] == "True"
    stored = await here.client.get(CAPACITYTIERS, "pool")
    assert stored["status"]["restoredAt"] == "2026-11-21T12:00:00Z"


def plain(record: Condition) -> dict[str, Any]:
    """The record as it is stored."""
    return record.model_dump(mode="json", by_alias=True, exclude_none=True)


async def test_a_damaged_number_in_one_status_keeps_no_status_from_being_written() -> None:
    here = await scene()
    body = {"status": {"observedHours": "many"}}
    here.capacity.put(await here.client.merge(CAPACITYTIERS, "pool", body=body, subresource="status"))
    await here.tier("other")
    here.decided(before=TierRecord("spot-a"), after=TierRecord("spot-a", node_seconds=HOUR))
    assert condition(await here.status("other"), "Valid")[0] == "True"
    assert (await here.stored()).observed_hours == "1.0000"


async def test_an_unchanged_status_is_not_written() -> None:
    here = await scene()
    await here.status()
    written = len(here.client.server.writes)
    await here.clock.advance(WRITE_INTERVAL)
    await here.status()
    assert len(here.client.server.writes) == written


def refusing(here: TierStatusScene, errors: Iterable[SpotladderError]) -> Any:
    """A `merge` that raises each of these errors once before it writes."""
    left, merge = list(errors), here.client.merge

    async def tried(*given: Any, **more: Any) -> Object:
        if left:
            raise left.pop(0)
        return await merge(*given, **more)

    return tried


@pytest.mark.parametrize("error", [Conflict(409, "Conflict", ""), SpotladderError("no answer")])
async def test_counts_that_cannot_be_written_are_written_with_the_next_ones(
    monkeypatch: pytest.MonkeyPatch, error: SpotladderError
) -> None:
    here = await scene()
    here.decided(
        Reason.STARTED, Reason.INSUFFICIENT_CAPACITY, after=TierRecord("spot-a", failures=1, node_seconds=HOUR)
    )
    refused_at = int(here.clock.now())
    monkeypatch.setattr(here.client, "merge", refusing(here, [error]))
    await here.writer.write()
    assert (await here.stored()).attempts == 0
    await here.clock.advance(100)
    here.decided(Reason.STARTED, after=TierRecord("spot-a", failures=2, node_seconds=HOUR))
    status = await here.status()
    assert (status.attempts, status.refusals, status.evictions, status.observed_hours) == (2, 1, 3, "2.0000")
    assert condition(status, "Available") == ("False", "InsufficientCapacity", f"why {Reason.INSUFFICIENT_CAPACITY}")
    assert status.last_unavailable_at is not None
    assert status.last_unavailable_at.timestamp() == refused_at


@pytest.mark.parametrize("error", [Conflict(409, "Conflict", ""), Invalid(422, "Invalid", "spec.price: is required")])
async def test_a_refused_write_of_one_tier_does_not_delay_the_others(
    monkeypatch: pytest.MonkeyPatch, error: SpotladderError
) -> None:
    here = await scene()
    await here.tier("other")
    monkeypatch.setattr(here.client, "merge", refusing(here, [error]))
    await here.writer.write()
    written = [bool((await here.stored(name)).conditions) for name in ("pool", "other")]
    assert written == [False, True]
