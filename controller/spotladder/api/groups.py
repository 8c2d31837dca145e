"""Which groups of a workload's pods are on the tier: they get its nodes, their number is the number of workers, and
their losses are the tier's failures.

The groups that ask for accelerators are on the tier. If none asks for one, all are. A group that a tier names in
`groups` is not. The pods of the other groups are auxiliary: they keep their own node selectors, and no loss of them is
a failure of the tier.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from spotladder.api.template import inner

_NO_ACCELERATOR = re.compile(r"(?i)efa|rdma|infiniband|sriov|fuse|kvm|networking|eni$|pod-?eni|ipv4")
"""Extended resources that are no accelerators: network cards, addresses and devices of the host."""


def asks_for_accelerators(pod: Any) -> bool:
    """Whether a pod spec requests an accelerator: an extended resource, or a claim of dynamic resource allocation.
    Values of other types are not accelerators."""
    if inner(pod, "resourceClaims"):
        return True
    containers = inner(pod, "containers")
    return isinstance(containers, list) and any(
        _accelerator(name, amount)
        for container in containers
        for kind in ("requests", "limits")
        if isinstance(amounts := inner(container, "resources", kind), Mapping)
        for name, amount in amounts.items()
    )


def on_tier(groups: Sequence[tuple[str, bool]], elsewhere: Collection[str] = ()) -> tuple[bool, ...]:
    """For each group, given as its name and whether it asks for accelerators, whether it is on the tier. `elsewhere`
    are the groups that have a CapacityTier of their own."""
    alike = not any(asks for name, asks in groups if name not in elsewhere)
    return tuple((asks or alike) and name not in elsewhere for name, asks in groups)


def _accelerator(name: Any, amount: Any) -> bool:
    extended = isinstance(name, str) and "/" in name and not name.startswith("kubernetes.io/")
    return extended and not _NO_ACCELERATOR.search(name) and str(amount) not in ("0", "None")
