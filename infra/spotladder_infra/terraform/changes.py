"""Summary of a plan: how many resources are created, changed, replaced and deleted, by type. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from spotladder_infra.terraform.events import Action, Planned

CLUSTERS = ("aws_eks_cluster", "google_container_cluster")
"""The types of clusters."""

WORDS = {
    Action.CREATE: "create",
    Action.UPDATE: "change",
    Action.REPLACE: "replace",
    Action.DELETE: "delete",
    Action.FORGET: "forget",
}


NEEDED = (*(f"{kind}." for kind in CLUSTERS), "aws_subnet.private-", "google_compute_subnetwork.")
"""The beginnings of the addresses of clusters and of the subnets of their nodes."""


def lost(planned: Iterable[Planned]) -> list[str]:
    """The addresses of clusters and subnets of nodes that are deleted, also to create others in their place."""
    ends = {Action.DELETE, Action.REPLACE}
    ended = (entry.address for entry in planned if entry.action in ends and not entry.tainted)
    return [address for address in ended if address.startswith(NEEDED)]


def lost_clusters(planned: Iterable[Planned]) -> list[str]:
    """The clusters of them."""
    return [address for address in lost(planned) if address.partition(".")[0] in CLUSTERS]


def by_type(planned: Iterable[Planned]) -> list[tuple[str, ...]]:
    """The rows of a plan: each type of resources, and the number for each of WORDS."""
    counts = Counter((_type_of(entry), entry.action) for entry in planned)
    types = sorted({kind for kind, _ in counts})
    return [(kind, *(str(counts[kind, action]) for action in WORDS)) for kind in types]


def counted(planned: Iterable[Planned]) -> str:
    """The plan as text: "94 to create, 1 to change"; "no change" for an empty one."""
    counts = Counter(entry.action for entry in planned)
    return ", ".join(f"{counts[action]} to {word}" for action, word in WORDS.items() if counts[action]) or "no change"


def _type_of(entry: Planned) -> str:
    return entry.address.partition(".")[0]
