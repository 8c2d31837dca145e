"""Looks up the prices of nodes in the background and caches them, so that no reconcile waits for a price."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple

from spotladder.api.capacitytier import CapacityTier, CapacityTierSpec, PriceSource
from spotladder.clusters.clock import Clock
from spotladder.clusters.shared_reads import SharedReads
from spotladder.core.model import Price, Seconds
from spotladder.errors import SpotladderError, described
from spotladder.operator.threads import threaded
from spotladder.workloads.tiers import price_of

PRICE_TTL: Seconds = 3600.0
"""Age at which a price is looked up again. The old price is used until the new one is known."""

RETRY: Seconds = 300.0
LOOKUP_TIMEOUT: Seconds = 60.0

UNKNOWN = Price(known=False)

PriceReader = Callable[[CapacityTierSpec], Price]
"""Reads a price; called in a thread. Raises SpotladderError with the cause."""


class _Answer(NamedTuple):
    """The last price that was looked up, and why it or its update is unknown; "" if it is known."""

    price: Price = UNKNOWN
    problem: str = "is being looked up"


class Prices:
    """Use as `async with Prices(…)`. Calls `changed` when a requested price has changed."""

    def __init__(
        self, sources: Mapping[PriceSource, PriceReader], *, clock: Clock, changed: Callable[[], None]
    ) -> None:
        self._sources = sources
        self._changed = changed
        self._answers: dict[str, _Answer] = {}
        self._lookups = SharedReads[str, _Answer](clock, lambda answer: RETRY if answer.problem else PRICE_TTL)

    async def __aenter__(self) -> Prices:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._lookups.aclose()

    def of(self, capacity: CapacityTier) -> Price:
        """The price in the CapacityTier, else the last price that was looked up. Starts a lookup if that
        price is old."""
        spec = capacity.spec
        source = spec.price.source if spec.price else None
        if source is None:
            return price_of(capacity)
        key = _key(spec)
        answer = self._answers.setdefault(key, _Answer())
        self._lookups.begun(key, lambda: self._look_up(key, self._sources[source], spec))
        return answer.price

    def problem(self, capacity: CapacityTier) -> str:
        """Why the price or its update is unknown; "" if it is known."""
        given = capacity.spec.price
        if given is None:
            return "spec.price is not given: what its nodes cost is not counted"
        answer = self._answers.get(_key(capacity.spec))
        return "" if given.source is None or answer is None else answer.problem

    async def _look_up(self, key: str, source: PriceReader, spec: CapacityTierSpec) -> _Answer:
        before = self._answers[key]
        try:
            async with asyncio.timeout(LOOKUP_TIMEOUT):
                answer = _Answer(await threaded(partial(source, spec)), "")
        except (SpotladderError, TimeoutError) as error:
            answer = _Answer(before.price, str(error) or f"no answer in {LOOKUP_TIMEOUT:g} s")
        except Exception as error:  # noqa: BLE001 – an unexpected response of the vendor; the lookup is retried
            answer = _Answer(before.price, described(error))
        self._answers[key] = answer
        if answer != before:
            self._changed()
        return answer


def _key(spec: CapacityTierSpec) -> str:
    """The values on which a price depends."""
    return spec.model_dump_json(include={"capacity_type", "region", "zones", "instance_types", "price"})
