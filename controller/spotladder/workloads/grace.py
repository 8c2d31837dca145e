"""Grace periods of pods on nodes that the cloud reclaims."""

from __future__ import annotations

from spotladder.core.model import Seconds

MARGIN: Seconds = 5.0
"""Seconds between the end of a pod's grace period and the end of its node, and between the end of a drain and that of
the grace period."""

DEFAULT_GRACE: Seconds = 30.0
"""Kubernetes' default grace period, for nodes without notice."""


def grace_of(notice: Seconds) -> int:
    """The grace period of a pod in seconds: the cloud's notice period minus a margin for the kubelet."""
    return int(max(MARGIN, notice - MARGIN) if notice else DEFAULT_GRACE)


def drain_of(grace: int, notice: Seconds) -> int:
    """The drain time of `ray start --block` in seconds: it must end before the kubelet kills it and the cloud reclaims
    the node."""
    return int(max(1, min(grace, grace_of(notice)) - MARGIN if notice else grace - MARGIN))
