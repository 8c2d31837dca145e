"""The Leases of the kubelets of one cluster: which are late, and which nodes stopped at the same time."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

from spotladder.core.model import Instant, Seconds
from spotladder.timestamps import instant
from spotladder.workloads.records import Object

SAME_MOMENT: Seconds = 60.0
"""Nodes that were marked silent within this time of each other fell silent together. Nodes that were marked earlier
are not counted: they are lost."""

LATE_AFTER = 0.625
"""Share of its duration after which a Lease is late: kubelets renew after 0.25, so two renewals are missing."""

OVERDUE_AFTER = 0.3
"""Share of its duration after which a renewal of a Lease is overdue: kubelets add at most 4 % to the quarter."""

LEAST_LATENESS: Seconds = 25.0
"""Minimum time after which a Lease is late, for clusters with shorter Leases: a busy machine may miss some renewals."""

RECENT = 0.375
"""Share of its duration within which a Lease counts as renewed recently."""

DEFAULT_DURATION: Seconds = 40.0
"""Duration of a Lease that does not state it."""

LONGEST_GAP: Seconds = 15.0
"""Maximum time between two lists. After a longer one no Lease counts as late until it could have been renewed."""


@dataclass(slots=True)
class _Lease:
    """One kubelet's Lease. `since` is when its current `renewed` was first listed, in ticks. `seen_renewed`: whether
    the controller has observed a renewal."""

    renewed: str
    since: Seconds
    duration: Seconds
    seen_renewed: bool = False


class LeaseTable:
    """The Leases of one cluster's kubelets by node, and the time of each renewal by the controller's clock."""

    def __init__(self) -> None:
        self._leases: dict[str, _Lease] = {}
        self._listed_at: Seconds | None = None
        self._at: Instant = 0.0

    def listed(self, leases: Iterable[Object], ticks: Seconds, at: Instant = 0.0) -> None:
        """Record a complete list of Leases, listed at `ticks` by the controller's clock and `at` by the cluster's."""
        self._at = at
        before, gap = self._leases, self._listed_at is not None and ticks - self._listed_at > LONGEST_GAP
        self._leases, self._listed_at = {}, ticks
        for lease in leases:
            name, spec = str(lease["metadata"]["name"]), lease.get("spec") or {}
            renewed, known = str(spec.get("renewTime") or ""), before.get(name)
            duration = float(spec.get("leaseDurationSeconds") or DEFAULT_DURATION)
            if known is None:
                self._leases[name] = _Lease(renewed, ticks, duration)
            elif known.renewed != renewed:
                self._leases[name] = _Lease(renewed, ticks, duration, seen_renewed=True)
            else:
                self._leases[name] = _Lease(renewed, ticks if gap else known.since, duration, known.seen_renewed)

    def late(self, ticks: Seconds) -> frozenset[str]:
        """The nodes whose Leases are late while another one was renewed recently."""
        return self._silent(ticks, lambda duration: max(LEAST_LATENESS, LATE_AFTER * duration))

    def overdue(self, ticks: Seconds) -> frozenset[str]:
        """The nodes whose Leases miss a renewal while another one was renewed recently."""
        return self._silent(ticks, lambda duration: OVERDUE_AFTER * duration)

    def _silent(self, ticks: Seconds, limit: Callable[[Seconds], Seconds]) -> frozenset[str]:
        known = [(name, each) for name, each in self._leases.items() if each.seen_renewed]
        if not any(ticks - each.since < RECENT * each.duration for _, each in known):
            return frozenset()
        return frozenset(name for name, each in known if ticks - each.since >= limit(each.duration))

    def stopped_with(self, node: str, ticks: Seconds) -> tuple[frozenset[str], int]:
        """The nodes that stopped at the same time as `node`, which is included, and the number of nodes that had not
        stopped long before.

        A node stopped at the same time if its last renewal is nearer to that of `node` than to now.
        """
        since = self._leases[node].since
        lived = {name: each.since for name, each in self._leases.items() if each.since >= since - SAME_MOMENT}
        return frozenset(name for name, at in lived.items() if at < (since + ticks) / 2), len(lived)

    def stopped_like(self, marked: Collection[str], ticks: Seconds) -> frozenset[str]:
        """The nodes that stopped when these did, which Kubernetes has marked, by the times in the Leases; empty if the
        newest list is old.

        A healthy node has renewed its Lease within the last quarter of the grace period. A node that stopped with the
        marked one did so within a quarter of it before or after. The threshold halfway between works for every grace
        period.
        """
        if self._listed_at is None or ticks - self._listed_at > LONGEST_GAP:
            return frozenset()
        times = {name: at for name, each in self._leases.items() if (at := instant(each.renewed)) is not None}
        stopped_at = min((times[name] for name in marked if name in times), default=None)
        if stopped_at is None:
            return frozenset()
        middle = (stopped_at + self._at) / 2
        return frozenset(name for name, at in times.items() if at < middle)
