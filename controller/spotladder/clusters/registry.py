"""The clusters that tiers may be in, by name. `home` is the one with the TieredJobs."""

from __future__ import annotations

from typing import Protocol

from spotladder.clusters.connection import Connection
from spotladder.errors import EnvironmentFailure

HOME = "home"


class UnknownCluster(EnvironmentFailure):
    """No cluster of that name is registered."""


class Registry(Protocol):
    """Finds a cluster by the name that CapacityTiers use."""

    def names(self) -> frozenset[str]:
        """All clusters."""

    def connection(self, name: str) -> Connection:
        """How to reach it. Raises UnknownCluster."""


class HomeOnly:
    """The registry of a controller that knows its own cluster and no other."""

    def __init__(self, home: Connection) -> None:
        self._home = home

    def names(self) -> frozenset[str]:
        return frozenset({HOME})

    def connection(self, name: str) -> Connection:
        if name != HOME:
            raise UnknownCluster(f"cluster {name!r} is not registered: this controller knows {HOME} only")
        return self._home
