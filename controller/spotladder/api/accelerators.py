"""Which resources of a pod are accelerators: GPUs, TPUs and the like."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from spotladder.api.template import inner

_NO_ACCELERATOR = re.compile(r"(?i)efa|rdma|infiniband|sriov|fuse|kvm|networking|eni$|pod-?eni|ipv4")
"""Extended resources that are no accelerators: network cards, addresses and devices of the host."""


def accelerators(container: Any) -> dict[str, Any]:
    """The extended resources of a container that are accelerators, by name. Values of other types are not."""
    return {
        name: amount
        for kind in ("requests", "limits")
        if isinstance(amounts := inner(container, "resources", kind), Mapping)
        for name, amount in amounts.items()
        if _is_accelerator(name, amount)
    }


def asks_for_accelerators(pod: Any) -> bool:
    """Whether a pod spec requests an accelerator, or has a claim of dynamic resource allocation."""
    if inner(pod, "resourceClaims"):
        return True
    containers = inner(pod, "containers")
    return isinstance(containers, list) and any(map(accelerators, containers))


def _is_accelerator(name: Any, amount: Any) -> bool:
    extended = isinstance(name, str) and "/" in name and not name.startswith("kubernetes.io/")
    return extended and not _NO_ACCELERATOR.search(name) and str(amount) not in ("0", "None")
