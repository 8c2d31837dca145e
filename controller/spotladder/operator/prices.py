"""Looks up the prices of nodes in the background and caches them, so that no reconcile waits for a price."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from spotladder.api.capacitytier import CapacityTier, CapacityTierSpec, PriceSource
from spotladder.clusters.clock import Clock
from spotladder.core.model import Instant, Price, Seconds
from spotladder.errors import SpotladderError, described
from spotladder.workloads.tiers import price_of

PRICE_TTL: Seconds = 3600.0
"""Age at which a price is looked up again. The old price is used until the new one is known."""

RETRY: Seconds = 300.0
LOOKUP_TIMEOUT: Seconds = 60.0

UNKNOWN = Price(known=False)

PriceReader = Callable[[CapacityTierSpec], Price]
"""Reads a price; called in a thread. Raises SpotladderError with the cause."""


@dataclass(slots=True)
class _Asked:
    price: Price = UNKNOWN
    problem: str = "is being looked up"
    due: Instant = 0.0
    task: asyncio.Task[None] | None = None


class Prices:
    """Use as `async with Prices(…)`. Calls `changed` when a requested price has changed."""

    def __init__(
        self, sources: Mapping[PriceSource, PriceReader], *, clock: Clock, changed: Callable[[], None]
    ) -> None:
        self._sources = sources
        self._clock = clock
        self._changed = changed
        self._asked: dict[str, _Asked] = {}

    async def __aenter__(self) -> Prices:
        return self

    async def __aexit__(self, *_: object) -> None:
        for asked in self._asked.values():
            if asked.task is not None:
                asked.task.cancel()

    def of(self, capacity: CapacityTier) -> Price:
        """The price in the CapacityTier, else the last price that was looked up. Starts a lookup if that
        price is old."""
        source = capacity.spec.price.source if capacity.spec.price else None
        if source is None:
            return price_of(capacity)
        asked = self._asked.setdefault(_key(capacity.spec), _Asked())
        if asked.task is None and self._clock.now() >= asked.due:
            asked.task = asyncio.create_task(self._ask(asked, self._sources[source], capacity.spec))
        return asked.price

    def problem(self, capacity: CapacityTier) -> str:
        """Why the price or its update is unknown; "" if it is known."""
        given = capacity.spec.price
        if given is None:
            return "spec.price is not given: what its nodes cost is not counted"
        asked = self._asked.get(_key(capacity.spec))
        return "" if given.source is None or asked is None else asked.problem

    async def _ask(self, asked: _Asked, source: PriceReader, spec: CapacityTierSpec) -> None:
        before = asked.price, asked.problem
        try:
            async with asyncio.timeout(LOOKUP_TIMEOUT):
                asked.price, asked.problem = await asyncio.to_thread(source, spec), ""
        except (SpotladderError, TimeoutError) as error:
            asked.problem = str(error) or f"no answer in {LOOKUP_TIMEOUT:g} s"
        except Exception as error:  # noqa: BLE001 – an unexpected response of the vendor; the lookup is retried
            asked.problem = described(error)
        asked.due = self._clock.now() + (RETRY if asked.problem else PRICE_TTL)
        asked.task = None
        if (asked.price, asked.problem) != before:
            self._changed()


def _key(spec: CapacityTierSpec) -> str:
    """The values on which a price depends."""
    return spec.model_dump_json(include={"capacity_type", "region", "zones", "instance_types", "price"})
