"""Egress prices of regions in CSV: `from_region,to_region,price_usd_per_gb`. The unit is GiB, whatever the header of
this published format calls it: 2^30 bytes, as in the sizes of commits and in `egressPerGiB`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from spotladder.errors import InvalidSpec
from spotladder.sim.readers.text import number, refused, rows
from spotladder.sim.trace import MOST_USD

HEADER = ["from_region", "to_region", "price_usd_per_gb"]

Egress = Mapping[tuple[str, str], float]
"""USD per GiB, by source region and destination region."""


def read(path: Path) -> Egress:
    """The prices. Raises InvalidSpec, located at the line."""
    found: dict[tuple[str, str], float] = {}
    for line, fields in rows(path):
        if line == 1 and fields == HEADER:
            continue
        if line == 1 or len(fields) != len(HEADER):
            raise refused(path, line, f"expected {','.join(HEADER)}, got {','.join(fields)}: correct the line")
        source, target, price = fields
        if (source, target) in found:
            raise refused(path, line, f"the price from {source} to {target} is given twice: remove one of them")
        found[source, target] = number(path, line, HEADER[2], price, least=0, most=MOST_USD)
    if not found:
        raise InvalidSpec(
            f"has no prices (expected lines of {','.join(HEADER)}): specify another file", where=str(path)
        )
    return found
