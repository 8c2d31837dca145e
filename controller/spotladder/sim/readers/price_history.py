"""The spot price history of AWS: the output of `aws ec2 describe-spot-price-history` for one zone and instance type.

It has prices and says nothing about capacity, so the zone always has capacity, at these prices.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from spotladder.api.problems import quoted
from spotladder.core.model import Instant
from spotladder.errors import InvalidSpec
from spotladder.sim.readers.times import instant
from spotladder.sim.trace import MOST_USD, UNLIMITED, Trace

LIST = "SpotPriceHistory"

ONE_OF_EACH = {
    "AvailabilityZone": "--availability-zone",
    "InstanceType": "--instance-types",
    "ProductDescription": "--product-descriptions",
}
"""Fields that have the same value in all entries, and the options of aws that select one."""


def fits(document: Any) -> bool:
    """Whether this parsed JSON is a spot price history."""
    return isinstance(document, dict) and isinstance(document.get(LIST), list)


def parse(document: Any, path: Path) -> Trace:
    """The prices from the first change to the last one, in any order in the file. Raises InvalidSpec, located at the
    field."""
    prices = dict(sorted(_changes(document, path)))
    if len(prices) < 2:
        raise InvalidSpec(f"has fewer than two prices in {LIST}: set an earlier --start-time", where=str(path))
    times = np.array(list(prices))
    return Trace(
        _zone(document, path),
        times - times[0],
        np.full(len(times), UNLIMITED, dtype=np.int64),
        float(times[-1] - times[0]),
        prices=np.array(list(prices.values())),
        origin=float(times[0]),
        source=str(path),
    )


def _zone(document: Any, path: Path) -> str:
    """The zone of all entries. Raises InvalidSpec for several zones, instance types or products."""
    for field, option in ONE_OF_EACH.items():
        found = sorted({str(entry.get(field) or "") for entry in document[LIST]})
        if len(found) > 1:
            raise InvalidSpec(f"expected one {field}, got {', '.join(found)}: specify {option} to aws", where=str(path))
    return str(document[LIST][0].get("AvailabilityZone") or path.stem)


def _changes(document: Any, path: Path) -> Iterator[tuple[Instant, float]]:
    for index, entry in enumerate(document[LIST]):
        if not isinstance(entry, dict):
            raise InvalidSpec(f"expected an object, got {quoted(entry)}", path=f"{LIST}[{index}]", where=str(path))
        yield instant(entry.get("Timestamp"), f"{LIST}[{index}].Timestamp", path), _price(entry, index, path)


def _price(entry: dict[str, Any], index: int, path: Path) -> float:
    try:
        price = float(entry.get("SpotPrice") or "nan")
    except (TypeError, ValueError):
        price = math.nan
    if not 0 <= price <= MOST_USD:
        raise InvalidSpec(
            f"expected USD per hour from 0 to {MOST_USD:g}, got {quoted(entry.get('SpotPrice'))}: correct it",
            path=f"{LIST}[{index}].SpotPrice",
            where=str(path),
        )
    return price
