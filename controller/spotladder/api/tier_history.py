"""What all jobs have observed on a tier: in the status of its CapacityTier, and as the core's records."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from math import isfinite

from pydantic import ValidationError

from spotladder.api.status import CapacityTierStatus, SeenPrice, WaitCount
from spotladder.core.durations import format_duration
from spotladder.core.history.grants import standing_grant
from spotladder.core.history.waits import BOUNDS, Waits, usual_wait
from spotladder.core.model import NOTHING_KNOWN, Instant, KnownCapacity, Price, PricePoint, Seconds

_WAIT_NAMES = (*(format_duration(bound) for bound in BOUNDS), "longer")


UNKNOWN = Price(known=False)


@dataclass(frozen=True, slots=True)
class TierHistory:
    """`wait` and `prices` are those of the core's Tier, and `known` what else is known of its capacity. `price` is the
    one that a controller has looked up last.
    `granted_at` is when a job last got all of its nodes there; None if that is unknown, or the tier has refused a job
    since."""

    wait: Seconds = 0.0
    prices: tuple[PricePoint, ...] = ()
    granted_at: Instant | None = None
    known: KnownCapacity = NOTHING_KNOWN
    price: Price = UNKNOWN


NO_HISTORY = TierHistory()


def read_status(status: bytes) -> CapacityTierStatus:
    """The status of a CapacityTier; a damaged one counts as empty."""
    with suppress(ValidationError):
        return CapacityTierStatus.model_validate_json(status)
    return CapacityTierStatus()


@lru_cache(maxsize=256)
def history_in(status: bytes) -> TierHistory:
    """The history in the status of a CapacityTier."""
    read = read_status(status)
    wait = usual_wait(waits_of(read))
    return TierHistory(
        wait,
        prices_of(read),
        standing_grant(_instant(read.last_available_at), _instant(read.last_unavailable_at)),
        _known(read, wait),
        _price(read),
    )


def price_or_last(price: Price, status: bytes) -> Price:
    """This price or, while it is unknown, the one that a controller has looked up last."""
    last = history_in(status).price
    return last if last.known and not price.known else price


def _price(read: CapacityTierStatus) -> Price:
    price = number_in(read.price)
    return UNKNOWN if price is None else Price.listed(price, number_in(read.on_demand_price))


def _known(read: CapacityTierStatus, wait: Seconds) -> KnownCapacity:
    refusals = (one for one in read.conditions if (one.type, one.status) == ("Available", "False"))
    return KnownCapacity(
        number_in(read.evictions_per_node_hour),
        number_in(read.observed_hours) or 0.0,
        next((f"{one.reason}: {one.message}" for one in refusals), ""),
        availability=number_in(read.availability),
        ready_after=wait or None,
    )


def number_in(text: str) -> float | None:
    """The number; None for one that is unknown or damaged."""
    with suppress(ValueError):
        if isfinite(number := float(text)):
            return number
    return None


def _instant(at: datetime | None) -> Instant | None:
    return None if at is None else at.timestamp()


def waits_of(status: CapacityTierStatus) -> Waits:
    """The waits in this status. Durations that this version does not know are ignored."""
    found = {entry.up_to: entry.count for entry in status.waits}
    counts = tuple(found.get(name, 0) for name in _WAIT_NAMES)
    return counts if any(counts) else ()


def wait_entries_of(waits: Waits) -> list[WaitCount]:
    """The waits for the status, without durations that were never observed."""
    return [WaitCount(up_to=name, count=count) for name, count in zip(_WAIT_NAMES, waits, strict=False) if count]


def prices_of(status: CapacityTierStatus) -> tuple[PricePoint, ...]:
    """The prices in this status."""
    return tuple(PricePoint(entry.since.timestamp(), float(entry.price)) for entry in status.prices)


def price_entries_of(prices: tuple[PricePoint, ...]) -> list[SeenPrice]:
    """The prices for the status."""
    return [
        SeenPrice(since=datetime.fromtimestamp(int(point.since), UTC), price=f"{point.usd:.4f}") for point in prices
    ]
