"""The spot price history of AWS: the output of `aws ec2 describe-spot-price-history` for one zone and instance type.

It has prices and says nothing about capacity, so the zone always has capacity, at these prices.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_pascal

from spotladder.errors import InvalidSpec
from spotladder.sim.readers.text import validated
from spotladder.sim.trace import MAX_USD, UNLIMITED, Trace

LIST = "SpotPriceHistory"

ONE_OF_EACH = {
    "availability_zone": "--availability-zone",
    "instance_type": "--instance-types",
    "product_description": "--product-descriptions",
}
"""Fields that have the same value in all entries, and the options of aws that select one."""


class _Document(BaseModel):
    model_config = ConfigDict(alias_generator=to_pascal, allow_inf_nan=False)


class Entry(_Document):
    """A change of a price, in USD per hour."""

    timestamp: AwareDatetime
    spot_price: float = Field(ge=0, le=MAX_USD)
    availability_zone: str = ""
    instance_type: str = ""
    product_description: str = ""


class History(_Document):
    """The output of aws."""

    spot_price_history: list[Entry]


def fits(document: Any) -> bool:
    """Whether this parsed JSON is a spot price history."""
    return isinstance(document, dict) and isinstance(document.get(LIST), list)


def parse(document: Any, path: Path) -> Trace:
    """The prices from the first change to the last one, in any order in the file. Raises InvalidSpec, located at the
    field."""
    entries = validated(History, document, path).spot_price_history
    prices = dict(sorted((entry.timestamp.timestamp(), entry.spot_price) for entry in entries))
    if len(prices) < 2:
        raise InvalidSpec(f"has fewer than two prices in {LIST}: set an earlier --start-time", where=str(path))
    for field, option in ONE_OF_EACH.items():
        found = sorted({getattr(entry, field) for entry in entries})
        if len(found) > 1:
            raise InvalidSpec(
                f"expected one {to_pascal(field)}, got {', '.join(found)}: specify {option} to aws", where=str(path)
            )
    times = np.array(list(prices))
    return Trace(
        entries[0].availability_zone or path.stem,
        times - times[0],
        np.full(len(times), UNLIMITED, dtype=np.int64),
        float(times[-1] - times[0]),
        prices=np.array(list(prices.values())),
        origin=float(times[0]),
        source=str(path),
    )
