"""What the largest node of a tier offers, for the message about a pod that fits none."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType

from spotladder.workloads.placement import Placement
from spotladder.workloads.records import NodeRecord

_UNITS: Mapping[str, float] = MappingProxyType(
    {
        "": 1.0, "m": 1e-3, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12,
        "Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40,
    }
)  # fmt: skip
_QUANTITY = re.compile(r"([0-9.]+)([A-Za-z]*)$")


def largest_node(nodes: Iterable[NodeRecord], placement: Placement) -> str:
    """What pods may use of the largest node with the labels of this placement, such as `cpu 8, memory 30.6Gi`; "" if
    there is none. Of two nodes, the one with more devices counts as larger, then the one with more CPUs."""
    found = [dict(node.allocatable) for node in nodes if node.allocatable and placement.matches(node.labels)]
    largest = max(found, key=_order, default=None)
    if largest is None:
        return ""
    devices = (f"{name} {amount}" for name, amount in largest.items() if "/" in name and _amount(amount))
    memory = f"{_amount(largest.get('memory', '')) / 2**30:.1f}Gi"
    return ", ".join((f"cpu {_amount(largest.get('cpu', '')):g}", f"memory {memory}", *devices))


def _order(allocatable: Mapping[str, str]) -> tuple[float, float, float]:
    devices = sum(_amount(amount) for name, amount in allocatable.items() if "/" in name)
    return devices, _amount(allocatable.get("cpu", "")), _amount(allocatable.get("memory", ""))


def _amount(quantity: str) -> float:
    """The quantity in units of the resource; 0 if it is not a quantity."""
    parts = _QUANTITY.match(quantity)
    try:
        return float(parts[1]) * _UNITS[parts[2]] if parts else 0.0
    except (ValueError, KeyError):
        return 0.0
