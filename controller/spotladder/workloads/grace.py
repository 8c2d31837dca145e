"""Grace periods of pods on nodes that the cloud takes back."""

from __future__ import annotations

from spotladder.core.model import Seconds

MARGIN: Seconds = 5.0
"""Between the end of a pod's grace and the end of its node, and between the end of a drain and the end of the grace."""

DEFAULT_GRACE: Seconds = 30.0
"""Kubernetes' own grace period, for nodes that go without notice."""


def grace_of(notice: Seconds) -> int:
    """Seconds that a pod has to end: as long as the cloud's notice allows, with a margin for the kubelet."""
    return int(max(MARGIN, notice - MARGIN) if notice else DEFAULT_GRACE)


def drain_of(grace: int, notice: Seconds) -> int:
    """Seconds that `ray start --block` may drain: it must end before the kubelet ends it, and the cloud the node."""
    return int(max(1, min(grace, grace_of(notice)) - MARGIN if notice else grace - MARGIN))
