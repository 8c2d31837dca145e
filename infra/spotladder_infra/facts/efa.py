"""Network cards of instance types with Elastic Fabric Adapter.

Source: docs.aws.amazon.com/AWSEC2/latest/UserGuide/efa-acc-inst-types.html. Types that are not listed have one card.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

NETWORK_CARDS: Mapping[str, int] = MappingProxyType(
    {
        "p4d.24xlarge": 4,
        "p4de.24xlarge": 4,
        "p5.48xlarge": 32,
        "p5e.48xlarge": 32,
        "p5en.48xlarge": 16,
        "p6-b200.48xlarge": 8,
        "trn1.32xlarge": 8,
        "trn1n.32xlarge": 16,
        "trn2.48xlarge": 16,
    }
)


def network_cards(instance_types: Iterable[str]) -> int:
    """Cards that every one of these types has; at least 1."""
    return min((NETWORK_CARDS.get(name, 1) for name in instance_types), default=1)
