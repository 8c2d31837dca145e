"""One zone with prices in JSON, as in the multi-region benchmark:
`{"metadata": {"gap_seconds": 600, "zone": "us-east-1a", "price_info": {"price": 0.9, "on_demand_price": 3.06}},
"data": [0, 1], "prices": [0.9, 1.1]}`, where 1 means preempted.

Without `prices`, `price_info.price` holds throughout.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from spotladder.api.problems import quoted
from spotladder.api.trace import read_document
from spotladder.errors import InvalidSpec
from spotladder.sim.readers import windows
from spotladder.sim.trace import MOST_USD, Floats, Trace


def read(path: Path) -> Trace:
    """The zone with its prices. Raises InvalidSpec, located at the file, also for a zone without a price."""
    document = read_document(path)
    trace = windows.parse(document, path)
    metadata = document["metadata"]
    zone, info = metadata.get("zone"), metadata.get("price_info")
    if not isinstance(zone, str) or not zone:
        raise _refused(path, "metadata.zone", f"expected the name of a zone, got {quoted(zone)}: add it")
    if info is not None and not isinstance(info, dict):
        raise _refused(path, "metadata.price_info", f"expected an object with price, got {quoted(info)}: correct it")
    on_demand = (info or {}).get("on_demand_price")
    if on_demand is not None:
        on_demand = _price(path, "metadata.price_info.on_demand_price", on_demand)
    prices = _prices(document, info or {}, len(trace.nodes), path)
    return replace(trace, zone=zone, prices=prices, on_demand_price=on_demand)


def _prices(document: Any, info: dict[str, Any], length: int, path: Path) -> Floats:
    listed = document.get("prices")
    if listed is None:
        if info.get("price") is None:
            raise _refused(
                path, "prices", "zone without a price (expected prices or metadata.price_info.price): add one of them"
            )
        return np.full(length, _price(path, "metadata.price_info.price", info["price"]))
    if not isinstance(listed, list) or len(listed) != length:
        got = f"{len(listed)} of them" if isinstance(listed, list) else quoted(listed)
        raise _refused(path, "prices", f"expected one price for each of the {length} samples, got {got}: correct it")
    return np.array([_price(path, f"prices[{index}]", value) for index, value in enumerate(listed)])


def _price(path: Path, field: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= MOST_USD:
        raise _refused(path, field, f"expected USD per hour from 0 to {MOST_USD:g}, got {quoted(value)}: correct it")
    return float(value)


def _refused(path: Path, field: str, message: str) -> InvalidSpec:
    return InvalidSpec(message, path=field, where=str(path))
