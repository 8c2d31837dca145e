"""The prices of the zones of a simulation: those of their traces, else those that the user gives, else assumed ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from spotladder.core.model import Price
from spotladder.errors import InvalidSpec
from spotladder.sim.trace import Trace

ASSUMED = Price(1.0, 3.0)
"""The prices of a simulation without any."""


@dataclass(frozen=True, slots=True)
class KnownPrices:
    """The prices of a zone in USD per node-hour, of spot capacity and on demand; None for one that is not known."""

    spot: float | None = None
    on_demand: float | None = None


def prices_in_traces(traces: Sequence[Trace]) -> KnownPrices:
    """The mean price over time of these traces of one zone, None if one of them has no prices, and the first on-demand
    price in them."""
    on_demand = next((trace.on_demand_price for trace in traces if trace.on_demand_price), None)
    return KnownPrices(_mean(traces), on_demand)


def complete(zones: Mapping[str, KnownPrices], given: KnownPrices) -> tuple[dict[str, Price], tuple[str, ...]]:
    """The prices of each zone, and a sentence about each that is assumed. `given` are the prices of zones that have
    none. Without these, the prices are assumed if no zone has one. Raises InvalidSpec if only some zones have one: then
    a comparison with an assumed price says nothing."""
    spot, spot_assumed = _completed(
        {name: known.spot for name, known in zones.items()}, given.spot, ASSUMED.per_node_hour, "--spot-price", "price"
    )
    on_demand, on_demand_assumed = _completed(
        {name: known.on_demand for name, known in zones.items()},
        given.on_demand,
        ASSUMED.on_demand,
        "--on-demand-price",
        "on-demand price",
    )
    return {name: Price(spot[name], on_demand[name]) for name in zones}, (*spot_assumed, *on_demand_assumed)


def _completed(
    known: Mapping[str, float | None], given: float | None, assumed: float, option: str, kind: str
) -> tuple[dict[str, float], list[str]]:
    missing = [name for name, price in known.items() if price is None]
    priced = [name for name, price in known.items() if price is not None]
    if missing and priced and given is None:
        raise InvalidSpec(
            f"zone {missing[0]} has no {kind}, but zone {priced[0]} has one: specify {option} for the zones without",
            path=option,
        )
    default = assumed if given is None else given
    sentences = [f"the {kind} is ${assumed:g} per node-hour, because no zone has one ({option})"]
    return (
        {name: default if price is None else price for name, price in known.items()},
        sentences if missing and given is None else [],
    )


def _mean(traces: Sequence[Trace]) -> float | None:
    paid = duration = 0.0
    for trace in traces:
        if trace.prices is None:
            return None
        paid += float(np.diff(trace.times, append=trace.end) @ trace.prices)
        duration += trace.end
    return paid / duration if duration else None
